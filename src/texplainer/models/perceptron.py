"""The layers of a multilayer perceptron, in buffers that are kept from block to block.

The arithmetic of a small network is cheap beside allocating its activations anew for every block, so
they live in buffers of the calling thread and are overwritten in place: what `Layers.forward` gives is
valid until it is next called in the same thread. Rows in float32 are taken through float32 weights, at
half the cost: enough for averages.
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


@dataclass(frozen=True)
class Activation:
    """Both in place: z -> a(z), and d -> d a'(z), the slope being a function of a itself."""

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
    """The layers of a fitted scikit-learn MLP, the activation between them but not after the last."""

    def __init__(self, model: Any) -> None:
        if model.activation not in ACTIVATIONS:
            raise Unsupported(f"the activation {model.activation!r} is not in the table.")
        self.activation = ACTIVATIONS[model.activation]
        self.weights = {t: [np.ascontiguousarray(w, dtype=t) for w in model.coefs_] for t in WIDTHS}
        self.offsets = {t: [np.asarray(o, dtype=t) for o in model.intercepts_] for t in WIDTHS}
        self.buffers = threading.local()

    def forward(self, rows: Array) -> list[Array]:
        """Give what every layer puts out, the last one's scores last."""
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
    """Give the calling thread's arrays of these shapes, made anew only when the shapes change."""
    found = getattr(buffers, name, None)
    if found is None or found[0].dtype != width or [one.shape for one in found] != shapes:
        found = [np.empty(shape, dtype=width) for shape in shapes]
        setattr(buffers, name, found)
    return found
