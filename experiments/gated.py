"""Functions in which a gate decides which features matter, so that the truth near any x is known.

All features are standard normal. A gate is a smooth step that is exactly 0 below -WIDTH and exactly 1 above
WIDTH: outside that band a branch is switched off completely, and so are the features only it uses. `relevant`
says, for a box of `radius` around x, which features can change the function at all inside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
WIDTH = 0.1


def gate(x: Array) -> Array:
    """Smooth step: exactly 0 below -WIDTH, exactly 1 above WIDTH."""
    t = np.clip((x + WIDTH) / (2 * WIDTH), 0.0, 1.0)
    return t * t * (3 - 2 * t)


@dataclass(frozen=True)
class GatedFunction:
    """A function of standard normal features with the truth about what matters where."""

    name: str
    about: str
    features: int
    function: Callable[[Array], Array]  # (rows, features) -> (rows,)
    relevant: Callable[[Array, float], NDArray[np.bool_]]  # (rows, features), radius -> (rows, features)

    def __call__(self, rows: Array) -> Array:
        """Compute the function, (rows, features) -> (rows,)."""
        return self.function(np.asarray(rows, dtype=np.float64))

    def sample(self, rows: int, seed: int) -> Array:
        """Draw rows; rounded, so that they are the same on every machine."""
        return np.random.default_rng(seed).normal(size=(rows, self.features)).round(6)


def _open(x: Array, radius: float | Array) -> NDArray[np.bool_]:
    """Whether a gate can be open, or its complement closed, somewhere within the radius."""
    return x + radius > -WIDTH


def _shut(x: Array, radius: float | Array) -> NDArray[np.bool_]:
    return x - radius < WIDTH


def _moves(x: Array, radius: float | Array) -> NDArray[np.bool_]:
    """Whether the gate itself changes somewhere within the radius."""
    return _open(x, radius) & _shut(x, radius)


def _switch(x: Array) -> Array:
    up = gate(x[:, 0])
    return up * (2 * x[:, 1] + np.sin(x[:, 2])) + (1 - up) * (x[:, 3] * x[:, 4] - 1.5 * x[:, 5])


def _switch_relevant(x: Array, radius: float) -> NDArray[np.bool_]:
    up, down = _open(x[:, 0], radius), _shut(x[:, 0], radius)
    return np.stack([_moves(x[:, 0], radius), up, up, down, down, down], axis=1)


def _quarters(x: Array) -> Array:
    a, b = gate(x[:, 0]), gate(x[:, 1])
    return (
        2 * a * b * x[:, 2]
        + a * (1 - b) * np.tanh(2 * x[:, 3])
        - 2 * (1 - a) * b * x[:, 4]
        + (1 - a) * (1 - b) * (x[:, 5] + 0.5 * x[:, 5] ** 2)
    )


def _quarters_relevant(x: Array, radius: float) -> NDArray[np.bool_]:
    up = [_open(x[:, j], radius) for j in (0, 1)]
    down = [_shut(x[:, j], radius) for j in (0, 1)]
    quarters = [up[0] & up[1], up[0] & down[1], down[0] & up[1], down[0] & down[1]]
    return np.stack([*(_moves(x[:, j], radius) for j in (0, 1)), *quarters], axis=1)


def _regimes(x: Array) -> Array:
    height = (x[:, 0] + x[:, 1]) / np.sqrt(2)
    high, low = gate(height - 0.5), gate(-height - 0.5)
    middle = (1 - high) * (1 - low)
    return high * (x[:, 2] + x[:, 3]) + middle * 2 * x[:, 4] + low * (np.sin(x[:, 5]) - x[:, 6])


def _regimes_relevant(x: Array, radius: float) -> NDArray[np.bool_]:
    height, reach = (x[:, 0] + x[:, 1]) / np.sqrt(2), np.sqrt(2) * radius
    high, low = _open(height - 0.5, reach), _open(-height - 0.5, reach)
    middle = _shut(height - 0.5, reach) & _shut(-height - 0.5, reach)
    gates = _moves(height - 0.5, reach) | _moves(-height - 0.5, reach)
    return np.stack([gates, gates, high, high, middle, low, low], axis=1)


SLOPES = np.array([2.0, -1.5, 1.0, -1.0, 0.5, 0.0, 0.0, 0.0])
EDGES = np.array([-0.5, -0.25, 0.0, 0.25, 0.5, 0.0, 0.0, 0.0])


def _ramps(x: Array) -> Array:
    return (SLOPES * np.clip(x - EDGES, 0.0, 1.0)).sum(axis=1)


def _ramps_relevant(x: Array, radius: float) -> NDArray[np.bool_]:
    inside = (x + radius > EDGES) & (x - radius < EDGES + 1)
    return inside & (SLOPES != 0)


GATED: dict[str, GatedFunction] = {
    one.name: one
    for one in (
        GatedFunction("switch", "one gate, two branches", 6, _switch, _switch_relevant),
        GatedFunction("quarters", "two gates, one feature a quarter", 6, _quarters, _quarters_relevant),
        GatedFunction("regimes", "three regimes of a sum of two", 7, _regimes, _regimes_relevant),
        GatedFunction("ramps", "each feature gated by itself, three of noise", 8, _ramps, _ramps_relevant),
    )
}
