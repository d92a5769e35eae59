"""LIME (Ribeiro et al., 2016): a weighted ridge regression on samples around each row.

All features are kept (LIME's default of ten silently zeroes the rest). With `discretize=True` a weight
belongs to "the feature lies in this quartile", an output difference; without, to the feature in standard
deviations. The explained output is fitted as a regression, which is what LIME does per class.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from texplainer.explainers.base import (
    PER_SD,
    SHARES,
    Counter,
    OtherExplainer,
    needs,
    rebuildable,
    row_by_row,
    task_of,
)
from texplainer.types import Array


@rebuildable
def lime(
    model: Any,
    background: Any,
    *,
    discretize: bool = True,
    samples: int = 5000,
    seed: int | None = 0,
    **choice: Any,
) -> OtherExplainer:
    """Explain with LIME.

    Parameters
    ----------
    discretize : whether numbers are cut into quartiles first (LIME's default) or taken as they are.
    samples : rows drawn around each explained row.
    seed : each row starts from it, so that equal rows get equal explanations; None leaves the sampling to
        numpy's global generator, as LIME does by default.
    **choice : `output`, `scale`, `feature_names`, `categorical`, as for TExplainer.
    """
    tabular = needs("lime.lime_tabular")
    task = task_of(model, background, **choice)
    schema = task.predictor.schema
    coded = sorted(schema.levels)
    counter = Counter(lambda rows: task.output_of(_missing(rows, coded)))
    explainer = tabular.LimeTabularExplainer(
        _whole(task.background.rows, coded),
        mode="regression",
        feature_names=list(schema.names),
        categorical_features=coded or None,
        discretize_continuous=discretize,
        feature_selection="none",  # all are kept: a search for the best costs time for nothing
        random_state=np.random.RandomState(0 if seed is None else seed),
    )

    def one(row: Array) -> Array:
        # LIME keeps one generator for life; a fresh one per row makes rows independent of each other.
        state = np.random.mtrand._rand if seed is None else np.random.RandomState(seed)
        for owner in (explainer, explainer.base, getattr(explainer, "discretizer", None)):
            if owner is not None:
                owner.random_state = state
        found = explainer.explain_instance(
            _whole(row, coded), counter, num_features=len(row), num_samples=samples
        )
        values = np.zeros(len(row))
        for feature, weight in found.as_map()[1]:
            values[feature] = weight
        return values

    return OtherExplainer(
        "LIME" if discretize else "LIME (continuous)",
        task,
        row_by_row(one, counter, seed),
        attribution=SHARES if discretize else PER_SD,
        settings={"samples": samples, "discretize": discretize, "seed": seed},
    )


def _whole(rows: Array, coded: list[int]) -> Array:
    """Levels as LIME counts them, in whole numbers: a missing one is -1."""
    rows = rows.copy()
    rows[..., coded] = np.nan_to_num(rows[..., coded], nan=-1.0)
    return rows


def _missing(rows: Array, coded: list[int]) -> Array:
    """The rows LIME asks about as the model takes them; LIME goes on with its own."""
    rows = rows.copy()
    rows[:, coded] = np.where(rows[:, coded] < 0, np.nan, rows[:, coded])
    return rows
