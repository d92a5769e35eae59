"""Kernels k(x, y_i) against fixed points as maps: rows (rows, features) -> (rows, points), with pullbacks.

Radial kernels are functions of q = |x - y|²/l²; their gradient is 2 k'(q) (x - y)/l², summed over the
points by two matrix products. Sums and products of kernels follow the sum and product rules, so any
scikit-learn Gaussian-process kernel made of the entries of `PARTS` is differentiated.

Reference: Rasmussen & Williams, Gaussian Processes for Machine Learning, 2006, chapter 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import gamma as gamma_function
from scipy.special import kv

from texplainer.errors import Unsupported
from texplainer.gradients.maps import Map, Pullback
from texplainer.gradients.transformers import from_sklearn
from texplainer.types import Array


def radial(points: Array, scale: Array | float, profile: Callable[[Array], tuple[Array, Array]]) -> Map:
    """Map by k(q), q the squared distance in units of `scale`; the profile returns (k, dk/dq)."""
    scaled = np.asarray(points / scale, dtype=np.float64)

    def forward(rows: Array) -> tuple[Array, Pullback]:
        x = np.asarray(rows / scale, dtype=np.float64)
        values, slopes = profile(cdist(x, scaled, "sqeuclidean").astype(np.float64, copy=False))

        def pullback(d: Array) -> Array:
            weights = 2 * d * slopes  # (outputs, rows, points)
            return (weights.sum(axis=2)[:, :, None] * x - weights @ scaled) / scale

        return values, pullback

    return forward


def inner_product_map(points: Array, profile: Callable[[Array], tuple[Array, Array]]) -> Map:
    """Map by a function of the inner product x·y; the profile returns (k, derivative)."""

    def forward(rows: Array) -> tuple[Array, Pullback]:
        values, slopes = profile(rows @ points.T)
        return values, lambda d: (d * slopes) @ points

    return forward


def laplacian(points: Array, rate: float) -> Map:
    """exp(-rate |x - y|_1); at a point's own coordinate the slope is taken as 0."""

    def forward(rows: Array) -> tuple[Array, Pullback]:
        values = np.exp(-rate * cdist(rows, points, "cityblock"))

        def pullback(d: Array) -> Array:
            weights = -rate * d * values
            sides = (np.sign(x[:, None] - y) for x, y in zip(rows.T, points.T, strict=True))
            return np.stack([(weights * side).sum(axis=2) for side in sides], axis=2)

        return values, pullback

    return forward


def dense(array: Any) -> Array:
    """Refuse what a model learnt from a sparse table."""
    if hasattr(array, "toarray"):
        raise Unsupported("the model was fitted on a sparse table.")
    return np.asarray(array, dtype=float)


def kernel_named(kernel: Any, points: Array, rate: float | None, degree: float, shift: float) -> Map:
    """Give one of scikit-learn's pairwise kernels by its name (SVMs, kernel ridge)."""
    if not isinstance(kernel, str) or kernel not in NAMED:
        raise Unsupported(
            f"the derivative of the kernel {kernel!r} is not known; expected one of {', '.join(NAMED)}."
        )
    return NAMED[kernel](points, 1 / points.shape[1] if rate is None else float(rate), degree, shift)


def _linear(points: Array, rate: float, degree: float, shift: float) -> Map:
    return inner_product_map(points, lambda s: (s, np.ones_like(s)))


def _rbf(points: Array, rate: float, degree: float, shift: float) -> Map:
    return radial(points, 1.0, lambda q: (k := np.exp(-rate * q), -rate * k))


def _polynomial(points: Array, rate: float, degree: float, shift: float) -> Map:
    def profile(s: Array) -> tuple[Array, Array]:
        base = rate * s + shift
        return base**degree, degree * rate * base ** (degree - 1)

    return inner_product_map(points, profile)


def _sigmoid(points: Array, rate: float, degree: float, shift: float) -> Map:
    return inner_product_map(points, lambda s: (t := np.tanh(rate * s + shift), rate * (1 - t**2)))


def _laplacian(points: Array, rate: float, degree: float, shift: float) -> Map:
    return laplacian(points, rate)


NAMED: dict[str, Callable[[Array, float, float, float], Map]] = {
    "linear": _linear,
    "rbf": _rbf,
    "poly": _polynomial,
    "polynomial": _polynomial,
    "sigmoid": _sigmoid,
    "laplacian": _laplacian,
}


# ---------------------------------------------------------------- Gaussian processes


def process(kernel: Any, points: Array) -> Map:
    """Map of a fitted Gaussian-process kernel, a tree of sums and products."""
    make = PARTS.get(type(kernel).__name__) if from_sklearn(kernel) else None
    if make is None:
        raise Unsupported(
            f"the derivative of the kernel {kernel} is not known; expected one of {', '.join(PARTS)}."
        )
    return make(kernel, points)


def stationary(kernel: Any) -> bool:
    """Whether k(x, x) is constant."""
    return bool(kernel.is_stationary())


def _sum(kernel: Any, points: Array) -> Map:
    first, second = process(kernel.k1, points), process(kernel.k2, points)

    def forward(rows: Array) -> tuple[Array, Pullback]:
        (a, back_a), (b, back_b) = first(rows), second(rows)
        return a + b, lambda d: back_a(d) + back_b(d)

    return forward


def _product(kernel: Any, points: Array) -> Map:
    first, second = process(kernel.k1, points), process(kernel.k2, points)

    def forward(rows: Array) -> tuple[Array, Pullback]:
        (a, back_a), (b, back_b) = first(rows), second(rows)
        return a * b, lambda d: back_a(d * b) + back_b(d * a)

    return forward


def _power(kernel: Any, points: Array) -> Map:
    base, exponent = process(kernel.kernel, points), kernel.exponent

    def forward(rows: Array) -> tuple[Array, Pullback]:
        a, back = base(rows)
        return a**exponent, lambda d: back(d * exponent * a ** (exponent - 1))

    return forward


def _flat(value: float, points: Array) -> Map:
    """Map to one constant: ConstantKernel, or WhiteKernel (0 between different rows)."""

    def forward(rows: Array) -> tuple[Array, Pullback]:
        return np.full((len(rows), len(points)), value), lambda d: np.zeros((*d.shape[:2], rows.shape[1]))

    return forward


def _gaussian(kernel: Any, points: Array) -> Map:
    return radial(points, kernel.length_scale, lambda q: (k := np.exp(-q / 2), -k / 2))


def _rational(kernel: Any, points: Array) -> Map:
    a = kernel.alpha

    def profile(q: Array) -> tuple[Array, Array]:
        base = 1 + q / (2 * a)
        return base**-a, -0.5 * base ** (-a - 1)

    return radial(points, kernel.length_scale, profile)


def _matern(kernel: Any, points: Array) -> Map:
    """Map by k = t^nu K_nu(t) 2^(1-nu)/Gamma(nu), t = sqrt(2 nu q); its derivative is -t^nu K_(nu-1)(t)."""
    nu = kernel.nu
    if np.isinf(nu):
        return _gaussian(kernel, points)
    factor = 2 ** (1 - nu) / gamma_function(nu)

    def profile(q: Array) -> tuple[Array, Array]:
        t = np.sqrt(2 * nu * q)
        apart = t > 0
        t = np.where(apart, t, 1.0)  # dk/dq = dk/dt nu/t; on a training point the gradient is 0, or undefined
        slope = -factor * t**nu * kv(nu - 1, t) * nu / t
        return np.where(apart, factor * t**nu * kv(nu, t), 1.0), np.where(apart, slope, 0.0)

    return radial(points, kernel.length_scale, profile)


def _dot(kernel: Any, points: Array) -> Map:
    return inner_product_map(points, lambda s: (s + kernel.sigma_0**2, np.ones_like(s)))


PARTS: dict[str, Callable[[Any, Array], Map]] = {
    "Sum": _sum,
    "Product": _product,
    "Exponentiation": _power,
    "ConstantKernel": lambda kernel, points: _flat(kernel.constant_value, points),
    "WhiteKernel": lambda kernel, points: _flat(0.0, points),
    "RBF": _gaussian,
    "Matern": _matern,
    "RationalQuadratic": _rational,
    "DotProduct": _dot,
}
