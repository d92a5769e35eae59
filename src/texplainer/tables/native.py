"""Read tables of numpy, pandas, polars, Arrow, scipy sparse, lists and single rows, and label their rows.

`columns_of` splits any table into names and one column each; `columns` writes them again as the kind of table
they came from. `split_identifiers` takes off the column that identifies the rows: it is not a feature, but it
labels what is explained. It is the one that `id_column` names. Without it, a column that the model does not know
is taken for an identifier by its name, such as "id", "customer_id" or "orderId", and if nothing else is unexpected.
"""

from __future__ import annotations

import datetime as dt
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v1 as nw  # the API that stays
import numpy as np

from texplainer.errors import BackgroundWarning, InputError, LazyTableWarning
from texplainer.support.messages import describe, some

#: a larger sparse table is not converted to dense
MOST_CELLS = 2**28
DAY = np.timedelta64(1, "D")
#: the largest integer below which every integer is a float64
LARGEST_EXACT = 2**53


@dataclass(frozen=True)
class Columns:
    """A table split into columns.

    `labels` is the header of a frame whose names are not plain texts; `zones` are the time zones of columns,
    `dtypes` those of a frame; `nulls` are the columns of a polars or Arrow table that hold one.
    """

    names: list[str] | None
    values: list[Any]
    kind: str
    labels: Any = None
    zones: Mapping[int, Any] = field(default_factory=dict)
    dtypes: list[Any] | None = None
    nulls: frozenset[int] = frozenset()


def columns_of(table: Any, one_row: bool = False, absent: float = 0.0) -> Columns:
    """Split any table; with `one_row` a one-dimensional array is one row.

    `absent` is what the model takes a value for that a scipy sparse table does not store.
    """
    if isinstance(table, Columns):  # it was split before
        return table
    table = unwrapped(table)
    if is_sparse(table):  # before mappings: one of scipy's formats is a dict
        return Columns(None, _of_array(dense(table, absent), one_row), "array")
    if isinstance(table, Mapping):
        return _of_mapping(table)
    table = collected(table)
    if type(table).__module__.startswith("pandas") and hasattr(table, "iloc") and hasattr(table, "columns"):
        return _of_pandas(table)
    if isinstance(names := getattr(table, "column_names", None), list):  # of Arrow
        check_names(names)
    native = nw.from_native(table, pass_through=True, eager_only=True, allow_series=True)
    if isinstance(native, nw.Series):  # one row without names
        return Columns(None, [np.asarray([v], dtype=object) for v in table], "array")
    if isinstance(native, nw.DataFrame):
        kind = native.implementation.value
        kind = kind if kind in {"polars", "pyarrow"} else "pandas"
        columns = [_native_column(native[name], name) for name in native.columns]
        zones = {j: getattr(dtype, "time_zone", None) for j, dtype in enumerate(native.schema.values())}
        zones = {j: zone for j, zone in zones.items() if zone is not None}
        nulls = frozenset(j for j, name in enumerate(native.columns) if native[name].null_count())
        own = dtypes_of(table, kind)
        return Columns(list(native.columns), columns, kind, None, zones, own, nulls)
    return Columns(None, _of_array(table, one_row), "array")


def unwrapped(table: Any) -> Any:
    """The table inside what other libraries make of one: records, tensors with gradients, shap's maskers."""
    if isinstance(table, np.ndarray) and table.dtype.names:
        return {name: table[name] for name in table.dtype.names}
    if (row := _cells_by_name(table)) is not None and not isinstance(table, Mapping):
        return {name: [value] for name, value in row.items()}
    if isinstance(table, (list, tuple)) and table and _cells_by_name(table[0]) is not None:
        return _of_named_rows(table)
    if hasattr(table, "detach") and hasattr(table, "cpu"):  # a torch tensor, perhaps with a gradient
        return array_of(table)
    if type(table).__module__.startswith("shap."):
        if hasattr(table, "weights"):  # of kmeans: its points stand for different numbers of rows
            raise InputError(
                f"{describe(table)} was passed as a table: weighted centres, which are not rows of the data. "
                "Pass some hundred rows themselves, such as shap.sample(X, 100)."
            )
        held = getattr(table, "data", None)  # of a masker
        return table if held is None else held
    return table


def _cells_by_name(row: Any) -> Mapping[Any, Any] | None:
    """The cells of one row that knows its columns' names; None for all others.

    Such rows are mappings, Series, named tuples, records of numpy and rows of sqlite3. A column called "a b" has
    another name in a named tuple, which is then refused as unknown.
    """
    if isinstance(row, Mapping):
        return row
    if isinstance(row, (np.void, np.ndarray)):
        return {name: row[name] for name in row.dtype.names} if row.dtype.names and not row.ndim else None
    if isinstance(row, tuple):
        names = getattr(row, "_fields", None)
    elif type(row).__module__.startswith("pandas") and hasattr(row, "iloc") and not hasattr(row, "columns"):
        names = plain_names(row.index)
        names = None if names == [str(i) for i in range(len(row))] else names  # mere positions
    else:
        names = row.keys() if type(row).__module__ == "sqlite3" and hasattr(row, "keys") else None
    if not isinstance(names, (tuple, list)):
        return None
    check_names(names)
    return dict(zip(names, row, strict=True))


def _of_named_rows(rows: Sequence[Any]) -> dict[Any, list[Any]]:
    """The columns of rows that know their names, whatever the order in each."""
    cells = [_cells_by_name(row) for row in rows]
    names = list(cells[0] or ())
    for i, row in enumerate(cells):
        if row is None or set(row) != set(names):
            found = describe(rows[i]) if row is None else f"the columns {list(row)}"
            raise InputError(
                f"row {i} has {found}, the first has {names}; expected the same columns in every row. Write a "
                "missing value as None."
            )
    return {name: [row[name] for row in cells if row is not None] for name in names}


def collected(table: Any) -> Any:
    """Collect a lazy frame, with a warning: its rows are needed more than once."""
    if not (hasattr(table, "collect") and type(table).__module__.startswith("polars")):
        return table
    warnings.warn(
        "a polars LazyFrame was collected: all its rows are now in memory. Collect it yourself to do this "
        "only once, or pass the file to texplainer.run, which reads it in parts.",
        LazyTableWarning,
        stacklevel=2,
    )
    return table.collect()


def index_of(table: Any) -> np.ndarray | None:
    """Return a pandas frame's row labels, (rows,), unless they are the default positions."""
    if not type(table).__module__.startswith("pandas") or not hasattr(table, "columns"):
        return None
    index = table.index
    if type(index).__name__ == "RangeIndex" and index[:1].tolist() in ([], [0]) and index.step == 1:
        return None
    return object_array(list(index))


def wider(dtype: Any, levels: Sequence[Any]) -> Any:
    """Return a categorical dtype with additional categories."""
    if hasattr(dtype, "ordered") and hasattr(dtype, "categories"):
        return type(dtype)([*dtype.categories, *levels], ordered=dtype.ordered)
    if type(dtype).__name__ != "Enum":  # polars' other kind takes any level
        return dtype
    return type(dtype)([*dtype.categories.to_list(), *levels])


def plain_names(labels: Any) -> list[str]:
    """Convert a frame's column labels (numbers, None, tuples of a multi-index) to strings."""
    return ["/".join(str(part) for part in n) if isinstance(n, tuple) else str(n) for n in labels]


def check_names(names: Sequence[str]) -> None:
    """Refuse names that occur twice, and those that no file can hold."""
    for name in names:
        if not name.isascii():
            try:
                name.encode()
            except UnicodeEncodeError as error:
                raise InputError(
                    f"the column name {name!r} is not valid text ({error.reason}). Rename it."
                ) from None
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InputError(f"the column names {some(twice)} occur twice; expected unique names. Rename them.")


def with_dtypes_of(frame: Any, like: Any) -> Any:
    """A pandas frame with the integer dtypes of another one, where its values allow it; other tables unchanged."""
    if not all(type(t).__module__.startswith("pandas") and hasattr(t, "columns") for t in (frame, like)):
        return frame
    whole = {
        name: like[name].dtype
        for name in frame.columns
        if name in like.columns
        and like[name].dtype.kind in "iu"
        and frame[name].dtype.kind == "f"
        and bool((frame[name] == frame[name].round()).all())
    }
    return frame.astype(whole)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(np.ndim(value) == 0 and value != value)
    except ArithmeticError:  # a signalling NaN of Decimal
        return True


def days_of(values: Any) -> np.ndarray:
    """Convert datetimes to days since 1970 and durations to days; missing values to NaN."""
    values = np.asarray(values)
    zero = np.datetime64(0, "D") if values.dtype.kind == "M" else np.timedelta64(0, "D")
    return np.where(np.isnat(values), np.nan, (values - zero) / DAY)


def times_of(days: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert days back to datetimes or durations, to the microsecond."""
    known = np.isfinite(days)
    ticks = np.where(known, np.rint(np.where(known, days, 0.0) * 86400e6), np.iinfo(np.int64).min)
    return ticks.astype(np.int64).astype(f"{dtype.kind}8[us]").astype(dtype)


# ---------------------------------------------------------------- columns


def _of_pandas(table: Any) -> Columns:
    import pandas as pd

    names = plain_names(table.columns)
    check_names(names)
    labels = None if all(isinstance(n, str) for n in table.columns) else table.columns
    values, zones, own = [], {}, list(table.dtypes)
    if len(set(own)) == 1 and isinstance(own[0], np.dtype) and own[0].kind in "fiub":
        array = table.to_numpy()  # at once: wide tables have many columns
        return Columns(names, [array[:, j] for j in range(array.shape[1])], "pandas", labels, zones, own)
    for i, (dtype, (_, column)) in enumerate(zip(own, table.items(), strict=True)):
        if isinstance(dtype, np.dtype) and dtype.kind in "fiub":
            values.append(column.to_numpy())
            continue
        if isinstance(dtype, pd.SparseDtype):
            column = column.sparse.to_dense()
        zone = getattr(dtype, "tz", None) or getattr(getattr(dtype, "pyarrow_dtype", None), "tz", None)
        if zone is not None:
            zones[i] = zone
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        values.append(_native_column(nw.from_native(column, series_only=True), names[i]))
    return Columns(names, values, "pandas", labels, zones, own)


def _native_column(series: nw.Series, name: str) -> Any:
    try:
        return _column_of(series, name)
    except InputError:
        raise
    except Exception as error:  # unions, extension types, decimals of a negative scale
        native = series.to_native()
        raise unreadable(name, getattr(native, "dtype", None) or native.type, error) from error


def unreadable(name: str, dtype: Any, error: Exception) -> InputError:
    """The error for a column of a type that is not supported."""
    return InputError(
        f"column {name!r} of the type {dtype} is not supported ({type(error).__name__}: {error}); expected "
        "numbers, text, categories or times. Convert the column."
    )


def _column_of(series: nw.Series, name: str) -> Any:
    """Return a numpy column; a categorical dtype is kept, so that its categories are not lost."""
    dtype = series.dtype
    if isinstance(dtype, (nw.Categorical, nw.Enum)):
        arrow = hasattr(
            getattr(series.to_native(), "dtype", None), "pyarrow_dtype"
        )  # no categories in pandas
        return object_array(series.to_list()) if arrow else series
    if isinstance(dtype, (nw.Datetime, nw.Date, nw.Duration)):
        return _times(series, name)
    if dtype == nw.Boolean:
        return object_array(series.to_list()) if series.null_count() else series.to_numpy().astype(bool)
    if dtype in (nw.Int128, nw.UInt128):  # numpy has none
        return object_array(series.to_list())
    if dtype.is_numeric() and not isinstance(dtype, nw.Decimal):
        if not series.null_count():
            return np.asarray(series.to_numpy())
        if dtype.is_integer() and has_large(np.asarray(series.drop_nulls().to_numpy())):
            return object_array(series.to_list())
        if dtype.is_float() and bool(series.drop_nulls().is_nan().any()):
            raise InputError(
                f"column {name!r} holds both null and NaN, which are the same missing value here. Use one of "
                "them, such as with fill_nan(None)."
            )
        return series.cast(nw.Float64).to_numpy()
    return object_array(series.to_list())


def _times(series: nw.Series, name: str) -> np.ndarray:
    """Times and durations in microseconds; what a float of days would round is refused."""
    kind = "timedelta64" if isinstance(series.dtype, nw.Duration) else "datetime64"
    found = np.asarray(series.to_numpy())
    if found.dtype.kind not in "mM":  # an object array of dates
        found = np.array([None if is_missing(v) else v for v in found], dtype=f"{kind}[us]")
    return _in_microseconds(found, name)


def times_among(column: Any, name: str, kind: str, zone: Any) -> tuple[Any, Any]:
    """A column of objects as times or durations, and their zone; unchanged where it holds anything else.

    So come the times in a row of a frame, in a dict and in a list. Missing ones take the background's `zone`.
    """
    if getattr(getattr(column, "dtype", None), "kind", "") != "O":
        return column, None
    known = [v for v in column if not is_missing(v)]
    zones = {getattr(v, "tzinfo", None) for v in known}
    if known and None in zones and len(zones) > 1:
        raise InputError(f"column {name!r} has times with and without a time zone. Localise or convert them.")
    try:
        plain = [np.datetime64("NaT") if is_missing(v) else _plain_time(v) for v in column]
        if known and {v.dtype.kind for v in plain if not np.isnat(v)} != {kind}:
            return column, None
    except (TypeError, ValueError):
        return column, None
    cells = np.array([np.array("NaT", f"{kind}8[us]")[()] if np.isnat(v) else v for v in plain])
    return _in_microseconds(cells, name), next(iter(zones)) if known else zone


def _plain_time(value: Any) -> Any:
    """A date, a time or a duration of Python or pandas as one of numpy, in UTC if it has a zone."""
    if getattr(value, "tzinfo", None) is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    if hasattr(value, "to_numpy"):  # of pandas: with its nanoseconds
        return value.to_numpy()
    if isinstance(value, (dt.date, np.datetime64)):
        return np.datetime64(value)
    if isinstance(value, (dt.timedelta, np.timedelta64)):
        return np.timedelta64(value)
    raise TypeError


def _in_microseconds(found: np.ndarray, name: str) -> np.ndarray:
    out = found.astype(f"{found.dtype.kind}8[us]")
    back = times_of(days_of(out), out.dtype)
    lost = ~np.isnat(out) & ((out.astype(found.dtype) != found) | (back != out))
    if lost.any():
        i = int(np.flatnonzero(lost)[0])
        raise InputError(
            f"row {i}: {found[i]} in column {name!r} is finer than the microseconds that are kept (for dates "
            "far from 1970: milliseconds). Round the column, also for the model."
        )
    return out


def object_array(values: Sequence[Any]) -> np.ndarray:
    """Return an object array with one entry per value, even if the values are lists."""
    out = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        out[i] = value
    return out


def _of_mapping(table: Mapping[Any, Any]) -> Columns:
    for name, cells in table.items():
        if isinstance(cells, (Mapping, Set)) or (
            hasattr(cells, "__next__") and not hasattr(cells, "__len__")
        ):
            raise InputError(
                f"column {name!r} is {describe(cells)}; expected a list or an array of its values."
            )
    names, values = [str(k) for k in table], [np.atleast_1d(_cells(v)) for v in table.values()]
    odd = next((name for name, v in zip(names, values, strict=True) if v.ndim > 1), None)
    if odd is not None:
        shape = values[names.index(odd)].shape
        raise InputError(f"column {odd!r} has the shape {shape}; expected one value per row, ({shape[0]},).")
    lengths = {name: len(v) for name, v in zip(names, values, strict=True)}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns have unequal lengths, {lengths}; expected one value per row in each.")
    return Columns(names, values, "array")


def array_of(values: Any) -> np.ndarray:
    """Convert values to a numpy array; a torch tensor too, of any float width, layout or device."""
    if not (type(values).__module__.startswith("torch") and hasattr(values, "detach")):
        return np.asarray(values)
    if values.device.type == "meta":
        raise InputError("a tensor on the device 'meta' holds no values; move it to 'cpu' with its data.")
    try:
        values = values.detach().cpu()
        values = values.dequantize() if values.is_quantized else values
        values = values.to_dense() if str(values.layout) != "torch.strided" else values
        if str(values.dtype).startswith(("torch.bfloat", "torch.float8")):  # numpy has none
            values = values.float()
        return values.resolve_conj().resolve_neg().numpy()
    except Exception as error:  # nested tensors have no shape
        why = str(error).split(".")[0] or type(error).__name__
        raise InputError(
            f"a tensor of {values.dtype} cannot be read as an array ({why}); expected a "
            "rectangular tensor of numbers. Convert it with its own methods first."
        ) from error


def _cells(values: Any) -> np.ndarray:
    """Convert the cells of a table to an array: a masked cell is a missing one, text is as objects."""
    if isinstance(values, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in values):
        values = np.ma.array(values)  # numpy alone would show what the masks hide
    if isinstance(values, np.ma.MaskedArray):
        hidden, numbers = np.ma.getmaskarray(values), values.dtype.kind in "fiub"
        narrow = np.float32 if values.dtype == np.float32 else float
        values = np.array(values.data, dtype=narrow if numbers else object)
        values[hidden] = np.nan if numbers else None
    array = array_of(values)
    # numpy turns a mixed list into text, a missing value into "nan"
    return np.asarray(values, dtype=object) if array.dtype.kind in "UST" else array


def _of_array(table: Any, one_row: bool) -> list[np.ndarray]:
    try:
        array = _cells(table)
    except InputError:
        raise
    except ValueError as error:
        if not isinstance(table, (list, tuple, np.ndarray)):
            raise no_table(table) from None
        raise InputError(f"the rows have unequal lengths ({error}); expected a rectangular table.") from None
    if array.dtype.kind == "c":
        raise InputError(
            "the table holds complex numbers; expected real ones. Pass real and imaginary parts as separate "
            "columns."
        )
    if array.ndim == 0 or hasattr(table, "predict"):  # an ensemble is a sequence of its members
        raise no_table(table)
    if array.ndim == 1 and one_row and len(array):
        array = array[None, :]
    if array.ndim != 2:
        raise InputError(
            f"the table has {array.ndim} dimensions, shape {array.shape}; expected 2, (rows, features)."
        )
    return [array[:, j] for j in range(array.shape[1])]


def no_table(table: Any) -> InputError:
    """The error for an object that is not a table."""
    swapped = " Pass the model first, then the background." if hasattr(table, "predict") else ""
    return InputError(
        f"{describe(table)} was passed as a table; expected rows and features: a frame or an array.{swapped}"
    )


def is_sparse(table: Any) -> bool:
    """Return whether a table is one of scipy's sparse matrices or arrays."""
    return type(table).__module__.startswith("scipy.sparse") and hasattr(table, "toarray")


def dense(table: Any, absent: float = 0.0) -> np.ndarray:
    """Convert a scipy sparse table to an array; values it does not store become `absent`."""
    cells = int(np.prod(table.shape))
    if cells > MOST_CELLS:
        raise InputError(
            f"the sparse table has {table.shape[0]} x {table.shape[1]} values; at most {MOST_CELLS} are "
            "converted to dense at once. Pass a few hundred rows as the background and explain the others "
            "in parts."
        )
    if absent == 0.0:
        return table.toarray()
    stored = table.tocsr().tocoo()  # by rows, so that values stored twice are added
    out = np.full(table.shape, absent, dtype=np.float32 if table.dtype == np.float32 else np.float64)
    out[stored.row, stored.col] = stored.data
    return out


def dtypes_of(table: Any, kind: str) -> list[Any] | None:
    """The dtype of every column of a frame; None for an array."""
    if kind == "pyarrow":
        return list(table.schema.types)
    return list(table.dtypes) if kind in ("pandas", "polars") else None


def has_large(values: np.ndarray) -> bool:
    """Whether some integers are beyond what every float64 holds."""
    wide = values.dtype.kind in "iu" and values.dtype.itemsize == 8 and len(values) > 0
    return wide and (int(values.max()) > LARGEST_EXACT or int(values.min()) < -LARGEST_EXACT)


# ---------------------------------------------------------------- identifiers


_NAME = re.compile(r"(?i:(^|.*[_\s.-])(id|uuid|guid)($|[_\s.-].*))|.*[a-z](Id|ID)|Unnamed: 0")


def is_identifier(name: str) -> bool:
    """Whether a column's name is that of an identifier."""
    return _NAME.fullmatch(name) is not None


def identifier_among(extra: Sequence[str]) -> str | None:
    """The identifier among columns that are not features; a written index only if there is no other."""
    found = sorted(filter(is_identifier, extra), key=lambda name: name.startswith("Unnamed"))
    return found[0] if found else None


def split_identifiers(
    table: Any, features: Sequence[str] | None, id_column: Any = None, *, stacklevel: int = 3
) -> tuple[Any, np.ndarray | None]:
    """A table without its identifiers, and its row labels, (rows,): its identifiers, or a pandas index.

    `features` are the names of the model's columns, None if they are not known.
    """
    given, table = table, unwrapped(table)
    names = _names_of(table)
    if names is None:
        return given, None
    declared = None if id_column is None else plain_names([id_column])[0]
    known = set(names if features is None else features)
    extra = [name for name in names if name not in known]
    if declared in names:
        chosen = declared
        extra = extra if features is not None else [declared]
    else:
        chosen = identifier_among(extra) if known <= set(names) and all(map(is_identifier, extra)) else None
    if chosen is None:
        return given, index_of(table)
    if chosen != declared:
        warnings.warn(
            f"the model does not know the columns {some(extra)}: they are left out, and the values of {chosen!r} "
            f"label the rows. Pass id_column={chosen!r} to confirm.",
            BackgroundWarning,
            stacklevel=stacklevel,
        )
    left_out = {name for name in extra if name == declared or is_identifier(name)}
    return _without(table, names, left_out) if left_out else given, object_array(
        _column(table, names.index(chosen))
    )


def check_identifier(table: Any, id_column: Any) -> None:
    """Refuse the name of a column that the table does not have."""
    names = _names_of(unwrapped(table))
    if plain_names([id_column])[0] in (names or ()):
        return
    has = "columns without names" if names is None else f"the columns {some(names)}"
    raise InputError(
        f"id_column={id_column!r} is not in the table, which has {has}. Leave it out, or name one."
    )


def _names_of(table: Any) -> list[str] | None:
    """The names of a table's columns; None if it has none."""
    if isinstance(table, Mapping):
        return [str(name) for name in table] if not is_sparse(table) else None
    kind = type(table).__module__.split(".")[0]
    if kind not in ("pandas", "polars", "pyarrow") or isinstance(table, tuple):  # a row of itertuples
        return None
    columns = getattr(table, "column_names", None) or getattr(table, "columns", None)
    if columns is None or (kind == "pyarrow" and not hasattr(table, "column_names")):
        columns = getattr(table, "index", None)  # of a pandas Series: one row
    return None if columns is None or callable(columns) else plain_names(columns)


def _column(table: Any, place: int) -> list[Any]:
    if isinstance(table, Mapping):
        return np.atleast_1d(_cells(list(table.values())[place])).tolist()
    if hasattr(table, "column_names"):
        return table.column(place).to_pylist()
    if hasattr(table, "iloc"):
        return table.iloc[:, place].tolist() if hasattr(table, "columns") else [table.iloc[place]]
    return table.to_series(place).to_list()


def _without(table: Any, names: Sequence[str], left_out: set[str]) -> Any:
    kept = [i for i, name in enumerate(names) if name not in left_out]
    if isinstance(table, Mapping):
        return {name: values for i, (name, values) in enumerate(table.items()) if i in set(kept)}
    if hasattr(table, "iloc"):
        return table.iloc[:, kept] if hasattr(table, "columns") else table.iloc[kept]
    return table.select([names[i] for i in kept])
