"""Interactions: how near they come to very many moves, their error bounds, their cost, and shap's beside them.

    python benchmarks/interactions.py              writes docs/results/interactions.md

Networks, a Gaussian process and trees. Synthetic data only.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one thread each, so that processor time tells
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from conditions import measured_on
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor

import texplainer as tx

OUT = Path(__file__).parents[1] / "docs" / "results" / "interactions.md"
ROWS, MANY = 10, 16  # MANY moves to either side of both features stand for all
COLUMNS = "| model | relative error | first pair equal | covered | bound / error | evaluations | cost |"


def target(X: np.ndarray) -> np.ndarray:
    """Two pairs that interact, one feature that bends."""
    return np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] * X[:, 3] + X[:, 4] ** 2


def models() -> Iterator[tuple[str, Any, np.ndarray]]:
    """Name, model, data."""
    import xgboost

    for features, activation in ((5, "tanh"), (10, "relu"), (20, "tanh"), (30, "relu")):
        X = np.random.default_rng(features).normal(size=(600, features))
        size = {"hidden_layer_sizes": (30, 30), "activation": activation, "max_iter": 300, "random_state": 0}
        yield f"network, {features} features, {activation}", MLPRegressor(**size).fit(X, target(X)), X
        labels = (target(X) > 1).astype(int)
        yield f"log-odds, {features} features, {activation}", MLPClassifier(**size).fit(X, labels), X
    X = np.random.default_rng(8).normal(size=(600, 8))
    yield "Gaussian process, 8 features", GaussianProcessRegressor().fit(X[:200], target(X[:200])), X
    yield (
        "forest of 50, 8 features",
        RandomForestRegressor(50, min_samples_leaf=3, random_state=0).fit(X, target(X)),
        X,
    )
    for features, trees, depth in ((8, 150, 4), (30, 300, 6)):
        X = np.random.default_rng(features).normal(size=(2000, features))
        model = xgboost.XGBRegressor(n_estimators=trees, max_depth=depth, n_jobs=1).fit(X, target(X))
        yield f"booster, {trees} trees of depth {depth}, {features} features", model, X


def many_moves(explainer: tx.TExplainer, rows: np.ndarray) -> np.ndarray:
    """The definition by midpoints, pair by pair, (rows, pairs)."""
    sigma, (low, high) = explainer.background.sigma, explainer.background.bounds
    first, second = np.triu_indices(rows.shape[1], 1)
    part, out = (np.arange(MANY) + 0.5) / MANY, np.empty((len(rows), len(first)))
    half = 6**0.5 * 0.25 * sigma
    for r, row in enumerate(rows):
        up, down = np.minimum(half, high - row), np.minimum(half, row - low)
        moves = np.concatenate([up * part[:, None], -down * part[:, None]])  # (2 MANY, features)
        signs = np.repeat([1.0, -1.0], MANY) / MANY
        for k, (i, j) in enumerate(zip(first, second, strict=True)):
            at = np.tile(row, (2 * MANY, 2 * MANY, 1))
            at[:, :, i] += moves[:, i, None]
            at[:, :, j] += moves[:, j]
            f = explainer.predictor(at.reshape(-1, len(row))).reshape(2 * MANY, 2 * MANY)
            gap = (up[i] + down[i]) * (up[j] + down[j]) / 4
            out[r, k] = signs @ f @ signs / gap * sigma[i] * sigma[j]
    return out


def seconds(work: Callable[[], Any]) -> float:
    """Processor time of one call, the best of three."""
    took = []
    for _ in range(3):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


def accuracy(name: str, model: Any, X: np.ndarray) -> str:
    """One line of the table of accuracy."""
    explainer = tx.TExplainer(model, X)
    rows, first = X[:ROWS], np.triu_indices(X.shape[1], 1)
    result = explainer.interactions(rows)
    found, error = (array[:, first[0], first[1]] for array in (result.values, result.error))
    true = many_moves(explainer, rows)
    apart = np.abs(found - true)
    covered = np.mean(apart <= error)
    per_row = seconds(lambda: explainer.interactions(rows)) / ROWS
    many = np.repeat(X, 20, axis=0)
    ratio = per_row / (seconds(lambda: explainer.predictor(many)) / len(many))
    top = np.mean(np.abs(found).argmax(axis=1) == np.abs(true).argmax(axis=1))
    wide = np.median(error) / max(float(np.median(apart)), 1e-300)
    off = np.linalg.norm(apart) / np.linalg.norm(true)
    return (
        f"| {name} | {off:.2f} | {top:.0%} | {covered:.1%} | {wide if wide < 1e4 else np.inf:.1f} "
        f"| {int(result.arrays['evaluations'][0]):,} | {ratio:,.0f} |"
    )


def boosters() -> Iterator[str]:
    """Trees: cost over one prediction, and the order of the pairs beside shap's interaction values."""
    import shap
    import xgboost

    for features, trees, depth in ((8, 150, 4), (30, 300, 6)):
        X = np.random.default_rng(features).normal(size=(2000, features))
        model = xgboost.XGBRegressor(n_estimators=trees, max_depth=depth, n_jobs=1).fit(X, target(X))
        explainer, rows = tx.TExplainer(model, X[:300]), X[:20]
        found = explainer.interactions(rows)
        theirs = np.abs(shap.TreeExplainer(model).shap_interaction_values(rows)).mean(axis=0)
        ours, pairs = np.abs(found.values).mean(axis=0), np.triu_indices(features, 1)
        many = np.repeat(X, 10, axis=0)
        predict = seconds(lambda model=model, many=many: model.predict(many)) / len(many)
        mine = seconds(lambda explainer=explainer, rows=rows: explainer.interactions(rows)) / len(rows)
        few = rows
        others = (
            seconds(lambda model=model, few=few: shap.TreeExplainer(model).shap_interaction_values(few)) / 20
        )
        best = [{*np.argsort(-size[pairs])[:3]} for size in (ours, theirs)]
        yield (
            f"| {features} features, {trees} trees of depth {depth} | {mine / predict:,.0f} "
            f"| {others / predict:,.0f} | {len(best[0] & best[1])} of 3 "
            f"| {spearmanr(ours[pairs], theirs[pairs]).statistic:.2f} |"
        )


def page() -> Iterator[str]:
    """The lines of the page."""
    yield "# Interactions: accuracy, error bounds and cost"
    yield "\nHow exact are interactions, slopes of slopes of pairs of features ([definition](../interactions.md)), and"
    yield "what do they cost? Covered: within the error bound; high is good, error and cost are best low."
    yield f"\n{COLUMNS}\n" + "|---" * 7 + "|"
    for case in models():
        yield accuracy(*case)
    yield "\n## Beside shap's interaction values\n"
    yield "| booster | cost | shap's cost | strongest pairs in common | rank correlation of all pairs |"
    yield "|---|---|---|---|---|"
    yield from boosters()
    yield "\n## How\n"
    yield f"`python benchmarks/interactions.py`. The truth takes {MANY} moves to either side of both features,"
    yield f"{4 * MANY**2:,} predictions a pair, {ROWS} rows. Bound / error: their medians (inf where most pairs are"
    yield "exact). Cost: processor time over a prediction of the same model."
    yield measured_on("xgboost-cpu", "shap", "numba")
    yield "\n## Limits\n"
    yield "Rank correlations and costs compare unlike things: slopes of slopes here, parts of contributions there."
    yield "Shapley interaction values of trees, the same thing as shap's, are on [another page](shapley.md)."


def main() -> None:
    """Write the page, line by line."""
    warnings.simplefilter("ignore")
    lines = []
    for line in page():
        print(line, flush=True)
        lines.append(line)
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
