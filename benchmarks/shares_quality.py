"""Shares of trees beside TreeSHAP: faithfulness (PGI) and stability (RIS*) on the same boosters.

    TEXPLAINER_DATA=<folder> python benchmarks/shares_quality.py [--write docs/results/shares_quality.md]

Three data sets, three seeds (training rows and explained rows are drawn by them). Both explain the margin.
A line gives the mean of each over the rows and the difference shares - TreeSHAP, paired by row, with its 95%
bootstrap interval; PGI is the mean over the numbers of masked features, RIS* that of a row's worst neighbour,
its logarithm compared, for it is a ratio. PGI: more is better; RIS*: less. The aim, not to be worse beyond
the interval, is met where the last column says no.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.spatial.distance import cdist

from texplainer import TExplainer, datasets, evaluate, explainers
from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.shapley import LINES
from texplainer.attributions.starts import BackgroundSample, starts_of
from texplainer.explainers.base import evenly_spaced
from texplainer.gradients.trees.lines import PreparedLines, line_shares, rank_thresholds
from texplainer.gradients.trees.readers.table import load
from texplainer.metrics.comparison import paired_bootstrap
from texplainer.metrics.evidence.features import describe_features
from texplainer.metrics.evidence.masks import fill_marginal
from texplainer.metrics.scores.faithfulness import prediction_gap_important

DATA, SEEDS, ROWS, TRAIN, BACKGROUND = ("20ft", "heloc", "higgs"), (0, 1, 2), 100, 5000, 300
METRICS = {"pgi_mean": "PGI, mean", "pgi_marginal": "PGI, marginal", "ris_norm": "log RIS*"}
K = (1, 3, 5, 7, 9)  # features masked
EXPLAINERS = {"TreeSHAP, path-dependent": "shap_tree_path", "TreeSHAP, interventional": "shap_tree_margin"}


Explain = Callable[[np.ndarray], np.ndarray]
Scores = dict[str, dict[str, np.ndarray]]  # metric -> explainer -> its scores by row


@dataclass(frozen=True)
class Case:
    """One data set and seed: the booster, the rows it was trained on, and the rows to explain."""

    seed: int
    model: Any
    train: np.ndarray
    rows: np.ndarray

    @property
    def background(self) -> np.ndarray:
        """What explainers get to know of the training rows."""
        return self.train[:BACKGROUND]

    @cached_property
    def shares(self) -> TExplainer:
        """The explainer under test."""
        return TExplainer(self.model, self.background, attribution="shapley")


def case(name: str, seed: int) -> Case:
    """Train the booster of a data set and a seed."""
    import xgboost

    data = datasets.load(name, download=False)
    random = np.random.default_rng(seed)
    train = random.permutation(len(data.X_train))[:TRAIN]
    rows = data.X_test[random.permutation(len(data.X_test))[:ROWS]]
    model = xgboost.XGBClassifier(n_estimators=300, max_depth=6, learning_rate=0.1, n_jobs=1)
    model.fit(data.X_train[train], data.y_train[train])
    return Case(seed, model, data.X_train[train], rows)


def scores(one: Case) -> Scores:
    """Shares, its other explainers, and what lies between them, on the same rows, masks and neighbours."""
    found = evaluate(
        {
            "shapley": one.shares,
            **{
                label: explainers.EXPLAINERS[other](one.model, one.background)
                for label, other in EXPLAINERS.items()
            },
            **between(one),
        },
        one.rows,
        metrics=tuple(METRICS),
        model=one.model,
        background=one.background,
        output=1,
        seed=one.seed,
        progress=False,
    )
    by_row = {metric: per_row(found, metric) for metric in METRICS}
    values = dict(zip(found.explainers, found.values, strict=True))
    for label, part in NEARER.items():
        by_row[label] = {name: nearer_gap(one, values[name], part) for name in by_row["ris_norm"]}
    by_row[SIZE] = {name: np.log(np.linalg.norm(values[name], axis=1)) for name in by_row["ris_norm"]}
    return by_row


def per_row(found: Any, metric: str) -> dict[str, np.ndarray]:
    """One score a row: the mean over masks, or the logarithm of the worst neighbour's."""
    frame = found.to_frame()
    own = frame[frame.metric == metric]
    if metric == "ris_norm":
        own = own[own.part == "median"]
    table = own.pivot_table(index="row", columns="explainer", values="score", aggfunc="mean")
    with np.errstate(divide="ignore"):
        return {
            name: np.log(table[name].to_numpy()) if metric == "ris_norm" else table[name].to_numpy()
            for name in ("shapley", *BETWEEN, *EXPLAINERS)
        }


def lines(all_scores: dict[tuple[str, int], Scores]) -> Iterator[str]:
    """The table, line by line; the scores are kept for the next one."""
    yield "| data | seed | metric | shares | other explainer | its score | difference [95%] | worse beyond it |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in DATA:
        for seed in SEEDS:
            found = all_scores[name, seed] = scores(case(name, seed))
            for metric in METRICS:
                yield from compared(name, seed, metric, found[metric])


def compared(name: str, seed: int, metric: str, by_explainer: dict[str, np.ndarray]) -> Iterator[str]:
    ours = by_explainer["shapley"]
    for other in EXPLAINERS:
        mean, low, high = paired_bootstrap(ours, by_explainer[other])
        worse = is_worse(metric, low, high)
        yield (
            f"| {name} | {seed} | {METRICS[metric]} | {np.nanmean(ours):.4f} | {other} "
            f"| {np.nanmean(by_explainer[other]):.4f} | {mean:+.4f} [{low:+.4f}, {high:+.4f}] "
            f"| {'**yes**' if worse else 'no'} |"
        )


def is_worse(metric: str, low: float, high: float) -> bool:
    return bool(low > 0 if metric == "ris_norm" else high < 0)


# ---------------------------------------------------------------- where the difference comes from

WHY = """## Where the difference comes from

Shares integrate along straight lines (Aumann and Shapley), TreeSHAP replaces one feature after the other
(Shapley); the two are equal where features do not interact. Every column changes something about shares, on
the same boosters, rows, masks and neighbours, the three seeds together. A cell is the difference from shares:
PGI in percent of theirs, RIS* and size (the length of the vector of values) as 100 times the difference of
logarithms; bold: beyond its 95% bootstrap interval. A half, a quarter: the features named first are moved
only that part of the way to the marginal mask; this was added when the difference was known, to explain it.

- lines: straight lines from the 100 background rows that interventional TreeSHAP takes, and from 1,000
  training rows (20-FT has 800), with equal weights and no control variate;
- within cells: shares that do not follow a neighbour in columns where it crosses no threshold;
- Shapley: exact Shapley values from the very starts of shares, with their weights and control variate;
- sampled orders: the same by the kernel of shares at its cost: every column switches at one place of a line,
  so that each line is one order of the features, and the next one its opposite."""
READ = """The last line counts the comparisons of the first table with each in the place of shares; there a
TreeSHAP meets only the other kind, in 27.

What to conclude: it is the definition. Straight lines from other rows, or from more of them, score no better,
and moves within a cell hardly count; Shapley values from the same starts score like interventional TreeSHAP.
How path-dependent TreeSHAP differs from that comes with its own background, the training rows in its nodes.
PGI replaces features wholly while the others stay, which is what Shapley values ask. Shares ask what happens
on the way: where features move half of it, no difference from interventional TreeSHAP is beyond the interval,
and at a quarter those that shares name matter more than its own, on HELOC and HIGGS beyond the interval. Near
the row a jump of the model belongs, in shares, to the feature that crosses the threshold, at its full height;
Shapley values average it over rows mixed of this one and the background, and so change less; RIS* divides
that by their size, which is smaller too. So take `shapley` to divide a prediction along the way to it, and
TreeSHAP where the question is what replacing whole cells would do."""
NEARER = {"PGI, marginal, a half": 0.5, "PGI, marginal, a quarter": 0.25}
SIZE = "log size"
BETWEEN = (
    "lines from 100 rows",
    "lines from 1,000 rows",
    "within cells",
    "Shapley",
    "Shapley, sampled orders",
)


def between(one: Case) -> dict[str, Explain]:
    """Explainers that differ from shares in one thing each, in the order of `BETWEEN`."""
    explainer, features = one.shares, one.rows.shape[1]
    place = ExplainContext(
        one.rows,
        explainer.predictor(one.rows),
        explainer.background,
        explainer.predictor,
        explainer.engine.at_point,
    )
    starts = starts_of(place, LINES)
    straight = rank_thresholds(load(one.model))
    in_orders = rank_thresholds(load(one.model), range(features))

    def lines_of(prepared: PreparedLines) -> Explain:
        return lambda table: along(prepared, starts.rows, starts.weights, table) + starts.centre[:, 0]

    def within_cells(table: np.ndarray) -> np.ndarray:
        nearest = one.rows[cdist(table, one.rows).argmin(axis=1)]
        same = straight.hard.code(table) == straight.hard.code(nearest)
        return lines_of(straight)(np.where(same, nearest, table))

    found = (
        plain(straight, evenly_spaced(one.background, 100)),
        plain(straight, one.train[:1000]),
        within_cells,
        exact_shapley(one, starts),
        lines_of(in_orders),
    )
    return dict(zip(BETWEEN, found, strict=True))


def along(prepared: PreparedLines, starts: np.ndarray, weights: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Weighted sum of the shares of lines, in the groups of shares."""
    groups = np.arange(len(starts)) % 16
    return line_shares(prepared, starts, weights, groups, np.asarray(table, float), 1).sum(axis=1)[:, :, 0]


def plain(prepared: PreparedLines, starts: np.ndarray) -> Explain:
    """The mean over lines from some rows."""
    return lambda table: along(prepared, starts, np.full(len(starts), 1 / len(starts)), table)


def exact_shapley(one: Case, starts: BackgroundSample) -> Explain:
    """Interventional TreeSHAP from weighted starts: from each alone, for SHAP knows no weights."""
    import shap

    tree = shap.TreeExplainer(one.model, data=starts.rows[:1], model_output="raw")

    def explain(table: np.ndarray) -> np.ndarray:
        total = np.tile(starts.centre[:, 0], (len(table), 1))
        for row, weight in zip(starts.rows, starts.weights, strict=True):
            tree.data = row[None]
            total += weight * tree.shap_values(np.asarray(table, float), check_additivity=False)
        return total

    return explain


def nearer_gap(one: Case, values: np.ndarray, part: float) -> np.ndarray:
    """PGI with features moved a part of the way to the marginal mask, (rows,)."""
    count = one.rows.shape[1]
    features = describe_features([str(j) for j in range(count)], one.background, {}, {})
    fills = one.rows + part * (fill_marginal(one.rows, one.background, features, 0.0, one.seed) - one.rows)

    def predict(rows: np.ndarray) -> np.ndarray:
        return one.model.predict_proba(rows)[:, 1].astype(float)

    gaps = prediction_gap_important(
        values, one.rows, predict(one.rows), predict, fills, np.arange(count), np.zeros(values.shape), K
    )
    return np.mean(list(gaps.values()), axis=0)


def causes(all_scores: dict[tuple[str, int], Scores]) -> Iterator[str]:
    """The second table: what changes with what, and how many of the comparisons above go wrong with it."""
    others = (*BETWEEN, *EXPLAINERS)
    yield "| data | metric | shares | " + " | ".join(others) + " |"
    yield "|---" * (len(others) + 3) + "|"
    metrics = {**METRICS, **{label: label for label in (*NEARER, SIZE)}}
    for name in DATA:
        for metric in sorted(metrics, key=lambda one: not metrics[one].startswith("PGI")):
            ours, *theirs = (
                np.concatenate([all_scores[name, seed][metric][who] for seed in SEEDS])
                for who in ("shapley", *others)
            )
            scale = float(np.nanmean(ours)) if metrics[metric].startswith("PGI") else 1.0
            cells = [difference(one, ours, scale) for one in theirs]
            yield f"| {name} | {metrics[metric]} | {np.nanmean(ours):.4f} | " + " | ".join(cells) + " |"
    counts = [str(count_worse(all_scores, who)) for who in ("shapley", *others)]
    yield f"| all | worse than a TreeSHAP, of {len(DATA) * len(SEEDS) * 6} | " + " | ".join(counts) + " |"


def difference(theirs: np.ndarray, ours: np.ndarray, scale: float) -> str:
    mean, low, high = 100 * paired_bootstrap(theirs, ours) / scale
    return f"**{mean:+.1f}**" if low * high > 0 else f"{mean:+.1f}"


def count_worse(all_scores: dict[tuple[str, int], Scores], who: str) -> int:
    return sum(
        is_worse(metric, *paired_bootstrap(found[metric][who], found[metric][other])[1:])
        for found in all_scores.values()
        for metric in METRICS
        for other in EXPLAINERS
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", type=Path, help="write the page there as Markdown")
    options = parser.parse_args()
    began, table = time.time(), []
    all_scores: dict[tuple[str, int], Scores] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in lines(all_scores):
            print(line, flush=True)
            table.append(line)
    second = list(causes(all_scores))
    print("\n".join(second))
    worse = sum("**yes**" in line for line in table)
    text = ["# Shares of trees beside TreeSHAP", "", *(__doc__ or "").split("\n")[4:-1], ""]
    text += [f"Worse beyond the interval in {worse} of {len(table) - 2} comparisons.", "", *table, ""]
    text += [WHY, "", *second, "", READ, ""]
    text += [
        "Made by `python benchmarks/shares_quality.py --write docs/results/shares_quality.md` "
        f"in {time.time() - began:.0f} s."
    ]
    if options.write:
        options.write.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
