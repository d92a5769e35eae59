"""The chain rule through the transformers of a scikit-learn Pipeline.

`chain(pipeline)` gives the map of all steps but the last, and the last. A transformer that is not in
`TRANSFORMERS` by its exact type raises `Unsupported`: a subclass may compute anything.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np
from scipy.stats import norm

from texplainer.errors import Unsupported
from texplainer.gradients.maps import Map, Pullback, affine, as_linear, compose, elementwise, identity
from texplainer.types import Array

RANK_FLOOR = 1e-7  # scikit-learn's own, of the ranks that become normal scores

#: a ColumnTransformer of the user's own table -> its map
OfTable = Callable[[Any], Map]


def chain(model: Any, of_table: OfTable | None = None) -> tuple[Map, Any]:
    """Split a Pipeline into the map of its transformers and its last step; other models are all last step.

    `of_table` reads a ColumnTransformer at its beginning.
    """
    if qualified(model) != "sklearn.pipeline.Pipeline":
        return identity, model
    *before, (_, last) = model.steps
    if not before:
        return chain(last, of_table)
    inner, final = chain(last)
    return compose(
        _first(before[0][1], of_table), *(transformer(step) for _, step in before[1:]), inner
    ), final


def _first(step: Any, of_table: OfTable | None) -> Map:
    """The map of the step that meets the user's table."""
    kind = qualified(step)
    if of_table is not None and kind == "sklearn.compose._column_transformer.ColumnTransformer":
        return of_table(step)
    if of_table is not None and kind == "sklearn.pipeline.Pipeline":
        return compose(_first(step.steps[0][1], of_table), *(transformer(one) for _, one in step.steps[1:]))
    return transformer(step)


def transformer(fitted: Any) -> Map:
    """Give the map of one fitted transformer."""
    if fitted is None or (isinstance(fitted, str) and fitted == "passthrough"):
        return identity
    make = TRANSFORMERS.get(type(fitted).__name__) if from_sklearn(fitted) else None
    if make is None:
        known = ", ".join(TRANSFORMERS)
        raise Unsupported(
            f"the derivative of the transformer {type(fitted).__name__} is not known; expected one of {known}."
        )
    return make(fitted)


def from_sklearn(model: Any) -> bool:
    """Whether a model's exact type is scikit-learn's own."""
    return type(model).__module__.split(".")[0] == "sklearn"


def qualified(model: Any) -> str:
    """Give a type's full name."""
    return f"{type(model).__module__}.{type(model).__qualname__}"


# ---------------------------------------------------------------- the transformers


def _scale(scale: Array, shift: Array, low: Any = None, high: Any = None) -> Map:
    """Rows * scale + shift, cut to [low, high] if given; a cut cell has slope 0."""

    def function(rows: Array) -> tuple[Array, Array]:
        values = rows * scale + shift
        slopes = np.broadcast_to(scale, rows.shape)
        if low is None:
            return values, slopes
        return np.clip(values, low, high), np.where((values < low) | (values > high), 0.0, slopes)

    return elementwise(function) if low is not None else as_linear(elementwise(function))


def _standard(fitted: Any) -> Map:
    scale = 1 / fitted.scale_ if fitted.scale_ is not None else np.ones(fitted.n_features_in_)
    mean = fitted.mean_ if fitted.with_mean else np.zeros(fitted.n_features_in_)
    return _scale(scale, -mean * scale)


def _min_max(fitted: Any) -> Map:
    cut = fitted.feature_range if fitted.clip else (None, None)
    return _scale(fitted.scale_, fitted.min_, *cut)


def _max_abs(fitted: Any) -> Map:
    cut = (-1.0, 1.0) if getattr(fitted, "clip", False) else (None, None)
    return _scale(1 / fitted.scale_, np.zeros(len(fitted.scale_)), *cut)


def _robust(fitted: Any) -> Map:
    scale = 1 / fitted.scale_ if fitted.scale_ is not None else np.ones(fitted.n_features_in_)
    centre = fitted.center_ if fitted.center_ is not None else np.zeros(fitted.n_features_in_)
    return _scale(scale, -centre * scale)


def _pca(fitted: Any) -> Map:
    matrix = fitted.components_.T
    if fitted.whiten:  # scikit-learn's own floor against dividing by a vanished variance
        matrix = matrix / np.maximum(np.sqrt(fitted.explained_variance_), np.finfo(matrix.dtype).eps)
    return affine(matrix, -fitted.mean_ @ matrix)


def _truncated_svd(fitted: Any) -> Map:
    return affine(fitted.components_.T)


def _polynomial(fitted: Any) -> Map:
    powers = fitted.powers_  # (out, in)

    def forward(rows: Array) -> tuple[Array, Pullback]:
        def pullback(d: Array) -> Array:
            out = np.zeros((*d.shape[:2], rows.shape[1]))
            for j in range(rows.shape[1]):
                used = powers[:, j] > 0
                lowered = powers[used].copy()
                lowered[:, j] -= 1
                slopes = powers[used, j] * _monomials(rows, lowered)  # (rows, used)
                out[:, :, j] = np.einsum("kru,ru->kr", d[:, :, used], slopes)
            return out

        return _monomials(rows, powers), pullback

    return forward


def _monomials(rows: Array, powers: np.ndarray) -> Array:
    out = np.ones((len(rows), len(powers)))
    for j in range(rows.shape[1]):
        used = powers[:, j] > 0
        out[:, used] *= rows[:, j, None] ** powers[used, j]
    return out


def _imputer(fitted: Any) -> Map:
    """Fill missing cells; a filled cell does not depend on the row."""
    if fitted.add_indicator or np.isnan(np.asarray(fitted.statistics_, dtype=float)).any():
        raise Unsupported("a SimpleImputer adds or drops columns.")
    if not np.isnan(fitted.missing_values):
        raise Unsupported(f"a SimpleImputer of {fitted.missing_values!r} jumps there.")
    return elementwise(
        lambda rows: (np.where(np.isnan(rows), fitted.statistics_, rows), (~np.isnan(rows)).astype(float))
    )


def _power(fitted: Any) -> Map:
    """Yeo-Johnson or Box-Cox of each column, standardised afterwards."""
    powers = fitted.lambdas_
    bend = _box_cox if fitted.method == "box-cox" else _yeo_johnson
    one = elementwise(lambda rows: bend(rows, powers))
    return compose(one, _standard(fitted._scaler)) if fitted.standardize else one


def _box_cox(x: Array, power: Array) -> tuple[Array, Array]:
    logarithm = np.log(x)
    values = np.where(power == 0, logarithm, np.expm1(power * logarithm) / np.where(power == 0, 1.0, power))
    return values, x ** (power - 1)


def _yeo_johnson(x: Array, power: Array) -> tuple[Array, Array]:
    """Box-Cox of 1 + x above 0, and of 1 - x with 2 - power below."""
    up, up_slope = _box_cox(1 + np.maximum(x, 0.0), power)
    down, down_slope = _box_cox(1 - np.minimum(x, 0.0), 2 - power)
    return np.where(x >= 0, up, -down), np.where(x >= 0, up_slope, down_slope)


def _quantiles(fitted: Any) -> Map:
    """The rank of each cell among the quantiles, by straight lines between them, perhaps as a normal score."""
    normal = fitted.output_distribution == "normal"
    least = norm.ppf(RANK_FLOOR - np.spacing(1))

    def function(rows: Array) -> tuple[Array, Array]:
        ranks, slopes = zip(*map(_rank, rows.T, fitted.quantiles_.T, repeat(fitted.references_)), strict=True)
        rank, slope = np.stack(ranks, axis=1), np.stack(slopes, axis=1)
        if not normal:
            return rank, slope
        score = np.clip(norm.ppf(rank), least, -least)
        return score, np.where(np.abs(score) < -least, slope / norm.pdf(score), 0.0)

    return elementwise(function)


def _rank(x: Array, quantiles: Array, references: Array) -> tuple[Array, Array]:
    """Where cells lie among the quantiles of their column, and the slope there; equal quantiles: the middle."""
    up = np.interp(x, quantiles, references)
    down = -np.interp(-x, -quantiles[::-1], -references[::-1])
    at = np.clip(np.searchsorted(quantiles, x, side="right") - 1, 0, len(quantiles) - 2)
    step = quantiles[at + 1] - quantiles[at]
    inside = (x >= quantiles[0]) & (x <= quantiles[-1]) & (step > 0)
    slope = (references[at + 1] - references[at]) / np.where(inside, step, 1.0)
    return (up + down) / 2, np.where(inside, slope, 0.0)


def _splines(fitted: Any) -> Map:
    """A basis of splines of each column; outside of the knots a line, a constant or an error, as it was fitted."""
    if fitted.extrapolation not in ("constant", "continue") or not fitted.include_bias:
        raise Unsupported(
            f"the derivative of a SplineTransformer with extrapolation={fitted.extrapolation!r} is not known."
        )
    bases = fitted.bsplines_
    low, high = (np.array([basis.t[side(basis)] for basis in bases]) for side in (_first_knot, _last_knot))

    def forward(rows: Array) -> tuple[Array, Pullback]:
        inside = np.clip(rows, low, high) if fitted.extrapolation == "constant" else rows
        moves = (inside == rows).astype(float)
        slopes = [b.derivative()(inside[:, j]) * moves[:, j, None] for j, b in enumerate(bases)]
        ends = np.cumsum([0, *(s.shape[1] for s in slopes)])

        def pullback(d: Array) -> Array:
            parts = [np.einsum("kru,ru->kr", d[:, :, ends[j] : ends[j + 1]], s) for j, s in enumerate(slopes)]
            return np.stack(parts, axis=2)

        return np.hstack([b(inside[:, j]) for j, b in enumerate(bases)]), pullback

    return forward


def _first_knot(basis: Any) -> int:
    return basis.k


def _last_knot(basis: Any) -> int:
    return -basis.k - 1


def _selector(fitted: Any) -> Map:
    return affine(np.eye(fitted.n_features_in_)[:, fitted.get_support()])


def _function(fitted: Any) -> Map:
    """A function of each cell by itself, if its slope is known."""
    if fitted.func is None:
        return identity
    if fitted.kw_args or fitted.accept_sparse or fitted.func not in SLOPES:
        raise Unsupported("the derivative of the function of a FunctionTransformer is not known.")
    return elementwise(SLOPES[fitted.func])


#: functions of a cell -> (values, slopes)
SLOPES: dict[Any, Callable[[Array], tuple[Array, Array]]] = {
    np.log: lambda x: (np.log(x), 1 / x),
    np.log1p: lambda x: (np.log1p(x), 1 / (1 + x)),
    np.exp: lambda x: (np.exp(x), np.exp(x)),
    np.sqrt: lambda x: (np.sqrt(x), 0.5 / np.sqrt(x)),
    np.square: lambda x: (x * x, 2 * x),
    np.arcsinh: lambda x: (np.arcsinh(x), 1 / np.sqrt(1 + x * x)),
    np.tanh: lambda x: (np.tanh(x), 1 - np.tanh(x) ** 2),
}


def _pipeline(fitted: Any) -> Map:
    return compose(*(transformer(step) for _, step in fitted.steps))


TRANSFORMERS: dict[str, Callable[[Any], Map]] = {
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "RobustScaler": _robust,
    "PowerTransformer": _power,
    "QuantileTransformer": _quantiles,
    "SplineTransformer": _splines,
    "PCA": _pca,
    "TruncatedSVD": _truncated_svd,
    "PolynomialFeatures": _polynomial,
    "SimpleImputer": _imputer,
    "FunctionTransformer": _function,
    "VarianceThreshold": _selector,
    "SelectKBest": _selector,
    "SelectFromModel": _selector,
    "RFE": _selector,
    "Pipeline": _pipeline,
}
