# ruff: noqa: E402  (threads are set before numpy is imported)
"""The cost of slopes: of trees and networks in predictions, of functions in evaluations.

    python benchmarks/slopes.py [--write docs/results/slopes.md] [--rows 2000]

Processor time over that of one prediction of the same rows, with one thread; evaluations are counted.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from conditions import measured_on
from shapley import BACKGROUND, data, models, seconds

import texplainer as tx
from texplainer.gradients.moves import affordable

AIMS = {"trees alone": 10, "trees": 40, "3H-NN": 150}  # predictions
BUILDING = 2000  # evaluations aimed at to build an explainer of a function
BACKGROUNDS = (200, 1000)  # rows of the functions' backgrounds
WIDTHS = (4, 10, 28, 100)  # features of the functions
TWO_POINT = 0.25  # SD


class Counted:
    """A function that counts the rows it is asked for."""

    def __init__(self, predict: Callable[[np.ndarray], np.ndarray]) -> None:
        self.predict, self.rows = predict, 0

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Predict."""
        self.rows += len(rows)
        return self.predict(rows)


def subjects(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, Any, Callable[[np.ndarray], Any]]]:
    """Name, fitted model, its prediction."""
    from sklearn.neural_network import MLPClassifier

    yield from models(X, y)
    network = MLPClassifier((64, 64, 64), learning_rate_init=0.01, max_iter=20, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it would go on learning
        network.fit(X[:10_000], y[:10_000])
    yield "3H-NN", network, network.predict_proba


def two_point(
    predict: Callable[[np.ndarray], Any], rows: np.ndarray, sd: np.ndarray
) -> Callable[[], np.ndarray]:
    """The plain baseline: one central difference per feature, 2n evaluations a row."""

    def differences() -> np.ndarray:
        found = np.empty_like(rows)
        for j in range(rows.shape[1]):
            up, down = rows.copy(), rows.copy()
            up[:, j] += TWO_POINT * sd[j]
            down[:, j] -= TWO_POINT * sd[j]
            gap = np.asarray(predict(up), dtype=float) - np.asarray(predict(down), dtype=float)
            found[:, j] = (gap if gap.ndim == 1 else gap[:, -1]) / (2 * TWO_POINT)
        return found

    return differences


def cost_line(
    name: str, model: Any, predict: Callable[[np.ndarray], Any], rows: np.ndarray, background: np.ndarray
) -> str:
    """Slopes alone, the whole explanation, both columns, and the baseline, in predictions."""
    explainer = tx.TExplainer(model, background)
    one, rounds = seconds(lambda: predict(rows)), 1 if "forest" in name else 3
    ways = (
        lambda: explainer.engine.gradient(rows),
        lambda: explainer(rows),
        lambda: explainer(rows, attribution=("slope", "shapley")),
        two_point(predict, rows, explainer.background.sigma),
    )
    cells = [f"{seconds(way, rounds) / one:.1f}" for way in ways]
    aim = f"{AIMS['3H-NN']}" if name == "3H-NN" else f"{AIMS['trees alone']} / {AIMS['trees']}"
    return f"| {name} | {' | '.join(cells)} | {'' if 'forest' in name else aim} |"


def function_line(features: int) -> str:
    """Evaluations to build an explainer of a function, and of a row: slopes alone, and with stability."""
    rng = np.random.default_rng(features)
    X, weights = rng.normal(size=(max(BACKGROUNDS), features)), rng.normal(size=(features, 8))
    function = Counted(lambda rows: np.tanh(rows @ weights / np.sqrt(features)).sum(axis=1))
    cells = []
    for count in BACKGROUNDS:
        function.rows = 0
        explainer = tx.TExplainer(function, X[:count])
        cells.append(f"{function.rows:,}")
        function.rows = 0
        explainer(X[:20])
    nodes, _ = affordable(features, None)
    cells += [f"{2 * nodes * features + 1}", f"{4 * features + 64}", f"{function.rows / 20:.0f}"]
    return f"| {features} | {' | '.join(cells)} |"


def page(costs: list[str], functions: list[str], rows: int) -> str:
    """The page."""
    return "\n".join(
        [
            "# Slopes: cost",
            "",
            "What do slopes cost? Of a row, in predictions of the same model; lower is better.",
            "",
            "| model | slopes alone | with stability | slopes and contributions | two-point difference | aim |",
            "|---|---:|---:|---:|---:|---:|",
            *costs,
            "",
            '"With stability" is `explainer(X)`: bounds, stability label and the features marked flat. The next column',
            "is the table of a row as it is printed, with the stability of both. The two-point difference is",
            "f(x + 0.25 SD) - f(x - 0.25 SD) for every feature, without bounds. Aims: alone / with stability; of the",
            "network with stability. The slopes of the network, from predictions, include their relative change.",
            "",
            "## Functions, in evaluations",
            "",
            f"| features n | to build, {BACKGROUNDS[0]} background rows | {BACKGROUNDS[1]:,} rows | slopes of a row "
            "| 4n + 64 | slopes with stability |",
            "|---:|---:|---:|---:|---:|---:|",
            *functions,
            "",
            f"Aims: at most {BUILDING:,} to build an explainer, about 4n + 64 for the slopes of a row.",
            "",
            "## How",
            "",
            f"`python benchmarks/slopes.py --write docs/results/slopes.md`: {rows} rows, {BACKGROUND} background rows,",
            "28 features; the functions are sums of tanh. Processor time over that of one prediction of the same rows,",
            "with one thread.",
            "",
            measured_on("xgboost-cpu", "lightgbm", "catboost", "numba"),
            "",
            "## Limits",
            "",
            "- The cost beside the evaluations is the same for small and large networks, so small ones cost more",
            "  predictions.",
            "- Every background row is predicted while an explainer is built, so a large background costs more.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", type=Path, metavar="PAGE")
    parser.add_argument("--rows", type=int, default=2000)
    given = parser.parse_args()
    X, y = data()
    rows, background = X[: given.rows], X[-BACKGROUND:]
    costs = [cost_line(*one, rows, background) for one in subjects(X, y)]
    text = page(costs, [function_line(features) for features in WIDTHS], given.rows)
    print(text)
    if given.write:
        given.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
