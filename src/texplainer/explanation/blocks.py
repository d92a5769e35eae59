"""Blocks of rows put together into arrays for all rows, as they arrive.

Arrays are made when the first block shows their shape; rows that never arrive stay NaN, "" or 0 and
"undefined". Two names that hold the same array in a block (the attribution "gradient" is the gradient) share one
array for all rows. Dtypes and fills are those of `fields`.
"""

from __future__ import annotations

import numpy as np

from texplainer.explanation.fields import axes_of, blank_like


class RowArrays:
    """The arrays of all rows, filled block by block."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.arrays: dict[str, np.ndarray] = {}

    def put(self, block: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        """Write the arrays of some rows, given by their indices."""
        made: dict[int, str] = {}
        for name, array in arrays.items():
            same = made.setdefault(id(array), name)
            if same != name and self.arrays.get(name, self.arrays[same]) is self.arrays[same]:
                self.arrays[name] = self.arrays[same]
                continue
            if name not in self.arrays:
                self.arrays[name] = blank_like(name, array, self.rows)
            self.arrays[name][block] = array


def of_predicted_class(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Keep each row's own greatest output only."""
    pick = arrays["predictions"].argmax(axis=1)
    out = {"predicted_class": pick}
    for name, array in arrays.items():
        if axes_of(name, array).endswith("o"):
            index = pick.reshape(-1, *(1,) * (array.ndim - 1))
            array = np.take_along_axis(array, index, axis=array.ndim - 1)
        out[name] = array
    return out
