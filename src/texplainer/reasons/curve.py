"""The curve behind a number: the prediction of a row as one of its features takes other values."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from texplainer.errors import InputError, UndefinedRowsWarning
from texplainer.reasons.columns import known_names

POINTS = 101


@dataclass(frozen=True)
class Curve:
    """Predictions of one row along one feature, on the explained scale.

    `x` are the feature's values in rising order, (points,), or the positions of `levels` for a category; `y` the
    predictions, (points,). `at` and `prediction` are the row's own; `slope` is NaN for a category. `column` holds the
    background's values of the feature. `steps` tells that the column is discrete: between its values is nothing.
    """

    feature: str
    output: str
    scale: str
    x: np.ndarray
    y: np.ndarray
    at: float
    prediction: float
    slope: float
    sd: float
    column: np.ndarray
    levels: tuple[str, ...] = ()
    steps: bool = False


def ice_curve(
    explainer: Any,
    row: Any,
    feature: Any,
    few: int = 20,
    output: int | None = None,
    *,
    points: int = POINTS,
    slope: float | None = None,
) -> Curve:
    """The curve of one row and feature; columns of at most `few` different values are taken at these only.

    `output` is the position of the explained output, needed where there are several. `slope` is the row's slope per
    unit of the feature, if it is known already.
    """
    schema, names = explainer.schema, explainer.schema.names
    if isinstance(feature, (int, np.integer)) and -len(names) <= feature < len(names):
        feature = names[int(feature)]
    (feature,) = known_names("feature", feature, names)
    j = names.index(feature)
    start = schema.read(explainer.split_identifiers(row)[0])  # (1, features)
    if len(start) != 1:
        raise InputError(f"row holds {len(start)} rows; expected one. Pass one of them, such as X[:1].")
    outputs = len(explainer.predictor.output_names)
    if output is not None and not 0 <= output < outputs:
        raise InputError(f"output={output!r} is not an output; expected a number from 0 to {outputs - 1}.")
    if (output is None and outputs != 1) or explainer.predictor.predicted:
        raise InputError(
            f"the explainer has {outputs} outputs; a curve shows one. Build the explainer with output=..."
        )
    column = explainer.background.rows[:, j]
    column = column[np.isfinite(column)]
    categorical = j in schema.levels
    observed = np.unique(column)
    discrete = categorical or len(observed) <= few
    own = start[0, j]
    x = observed if discrete else np.linspace(observed[0], observed[-1], points)
    x = np.unique(np.append(x, own if np.isfinite(own) else observed[0]))
    rows = np.repeat(start, len(x) + 1, axis=0)
    rows[:-1, j] = x
    o = output or 0
    y = explainer.predictor(rows)[:, o]
    levels = ()
    if categorical:
        levels = tuple(str(value) for value in schema.column(rows[:-1], j))
        positions = np.searchsorted(x, column).astype(float)
        own = float(np.searchsorted(x, own)) if np.isfinite(own) else np.nan
        x, column = np.arange(len(x), dtype=float), positions
    if categorical:
        slope = np.nan
    elif slope is None:
        slope = _slope(explainer, start, j, o)
    sd = float(explainer.background.sigma[j])
    name, scale = explainer.predictor.output_names[o], explainer.predictor.scale
    return Curve(
        feature, name, scale, x, y[:-1], float(own), float(y[-1]), slope, sd, column, levels, discrete
    )


def _slope(explainer: Any, row: np.ndarray, feature: int, output: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedRowsWarning)
        found = explainer(explainer.schema.write(row.copy()), attribution="slope", progress=False)
    return float(found.arrays["gradient"][0, feature, output])
