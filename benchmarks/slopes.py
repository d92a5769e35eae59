"""Neighbourhood slopes: how near they come to very many points, their error bars, their change, their cost.

    python benchmarks/slopes.py              writes docs/results/slopes_accuracy.md

Networks, kernel machines and logistic models through their exact engines; the same networks, and boosted
trees, given as functions. TEXPLAINER_DATA names the folder of the real data sets.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one thread each, so that processor time tells
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVR

import texplainer as tx
from texplainer.background.summary import data_bounds, robust_sd, varying_columns
from texplainer.gradients.choose import choose
from texplainer.gradients.engine import Engine, Settings
from texplainer.gradients.smoothing import POINTS
from texplainer.models import predictor as prediction
from texplainer.models.predictor import Predictor
from texplainer.tables import schema as tables

OUT = Path(__file__).parents[1] / "docs" / "results" / "slopes_accuracy.md"
SETS = ("20ft", "banknote", "4ft", "higgs", "heloc")
ROWS, MANY = 30, 16_384
MOVES = 16


@dataclass(frozen=True)
class Case:
    """A model's engine and the rows it explains."""

    name: str
    predictor: Predictor
    background: np.ndarray
    rows: np.ndarray
    engine: Engine
    settings: Settings

    @property
    def sigma(self) -> np.ndarray:
        """The features' SDs."""
        return robust_sd(self.background)

    @property
    def unit(self) -> np.ndarray:
        """What one SD more is: nothing, where a column never varies."""
        return np.where(varying_columns(self.background), self.sigma, 0.0)


def case(name: str, model, background, rows, scale: str = "auto", black: bool = False) -> Case:
    schema, read = tables.learn(background)
    predictor = prediction.adapt(model, schema, read[:8], scale=scale)
    settings = Settings(bounds=data_bounds(read))
    engine = choose(predictor, read, "finite-difference" if black else "auto", settings)
    return Case(name, predictor, read, rows, engine, settings)


def data(name: str) -> tuple[np.ndarray, ...]:
    found = tx.datasets.load(name)
    some = np.random.default_rng(0).permutation(len(found.X_train))[:6000]
    X, y = np.asarray(found.X_train)[some], np.asarray(found.y_train)[some]
    return X, y, X[:200], np.asarray(found.X_test)[:ROWS]


def network(X, y) -> MLPClassifier:
    return MLPClassifier((64, 64), max_iter=400 if len(X) < 3000 else 40, random_state=0).fit(X, y)


def exact_cases() -> Iterator[Case]:
    for name in SETS:
        X, y, background, rows = data(name)
        fitted = network(X, y)
        yield case(f"network, {name}", fitted, background, rows, "log-odds")
        yield case(f"network, {name}, probability", fitted, background, rows, "probability")
    X, y, background, rows = data("heloc")
    yield case(
        "logistic, heloc, probability",
        LogisticRegression(max_iter=500).fit(X, y),
        background,
        rows,
        "probability",
    )
    for name in ("20ft", "banknote"):
        X, y, background, rows = data(name)
        yield case(f"SVR, {name}", SVR(C=5).fit(X, y), background, rows)
    X, y, background, rows = data("20ft")
    machine = GaussianProcessRegressor(RBF(0.45), alpha=0.05, optimizer=None).fit(X[:400], y[:400])
    yield case("Gaussian process, 20ft", machine, background, rows)


def black_cases() -> Iterator[Case]:
    from xgboost import XGBClassifier

    for name in SETS:
        X, y, background, rows = data(name)
        fitted = network(X, y)
        margin = case(name, fitted, background, rows, "log-odds").predictor
        yield case(f"network, {name}", lambda r, m=margin: m(r)[:, 0], background, rows, black=True)
    for name in SETS:
        X, y, background, rows = data(name)
        trees = XGBClassifier(n_estimators=200, max_depth=4, learning_rate=0.1, n_jobs=1).fit(X, y)
        margins = lambda r, t=trees: t.predict(r, output_margin=True).astype(float)  # noqa: E731
        yield case(f"200 boosted trees, {name}", margins, background, rows, black=True)


def true_average(of: Case, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Give sigma G at x over very many points."""
    low, high = (np.asarray(limit) for limit in of.settings.bounds)
    at = np.clip(x + of.engine.width * of.unit * z, np.minimum(low, x), np.maximum(high, x))
    return of.engine.at_point.gradient(at).values[:, :, 0].mean(axis=0) * of.unit


def true_fit(of: Case, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Give sigma times the slopes of a least-squares fit to very many pairs of points."""
    low, high = (np.asarray(limit) for limit in of.settings.bounds)
    half = z[: len(z) // 2] * of.engine.width * of.unit
    ahead, behind = (np.clip(x + s * half, np.minimum(low, x), np.maximum(high, x)) for s in (1, -1))
    odd = (of.predictor(ahead) - of.predictor(behind))[:, 0] / 2
    return np.linalg.lstsq((ahead - behind) / 2 / of.sigma, odd, rcond=None)[0]


def accuracy(of: Case, true: Callable[[Case, np.ndarray, np.ndarray], np.ndarray]) -> str:
    half = np.random.default_rng(7).normal(size=(MANY // 2, of.rows.shape[1]))
    truth = np.stack([true(of, x, np.concatenate([half, -half])) for x in of.rows])
    found = of.engine.gradient(of.rows)
    values, bound = found.values[:, :, 0] * of.unit, found.error[:, :, 0] * of.unit
    miss = np.abs(values - truth)
    off = np.median(np.linalg.norm(miss, axis=1) / np.linalg.norm(truth, axis=1))
    first = np.mean(np.abs(values).argmax(axis=1) == np.abs(truth).argmax(axis=1))
    # a linear model's truth is itself rounded
    used = found.error[:, :, 0] > 0  # a feature the model does not use is exact; its truth is not
    covered = np.mean((miss <= bound + 1e-12 * np.abs(truth).max())[used])
    wide = np.median((bound / np.maximum(miss, 1e-300))[used])
    return f"{of.engine.width:.2f} | {off:.3f} | {first:.0%} | {covered:.2%} | {wide:.1f}"


def change(of: Case) -> str:
    found = of.engine.gradient(of.rows)
    values = found.values[:, :, 0] * of.unit
    gaps = []
    for seed in range(MOVES):
        move = 0.05 * of.unit * np.random.default_rng(seed).normal(size=of.rows.shape)
        moved = of.engine.gradient(of.rows + move).values[:, :, 0] * of.unit
        gaps.append(np.linalg.norm(moved - values, axis=1))
    length = np.linalg.norm(values, axis=1)
    measured, stated = np.median(gaps, axis=0) / length, found.change[:, 0] / length
    ratio = stated / np.maximum(measured, 1e-300)
    shaky = measured > np.median(measured)
    area = roc_auc_score(shaky, stated)
    near = np.mean((ratio > 0.5) & (ratio < 2))
    return f"{np.median(measured):.3f} | {area:.2f} | {np.median(ratio):.2f} | {near:.0%}"


def cost(of: Case) -> str:
    """Time to explain over time to predict the points of the design, in one batch."""
    rows, seen = np.tile(of.rows, (17, 1))[:500], []
    function = of.predictor.call
    watched = replace(of.predictor, call=lambda table: (seen.append(np.array(table)), function(table))[1])
    experiment = replace(of.engine.gradient.__self__, predictor=watched)
    seen.clear()
    experiment.gradient(rows)
    points = np.concatenate(seen)
    ratios = []
    for _ in range(9):  # alternating, so that a busy moment hits both
        ratios.append(clock(lambda: of.engine.gradient(rows)) / clock(lambda: of.predictor(points)))
    return f"{len(points) // len(rows)} | {len(points) / rows.size:.1f} | {np.median(ratios):.2f}"


def clock(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def agreement() -> Iterator[str]:
    """The black box beside the exact engine at the same width."""
    for name in SETS:
        X, y, background, rows = data(name)
        exact = case(name, network(X, y), background, rows, "log-odds")
        settings = replace(exact.settings, smoothing=exact.engine.width)
        black = choose(exact.predictor, exact.background, "finite-difference", settings)
        a, b = (e.gradient(rows).values[:, :, 0] * exact.unit for e in (exact.engine, black))
        first = np.mean(np.abs(a).argmax(axis=1) == np.abs(b).argmax(axis=1))
        off = np.median(np.linalg.norm(a - b, axis=1) / np.linalg.norm(a, axis=1))
        yield f"| network, {name} | {first:.0%} | {off:.3f} |"


def page() -> Iterator[str]:
    yield "# Neighbourhood slopes: accuracy, error bars, change and cost"
    yield "\nMade by `python benchmarks/slopes.py`. Slopes in units of the features' SDs, of the log-odds"
    yield "unless said otherwise."
    columns = (
        "| width | relative error | first feature equal | covered | bound / error |\n" + "|---" * 6 + "|"
    )
    exact, black = list(exact_cases()), list(black_cases())
    yield f"\n## Exact engines: {POINTS} points against {MANY:,}\n\n| model {columns}"
    yield from (f"| {of.name} | {accuracy(of, true_average)} |" for of in exact)
    yield f"\n## Black boxes: the designed experiment against a fit to {MANY:,} points\n\n| model {columns}"
    yield from (f"| {of.name} | {accuracy(of, true_fit)} |" for of in black)
    yield "\n## Black boxes beside the exact engine, at its width\n"
    yield "| model | first feature equal | relative difference |\n|---|---|---|"
    yield from agreement()
    yield f"\n## Change under moves of 5% of an SD: stated against the median of {MOVES} real moves\n"
    yield "| model | measured, relative | area under the curve | stated / measured | within a factor 2 |"
    yield "|---|---|---|---|---|"
    yield from (f"| {of.name} | {change(of)} |" for of in exact if "logistic" not in of.name)
    yield from (f"| black box: {of.name} | {change(of)} |" for of in black)
    yield "\nThe area is that of the stated number against being in the more changeable half of the rows."
    yield "\n## Time to explain over time to predict the same points in one batch\n"
    yield "Aimed at 1.15. A network of 64 x 64 predicts a row in a microsecond; making its points shows."
    yield ""
    yield "| model | points | points per feature | ratio |\n|---|---|---|---|"
    yield from (f"| {of.name} | {cost(of)} |" for of in black)


def main() -> None:
    warnings.simplefilter("ignore")
    lines = []
    for line in page():
        print(line, flush=True)
        lines.append(line)
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
