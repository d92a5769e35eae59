"""One column of a table: its categories, its numbers, and its missing-value marker."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v1 as nw  # the API that stays
import numpy as np

from texplainer.errors import InputError
from texplainer.tables import dtypes, native
from texplainer.types import Array


def levels_of(column: Any, name: str, declared: bool) -> tuple[tuple[Any, ...], Any] | None:
    """Return (categories, dtype to restore) of a categorical column, None for a numeric one."""
    if isinstance(column, nw.Series):
        own = column.to_native()
        native_dtype = own.dtype if hasattr(own, "dtype") else own.type
        return tuple(column.cat.get_categories().to_list()), native_dtype
    if column.dtype.kind == "O":
        present = [v for v in column if not native.is_missing(v)]
        if present and all(isinstance(v, (bool, np.bool_)) for v in present):
            return (False, True), None
        if all(isinstance(v, (int, float, np.number)) for v in present) and not declared:
            return None
        try:
            return tuple(sorted(set(present), key=lambda v: (str(type(v)), v))), None
        except TypeError:
            odd = next(v for v in present if not isinstance(v, (str, int, float, np.number)))
            raise InputError(
                f"column {name!r} holds {type(odd).__name__} values such as {odd!r}; expected numbers or "
                "categories. Split them into separate columns. If the model needs such values, explain a "
                "function that assembles them."
            ) from None
    if column.dtype.kind == "b":
        return (False, True), None
    if not declared:
        return None
    present = np.unique(column[np.isfinite(column)] if column.dtype.kind == "f" else column)
    return tuple(v.item() for v in present), None


def missing_mark(column: Any, kind: str) -> Any:
    """Return the column's missing-value marker; encoders distinguish None from NaN."""
    usual = np.nan if kind == "pandas" else None
    if isinstance(column, nw.Series) or column.dtype.kind != "O":
        return usual
    return next((v for v in column if native.is_missing(v)), usual)


def floats_of(column: Any, name: str) -> Array:
    """Return a column as floats; times in days, missing values as NaN."""
    values = np.asarray(column.to_list(), dtype=object) if isinstance(column, nw.Series) else column
    if values.dtype.kind in "fiub":
        if dtypes.has_large(values):
            dtypes.check_exact(values, name)
        return values.astype(float)
    if values.dtype.kind in "mM":
        return native.days_of(values)
    out = np.empty(len(values))
    for i, value in enumerate(values):
        try:
            if isinstance(value, str):
                raise TypeError
            out[i] = np.nan if native.is_missing(value) else float(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"row {i}: {value!r} in column {name!r} is not a number; the column is numeric in the "
                "background. "
                "Convert the column, or give a background in which it is categorical."
            ) from None
    dtypes.check_exact(values, name)
    return out


def check_times(column: Any, name: str, dtype: np.dtype, own_zone: Any, zone: Any) -> None:
    """Refuse numbers in a column of times, and times without a zone in a column with one, or the reverse.

    `dtype` and `own_zone` are those of the background.
    """
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    words = {"M": "times", "m": "durations"}
    if kind in "mMfiub" and kind != dtype.kind:
        raise InputError(
            f"column {name!r} holds {words.get(kind, 'numbers')}; the background holds {words[dtype.kind]} "
            "there. Convert the column."
        )
    if kind == "M" and (zone is None) != (own_zone is None):
        found = "no time zone" if zone is None else f"the time zone {zone}"
        expected = "none" if own_zone is None else str(own_zone)
        raise InputError(
            f"column {name!r} has {found}; the background has {expected} there. Localise or convert the column."
        )
