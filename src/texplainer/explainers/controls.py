"""Controls: explainers that know nothing, and an adapter for the user's own.

A constant explainer is perfectly stable and useless; a table that does not show it beside the others lets
stability pass for quality.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from texplainer.explainers.base import SHARES, OtherExplainer, rebuildable, task_of
from texplainer.metrics.controls import noise, ones, zeros
from texplainer.types import Array


@rebuildable
def constant(model: Any, background: Any, **choice: Any) -> OtherExplainer:
    """Explain every row with ones: stable, but useless."""
    return _control("constant", ones, model, background, choice)


@rebuildable
def zero(model: Any, background: Any, **choice: Any) -> OtherExplainer:
    """Explain every row with zeros."""
    return _control("zero", zeros, model, background, choice)


@rebuildable
def random(model: Any, background: Any, *, seed: int = 0, **choice: Any) -> OtherExplainer:
    """Explain every row with noise seeded by the row, so that equal rows get equal values."""
    return _control("random", lambda rows: noise(rows, seed), model, background, choice)


def _control(
    name: str, values: Callable[[Array], Array], model: Any, background: Any, choice: dict[str, Any]
) -> OtherExplainer:
    task = task_of(model, background, **choice)
    return OtherExplainer(name, task, lambda rows: (values(rows), np.zeros(len(rows))), control=True)


def from_function(
    function: Callable[[Any], Any],
    model: Any,
    background: Any,
    *,
    name: str = "",
    attribution: str = SHARES,
    **choice: Any,
) -> OtherExplainer:
    """Wrap an explainer of your own: a function from the model's table to values (rows, features).

    Parameters
    ----------
    function : called with the rows as the model gets them (an array or a frame, as the background was).
    name : shown in tables; the function's own name by default.
    attribution : what a value means: one of the attributions' names, `SHARES` (output for the way from the
        background), `SLOPE` (per unit of the feature) or `PER_SD` of `explainers.base`.
    **choice : `output`, `scale`, `feature_names`, `categorical`, as for TExplainer.
    """
    task = task_of(model, background, **choice)

    def attribute(rows: Array) -> tuple[Array, Array]:
        values = np.asarray(function(task.predictor.schema.write(rows)), dtype=float)
        return values, np.full(len(rows), np.nan)

    return OtherExplainer(
        name or getattr(function, "__name__", "function"), task, attribute, attribution=attribution
    )
