"""Positions along the axes of an Explanation's arrays, by number and by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from texplainer.support.names import suggest


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
