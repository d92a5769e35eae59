"""A multilayer perceptron as one map, in buffers that are kept from block to block.

The arithmetic of a small network is cheap beside allocating its activations anew for every block, so
activations and derivatives live in buffers of the calling thread and are overwritten in place. The
pullback is therefore valid until the map is next called in the same thread. Rows in float32 are
taken through float32 weights, at half the cost: enough for averages.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from texplainer.gradients.transformers import Map, Pullback
from texplainer.signatures import Array

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


def network(weights: Sequence[Array], offsets: Sequence[Array], activation: Activation | None) -> Map:
    """Give the map of all layers, the activation between them but not after the last."""
    buffers = threading.local()
    ahead = {t: [np.ascontiguousarray(w, dtype=t) for w in weights] for t in WIDTHS}
    shift = {t: [np.asarray(o, dtype=t) for o in offsets] for t in WIDTHS}
    back = {t: [np.ascontiguousarray(w.T) for w in ahead[t]] for t in WIDTHS}

    def forward(rows: Array) -> tuple[Array, Pullback]:
        width = rows.dtype.type
        layers = _kept(buffers, "layers", width, [(len(rows), w.shape[1]) for w in weights])
        a = rows
        for i, (weight, offset, z) in enumerate(zip(ahead[width], shift[width], layers, strict=True)):
            np.matmul(a, weight, out=z)
            z += offset
            if activation is not None and i < len(weights) - 1:
                activation.apply(z)
            a = z

        def pullback(d: Array) -> Array:
            slopes = _kept(buffers, "slopes", width, [(*d.shape[:2], w.shape[0]) for w in weights])
            for i in reversed(range(len(weights))):
                product = np.multiply if d.shape[2] == 1 else np.matmul  # of one column: three times faster
                d = product(d, back[width][i], out=slopes[i], casting="same_kind")
                if activation is not None and i > 0:
                    activation.pull(layers[i - 1], d)
            return d

        return a, pullback

    return forward


def _kept(buffers: threading.local, name: str, width: type, shapes: list[tuple[int, ...]]) -> list[Array]:
    """Give the calling thread's arrays of these shapes, made anew only when the shapes change."""
    found = getattr(buffers, name, None)
    if found is None or found[0].dtype != width or [one.shape for one in found] != shapes:
        found = [np.empty(shape, dtype=width) for shape in shapes]
        setattr(buffers, name, found)
    return found
