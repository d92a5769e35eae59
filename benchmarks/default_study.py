"""The study behind the defaults: which vector `attribution="auto"` should be.

Candidates of T-Explainer and the rivals explain the same rows of the paper's data sets with the paper's
3H-NN, under the same neighbours and masks; the evaluation suite scores them; ranks are averaged over
data sets and seeds. Run it from the repository's root:

    python benchmarks/default_study.py [--rows 30] [--neighbours 4] [--seeds 3] [--write tables.md]

Seed s explains rows that no other seed sees and draws other neighbours, so that a choice made on one
seed can be confirmed on another. Candidates resemble one another, so that ranks among all of them say
more about the crowd than about the choice; the first table ranks each candidate alone among the rivals.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import rankdata

import texplainer as tx
from texplainer import attribution, datasets, effects, rivals, swaps
from texplainer.metrics import evaluate, units
from texplainer.metrics.table import METRICS

DATA = ("4ft", "20ft", "banknote", "german", "heloc", "higgs")
BACKGROUND = 500
TRAIN_ROWS = 4000
RIVALS = ("shap", "lime", "integrated_gradients", "input_x_gradient", "deeplift")
#: column of the table -> (metric, part)
COLUMNS = {
    "RIS": ("ris", "mean"),
    "ROS": ("ros", "mean"),
    "RIS*": ("ris_norm", "median"),
    "PGI zero": ("pgi", ""),
    "PGI mean": ("pgi_mean", ""),
    "PGI marg.": ("pgi_marginal", ""),
    "deletion": ("deletion", ""),
    "insertion": ("insertion", ""),
    "infid. small": ("infidelity", ""),
    "infid. backg.": ("infidelity_background", ""),
}
STABILITY = ("RIS", "ROS", "RIS*")


# ---------------------------------------------------------------- candidates that are no option of TExplainer


def variant(points: int, reach: float, combine: Callable[..., Any]) -> Callable[[Any], Any]:
    """Finite effects with other settings; `combine` gets a (rows, m, features) and the displacements."""

    def explain(local: attribution.Local) -> attribution.Attribution:
        columns = np.nonzero(local.predictor.schema.numeric)[0]
        moves = effects.scattered(local.background, local.predictor.schema.numeric, points, reach)
        values = np.zeros((*local.rows.shape, local.predictions.shape[1]))
        base = effects.between(local.rows, moves, local.predictor.schema.numeric)
        start = local.predictor(base.reshape(-1, base.shape[2])).reshape(*base.shape[:2], -1)
        for j in columns:
            moved = base.copy()
            moved[:, :, j] = moves.references[:, j]
            a = start - local.predictor(moved.reshape(-1, base.shape[2])).reshape(start.shape)
            away = (base[:, :, j] - moves.references[:, j])[:, :, None]
            values[:, j] = combine(a, away)
        return attribution.Attribution(values)

    return explain


def signed(a: Any, away: Any) -> Any:
    return np.copysign(np.sqrt(np.mean(a**2, axis=1)), np.sum(a * away, axis=1))


def unsigned(a: Any, away: Any) -> Any:
    return np.sqrt(np.mean(a**2, axis=1))


def slope(a: Any, away: Any) -> Any:
    """The fitted slope times the root-mean-square displacement: signed and continuous."""
    return np.sum(a * away, axis=1) / np.sqrt(np.sum(away**2, axis=1) * a.shape[1])


def mean(a: Any, away: Any) -> Any:
    return a.mean(axis=1)


VARIANTS = {
    "effect, tau .25": variant(32, 0.25, signed),
    "effect, tau .5": variant(32, 0.5, signed),
    "effect, tau .75": variant(32, 0.75, signed),
    "effect, 64 points, tau .5": variant(64, 0.5, signed),
    "effect, 64 points, tau .75": variant(64, 0.75, signed),
    "effect, 64 points": variant(64, 1.0, signed),
    "effect, tau .5, slope": variant(32, 0.5, slope),
    "effect, tau .5, unsigned": variant(32, 0.5, unsigned),
    "effect, tau .5, mean": variant(32, 0.5, mean),
}
#: name -> arguments of TExplainer
OPTIONS: dict[str, dict[str, Any]] = {
    "effect": {"attribution": "effect", "smoothing": 0},
    **{name: {"attribution": name, "smoothing": 0} for name in VARIANTS},
    "additive": {"attribution": "additive"},
    "integrated": {"attribution": "integrated"},
    "contribution": {"attribution": "contribution"},
    "smoothed gradient": {"attribution": "sensitivity"},
    "smoothed gradient x spread": {"attribution": "scaled"},
    "point gradient": {"attribution": "sensitivity", "smoothing": 0},
    "point gradient x spread": {"attribution": "scaled", "smoothing": 0},
    "Algorithm 1 (paper)": {"step": "paper"},
}


def register() -> None:
    """Let TExplainer know the variants by name, categories included, for this run."""
    for name, explain in VARIANTS.items():
        attribution.ATTRIBUTIONS[name] = explain
        swaps.SHARES[name] = swaps.effect
        units.UNITS[name] = "contribution" if name.endswith("mean") else "spread"


# ---------------------------------------------------------------- one data set, one seed


def fit(name: str) -> tuple[Any, Any]:
    """The paper's 3H-NN on at most 4,000 training rows, stopped early where the paper's settings overfit."""
    from sklearn.neural_network import MLPClassifier

    data = datasets.load(name)
    model = MLPClassifier(
        (64, 64, 64), solver="sgd", learning_rate_init=0.01, max_iter=500, random_state=0,
        early_stopping=name in ("heloc", "higgs"),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.X_train[:TRAIN_ROWS], data.y_train[:TRAIN_ROWS])
    return data, model


def score(data: Any, model: Any, rows: int, neighbours: int, seed: int) -> dict[str, dict[str, float]]:
    """Every explainer's number in every column."""
    background = data.X_train[:BACKGROUND]
    explainers: dict[str, Any] = {
        label: tx.TExplainer(model, background, feature_names=data.feature_names, **options)
        for label, options in OPTIONS.items()
    }
    explainers |= rivals.suite(model, background, RIVALS, feature_names=data.feature_names)
    chosen = data.X_test[seed * rows : (seed + 1) * rows]
    result = evaluate(
        explainers,
        chosen,
        metrics=tuple(dict.fromkeys(metric for metric, _ in COLUMNS.values())),
        neighbours=neighbours,
        model=model,
        background=background,
        seed=seed,
        progress=False,
    )
    return {label: numbers(result, *where) for label, where in COLUMNS.items()}


def numbers(result: Any, metric: str, part: str) -> dict[str, float]:
    """One number per explainer: the mean over rows (the median for RIS*), and over k for PGI."""
    summary = result.summary()
    found = [
        i
        for i in result.columns_of(metric)
        if not part or result.columns[i].name.endswith(part) or result.columns[i].name == metric
    ]
    return {name: float(np.nanmean(summary[result.index(name), found])) for name in result.explainers}


# ---------------------------------------------------------------- ranks and the report


def ranks(tables: list[dict[str, dict[str, float]]]) -> tuple[list[str], np.ndarray]:
    """Average rank, (explainers, columns), over data sets and seeds; 1 is best."""
    names = list(tables[0]["RIS"])
    every = []
    for table in tables:
        one = []
        for label, (metric, _) in COLUMNS.items():
            values = np.array([table[label][n] for n in names])
            sign = 1.0 if METRICS[metric].better == "low" else -1.0
            one.append(rankdata(np.where(np.isnan(values), np.inf, sign * values)))
        every.append(one)
    return names, np.mean(every, axis=0).T


def alone(tables: list[dict[str, dict[str, float]]]) -> tuple[list[str], np.ndarray]:
    """As `ranks`, for each candidate as the only one of ours among the rivals."""
    found = []
    for label in OPTIONS:
        field = [
            {column: {n: v for n, v in numbers.items() if n == label or n in RIVALS}
             for column, numbers in table.items()}
            for table in tables
        ]  # fmt: skip
        names, places = ranks(field)
        found.append(places[names.index(label)])
    return list(OPTIONS), np.array(found)


def report(names: list[str], found: np.ndarray, about: str) -> str:
    labels = list(COLUMNS)
    stable = found[:, [labels.index(s) for s in STABILITY]].mean(axis=1)
    faithful = found[:, [i for i, s in enumerate(labels) if s not in STABILITY]].mean(axis=1)
    both = (stable + faithful) / 2
    lines = [
        f"| explainer | {' | '.join(labels)} | stability | faithfulness | both |",
        "|---" * (len(labels) + 4) + "|",
    ]
    for i in np.argsort(both, kind="stable"):
        cells = " | ".join(f"{v:.1f}" for v in found[i])
        lines.append(f"| {names[i]} | {cells} | {stable[i]:.1f} | {faithful[i]:.1f} | {both[i]:.1f} |")
    return f"{about}\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--neighbours", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", nargs="*", default=list(DATA))
    parser.add_argument("--write", default=None)
    arguments = parser.parse_args()
    register()
    began, by_seed = time.perf_counter(), {seed: [] for seed in range(arguments.seeds)}
    for i, name in enumerate(arguments.data):
        data, model = fit(name)
        for seed, tables in by_seed.items():
            tables.append(score(data, model, arguments.rows, arguments.neighbours, seed))
            print(f"{name}, seed {seed}: {time.perf_counter() - began:.0f} s", flush=True)
        text = tables_of(by_seed, arguments.data[: i + 1], arguments.rows)
        if arguments.write:
            with open(arguments.write, "w") as file:
                file.write(text)
    print(text)


def tables_of(by_seed: dict[int, list[Any]], names: list[str], rows: int) -> str:
    texts = [
        report(*ranks(tables), f"Seed {seed}: average rank over {', '.join(names)}; {rows} rows each.")
        for seed, tables in by_seed.items()
    ]
    together = [table for tables in by_seed.values() for table in tables]
    first = f"Each candidate alone among {', '.join(RIVALS)}; all seeds together."
    return "\n".join(
        [report(*alone(together), first), report(*ranks(together), "All together, all seeds."), *texts]
    )


if __name__ == "__main__":
    main()
