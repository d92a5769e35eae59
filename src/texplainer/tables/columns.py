"""One column of a table: as floats or codes of categories, and back in its own dtype.

The model gets what its user passed. A column of numbers is written as floats, whatever its width was, because
the library moves its values a little. Nullable and Arrow numbers keep their kind of missing value. All other
columns (categories, text, booleans, times with their zone and resolution, durations) come back in the dtype
they were read from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals.stable.v1 as nw  # the API that stays
import numpy as np

from texplainer.errors import InputError
from texplainer.tables import native
from texplainer.types import Array

NUMBERS = (Real, Decimal)  # a Decimal is not a Real


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
        if all(isinstance(v, NUMBERS) for v in present) and not declared:
            return None
        try:
            return tuple(sorted(set(present), key=lambda v: (str(type(v)), v))), None
        except TypeError:
            odd = next(v for v in present if not isinstance(v, (str, *NUMBERS)))
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
        if native.has_large(values):
            check_exact(values, name)
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
    check_exact(values, name)
    return out


def check_times(column: Any, name: str, dtype: np.dtype | None) -> None:
    """Refuse what is no time in a column of times, and times among numbers.

    `dtype` is that of the background; None for a column of numbers.
    """
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    words = {"M": "times", "m": "durations"}
    expected = dtype.kind if dtype is not None else "f"
    if kind in "mMfiub" and words.get(kind) != words.get(expected):
        raise InputError(
            f"column {name!r} holds {words.get(kind, 'numbers')}; the background holds "
            f"{words.get(expected, 'numbers')} there. Convert the column."
        )
    if dtype is not None and kind not in "mM":
        i, odd = next((i, v) for i, v in enumerate(column) if not native.is_missing(v))
        raise InputError(
            f"row {i}: {odd!r} in column {name!r}; the background holds {words[expected]} there. Convert the column."
        )


def check_zone(column: Any, name: str, own_zone: Any, zone: Any) -> None:
    """Refuse times with a zone where the background has none, and the reverse."""
    if getattr(getattr(column, "dtype", None), "kind", "O") == "M" and (zone is None) != (own_zone is None):
        found = "no time zone" if zone is None else f"the time zone {zone}"
        expected = "none" if own_zone is None else str(own_zone)
        raise InputError(
            f"column {name!r} has {found}; the background has {expected} there. Localise or convert the column."
        )


# ---------------------------------------------------------------- writing


def float_dtype(dtype: Any, values: np.ndarray, nulls: bool) -> Any:
    """The dtype a column of numbers is written in.

    None for plain floats; `float` for a column of polars or Arrow that writes its missing values as NaN.
    """
    if isinstance(dtype, np.dtype):
        return None
    if hasattr(dtype, "pyarrow_dtype"):  # pandas' Arrow columns
        import pyarrow as pa

        return type(dtype)(pa.float64())
    if getattr(dtype, "na_value", None) is not None and hasattr(
        dtype, "numpy_dtype"
    ):  # pandas' nullable ones
        import pandas as pd

        return pd.Float64Dtype()
    library = type(dtype).__module__.split(".")[0]
    nan = library != "pandas" and not nulls and values.dtype.kind == "f" and np.isnan(values).any()
    return float if nan else None


def frame_of(columns: Mapping[str, np.ndarray], kind: str, dtypes: Mapping[str, Any], labels: Any) -> Any:
    """Make a frame of numpy columns; `dtypes` are to restore, `labels` are a pandas frame's header."""
    written = {name: _written(name, values, kind, dtypes.get(name)) for name, values in columns.items()}
    if kind == "polars":
        import polars as pl

        return pl.DataFrame(written)
    if kind == "pyarrow":
        import pyarrow as pa

        return pa.table(written)
    import pandas as pd

    frame = pd.DataFrame(written, copy=False)
    if labels is not None:
        frame.columns = labels
    return frame


def _written(name: str, values: np.ndarray, kind: str, dtype: Any) -> Any:
    try:
        return WRITERS[kind](values, dtype)
    except Exception as error:  # types that a library reads and does not write
        raise native.unreadable(name, dtype, error) from error


def check_exact(values: Any, name: str) -> None:
    """Refuse whole numbers that a float64 cannot hold."""
    for i, value in enumerate(values):
        if (
            isinstance(value, (int, np.integer, Decimal))
            and not native.is_missing(value)
            and native.LARGEST_EXACT < abs(value) < np.inf
            and float(value) != int(value)
        ):
            raise InputError(
                f"row {i}: {value} in column {name!r} is above 2^53 and not exact as a 64-bit float. If the "
                f"numbers are identifiers or codes, drop the column or pass categorical=[{name!r}]; if they "
                "are quantities, convert them to floats, also for the model."
            )


def stacked(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Columns as one array: of one dtype if they share it, of floats if they are numbers, else of objects."""
    kinds = {column.dtype for column in columns}
    if len(kinds) == 1 and next(iter(kinds)).kind in "bmM":
        return np.column_stack(columns)
    numeric = all(dtype.kind in "fiub" for dtype in kinds)
    return np.column_stack([np.asarray(column, dtype=float if numeric else object) for column in columns])


# ---------------------------------------------------------------- one writer per kind of frame


def _pandas(values: np.ndarray, dtype: Any) -> Any:
    import pandas as pd

    if dtype is None or (dtype == values.dtype and values.dtype.kind != "O"):
        return values
    if isinstance(dtype, pd.ArrowDtype):
        return pd.Series(pd.arrays.ArrowExtensionArray(_arrow(values, dtype.pyarrow_dtype)))  # type: ignore[attr-defined]
    if isinstance(dtype, pd.DatetimeTZDtype):
        return pd.Series(values).dt.tz_localize("UTC").astype(dtype)
    if isinstance(dtype, np.dtype) and dtype.kind in "biu" and values.dtype.kind in "fO":
        return pd.Series(values, dtype=object if values.dtype == object else None)  # it has missing values
    return pd.Series(values, dtype=dtype)


def _polars(values: np.ndarray, dtype: Any) -> Any:
    import polars as pl

    if values.dtype.kind == "f":
        series = pl.Series(values=values, nan_to_null=dtype is not float)
        return series if dtype in (None, float) else series.cast(dtype)
    if values.dtype.kind in "mM":
        series = pl.Series(values=values)
        if getattr(dtype, "time_zone", None):
            series = series.dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.time_zone)
        return series if dtype == pl.Date else series.dt.cast_time_unit(dtype.time_unit)
    return pl.Series(values=list(values) if values.dtype.kind == "O" else values, dtype=dtype)


def _arrow(values: np.ndarray, dtype: Any) -> Any:
    import pyarrow as pa

    if values.dtype.kind == "f" and not (dtype not in (None, float) and pa.types.is_dictionary(dtype)):
        array = pa.array(values, from_pandas=dtype is not float)
        return array if dtype in (None, float) else array.cast(dtype)
    if dtype is None:
        return pa.array(values)
    if values.dtype.kind == "M":
        naive = pa.array(values)
        if pa.types.is_date(dtype):
            return naive
        zoned = naive.cast(pa.timestamp("us", "UTC")) if dtype.tz else naive
        return zoned.cast(dtype, safe=False)
    if values.dtype.kind == "m":
        return pa.array(values).cast(dtype, safe=False)
    cells = values.tolist()
    if pa.types.is_dictionary(dtype):
        return pa.array(cells, type=dtype.value_type, from_pandas=True).dictionary_encode().cast(dtype)
    return pa.array(cells, type=dtype, from_pandas=True)


WRITERS: dict[str, Callable[[np.ndarray, Any], Any]] = {
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": _arrow,
}
