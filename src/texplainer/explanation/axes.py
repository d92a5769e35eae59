"""The axes of an Explanation's arrays, and positions along them.

All arrays are kept at full rank with their axes known by name (r: rows, f: features, o: outputs), so
that slicing is one rule for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from texplainer.support.names import suggest

#: the axes of every array of an Explanation; further diagnostics have rows first
AXES = {
    "values": "rfo",
    "gradient": "rfo",
    "error": "rfo",
    "curvature": "rfo",
    "hessian": "rffo",
    "predictions": "ro",
    "relative_change": "ro",
    "taylor_residual": "ro",
    "completeness": "ro",
    "data": "rf",
    "step": "rf",
    "flags": "rf",
    "segment": "rf",  # of images: the feature's number in the map of segments
}


CATEGORY = "category/"  # begins the name of a block's level effects, (rows, levels, outputs)


def axes_of(name: str, array: np.ndarray) -> str:
    """The axes of an array by its name; extras have rows first and axes of their own after.

    Base values are one per output, or one per row too where each row has its own output.
    """
    if name == "base_values":
        return "o" if array.ndim == 1 else "ro"
    if name.startswith(CATEGORY):
        return "r.o"
    return AXES.get(name, "r" + "." * (array.ndim - 1))


def position(key: Any, names: Sequence[str], size: int) -> Any:
    """An index of one axis: names become positions, single numbers are checked."""
    if isinstance(key, str):
        if not names:
            raise KeyError(
                f"{key!r} is no row: rows have numbers. For a feature write explanation[:, {key!r}]."
            )
        if key not in names:
            known = ", ".join(names[:12]) + (f", ... {len(names) - 12} more" if len(names) > 12 else "")
            raise KeyError(f"{key!r} is not one of {known}.{suggest(key, names)}")
        return names.index(key)
    if isinstance(key, slice):
        return key
    if isinstance(key, (int, np.integer)):
        if not -size <= key < size:
            raise IndexError(f"index {key} is out of range for {size}")
        return int(key) % size
    if isinstance(key, (list, tuple)) and all(isinstance(k, str) for k in key):
        return np.array([position(k, names, size) for k in key], dtype=int)
    keys = np.asarray(key)
    if keys.size and keys.dtype.kind not in "iub":
        raise IndexError(f"the index {key!r} is none; expected whole numbers, a slice, a mask or names")
    return keys.astype(int) if not keys.size else keys


def names_left(names: tuple[str, ...], pick: Any) -> tuple[str, ...]:
    """The names a pick along their axis leaves."""
    if pick is None:
        return names
    left = np.array(names, dtype=object)[pick]
    return (left,) if isinstance(left, str) else tuple(left)


def take(array: np.ndarray, axis: int, pick: Any) -> np.ndarray:
    """Index one axis; a single position keeps the axis, with length 1."""
    index = pick if isinstance(pick, slice) else np.atleast_1d(pick)
    return array[(slice(None),) * axis + (index,)]
