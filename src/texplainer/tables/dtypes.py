"""A frame's columns in their own dtype: the model gets what its user passed.

A column of numbers is written as floats, whatever its width was, because the library moves its values a
little. Nullable and Arrow numbers keep their kind of missing value. All other columns (categories, text,
booleans, times with their zone and resolution, durations) come back in the dtype they were read from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from texplainer.errors import InputError

#: the largest integer below which every integer is a float64
LARGEST_EXACT = 2**53


def dtypes_of(table: Any, kind: str) -> list[Any] | None:
    """The dtype of every column of a frame; None for an array."""
    if kind == "pyarrow":
        return list(table.schema.types)
    return list(table.dtypes) if kind in ("pandas", "polars") else None


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
    write = WRITERS[kind]
    written = {name: write(values, dtypes.get(name)) for name, values in columns.items()}
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


def check_exact(values: Any, name: str) -> None:
    """Refuse whole numbers that a float64 cannot hold."""
    for i, value in enumerate(values):
        if (
            isinstance(value, (int, np.integer))
            and abs(int(value)) > LARGEST_EXACT
            and float(value) != int(value)
        ):
            raise InputError(
                f"row {i}: {value} in column {name!r} is above 2^53 and not exact as a 64-bit float. If the "
                f"numbers are identifiers or codes, drop the column or pass categorical=[{name!r}]; if they "
                "are quantities, convert them to floats, also for the model."
            )


def has_large(values: np.ndarray) -> bool:
    """Whether some integers are beyond what every float64 holds."""
    wide = values.dtype.kind in "iu" and values.dtype.itemsize == 8 and len(values) > 0
    return wide and (int(values.max()) > LARGEST_EXACT or int(values.min()) < -LARGEST_EXACT)


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

    if values.dtype.kind == "f":
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
