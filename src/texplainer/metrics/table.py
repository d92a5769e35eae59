"""The table of metrics: what each needs, which way is better, its convention and its reference.

To add a metric: write a function of arrays that returns scores per row (or a dict of parts), and one line
here. `needs` maps the function's arguments to the evidence they are fed with (see shared.py, own.py);
evidence that no chosen metric needs is not gathered. A convention that differs in the wild is a line of its
own.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from texplainer.errors import InputError
from texplainer.signatures import Array

from . import accuracy, complexity, faithfulness, stability

Better = Literal["low", "high"]


@dataclass(frozen=True)
class Metric:
    """One line of the table.

    A part named after a statistic ("max", "mean", "median", "p95") is folded over rows by it in tables; the
    others by the mean.
    """

    label: str
    function: Callable[..., Array | dict[str, Array]]
    needs: Mapping[str, str]
    better: Better
    family: Literal["stability", "faithfulness", "accuracy", "complexity", "truth", "printed"]
    convention: str
    reference: str
    lower_parts: tuple[str, ...] = ()  # parts for which low is better although the metric's own is high


FOLDS: dict[str, Callable[[Array], Any]] = {
    "max": np.max,
    "mean": np.mean,
    "median": np.median,
    "p95": lambda scores: np.quantile(scores, 0.95),
}


def _same(*names: str, **renamed: str) -> dict[str, str]:
    return {name: name for name in names} | renamed


_NEAR = ("values", "near_values", "near_valid")
_MODEL = ("values", "rows", "predict", "fills", "owner")
_INPUTS = _same(*_NEAR, "rows", "near_rows")
_OUTPUTS = _same(*_NEAR, "outputs", "near_outputs")
_MARGINS = _same(*_NEAR, outputs="margins", near_outputs="near_margins")
_GAP = _same(*_MODEL, "prediction", "ties", "k")
_AREA = _same(*_MODEL, "ties", "direction", "top")
_RIS, _ROS = stability.relative_input_stability, stability.relative_output_stability
_PGI = faithfulness.prediction_gap_important
_AGARWAL = "Agarwal et al. 2022, arXiv 2203.06877"
_ALVAREZ = "Alvarez-Melis and Jaakkola 2018, arXiv 1806.08049"
_BHATT = "Bhatt et al. 2020, arXiv 2005.00631"
_DAI = "Dai et al. 2022, arXiv 2205.07277"
_NGUYEN = "Nguyen and Martinez 2020, arXiv 2007.07584"
_PETSIUK = "Petsiuk et al. 2018, arXiv 1806.07421"
_YEH = "Yeh et al. 2019, arXiv 1901.09392"

# fmt: off
METRICS: dict[str, Metric] = {
    # name: Metric(label, function, needs, better, family, convention, reference)
    "ris": Metric("RIS", _RIS, _INPUTS, "low", "stability", "element-wise, double-sided clipping", _AGARWAL),
    "ros": Metric("ROS", _ROS, _OUTPUTS, "low", "stability", "element-wise, probabilities", _AGARWAL),
    "rrs": Metric("RRS", stability.relative_representation_stability, _same(*_NEAR, "hidden", "near_hidden"),
                  "low", "stability", "element-wise, last hidden layer", _AGARWAL),
    "res": Metric("RES", stability.run_stability, _same("repeats"), "low", "stability",
                  "largest distance to the mean run; standard deviation", "the paper, Eq. 9"),
    "ris_openxai": Metric("RIS (OpenXAI)", partial(_RIS, convention="openxai"), _INPUTS, "low", "stability",
                          "ratio of vector norms", _AGARWAL),
    "ros_openxai": Metric("ROS (OpenXAI)", partial(_ROS, convention="openxai"), _MARGINS, "low", "stability",
                          "ratio of vector norms, margins", _AGARWAL),
    "ris_quantus": Metric("RIS (Quantus)", partial(_RIS, convention="quantus"), _INPUTS, "low", "stability",
                          "element-wise, exact zeros lifted", _AGARWAL),
    "ros_quantus": Metric("ROS (Quantus)", partial(_ROS, convention="quantus"), _MARGINS, "low", "stability",
                          "element-wise over the plain distance of margins", _AGARWAL),
    "ris_norm": Metric("RIS*", stability.normwise_stability,
                       _same(*_NEAR, "spread", basis="rows", near_basis="near_rows"), "low", "stability",
                       "vector norm over root-mean-square step in spreads, worst neighbour", "texplainer"),
    "ros_norm": Metric("ROS*", stability.normwise_stability,
                       _same(*_NEAR, basis="outputs", near_basis="near_outputs", spread="outputs_spread"),
                       "low", "stability",
                       "vector norm over root-mean-square step of outputs, worst neighbour", "texplainer"),
    "lipschitz": Metric("Lipschitz", stability.local_lipschitz, _INPUTS, "low", "stability",
                        "largest ratio of Euclidean distances", _ALVAREZ),
    "sensitivity": Metric("Sensitivity", stability.sensitivity, _same(*_NEAR), "low", "stability",
                          "relative to the explanation's norm (Captum)", _YEH),
    "cai": Metric("CAI", stability.class_agreement, _same("values", "rows", "labels", "spread"), "high",
                  "stability", "mean cosine to the 5 nearest rows of the class", "texplainer"),
    "pgi": Metric("PGI", _PGI, _GAP, "high", "faithfulness", "top k by |e| removed, the run's mask", _DAI),
    "pgu": Metric("PGU", faithfulness.prediction_gap_unimportant, _GAP, "low", "faithfulness",
                  "bottom k by |e| removed, the run's mask", _DAI),
    "pgi_mean": Metric("PGI (mean)", _PGI, _GAP | {"fills": "fills_mean"}, "high", "faithfulness",
                       "removed to the mean", _DAI),
    "pgi_marginal": Metric("PGI (marginal)", _PGI, _GAP | {"fills": "fills_marginal"}, "high", "faithfulness",
                           "removed to marginal quantiles", _DAI),
    "pgi_openxai": Metric("PGI (OpenXAI)", faithfulness.prediction_gap_area,
                          _GAP | {"fills": "fills_gaussian"}, "high", "faithfulness",
                          "Gaussian noise on the top k, area over k", _DAI),
    "pgi_kept": Metric("PGI (kept)", faithfulness.prediction_gap_kept, _GAP, "high", "printed",
                       "1 - gap, only the top k by signed value kept: to compare with the paper's tables, "
                       "not a measure of faithfulness", "the paper's tables"),
    "deletion": Metric("Deletion", faithfulness.deletion, _AREA, "low", "faithfulness",
                       "signed order, predicted class's output", _PETSIUK),
    "insertion": Metric("Insertion", faithfulness.insertion, _AREA, "high", "faithfulness",
                        "signed order, predicted class's output", _PETSIUK),
    "faithfulness_correlation": Metric("Faith. corr.", faithfulness.faithfulness_correlation,
                                       _same(*_MODEL, "prediction", "subsets"), "high", "faithfulness",
                                       "Pearson over random subsets of features", _BHATT),
    "monotonicity": Metric("Monotonicity", faithfulness.monotonicity, _same(*_MODEL, "prediction"), "high",
                           "faithfulness", "rank correlation of |e| with single-feature effects", _NGUYEN),
    "infidelity": Metric("Infidelity", faithfulness.infidelity,
                         {"expected": "expected_small", "response": "response_small"}, "low", "faithfulness",
                         "small Gaussian steps, surrogate if any, normalised: zeros score 1", _YEH),
    "infidelity_scale_free": Metric("Infidelity (dir.)",
                                    partial(faithfulness.infidelity, convention="scale-free"),
                                    {"expected": "expected_small", "response": "response_small"}, "low",
                                    "faithfulness", "small steps, e times its best factor, normalised", _YEH),
    "infidelity_background": Metric("Infidelity (bg)", faithfulness.infidelity,
                                    {"expected": "expected_references", "response": "response_references"},
                                    "low", "faithfulness", "steps to background rows, normalised", _YEH),
    "lap": Metric("LAP", accuracy.local_accuracy,
                  {"predictions": "own_predictions", "base": "base", "contributions": "contributions"},
                  "high", "accuracy", "share of rows within tol; the residual", "Lundberg and Lee 2017",
                  lower_parts=("median", "p95")),
    "complexity": Metric("Complexity", complexity.complexity, _same("values"), "low", "complexity",
                         "entropy of the shares, nats", _BHATT),
    "sparseness": Metric("Sparseness", complexity.sparseness, _same("values"), "high", "complexity",
                         "Gini index", "Chalasani et al. 2020, arXiv 1810.06583"),
    "effective_complexity": Metric("Eff. complexity", complexity.effective_complexity, _same("values"), "low",
                                   "complexity", "features above 1% of the largest", _NGUYEN),
    "truth_error": Metric("Truth error", accuracy.truth_error, _same("values", "truth"), "low", "truth",
                          "relative error to the known truth", "texplainer"),
    "truth_cosine": Metric("Truth cosine", accuracy.truth_cosine, _same("values", "truth"), "high", "truth",
                           "cosine to the known truth", "texplainer"),
}
# fmt: on

#: The paper's tables, and the columns beside which their stability must be read.
DEFAULT = ("ris", "ros", "res", "pgi", "pgu", "infidelity", "lap", "complexity")


def choose(names: Sequence[str] | str) -> dict[str, Metric]:
    """Look metrics up by name; "all", "default" or a family's name stand for several."""
    names = [names] if isinstance(names, str) else list(names)
    families = {metric.family for metric in METRICS.values()}
    chosen: dict[str, Metric] = {}
    for name in names:
        key = str(name).lower()
        if key in METRICS:
            chosen[key] = METRICS[key]
        elif key == "default":
            chosen |= {one: METRICS[one] for one in DEFAULT}
        elif key == "all" or key in families:
            chosen |= {one: metric for one, metric in METRICS.items() if key in ("all", metric.family)}
        else:
            close = difflib.get_close_matches(key, [*METRICS, *families, "all", "default"], 1, cutoff=0.3)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(METRICS)}."
            raise InputError(f"unknown metric {name!r}; {hint} See texplainer.metrics.METRICS.")
    if not chosen:
        raise InputError("no metric named; pass at least one, or 'default'.")
    return chosen
