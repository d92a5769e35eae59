"""A multilayer perceptron as one map, in buffers that are kept from block to block.

Derivatives live in buffers as the activations do (`models.perceptron`). The pullback is therefore valid
until the map is next called in the same thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from texplainer.gradients.maps import Map, Pullback
from texplainer.models.perceptron import WIDTHS, Layers, thread_arrays
from texplainer.types import Array


def perceptron_map(model: Any) -> Map:
    """Give the map of all layers of a scikit-learn MLP, up to the last one's scores."""
    layers = Layers(model)
    back = {t: [np.ascontiguousarray(w.T) for w in layers.weights[t]] for t in WIDTHS}
    activation = layers.activation

    def forward(rows: Array) -> tuple[Array, Pullback]:
        width = rows.dtype.type
        found = layers.forward(rows)
        weights = layers.weights[width]

        def pullback(d: Array) -> Array:
            slopes = thread_arrays(
                layers.buffers, "slopes", width, [(*d.shape[:2], w.shape[0]) for w in weights]
            )
            for i in reversed(range(len(weights))):
                product = np.multiply if d.shape[2] == 1 else np.matmul  # of one column: three times faster
                d = product(d, back[width][i], out=slopes[i], casting="same_kind")
                if activation is not None and i > 0:
                    activation.pull(found[i - 1], d)
            return d

        return found[-1], pullback

    return forward
