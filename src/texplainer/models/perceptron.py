"""The layers of a multilayer perceptron, with buffers that are reused between blocks.

For a small network, allocating activations for every block costs more than the arithmetic. The activations
are therefore kept in buffers of the calling thread and overwritten in place: the result of `Layers.forward`
is valid until the next call in the same thread. Float32 rows use float32 weights, at half the cost; this is
precise enough for averages.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from texplainer.errors import Unsupported
from texplainer.types import Array

WIDTHS = (np.float64, np.float32)
BLOCK = 2016  # rows at a time: their activations stay in cache


@dataclass(frozen=True)
class Activation:
    """An activation, in place: z -> a(z), and d -> d a'(z), where a' is computed from a."""

    apply: Callable[[Array], object]
    pull: Callable[[Array, Array], object]


def _slope_of_logistic(a: Array, d: Array) -> None:
    d *= a
    d *= 1 - a


def _slope_of_tanh(a: Array, d: Array) -> None:
    d *= 1 - a * a


ACTIVATIONS: dict[str, Activation | None] = {
    "identity": None,
    "logistic": Activation(lambda z: expit(z, out=z), _slope_of_logistic),
    "tanh": Activation(lambda z: np.tanh(z, out=z), _slope_of_tanh),
    "relu": Activation(lambda z: np.maximum(z, 0.0, out=z), lambda a, d: np.multiply(d, a > 0, out=d)),
}


class Layers:
    """The layers of a fitted scikit-learn MLP, without the output activation."""

    def __init__(self, model: Any) -> None:
        if model.activation not in ACTIVATIONS:
            raise Unsupported(f"the derivative of the activation {model.activation!r} is not known.")
        self.activation = ACTIVATIONS[model.activation]
        self.weights = {t: [np.ascontiguousarray(w, dtype=t) for w in model.coefs_] for t in WIDTHS}
        self.offsets = {t: [np.asarray(o, dtype=t) for o in model.intercepts_] for t in WIDTHS}
        self.buffers = threading.local()

    def scores(self, rows: Array) -> Array:
        """Return the outputs of the last layer."""
        found = np.empty((len(rows), len(self.offsets[rows.dtype.type][-1])), dtype=rows.dtype)
        for first in range(0, len(rows), BLOCK):
            found[first : first + BLOCK] = self.forward(rows[first : first + BLOCK])[-1]
        return found

    def forward(self, rows: Array) -> list[Array]:
        """Return the outputs of all layers; the last are the scores."""
        width = rows.dtype.type
        weights = self.weights[width]
        layers = thread_arrays(self.buffers, "layers", width, [(len(rows), w.shape[1]) for w in weights])
        a = rows
        for i, (weight, offset, z) in enumerate(zip(weights, self.offsets[width], layers, strict=True)):
            np.matmul(a, weight, out=z)
            z += offset
            if self.activation is not None and i < len(weights) - 1:
                self.activation.apply(z)
            a = z
        return layers


def thread_arrays(
    buffers: threading.local, name: str, width: type, shapes: list[tuple[int, ...]]
) -> list[Array]:
    """Return the calling thread's arrays of these shapes; they are reallocated only if the shapes change."""
    found = getattr(buffers, name, None)
    if found is None or found[0].dtype != width or [one.shape for one in found] != shapes:
        found = [np.empty(shape, dtype=width) for shape in shapes]
        setattr(buffers, name, found)
    return found
