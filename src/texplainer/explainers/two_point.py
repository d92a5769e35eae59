"""The plain baseline for slopes: one central difference per feature, at a quarter SD.

    value_j = (f(x + h SD_j e_j) - f(x - h SD_j e_j)) / (2 h)

Two evaluations per feature; no average over the other features, no error bound, discrete columns like any other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.explainers.base import PER_SD, OtherExplainer, rebuildable, task_of
from texplainer.types import Array


@rebuildable
def two_point(model: Any, background: Any, *, step: float = 0.25, **choice: Any) -> OtherExplainer:
    """Explain with one central difference per feature, per SD.

    Parameters
    ----------
    step : the move to either side, in SDs of the feature.
    **choice : `output`, `scale`, `feature_names`, `categorical`, as for TExplainer.
    """
    if not 0 < step < np.inf:
        raise InputError(f"step={step!r} is not a move; expected a positive number of SDs, such as 0.25.")
    task = task_of(model, background, **choice)
    columns = np.flatnonzero(task.predictor.schema.numeric)
    moves = np.zeros((len(columns), task.background.rows.shape[1]))
    moves[np.arange(len(columns)), columns] = step * task.background.unit[columns]

    def attribute(rows: Array) -> tuple[Array, Array]:
        values = np.zeros(rows.shape)
        for j, move in zip(columns, moves, strict=True):
            values[:, j] = (task.output_of(rows + move) - task.output_of(rows - move)) / (2 * step)
        return values, np.full(len(rows), 2.0 * len(columns))

    return OtherExplainer("two-point", task, attribute, attribution=PER_SD, settings={"step": step})
