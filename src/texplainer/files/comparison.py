"""Two explanations of the same rows, array by array: identical, within tolerance, or different.

How near is near enough is decided by the one who compares: tolerances are a share of the *recomputed*
numbers, plus the *recomputed* error bounds of the values. Nothing is taken from the file under test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from texplainer.explanation.fields import CATEGORY
from texplainer.files.results import fit_width

IDENTICAL, WITHIN, DIFFERENT = "identical", "within tolerance", "different"
BOUND_FACTOR = 2.0  # bounds are estimates: on another machine they may differ by so much


class RowComparison:
    """The outcomes of some rows, the largest difference of a value, and the arrays that differ."""

    def __init__(self, saved: Mapping[str, np.ndarray], again: Mapping[str, np.ndarray], tolerance: float):
        rows = len(again["values"])
        self.differing: dict[str, int] = {}
        self.gaps = np.zeros(rows)
        same, near = np.ones(rows, bool), np.ones(rows, bool)
        for name in {**again, **saved}:
            if name not in saved or name not in again:
                equal = close = np.zeros(rows, bool)
            else:
                new = fit_width(again[name], saved[name].shape[1:])
                equal, close = compare_arrays(name, saved[name], new, again.get(_error_of(name)), tolerance)
            if not close.all():
                self.differing[name] = int((~close).sum())
            same, near = same & equal, near & close
        self.outcomes = np.where(same, IDENTICAL, np.where(near, WITHIN, DIFFERENT)).astype("<U16")
        if "values" in saved and saved["values"].shape == again["values"].shape:
            self.gaps = _gap(saved["values"], again["values"]).reshape(rows, -1).max(axis=1, initial=0.0)


def _error_of(name: str) -> str:
    """The bounds that belong to some values: "shapley/error" to "shapley/values"."""
    owner = name.rpartition("/")[0]
    return f"{owner}/error" if owner else "error"


def compare_arrays(
    name: str, old: np.ndarray, new: np.ndarray, error: np.ndarray | None, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """(equal, near enough) for every row; `error` are the recomputed bounds of the values."""
    if old.shape != new.shape or _sort(old) != _sort(new):
        nothing = np.zeros(len(new), bool)
        return nothing, nothing
    if old.dtype.kind != "f":
        equal = _by_row(_equal_cells(old, new))
        return equal, equal
    equal = _by_row((old == new) | (np.isnan(old) & np.isnan(new)))
    if name == "data":
        return equal, equal
    kind = "" if name.startswith(CATEGORY) else name.rpartition("/")[2]
    if kind == "error":
        return equal, _by_row(_same_size(old, new))
    size = np.abs(np.where(np.isfinite(new), new, 0.0)).reshape(len(new), -1).max(axis=1, initial=0.0)
    allowed = tolerance * size.reshape(-1, *[1] * (new.ndim - 1))
    if kind == "values" and error is not None and error.shape == new.shape:
        allowed = allowed + np.nan_to_num(error, nan=0.0, posinf=0.0)
    return equal, _by_row(_gap(old, new) <= allowed)


def near_numbers(old: Any, new: Any, tolerance: float) -> bool:
    """Whether two plain values of a header are equal, floats up to a tolerance."""
    if isinstance(old, bool) or isinstance(new, bool) or not isinstance(new, (int, float)):
        if isinstance(new, dict) and isinstance(old, dict):
            return old.keys() == new.keys() and all(near_numbers(old[k], new[k], tolerance) for k in new)
        if isinstance(new, list) and isinstance(old, list):
            return len(old) == len(new) and all(
                near_numbers(a, b, tolerance) for a, b in zip(old, new, strict=True)
            )
        return type(old) is type(new) and old == new
    if not isinstance(old, (int, float)):
        return False
    return old == new or (old != old and new != new) or abs(old - new) <= tolerance * abs(new)


def _gap(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        gap = np.where((old == new) | (np.isnan(old) & np.isnan(new)), 0.0, np.abs(old - new))
    return np.where(np.isnan(gap), np.inf, gap)


def _same_size(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        near = (old <= BOUND_FACTOR * new) & (new <= BOUND_FACTOR * old)
    return near | (old == new) | (np.isnan(old) & np.isnan(new))


def _equal_cells(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Equality of texts, whole numbers and mixed cells; one missing cell is as good as another."""
    if old.dtype.kind != "O":
        return np.asarray(old == new)
    pairs = zip(old.ravel().tolist(), new.ravel().tolist(), strict=True)
    equal = [a == b or (_missing(a) and _missing(b)) for a, b in pairs]
    return np.array(equal, bool).reshape(old.shape)


def _missing(cell: Any) -> bool:
    return cell is None or cell != cell


def _sort(array: np.ndarray) -> str:
    """What kind of cells an array has: numbers with a fraction, whole numbers, or others."""
    return {"f": "f", "i": "i", "u": "i", "b": "b"}.get(array.dtype.kind, "text")


def _by_row(cells: np.ndarray) -> np.ndarray:
    return np.asarray(cells.reshape(len(cells), -1).all(axis=1))
