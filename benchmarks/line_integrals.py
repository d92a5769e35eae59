"""Shapley values of networks: how exact the line integrals are, and how far they lie from the Shapley values.

    TEXPLAINER_DATA=folder python benchmarks/line_integrals.py       writes docs/results/line_integrals.md

No network served to choose a constant of the line integrals. A table that is neither bundled nor in the folder is
left out, and so is torch where it is not installed.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from conditions import measured_on
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import texplainer as tx

OUT = Path(__file__).parents[1] / "docs" / "results" / "line_integrals.md"
ROWS, TRAINED = 20, 4000
BACKGROUNDS = (100, 1000)  # rows; less where the table has fewer
PLACES = 48  # on every line, for the exact integral
WALKS = 4096  # from background rows to each row, for the Shapley value
TIMED, REPEATS = 300, 5
NEAR, NEAR_SKEWED, WIDE = 0.03, 0.1, 0.15  # what is aimed at
SGD = {"solver": "sgd", "learning_rate_init": 0.01, "max_iter": 150, "early_stopping": True}

#: table, network, scale
NETWORKS = [
    ("4ft", "3H-NN", "log-odds"),
    ("4ft", "3H-NN", "probability"),
    ("banknote", "3H-NN", "probability"),
    ("breast_cancer", "3H-NN", "log-odds"),
    ("higgs", "3H-NN", "log-odds"),
    ("pima", "ReLU", "log-odds"),
    ("pima", "ReLU", "probability"),
    ("satellite", "ReLU", "log-odds"),
    ("credit_data", "tanh", "log-odds"),
    ("credit_data", "tanh", "probability"),
    ("diabetes", "tanh", "auto"),
    ("ames", "ReLU", "auto"),
    ("breast_cancer", "torch", "auto"),
    ("lognormal", "ReLU", "auto"),
    ("lognormal", "tanh", "auto"),
]


def lognormal() -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Skewed columns: the exponentials of normal ones."""
    normal = np.random.default_rng(11).normal(size=(2000, 8))
    y = np.sin(normal[:, 0]) * normal[:, 1] + np.exp(0.5 * normal[:, 2]) * normal[:, 3] + np.abs(normal[:, 4])
    X = np.exp(normal)
    return X[:1500], y[:1500], X[1500:], "regression"


def data(table: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Training rows, target, test rows and task."""
    if table == "lognormal":
        return lognormal()
    found = tx.datasets.load(table, download=False)
    train, test = (np.asarray(X, dtype=float) for X in (found.X_train, found.X_test))
    return train, np.asarray(found.y_train), test, found.task


def fitted(kind: str, X: np.ndarray, y: np.ndarray, task: str) -> Any:
    """A network of this kind; targets of regressions have variance 1."""
    if task == "regression":
        y = (y - y.mean()) / y.std()
    if kind == "torch":
        return torch_network(X, y)
    network: Any = MLPRegressor if task == "regression" else MLPClassifier
    if kind == "3H-NN":
        return network(hidden_layer_sizes=(64, 64, 64), **SGD, random_state=3).fit(X, y)
    activation = {"ReLU": "relu", "tanh": "tanh"}[kind]
    model = network(hidden_layer_sizes=(50, 30), activation=activation, max_iter=60, random_state=4)
    return make_pipeline(StandardScaler(), model).fit(X, y)


def torch_network(X: np.ndarray, y: np.ndarray) -> Any:
    """One output with a GELU layer behind a tanh layer, fitted to the target as a number."""
    import torch

    torch.manual_seed(5)
    layers = [torch.nn.Linear(X.shape[1], 48), torch.nn.Tanh(), torch.nn.Linear(48, 48), torch.nn.GELU()]
    module = torch.nn.Sequential(*layers, torch.nn.Linear(48, 1))
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    rows, target = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)[:, None]
    for _ in range(300):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(module(rows), target).backward()
        optimizer.step()
    return module.eval()


def integrated(explainer: tx.TExplainer, rows: np.ndarray, background: np.ndarray) -> np.ndarray:
    """The integrals by the midpoint rule on many equal parts of the line from every background row."""
    place = (np.arange(PLACES) + 0.5) / PLACES
    out = []
    for x in rows:
        points = background + place[:, None, None] * (x - background)
        slopes = explainer.engine.at_point.gradient(points.reshape(-1, len(x))).values[:, :, 0]
        out.append(np.mean((x - background) * slopes.reshape(points.shape).mean(axis=0), axis=0))
    return np.array(out)


def walked(predict: Callable, rows: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Shapley values by permutations, each forwards and backwards, from one background row after the other."""
    rng, n = np.random.default_rng(6), rows.shape[1]
    out = np.zeros(rows.shape)
    for walk in range(WALKS // 2):
        order = rng.permutation(n)
        for each in (order, order[::-1]):
            place = np.empty(n, dtype=int)
            place[each] = np.arange(n)
            taken = place < np.arange(n + 1)[:, None]  # (steps, features)
            points = np.where(taken, rows[:, None], background[walk % len(background)])
            f = predict(points.reshape(-1, n)).reshape(len(rows), n + 1)
            out[:, each] += np.diff(f, axis=1) / WALKS
    return out


@dataclass(frozen=True)
class Scores:
    """Of one network; pairs are for the small and the large background."""

    features: int
    distance: tuple[float, float]  # medians over the rows, relative to the values
    bound: tuple[float, float]
    covered: float  # of all values of both
    cost: float  # predictions a row
    cosine: tuple[float, float]  # with the Shapley values: median and least
    apart: float  # from the Shapley values


def measured(table: str, kind: str, scale: str) -> Scores:
    X, y, test, task = data(table)
    X, y, rows = X[:TRAINED], y[:TRAINED], test[:ROWS]
    model = fitted(kind, X, y, task)
    choice: dict[str, Any] = {"scale": scale}
    if task == "classification" and kind != "torch":
        choice["output"] = 1
    distance, bound, covered = [], [], []
    explainer, shapley, values = None, None, None
    for count in BACKGROUNDS:
        background = X[-count:]
        explainer = tx.TExplainer(model, background, attribution="shapley", **choice)
        found = explainer(rows, progress=False)
        exact = integrated(explainer, rows, background)
        error, size = np.abs(found.values - exact), np.linalg.norm(exact, axis=1)
        distance.append(float(np.median(np.linalg.norm(error, axis=1) / size)))
        bound.append(float(np.median(np.linalg.norm(found.diagnostics.error, axis=1) / size)))
        covered.append(np.mean(error <= found.diagnostics.error + 1e-5 * size[:, None]))
        if shapley is None:
            shapley = walked(lambda points, e=explainer: e.predictor(points)[:, 0], rows, background)
            values = found.values
    assert explainer is not None and shapley is not None and values is not None
    length = np.linalg.norm(shapley, axis=1)
    cosine = (values * shapley).sum(axis=1) / np.linalg.norm(values, axis=1) / length
    apart = np.median(np.linalg.norm(values - shapley, axis=1) / length)
    return Scores(
        rows.shape[1],
        (distance[0], distance[1]),
        (bound[0], bound[1]),
        float(np.mean(covered)),
        cost(explainer, np.resize(test, (TIMED, test.shape[1]))),
        (float(np.median(cosine)), float(cosine.min())),
        float(apart),
    )


def cost(explainer: tx.TExplainer, rows: np.ndarray) -> float:
    """Processor time of explaining the rows over that of predicting them, median of alternate measurements."""
    many = np.tile(rows, (max(1, 2000 // len(rows)), 1))
    explainer(rows[:20], progress=False)
    ratios = []
    for _ in range(REPEATS):
        start = time.process_time()
        explainer(rows, progress=False)
        middle = time.process_time()
        for _ in range(10):
            explainer.predictor(many)
        end = time.process_time()
        ratios.append((middle - start) / len(rows) / ((end - middle) / len(many) / 10))
    return float(np.median(ratios))


def page(found: dict[tuple[str, str, str], Scores], missing: list[str], seconds: float) -> str:
    """The page."""
    small, large = BACKGROUNDS
    lines = [
        "# Line integrals: the Shapley values of networks",
        "",
        "How close are line integrals, which are given as Shapley values of networks, to the exact integral and to the",
        "Shapley value? The columns are explained below; a cosine is best at 1, the others are best low.",
        "",
        f"| table | network | scale | features | distance, {small} / {large} rows | bound | covered | cost | cosine, "
        "median / least | from Shapley |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (table, kind, scale), s in found.items():
        pairs = (f"{a:.1%} / {b:.1%}" for a, b in (s.distance, s.bound))
        named = "output" if scale == "auto" else scale
        lines.append(
            f"| {table} | {kind} | {named} | {s.features} | {' | '.join(pairs)} | {s.covered:.1%} | {s.cost:.0f} | "
            f"{s.cosine[0]:.3f} / {s.cosine[1]:.3f} | {s.apart:.0%} |"
        )
    every = list(found.values())
    middle = [
        np.median([getattr(s, name)[i] for s in every]) for name in ("distance", "bound") for i in (0, 1)
    ]
    cosines = {
        group: [s.cosine[0] for (_, _, scale), s in found.items() if (scale == "probability") == chosen]
        for group, chosen in (("probabilities", True), ("log-odds and other outputs", False))
    }
    lines += [
        "",
        f"Medians over the networks: distance {middle[0]:.1%} / {middle[1]:.1%}, bound {middle[2]:.1%} / "
        f"{middle[3]:.1%}, cost {np.median([s.cost for s in every]):.0f}. Mean coverage "
        f"{np.mean([s.covered for s in every]):.2%}, least {min(s.covered for s in every):.1%}.",
        *(
            f"Median cosine of {name}: {np.median(values):.3f}, least {min(values):.3f}."
            for name, values in cosines.items()
            if values
        ),
        "",
        "## How",
        "",
        "Made by `TEXPLAINER_DATA=folder python benchmarks/line_integrals.py`. No network served to choose a constant.",
        "",
        f"- *distance*: from the exact integral ({PLACES} places on the line from every background row), relative to",
        f"  the row's values; the median over {ROWS} rows. First with {small}, then with {large} background rows, or",
        "  all the table has.",
        "- *bound*: of a row's values, relative to them, likewise. *covered*: the fraction of values in their bounds.",
        f"- *cost*: processor time of explaining a row over predicting it, {TIMED} rows, {large} background rows,",
        f"  the stability of every row included; the median of {REPEATS} alternate measurements.",
        f"- *cosine*, *from Shapley*: against the Shapley value by {WALKS:,} permutations from {small} background",
        "  rows.",
        "",
        "The 3H-NN has three layers of 64 ReLU units; ReLU and tanh have layers of 50 and 30 behind a scaler; torch",
        "has a tanh and a GELU layer of 48. lognormal is generated, all its columns are skewed.",
        "",
        "## Limits",
        "",
        "A line integral divides interactions, but for plain products, differently from the Shapley value, so the",
        "two differ however exactly it is computed. The cosine is lower by the error of the permutations, too.",
        "Small networks cost more predictions, because the work beside the gradients is the same.",
        "",
        f"Aimed at: distances of {NEAR:.0%} ({NEAR_SKEWED:.0%} on lognormal), bounds of {WIDE:.0%}. "
        "Farther away, with the",
        f"larger background: {_named(found, 'distance')}. Wider: {_named(found, 'bound')}.",
        "",
        f"Measured in {seconds / 60:.0f} minutes. {measured_on('torch')}",
    ]
    if missing:
        lines += ["", f"Not measured, for want of the table or the library: {', '.join(missing)}."]
    return "\n".join(lines) + "\n"


def _named(found: dict[tuple[str, str, str], Scores], what: str) -> str:
    """The networks that miss the aim."""
    names = []
    for (table, kind, scale), s in found.items():
        aim = WIDE if what == "bound" else NEAR_SKEWED if table == "lognormal" else NEAR
        if getattr(s, what)[1] > aim:
            names.append(f"{kind} on {table}" + (f" ({scale})" if scale != "auto" else ""))
    return ", ".join(names) or "none"


def main() -> None:
    warnings.simplefilter("ignore")
    start, found, missing = time.perf_counter(), {}, []
    for chosen in NETWORKS:
        try:
            found[chosen] = measured(*chosen)
            print(*chosen, found[chosen], flush=True)
        except (tx.errors.InputError, OSError, ImportError) as reason:
            missing.append(f"{chosen[1]} on {chosen[0]}")
            print(*chosen, str(reason)[:100], file=sys.stderr)
    OUT.write_text(page(found, missing, time.perf_counter() - start))
    print(OUT.read_text())


if __name__ == "__main__":
    main()
