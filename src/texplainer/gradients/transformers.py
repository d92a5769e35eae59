"""The chain rule through the transformers of a scikit-learn Pipeline.

A `Map` sends rows (rows, in) to (rows, out) and returns, beside them, its *pullback*: the function
that carries derivatives with respect to the output back to the input. Derivatives travel outputs
first, (outputs, rows, width), so that each output is one contiguous matrix. Chaining two maps chains
their pullbacks in reverse; that is all of reverse-mode differentiation (Griewank & Walther 2008).

`chain(pipeline)` gives the map of all steps but the last, and the last. A transformer that is not in
`TRANSFORMERS` by its exact type raises `Unsupported`: a subclass may compute anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.types import Array

#: (outputs, rows, out) -> (outputs, rows, in)
Pullback = Callable[[Array], Array]
#: (rows, in) -> (rows, out) and its pullback
Map = Callable[[Array], tuple[Array, Pullback]]


def chain(model: Any) -> tuple[Map, Any]:
    """Split a Pipeline into the map of its transformers and its last step; other models are all last step."""
    if qualified(model) != "sklearn.pipeline.Pipeline":
        return identity, model
    *before, (_, last) = model.steps
    inner, final = chain(last)
    return compose(*(transformer(step) for _, step in before), inner), final


def transformer(fitted: Any) -> Map:
    """Give the map of one fitted transformer."""
    if fitted is None or (isinstance(fitted, str) and fitted == "passthrough"):
        return identity
    make = TRANSFORMERS.get(type(fitted).__name__) if from_sklearn(fitted) else None
    if make is None:
        known = ", ".join(TRANSFORMERS)
        raise Unsupported(
            f"the transformer {type(fitted).__name__} has no derivative in the table (it holds {known})."
        )
    return make(fitted)


def compose(*maps: Map) -> Map:
    """One map after the other."""
    maps = tuple(m for m in maps if m is not identity)
    if not maps:
        return identity
    if len(maps) == 1:
        return maps[0]

    def forward(rows: Array) -> tuple[Array, Pullback]:
        pullbacks = []
        for one in maps:
            rows, back = one(rows)
            pullbacks.append(back)

        def pullback(d: Array) -> Array:
            for back in reversed(pullbacks):
                d = back(d)
            return d

        return rows, pullback

    return forward


def identity(rows: Array) -> tuple[Array, Pullback]:
    """No change."""
    return rows, lambda d: d


def elementwise(function: Callable[[Array], tuple[Array, Any]]) -> Map:
    """Map each cell by itself; the function returns (values, derivatives), both (rows, width)."""

    def forward(rows: Array) -> tuple[Array, Pullback]:
        values, slopes = function(rows)
        return values, lambda d: d * slopes

    return forward


def affine(matrix: Array, offset: Array | float = 0.0) -> Map:
    """Rows @ matrix + offset, matrix (in, out)."""
    transposed = np.ascontiguousarray(matrix.T)

    def forward(rows: Array) -> tuple[Array, Pullback]:
        return rows @ matrix + offset, lambda d: d @ transposed

    return forward


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

    return elementwise(function)


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
        raise Unsupported("a SimpleImputer that adds or drops columns has no derivative in the table.")
    if not np.isnan(fitted.missing_values):
        raise Unsupported(f"a SimpleImputer of {fitted.missing_values!r} jumps there.")
    return elementwise(
        lambda rows: (np.where(np.isnan(rows), fitted.statistics_, rows), (~np.isnan(rows)).astype(float))
    )


def _selector(fitted: Any) -> Map:
    return affine(np.eye(fitted.n_features_in_)[:, fitted.get_support()])


def _function(fitted: Any) -> Map:
    """A function of each cell by itself, if its slope is known."""
    if fitted.kw_args or fitted.accept_sparse or fitted.func not in (None, *SLOPES):
        raise Unsupported("the function of a FunctionTransformer has no derivative in the table.")
    return identity if fitted.func is None else elementwise(SLOPES[fitted.func])


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
