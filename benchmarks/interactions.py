"""Interactions: how near they come to very many points, their error bars, their cost, and shap's beside them.

    python benchmarks/interactions.py              writes docs/results/interactions.md

Networks through their exact engine and as functions; a booster through the tree engine. Synthetic data only.
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
from scipy.stats import spearmanr
from sklearn.neural_network import MLPClassifier, MLPRegressor

import texplainer as tx

OUT = Path(__file__).parents[1] / "docs" / "results" / "interactions.md"
ROWS, MANY = 20, 20_000
TINY = 0.01  # of a row's typical value: what very many points themselves may be off


def target(X: np.ndarray) -> np.ndarray:
    """Two pairs that interact, one feature that bends."""
    return np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] * X[:, 3] + X[:, 4] ** 2


def networks() -> Iterator[tuple[str, Any, np.ndarray]]:
    """Name, model, data."""
    for features, activation in ((5, "tanh"), (10, "relu"), (20, "tanh"), (30, "relu")):
        X = np.random.default_rng(features).normal(size=(600, features))
        size = {"hidden_layer_sizes": (30, 30), "activation": activation, "max_iter": 300, "random_state": 0}
        yield f"regression, {features} features, {activation}", MLPRegressor(**size).fit(X, target(X)), X
        labels = (target(X) > 1).astype(int)
        yield f"log-odds, {features} features, {activation}", MLPClassifier(**size).fit(X, labels), X


def true_average(explainer: tx.TExplainer, exact: tx.TExplainer, rows: np.ndarray) -> np.ndarray:
    """Stein's identity with very many points and the exact slopes, (rows, features, features)."""
    width, sigma = explainer.engine.width, explainer.background.sigma
    gradient = exact.engine.at_point.gradient
    z = np.random.default_rng(0).normal(size=(MANY, rows.shape[1]))
    out = []
    for row in rows:
        move = width * sigma * z
        odd = (gradient(row + move).values - gradient(row - move).values)[..., 0] / 2 * sigma
        slopes = np.linalg.lstsq(z, odd, rcond=None)[0] / width
        out.append((slopes + slopes.T) / 2)
    return np.array(out)


def seconds(work: Callable[[], Any]) -> float:
    """Processor time of one call, the best of three."""
    took = []
    for _ in range(3):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


def accuracy(name: str, model: Any, X: np.ndarray, engine: str) -> str:
    """One line of the table of networks."""
    explainer = tx.TExplainer(model, X, bounds=None, engine=engine)
    exact = tx.TExplainer(model, X, bounds=None)
    rows = X[:ROWS]
    found, true = explainer.interactions(rows), true_average(explainer, exact, rows)
    apart = np.abs(found.values - true)
    tiny = TINY * np.sqrt((true**2).mean(axis=(1, 2), keepdims=True))
    covered = np.mean(apart <= found.error + tiny)
    per_row = seconds(lambda: explainer.interactions(rows)) / ROWS
    many = np.repeat(X, 20, axis=0)
    ratio = per_row / (seconds(lambda: exact.predictor(many)) / len(many))
    first = np.triu_indices(X.shape[1], 1)
    top = np.mean(
        [
            np.argmax(np.abs(a[first])) == np.argmax(np.abs(b[first]))
            for a, b in zip(found.values, true, strict=True)
        ]
    )
    off = np.linalg.norm(apart) / np.linalg.norm(true)
    return (
        f"| {name} | {explainer.engine.width:.2f} | {off:.2f} | {top:.0%} "
        f"| {covered:.1%} | {int(found.arrays['evaluations'][0]):,} | {ratio:,.0f} |"
    )


def boosters() -> Iterator[str]:
    """Trees: cost over one prediction, and the order of the pairs beside shap's interaction values."""
    import shap
    import xgboost

    for features, trees, depth in ((8, 150, 4), (30, 300, 6)):
        X = np.random.default_rng(features).normal(size=(2000, features))
        model = xgboost.XGBRegressor(n_estimators=trees, max_depth=depth, n_jobs=1).fit(X, target(X))
        explainer, rows = tx.TExplainer(model, X[:300]), X[:200]
        found = explainer.interactions(rows)  # compiled before it is timed
        theirs = np.abs(shap.TreeExplainer(model).shap_interaction_values(rows)).mean(axis=0)
        ours, pairs = np.abs(found.values).mean(axis=0), np.triu_indices(features, 1)
        many = np.repeat(X, 10, axis=0)
        predict = seconds(lambda model=model, many=many: model.predict(many)) / len(many)
        mine = seconds(lambda explainer=explainer, rows=rows: explainer.interactions(rows)) / len(rows)
        few = rows[:20]
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
    yield "# Interactions: accuracy, error bars and cost"
    yield "\nMade by `python benchmarks/interactions.py`. Values are sigma_i sigma_j d²f/dx_i dx_j over the"
    yield f"neighbourhood; the truth is Stein's identity with {2 * MANY:,} exact slopes a row, {ROWS} rows."
    yield "Covered: within the error bar (and 1% of the row's typical value, what the truth itself is off)."
    yield "Cost: processor time over one prediction of the same model in a batch."
    columns = (
        "| width | relative error | first pair equal | covered | evaluations | cost |\n" + "|---" * 7 + "|"
    )
    for words, engine in (("Exact slopes", "auto"), ("Black boxes", "finite-difference")):
        yield f"\n## {words}\n\n| model {columns}"
        yield from (accuracy(*case, engine) for case in networks())
    yield "\n## Trees, beside shap's interaction values\n"
    yield "| booster | cost | shap's cost | strongest pairs in common | rank correlation of all pairs |"
    yield "|---|---|---|---|---|"
    yield from boosters()
    yield "\nRank correlations compare unlike things: local terms here, parts of shares there."


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
