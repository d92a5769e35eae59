"""The wide results as tables of a comparison: one number per explainer for each data set and kind of model.

The seeds of a data set and model are averaged here, its models in `statistics.over_data_sets`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.lines import question_of
from experiments.plan import CONTROL_LINES
from experiments.results import Result
from experiments.statistics import Numbers
from texplainer.metrics.table import ROW_STATISTICS

#: TreeSHAP is SHAP where the model is a tree
SAME_METHOD = {"TreeSHAP": "SHAP"}


@dataclass(frozen=True)
class WideCriterion:
    """What explainers are compared by: scores (their mean), how rows are folded, which way is better, as text."""

    label: str
    scores: tuple[str, ...]
    fold: str
    better: str
    meaning: str

    def number(self, result: Result, explainer: str) -> float:
        """One run's number; NaN if it is undefined in every row."""
        found = [result.scores[explainer, s] for s in self.names(result) if (explainer, s) in result.scores]
        known = [values[np.isfinite(values)] for values in found]
        folded = [ROW_STATISTICS[self.fold](values) for values in known if len(values)]
        return float(np.mean(folded)) if folded else math.nan

    def names(self, result: Result) -> list[str]:
        """Score names; "pgi/" stands for every k that was measured."""
        measured = list(dict.fromkeys(score for _, score in result.scores))
        return [
            m for m in measured if any(m == s or (s.endswith("/") and m.startswith(s)) for s in self.scores)
        ]


# fmt: off
LOCALITY = WideCriterion("Locality, r = 0.75", ("local_rank/0.75",), "mean", "high",
    "rank correlation with the measured effects of moving one feature by up to 0.75 SD")
CLOSER = WideCriterion("Locality, r = 0.25", ("local_rank/0.25",), "mean", "high",
    "the same, by up to 0.25 SD")
MISPLACED = WideCriterion("Misplaced mass", ("misplaced/0.75",), "mean", "low",
    "fraction of the values on features without an effect within 0.75 SD")
BACKGROUND = WideCriterion("Background", ("background/sample",), "median", "low",
    "relative change of the values with another sample of the background")
NOISE = WideCriterion("Background noise", ("background/noise",), "max", "low",
    "relative change of the values with noise of 1e-12 SD in the background")
SEED = WideCriterion("Seed", ("seed",), "median", "low",
    "relative change of the values with another seed")
RIS_NORM = WideCriterion("RIS*", ("ris_norm/median",), "median", "low",
    "relative change of the values over the distance to a near row of the same class, vectors as a whole")
RIS = WideCriterion("RIS mean", ("ris/mean",), "mean", "low",
    "the same, feature by feature as the paper has it, over the relative change of the inputs")
ROS = WideCriterion("ROS mean", ("ros/mean",), "mean", "low",
    "the same, over the relative change of the prediction")
INFIDELITY = WideCriterion("Infidelity", ("infidelity",), "median", "low",
    "squared error of the change that the values predict for small moves; zeros score 1")
PGI_ZERO = WideCriterion("PGI zero", ("pgi/",), "mean", "high",
    "change of the prediction when the features with the largest values are set to 0")
PGI_MEAN = WideCriterion("PGI mean", ("pgi_mean/",), "mean", "high",
    "change of the prediction when the features with the largest values are set to their mean")
PGI_MARGINAL = WideCriterion("PGI marginal", ("pgi_marginal/",), "mean", "high",
    "the same, set to other values of their columns")
SUMS = WideCriterion("Residual of the sum", ("lap/median",), "median", "low",
    "|f(x) - mean of f over the whole background - sum of the values|")
TRUTH = WideCriterion("Mass on what cannot matter", ("truth_mass",), "mean", "low",
    "fraction of the values on features that cannot matter")
# fmt: on


def question_tables(
    results: Sequence[Result], criterion: WideCriterion, question: str = "", controls: bool = False
) -> dict[tuple[str, str], Numbers]:
    """Number per explainer for each (data set, model); only of lines that answer the question, if given."""
    collected: dict[tuple[str, str], dict[str, list[float]]] = {}
    for result in results:
        experiment = result.configuration["experiment"]
        table = collected.setdefault((experiment["dataset"], experiment["model"]), {})
        for name in dict.fromkeys(name for name, _ in result.scores):
            wanted = (controls and name in CONTROL_LINES) or (
                question_of(name) and question in ("", question_of(name))
            )
            if wanted and name not in result.record.get("skipped", {}):
                table.setdefault(SAME_METHOD.get(name, name), []).append(criterion.number(result, name))
    return {
        key: {name: defined_mean(values) for name, values in table.items()}
        for key, table in collected.items()
    }


def defined_mean(values: Sequence[float]) -> float:
    """Mean of what is defined."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def data_set_means(tables: Mapping[tuple[str, str], Numbers], name: str) -> list[float]:
    """One line's mean over the models it fits, per data set."""
    found: dict[str, list[float]] = {}
    for (data_set, _), table in tables.items():
        if name in table:
            found.setdefault(data_set, []).append(table[name])
    return [defined_mean(values) for values in found.values()]


def cost_of(results: Sequence[Result], explainer: str) -> tuple[float, float, float]:
    """Medians over runs: evaluations a row, milliseconds a row, and these over the model's own prediction."""
    evaluations, seconds, ratios = [], [], []
    for result in results:
        record, sizes = result.record, result.configuration["sizes"]
        rows = result.configuration.get("rows", sizes["rows"])
        names = [name for name in (explainer, *SAME_METHOD) if SAME_METHOD.get(name, name) == explainer]
        for name in names:
            if name in record.get("explaining_seconds", {}) and name not in record.get("skipped", {}):
                each = record["explaining_seconds"][name] / rows
                seconds.append(each)
                ratios.append(each / record["prediction_seconds"])
                evaluations.append(record.get("evaluations", {}).get(name, math.nan))
    found = [np.array(values) for values in (evaluations, seconds, ratios)]
    medians = [float(np.median(v[np.isfinite(v)])) if np.isfinite(v).any() else math.nan for v in found]
    return medians[0], 1000 * medians[1], medians[2]
