"""Stability: whether `relative_change` ranks rows as measured changes do, within each table.

    python benchmarks/stability.py              writes docs/results/stability.md

The area under the curve is that of `relative_change` for the rows whose measured change lies above the median.
The measured change is the mean over random moves of 5% of an SD. The best attainable is the area of a second
measurement with other moves. TEXPLAINER_DATA names the folder of the real data sets.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from conditions import measured_on
from locality import MODELS, tables
from sklearn.datasets import make_friedman1
from sklearn.metrics import roc_auc_score

import texplainer as tx

OUT = Path(__file__).parents[1] / "docs" / "results" / "stability.md"
ROWS, BACKGROUND, MOVES = 60, 200, 20
AS_FUNCTION = " as a function"
KINDS = {
    "slope": ("network", "boosted trees", "forest", "GP", f"boosted trees{AS_FUNCTION}"),
    "shapley": ("boosted trees", "forest"),
}


def measured(explainer: tx.TExplainer, rows: np.ndarray, name: str, seed: int) -> np.ndarray:
    """The mean relative change of the values under random moves of the continuous columns, (rows,)."""
    rng, background = np.random.default_rng(seed), explainer.background
    step = 0.05 * background.unit * ~background.discrete.mask(rows.shape[1])
    low, high = (np.minimum, np.maximum)
    low, high = low(background.bounds[0], rows), high(background.bounds[1], rows)
    moved = np.clip(rows + step * rng.normal(size=(MOVES, *rows.shape)), low, high)
    here = explainer(rows, attribution=name, progress=False).values
    there = explainer(moved.reshape(-1, rows.shape[1]), attribution=name, progress=False).values
    change = np.linalg.norm(there.reshape(moved.shape) - here, axis=2).mean(axis=0)
    return change / np.maximum(np.linalg.norm(here, axis=1), 0.01 * background.output_sd)


def areas() -> list[tuple[str, str, list[tuple[float, float, float]]]]:
    """Attribution, model, and per table the area, the best attainable, and the rows within a factor 2."""
    out = []
    every = {**tables(), "friedman": make_friedman1(800, random_state=0)}
    for name, kinds in KINDS.items():
        for kind in kinds:
            found = []
            for X, y in every.values():
                order = np.random.default_rng(0).permutation(len(X))
                X, y = X[order], (y[order] - y.mean()) / y.std()
                train, rows = X[ROWS : ROWS + 800], X[:ROWS]
                model = MODELS[kind.removesuffix(AS_FUNCTION)]().fit(train, y[ROWS : ROWS + 800])
                given = partial(type(model).predict, model) if kind.endswith(AS_FUNCTION) else model
                explainer = tx.TExplainer(given, train[:BACKGROUND])
                stated = explainer(rows, attribution=name).diagnostics.relative_change.ravel()
                truth, again = (measured(explainer, rows, name, seed) for seed in (0, 1))
                label = truth > np.median(truth)
                near = np.mean((stated <= 2 * truth) & (truth <= 2 * stated))
                found.append((roc_auc_score(label, stated), roc_auc_score(label, again), near))
            out.append((name, kind, found))
            print(name, kind, np.round(found, 2).tolist(), flush=True)
    return out


def behind(found: list[tuple[str, str, list[tuple[float, float, float]]]], names: list[str]) -> list[str]:
    """Where the area misses the best attainable by more than 0.05, as the page shows both."""
    return [
        f"{name} of {kind} on {table}"
        for name, kind, areas_found in found
        for table, (area, best, _) in zip(names, areas_found, strict=True)
        if round(best, 2) - round(area, 2) > 0.0501
    ]


def page(found: list[tuple[str, str, list[tuple[float, float, float]]]], seconds: float) -> str:
    """The page."""
    names = [*tables(), "friedman"]
    lines = [
        "# Stability",
        "",
        "Does `relative_change` find the rows whose values change most under small moves? Its area under the ROC",
        "curve within each table, and the best attainable after the slash; last, the share of rows in which the stated",
        "change is within a factor 2 of the measured one. High is good.",
        "",
        "| attribution | model | " + " | ".join(names) + " | within a factor 2 |",
        "|---|---|" + "---|" * (len(names) + 1),
    ]
    for name, kind, tables_found in found:
        cells = " | ".join(f"{area:.2f} / {best:.2f}" for area, best, _ in tables_found)
        lines.append(f"| {name} | {kind} | {cells} | {np.mean([near for *_, near in tables_found]):.0%} |")
    return "\n".join(
        [
            *lines,
            "",
            "## How",
            "",
            f"{ROWS} held-out rows per table. The measured change is the mean over {MOVES} random moves: every",
            "continuous feature moves by a normal deviate of 5% of its SD, inside the data's range. The label is",
            "whether it lies above the table's median. The best attainable is the area of a second measurement with",
            "other moves against the same label.",
            "",
            "## Limits",
            "",
            f"A label from {MOVES} moves and {ROWS} rows is uncertain. The three moves of exact Shapley values, and",
            "the moves for second derivatives, were chosen on these six tables. Trees given as a function change by",
            "steps, which second derivatives describe badly: give the model itself.",
            f"More than 0.05 below the best attainable: {', '.join(behind(found, names)) or 'none'}.",
            "",
            f"`python benchmarks/stability.py`, {seconds:.0f} s. {measured_on('numba')}",
            "",
        ]
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    OUT.write_text(page(areas(), time.perf_counter() - began))
