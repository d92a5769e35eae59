"""Smooth functions with gradients known on paper, some of them badly scaled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit


@dataclass(frozen=True)
class Known:
    name: str
    f: Callable[[np.ndarray], np.ndarray]
    gradient: Callable[[np.ndarray], np.ndarray]
    scale: tuple[float, ...] = (1.0, 1.0, 1.0)
    centre: tuple[float, ...] = (0.5, 0.5, 0.5)

    def rows(self, count: int, seed: int) -> np.ndarray:
        z = np.random.default_rng(seed).normal(size=(count, 3)) * 0.3
        return (z + np.array(self.centre)) * np.array(self.scale)


def _stack(*columns: np.ndarray) -> np.ndarray:
    return np.stack(np.broadcast_arrays(*columns), axis=1)


def _c(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return x[:, 0], x[:, 1], x[:, 2]


def _make(name: str, f: Callable, g: Callable, scale=(1.0, 1.0, 1.0), centre=(0.5, 0.5, 0.5)) -> Known:
    return Known(name, lambda x: f(*_c(x)), lambda x: _stack(*g(*_c(x))), scale, centre)


W = np.array([1.5, -2.0, 0.7])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return expit(x @ W)


SMOOTH = [
    _make("linear", lambda a, b, c: 2 * a - 3 * b + 0.5 * c + 1, lambda a, b, c: (2 + 0 * a, -3.0, 0.5)),
    _make("quadratic", lambda a, b, c: a * a + 2 * b * b - c * c, lambda a, b, c: (2 * a, 4 * b, -2 * c)),
    _make("cubic", lambda a, b, c: a**3 - b**3 + c**3, lambda a, b, c: (3 * a * a, -3 * b * b, 3 * c * c)),
    _make("quintic", lambda a, b, c: a**5 + b * c, lambda a, b, c: (5 * a**4, c, b)),
    _make("product", lambda a, b, c: a * b * c, lambda a, b, c: (b * c, a * c, a * b)),
    _make("exp", lambda a, b, c: np.exp(a + b - c), lambda a, b, c: tuple(s * np.exp(a + b - c) for s in (1, 1, -1))),
    _make("exp of square", lambda a, b, c: np.exp(-a * a) + b + c, lambda a, b, c: (-2 * a * np.exp(-a * a), 1.0, 1.0)),
    _make("sin", lambda a, b, c: np.sin(a) + np.cos(b) + c, lambda a, b, c: (np.cos(a), -np.sin(b), 1.0)),
    _make("fast sin", lambda a, b, c: np.sin(10 * a) + b * c, lambda a, b, c: (10 * np.cos(10 * a), c, b)),
    _make("sin of sum", lambda a, b, c: np.sin(a + 2 * b + 3 * c), lambda a, b, c: tuple(k * np.cos(a + 2 * b + 3 * c) for k in (1, 2, 3))),
    Known("logistic", _sigmoid, lambda x: (_sigmoid(x) * (1 - _sigmoid(x)))[:, None] * W),
    Known("steep logistic", lambda x: expit(5 * x @ W), lambda x: (lambda p: (p * (1 - p))[:, None] * 5 * W)(expit(5 * x @ W))),
    _make("tanh", lambda a, b, c: np.tanh(a * b) + c, lambda a, b, c: (b / np.cosh(a * b) ** 2, a / np.cosh(a * b) ** 2, 1.0)),
    _make("log", lambda a, b, c: np.log(1 + a * a + b * b) + c, lambda a, b, c: (2 * a / (1 + a * a + b * b), 2 * b / (1 + a * a + b * b), 1.0)),
    _make("rational", lambda a, b, c: a / (1 + b * b) + c, lambda a, b, c: (1 / (1 + b * b), -2 * a * b / (1 + b * b) ** 2, 1.0)),
    _make("sqrt", lambda a, b, c: np.sqrt(1 + a * a + b * b + c * c), lambda a, b, c: tuple(v / np.sqrt(1 + a * a + b * b + c * c) for v in (a, b, c))),
    _make("tiny and huge", lambda a, b, c: a * 1e6 + b * 1e-6 + c, lambda a, b, c: (1e6 + 0 * a, 1e-6, 1.0), (1e-6, 1e6, 1.0)),
    _make("tiny and huge, curved", lambda a, b, c: np.sin(a * 1e6) + np.cos(b * 1e-6) + c * c, lambda a, b, c: (1e6 * np.cos(a * 1e6), -1e-6 * np.sin(b * 1e-6), 2 * c), (1e-6, 1e6, 1.0)),
    _make("far from zero", lambda a, b, c: (a - 1000) ** 2 + b * c, lambda a, b, c: (2 * (a - 1000), c, b), (1.0, 1.0, 1.0), (1000.5, 0.5, 0.5)),
    _make("large offset", lambda a, b, c: 1000 + a * b - c, lambda a, b, c: (b, a, -1.0)),
]  # fmt: skip
