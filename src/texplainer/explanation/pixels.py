"""Values of segments as maps over the pixels of their images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from texplainer.errors import InputError

if TYPE_CHECKING:
    from texplainer.explanation.explanation import Explanation


def painted(explanation: Explanation) -> np.ndarray:
    """Spread values over pixels, (rows, height, width, outputs); NaN where a segment was cut away."""
    if "segments" not in explanation.arrays:
        raise InputError(
            "the explanation is not one of images: it has no map of segments. "
            "Explain images with ImageExplainer."
        )
    maps, numbers = explanation.arrays["segments"], explanation.arrays["segment"]
    values = explanation.arrays["values"]
    out = np.full((*maps.shape, values.shape[2]), np.nan)
    for i, own in enumerate(numbers):
        table = np.full((int(maps[i].max()) + 1, values.shape[2]), np.nan)
        table[own[own >= 0]] = values[i, own >= 0]
        out[i] = table[maps[i]]
    return out
