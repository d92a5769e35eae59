"""LIME (Ribeiro et al., 2016): a weighted ridge regression on samples around each row.

All features are kept (LIME's default of ten silently zeroes the rest). With `discretize=True` a weight
belongs to "the feature lies in this quartile", an output difference; without, to the feature in standard
deviations. The explained output is fitted as a regression, which is what LIME does per class.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from texplainer.signatures import Array

from .rival import Counter, Rival, needs, row_by_row, task_of


def lime(
    model: Any,
    background: Any,
    *,
    discretize: bool = True,
    samples: int = 5000,
    seed: int | None = 0,
    **choice: Any,
) -> Rival:
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
    counter = Counter(task.output_of)
    explainer = tabular.LimeTabularExplainer(
        task.background.rows,
        mode="regression",
        feature_names=list(schema.names),
        categorical_features=sorted(schema.levels) or None,
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
        found = explainer.explain_instance(row, counter, num_features=len(row), num_samples=samples)
        values = np.zeros(len(row))
        for feature, weight in found.as_map()[1]:
            values[feature] = weight
        return values

    return Rival(
        "LIME" if seed is not None else "LIME (unseeded)",
        task,
        row_by_row(one, counter, seed),
        attribution="contribution" if discretize else "scaled",
        settings={"samples": samples, "discretize": discretize, "seed": seed},
    )
