"""Shapley values of a function by estimators of shapiq and lightshap.

The game is that of SHAP: v(S) = mean over background rows of f with the features of S taken from the row.
shapiq's estimators ask for it at `budget` coalitions; with 2^n of them or more the values are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.explainers.base import (
    Counter,
    OtherExplainer,
    evenly_spaced,
    needs,
    rebuildable,
    row_by_row,
    task_of,
)
from texplainer.types import Array

ROUNDS = 10  # SHAP's permutation explainer: ten walks forth and back, 2 n + 1 coalitions each


@rebuildable
def shapiq(
    model: Any,
    background: Any,
    *,
    estimator: str = "RegressionMSR",
    budget: int | None = None,
    references: int = 100,
    seed: int | None = 0,
    **choice: Any,
) -> OtherExplainer:
    """Explain with an estimator of shapiq.

    Parameters
    ----------
    estimator : a class of `shapiq.approximator`: "RegressionMSR", "LeverageSHAP" (KernelSHAP with leverage
        sampling), "KernelSHAP", ...
    budget : coalitions per row, by default as many as SHAP's permutation explainer takes.
    references : the most background rows averaged over for each coalition.
    seed : each row starts from it; None draws anew.
    **choice : `output`, `scale`, `feature_names`, `categorical`, as for TExplainer.
    """
    kind = getattr(needs("shapiq.approximator"), estimator, None)
    if kind is None:
        raise Unsupported(f"the installed shapiq has no estimator {estimator!r}; update it: 1.8 has it.")
    task = task_of(model, background, **choice)
    counter = Counter(task.output_of)
    rows = evenly_spaced(task.background.rows, references)
    features = rows.shape[1]
    coalitions = min(budget or ROUNDS * (2 * features + 1), 2**features)
    index = {"index": "SV"} if estimator in ("RegressionMSR", "ProxySHAP") else {}

    def one(row: Array) -> Array:
        def game(members: Any) -> Array:
            chosen = np.asarray(members, dtype=bool)[:, None, :]  # (coalitions, 1, features)
            mixed = np.where(chosen, row, rows)  # (coalitions, references, features)
            return counter(mixed.reshape(-1, features)).reshape(len(chosen), len(rows)).mean(axis=1)

        found = kind(n=features, random_state=seed, **index).approximate(coalitions, game)
        return np.array([found[(j,)] for j in range(features)])

    settings = {"estimator": estimator, "budget": coalitions, "references": len(rows), "seed": seed}
    return OtherExplainer(f"shapiq {estimator}", task, row_by_row(one, counter, seed), settings=settings)


@rebuildable
def lightshap(
    model: Any, background: Any, *, references: int = 100, seed: int | None = 0, **choice: Any
) -> OtherExplainer:
    """Explain with lightshap: exact for few features, else sampled until its standard error is small."""
    explain = needs("lightshap").explain_any
    task = task_of(model, background, **choice)
    counter = Counter(task.output_of)
    rows = evenly_spaced(task.background.rows, references)

    def one(row: Array) -> Array:
        found = explain(counter, row[None], bg_X=rows, random_state=seed, verbose=False)
        return np.asarray(found.shap_values, dtype=float).reshape(len(row))

    settings = {"references": len(rows), "seed": seed}
    return OtherExplainer("lightshap", task, row_by_row(one, counter, seed), settings=settings)
