"""Functions whose derivative is known and hard to get: the published list the error bounds are held to.

Each has two or three features and a gradient on paper. `kind` says what is hard about it; `wrap` what float
width its arithmetic has. A bound must cover >= 99% of the derivatives of all float64 functions together and
>= 95% of the float32 ones, and >= 99% in rows called stable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from functions import SMOOTH
from scipy.special import erf, expit

import texplainer as tx

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Hard:
    """A function, its gradient, and where its rows lie."""

    name: str
    kind: str
    f: Function
    gradient: Function
    scale: tuple[float, ...] = (1.0, 1.0, 1.0)
    centre: tuple[float, ...] = (0.5, 0.5, 0.5)
    narrow: bool = False  # float32 or less inside, for which 95% will do

    def rows(self, count: int, seed: int) -> np.ndarray:
        """Rows around the centre."""
        z = np.random.default_rng(seed).normal(size=(count, len(self.scale))) * 0.3
        return (z + np.array(self.centre)) * np.array(self.scale)


def _columns(*columns: np.ndarray) -> np.ndarray:
    return np.stack(np.broadcast_arrays(*columns), axis=1)


def _of(name: str, kind: str, f: Callable, g: Callable, **options) -> Hard:
    return Hard(name, kind, lambda x: f(*x.T), lambda x: _columns(*g(*x.T)), **options)


def _hash(x: np.ndarray) -> np.ndarray:
    """Numbers in [-1, 1] that look random and depend on every bit of the row."""
    bits = np.ascontiguousarray(x).view(np.uint64)
    with np.errstate(over="ignore"):
        mixed = np.zeros(len(x), dtype=np.uint64)
        for column in bits.T:
            mixed = (mixed ^ column) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
    return mixed.astype(float) / 2**63 - 1


def _noisy(size: float) -> Function:
    return lambda x: np.sin(x[:, 0]) * x[:, 1] + x[:, 2] ** 2 + size * _hash(x)


def _plain_gradient(x: np.ndarray) -> np.ndarray:
    return _columns(np.cos(x[:, 0]) * x[:, 1], np.sin(x[:, 0]), 2 * x[:, 2])


def _float32_inside(x: np.ndarray) -> np.ndarray:
    a, b, c = x.astype(np.float32).T
    return (np.sin(a) * b + c * c).astype(np.float64)


def _float32(x: np.ndarray) -> np.ndarray:
    a, b, c = x.astype(np.float32).T
    return np.sin(a) * b + c * c


def _float16(x: np.ndarray) -> np.ndarray:
    return (np.sin(x[:, 0]) * x[:, 1] + x[:, 2] ** 2).astype(np.float16)


def _network(dtype: type) -> tuple[Function, Function]:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(3, 32)).astype(dtype), (rng.normal(size=32) / 6).astype(dtype)

    def f(x: np.ndarray) -> np.ndarray:
        return (np.tanh(x.astype(dtype) @ first) @ second).astype(np.float64)

    def gradient(x: np.ndarray) -> np.ndarray:
        wide, last = first.astype(float), second.astype(float)
        return ((1 - np.tanh(x @ wide) ** 2) * last) @ wide.T

    return f, gradient


def _relu(x: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.maximum(x @ rng.normal(size=(3, 24)) - 0.3, 0) @ (rng.normal(size=24) / 5)


def _relu_gradient(x: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(1)
    first = rng.normal(size=(3, 24))
    return ((x @ first - 0.3 > 0) * (rng.normal(size=24) / 5)) @ first.T


def _gaussian(width: float) -> tuple[Callable, Callable]:
    def f(a, b, c):
        return np.exp(-(a**2 + b**2) / (2 * width**2)) + 0 * c

    return f, lambda a, b, c: (-a / width**2 * f(a, b, c), -b / width**2 * f(a, b, c), 0.0)


HARD = [
    *(Hard(k.name, "smooth", k.f, k.gradient, k.scale, k.centre) for k in SMOOTH),
    _of("absolute value", "kinked", lambda a, b, c: np.abs(a - 0.5) + b * c, lambda a, b, c: (np.sign(a - 0.5), c, b)),
    _of("maximum", "kinked", lambda a, b, c: np.maximum(a, b) + c, lambda a, b, c: (a > b, b >= a, 1.0)),
    _of("hinge", "kinked", lambda a, b, c: np.maximum(0, 2 * a - b) * c, lambda a, b, c: (2 * c * (2 * a > b), -c * (2 * a > b), np.maximum(0, 2 * a - b))),
    Hard("network of rectifiers", "kinked", _relu, _relu_gradient),
    _of("jump", "kinked", lambda a, b, c: (a > 0.5) * 3.0 + b * c, lambda a, b, c: (0.0 * a, c, b)),
    _of("square root at 0", "kinked", lambda a, b, c: np.sqrt(np.abs(a)) + b + c, lambda a, b, c: (np.sign(a) / (2 * np.sqrt(np.abs(a))), 1.0, 1.0)),
    _of("error function", "smooth", lambda a, b, c: erf(a * b) + c, lambda a, b, c: (b * 2 / np.sqrt(np.pi) * np.exp(-((a * b) ** 2)), a * 2 / np.sqrt(np.pi) * np.exp(-((a * b) ** 2)), 1.0)),
    _of("waves", "oscillating", lambda a, b, c: np.sin(50 * a) + np.cos(30 * b) + c, lambda a, b, c: (50 * np.cos(50 * a), -30 * np.sin(30 * b), 1.0)),
    _of("chirp", "oscillating", lambda a, b, c: np.sin(20 * a * a) * b + c, lambda a, b, c: (40 * a * np.cos(20 * a * a) * b, np.sin(20 * a * a), 1.0)),
    _of("fine ripple", "oscillating", lambda a, b, c: a * b + 1e-4 * np.sin(200 * c), lambda a, b, c: (b, a, 0.02 * np.cos(200 * c))),
    Hard("hash noise 1e-8", "noisy", _noisy(1e-8), _plain_gradient),
    Hard("hash noise 1e-6", "noisy", _noisy(1e-6), _plain_gradient),
    Hard("hash noise 1e-12", "noisy", _noisy(1e-12), _plain_gradient),
    _of("rounded to 6 digits", "quantised", lambda a, b, c: np.round(np.sin(a) * b + c**2, 6), lambda a, b, c: (np.cos(a) * b, np.sin(a), 2 * c)),
    _of("rounded to 2 digits", "step", lambda a, b, c: np.round(np.sin(a) * b + c**2, 2), lambda a, b, c: (0.0 * a, 0.0, 0.0)),
    _of("cancelling", "cancelling", lambda a, b, c: (1e8 + a * b + c) - 1e8, lambda a, b, c: (b, a, 1.0)),
    _of("cancelling squares", "cancelling", lambda a, b, c: (a + 1e4) ** 2 - 1e8 - 2e4 * a + b * c, lambda a, b, c: (2 * a, c, b)),
    _of("small on a pedestal", "cancelling", lambda a, b, c: 1e6 + 1e-3 * np.sin(a * b) + c, lambda a, b, c: (1e-3 * b * np.cos(a * b), 1e-3 * a * np.cos(a * b), 1.0)),
    _of("Gaussian of width 0.1", "badly scaled", *_gaussian(0.1)),
    _of("Gaussian of width 0.03", "badly scaled", *_gaussian(0.03)),
    _of("far columns", "badly scaled", lambda a, b, c: np.sin(a - 1e6) + b * 1e-9 * c, lambda a, b, c: (np.cos(a - 1e6), c * 1e-9, b * 1e-9), scale=(1.0, 1e9, 1.0), centre=(1e6, 0.5, 0.5)),
    _of("saturated logistic", "badly scaled", lambda a, b, c: expit(60 * (a - b)) + 0 * c, lambda a, b, c: (lambda p: (60 * p * (1 - p), -60 * p * (1 - p), 0.0))(expit(60 * (a - b)))),
    Hard("float32 inside float64", "float32", _float32_inside, _plain_gradient, narrow=True),
    Hard("network in float32 inside float64", "float32", *_network(np.float32), narrow=True),
    Hard("network in float64", "smooth", *_network(np.float64)),
    Hard("float32", "float32", _float32, _plain_gradient, narrow=True),
    Hard("float16", "float16", _float16, _plain_gradient, narrow=True),
]  # fmt: skip


@dataclass(frozen=True)
class Cover:
    """What the bounds of a function's derivatives did: shares, counts of cells, median relative error."""

    covered: float
    stable: float
    stable_covered: int
    stable_cells: int
    error: float


def cover(hard: Hard, rows: int = 60) -> Cover:
    """Hold the bounds of finite differences against the truth."""
    options = {"engine": "finite-difference", "attribution": "gradient", "smoothing": 0}
    found = tx.TExplainer(hard.f, hard.rows(200, 1), **options)(hard.rows(rows, 2))
    truth = hard.gradient(hard.rows(rows, 2))
    miss = np.abs(found.values - truth)
    covered = miss <= found.diagnostics.error + 1e-300
    stable = found.diagnostics.stability == "stable"
    size = max(float(np.median(np.abs(truth))), 1e-300)
    return Cover(
        float(covered.mean()),
        float(stable.mean()),
        int(covered[stable].sum()),
        int(covered[stable].size),
        float(np.median(miss)) / size,
    )
