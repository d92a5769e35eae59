"""Tables in and out: numpy, pandas, polars, Arrow, lists, a single row.

Inside texplainer a table is a float64 array and a `Schema`. The schema is learnt once, from the
background. It remembers the columns' names, turns any later table into floats (`read`: reordering
columns by name, refusing what does not fit) and turns floats back into the kind of table the model
was given by its user (`write`). A categorical column (text, a category dtype, or one declared by
name) is held as integer codes, the positions of its `levels`; a missing level is NaN. A group of one-hot
columns is folded into one such column (`folded`), and unfolded again for the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v1 as nw  # the API that stays
import numpy as np

from texplainer import folds
from texplainer.errors import InputError
from texplainer.signatures import Array


@dataclass(frozen=True)
class Schema:
    """What is known of a table's columns.

    Attributes
    ----------
    names
        One name per column.
    kind
        The table's own kind: "array", "pandas", "polars" or "pyarrow".
    levels
        Column index -> the levels its codes stand for.
    dtypes
        Column index -> the categorical dtype to restore when writing (None: plain values).
    named
        Whether the user's tables carried names of their own.
    missing
        Column index -> how a missing level is written (None, NaN, NA), as met in the background.
    ordinal
        Indices of the categorical columns whose levels have an order.
    inner, layout
        Of a folded schema: the schema of the wide table the model eats, and what is folded where.
    """

    names: tuple[str, ...]
    kind: str
    levels: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    dtypes: Mapping[int, Any] = field(default_factory=dict)
    named: bool = True
    missing: Mapping[int, Any] = field(default_factory=dict)
    ordinal: frozenset[int] = frozenset()
    inner: Schema | None = None
    layout: folds.Layout | None = None

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.names)

    @property
    def numeric(self) -> np.ndarray:
        """Mask of the columns a derivative makes sense for."""
        return np.array([j not in self.levels for j in range(self.width)])

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """The folded features: name -> their columns in the wide table, which a metric moves as one."""
        folded = {} if self.layout is None else self.layout.folds
        return {self.names[j]: fold.columns for j, fold in folded.items()}

    @property
    def encoded(self) -> bool:
        """Whether the model sees something else than this schema's floats (level names, one-hot cells)."""
        own = any(levels != tuple(range(len(levels))) for levels in self.levels.values())
        return own or self.layout is not None

    def read(self, table: Any) -> Array:
        """Turn a table into floats, (rows, features), in this schema's column order."""
        if self.inner is not None and self.layout is not None:
            return self.layout.fold(self.inner.read(table), self.inner.names)
        names, columns, _ = _columns_of(table, self)
        if names is not None and self.named:
            columns = self._in_order(names, columns)
        elif len(columns) != self.width:
            raise InputError(
                f"the table has {len(columns)} columns; expected {self.width} ({some(self.names)}). "
                "Pass the columns the model was trained on."
            )
        rows = len(columns[0]) if columns else 0
        if rows == 0:
            raise InputError("the table has 0 rows; expected at least 1. Pass the rows to explain.")
        out = np.empty((rows, self.width))  # (rows, features)
        for j, column in enumerate(columns):
            out[:, j] = (
                _codes(column, self.levels[j], self.names[j])
                if j in self.levels
                else _floats(column, self.names[j])
            )
        return out

    def write(self, rows: Array) -> Any:
        """Turn floats back into the kind of table the model eats."""
        if self.inner is not None and self.layout is not None:
            return self.inner.write(self.layout.unfold(rows))
        if self.kind == "array" and not self.encoded:
            return rows
        if self.kind == "pandas" and not self.levels:
            import pandas as pd

            return pd.DataFrame(rows, columns=list(self.names), copy=False)
        columns = {name: self.column(rows, j) for j, name in enumerate(self.names)}
        if self.kind == "array":
            numeric = all(np.asarray(values).dtype.kind in "fiub" for values in columns.values())
            return np.column_stack(
                [np.asarray(v, dtype=float if numeric else object) for v in columns.values()]
            )
        return _frame(columns, self.kind, {self.names[j]: dtype for j, dtype in self.dtypes.items()})

    def column(self, rows: Array, index: int) -> np.ndarray:
        """The user's own values of one column (levels instead of codes)."""
        values = rows[:, index]
        if index not in self.levels:
            return values
        levels = self.levels[index]
        missing = ~np.isfinite(values)
        codes = np.where(missing, 0, values).astype(int)
        if levels and all(isinstance(level, (int, float)) for level in levels):
            out = np.asarray(levels)[codes]
            return np.where(missing, np.nan, out) if missing.any() else out
        table = np.empty(max(1, len(levels)), dtype=object)
        table[: len(levels)] = levels
        out = table[codes]
        out[missing] = self.missing.get(index)
        return out

    def wide(self, rows: Array) -> Array:
        """The rows of the wide table the model eats, as floats."""
        return rows if self.layout is None else self.layout.unfold(rows)

    def narrow(self, bounds: tuple[Array, Array] | None) -> tuple[Array, Array] | None:
        """Fold the bounds of a wide table; codes have none."""
        if self.layout is None or bounds is None:
            return bounds
        low, high = bounds
        return self.layout.narrow(low, axis=0, fill=-np.inf), self.layout.narrow(high, axis=0, fill=np.inf)

    def folded(self, groups: Mapping[str, Sequence[int]], rows: Array) -> tuple[Schema, Array]:
        """Fold groups of columns into one column of codes each; their levels are the patterns in `rows`."""
        layout, labels = folds.layout_of(groups, rows)
        names = tuple(self.names[x] if isinstance(x, int) else x for x in labels)
        plain = {x: j for j, x in enumerate(labels) if isinstance(x, int)}  # wide column -> narrow one
        levels = {plain[c]: own for c, own in self.levels.items() if c in plain}
        ordinal = {plain[c] for c in self.ordinal if c in plain}
        for j, fold in layout.folds.items():
            columns = [self.names[c] for c in fold.columns]
            levels[j] = folds.level_names(names[j], columns, fold.patterns)
            ordinal |= {j} if len(columns) == 1 else set()  # a 0/1 column has a direction
        schema = Schema(
            names, self.kind, levels, named=self.named, ordinal=frozenset(ordinal), inner=self, layout=layout
        )
        return schema, layout.fold(rows, self.names)

    def _in_order(self, names: Sequence[str], columns: list[np.ndarray]) -> list[np.ndarray]:
        where = {name: i for i, name in enumerate(names)}
        missing = [name for name in self.names if name not in where]
        extra = [name for name in names if name not in set(self.names)]
        if missing or extra:
            parts = []
            if missing:
                parts.append(f"lacks the columns {some(missing)}")
            if extra:
                parts.append(f"has the unexpected columns {some(extra)}")
            raise InputError(
                f"the table {' and '.join(parts)}; expected exactly {some(self.names)}. "
                "Select the background's columns before explaining."
            )
        return [columns[where[name]] for name in self.names]


def learn(
    table: Any, feature_names: Sequence[str] | None = None, categorical: Sequence[str] = ()
) -> tuple[Schema, Array]:
    """Learn the schema of a background table and read it.

    `categorical` names numeric columns that hold category codes; text and category columns are
    recognised by themselves.
    """
    own_names, columns, kind = _columns_of(table, None)
    if not columns:
        raise InputError("the background has 0 columns; expected at least 1.")
    if feature_names is not None and len(feature_names) != len(columns):
        raise InputError(
            f"feature_names has {len(feature_names)} names for a background of {len(columns)} columns; "
            "pass one name per column."
        )
    names = tuple(str(n) for n in (feature_names or own_names or [f"x{j}" for j in range(len(columns))]))
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"the column names {some(twice)} stand twice; expected unique names. Rename them.")
    unknown = [c for c in categorical if c not in names]
    if unknown:
        raise InputError(f"categorical columns {some(unknown)} are not in the table; it has {some(names)}.")
    levels, dtypes, missing = {}, {}, {}
    for j, column in enumerate(columns):
        found = _levels(column, names[j] in categorical)
        if found is not None:
            levels[j], dtype = found
            if dtype is not None:
                dtypes[j] = dtype
            missing[j] = _missing_mark(column, kind)
    schema = Schema(names, kind, levels, dtypes, own_names is not None, missing, _ordered(levels, dtypes))
    return schema, schema.read(table)


def names_of(table: Any, feature_names: Sequence[str] | None = None) -> tuple[str, ...]:
    """The column names `learn` would give a table."""
    own_names, columns, _ = _columns_of(table, None)
    return tuple(str(n) for n in (feature_names or own_names or [f"x{j}" for j in range(len(columns))]))


def _ordered(levels: Mapping[int, tuple[Any, ...]], dtypes: Mapping[int, Any]) -> frozenset[int]:
    """Columns of an ordered category dtype; and those of two numbers, which have a direction."""
    numbers = {
        j for j, own in levels.items() if len(own) == 2 and all(isinstance(v, (int, float)) for v in own)
    }
    return frozenset(numbers | {j for j, dtype in dtypes.items() if getattr(dtype, "ordered", False)})


def _columns_of(table: Any, schema: Schema | None) -> tuple[list[str] | None, list[Any], str]:
    """Split any table into (names or None, one 1-d column each, kind)."""
    if isinstance(table, Mapping):
        return [str(k) for k in table], [np.atleast_1d(np.asarray(v)) for v in table.values()], "array"
    native = nw.from_native(table, pass_through=True, eager_only=True, allow_series=True)
    if isinstance(native, nw.Series):  # one row of a pandas frame: its index holds the names
        index = getattr(table, "index", None)
        names = [str(n) for n in index] if index is not None else None
        return names, [np.asarray([v], dtype=object) for v in table], "array"
    if isinstance(native, nw.DataFrame):
        kind = native.implementation.value
        columns = [_native_column(native[name]) for name in native.columns]
        return [str(c) for c in native.columns], columns, kind if kind in {"polars", "pyarrow"} else "pandas"
    return None, *_columns_of_array(table, schema)


def _columns_of_array(table: Any, schema: Schema | None) -> tuple[list[np.ndarray], str]:
    try:
        array = np.asarray(table)
        if array.dtype.kind in "US":  # numpy would turn a mixed list into text
            array = np.asarray(table, dtype=object)
    except ValueError as error:
        raise InputError(f"the rows have unequal lengths ({error}); expected a rectangular table.") from None
    if array.ndim == 1 and schema is not None and len(array):
        array = array[None, :]
    if array.ndim != 2:
        raise InputError(
            f"the table has {array.ndim} dimensions, shape {array.shape}; expected 2, (rows, features)."
        )
    return [array[:, j] for j in range(array.shape[1])], "array"


def _native_column(series: nw.Series) -> Any:
    """A numpy column; a categorical dtype is kept whole, so that its levels are not lost."""
    if isinstance(series.dtype, (nw.Categorical, nw.Enum)):
        return series
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return series.cast(nw.Float64).to_numpy() if series.null_count() else series.to_numpy()
    return np.array(series.to_list(), dtype=object)


def _levels(column: Any, declared: bool) -> tuple[tuple[Any, ...], Any] | None:
    """(levels, dtype to restore) of a categorical column, None for a numeric one."""
    if isinstance(column, nw.Series):
        native_dtype = getattr(column.to_native(), "dtype", None) or column.to_native().type
        return tuple(column.cat.get_categories().to_list()), native_dtype
    if column.dtype.kind == "O":
        present = [v for v in column if not _is_missing(v)]
        if not all(isinstance(v, (int, float, np.number)) for v in present) or declared:
            return tuple(sorted(set(present), key=lambda v: (str(type(v)), v))), None
        return None
    if column.dtype.kind == "b":
        return (False, True), None
    if not declared:
        return None
    present = np.unique(column[np.isfinite(column)] if column.dtype.kind == "f" else column)
    return tuple(v.item() for v in present), None


def _missing_mark(column: Any, kind: str) -> Any:
    """How a column writes a missing level: an encoder tells None from NaN."""
    usual = np.nan if kind == "pandas" else None
    if isinstance(column, nw.Series) or column.dtype.kind != "O":
        return usual
    return next((v for v in column if _is_missing(v)), usual)


def _codes(column: Any, levels: tuple[Any, ...], name: str) -> Array:
    values = column.to_list() if isinstance(column, nw.Series) else column
    where = {level: float(code) for code, level in enumerate(levels)}
    out = np.empty(len(values))
    for i, value in enumerate(values):
        if _is_missing(value):
            out[i] = np.nan
        elif value in where:
            out[i] = where[value]
        else:
            raise InputError(
                f"row {i}: level {value!r} of column {name!r} is unknown; expected one of {some(levels)}. "
                "Add a row with this level to the background, or map it to a known one."
            )
    return out


def _floats(column: Any, name: str) -> Array:
    values = np.asarray(column.to_list(), dtype=object) if isinstance(column, nw.Series) else column
    if values.dtype.kind in "fiub":
        return values.astype(float)
    out = np.empty(len(values))
    for i, value in enumerate(values):
        try:
            if isinstance(value, str):
                raise TypeError
            out[i] = np.nan if _is_missing(value) else float(value)
        except (TypeError, ValueError):
            raise InputError(
                f"row {i}: {value!r} in column {name!r} is not a number; the background holds numbers there. "
                "Convert the column, or give a background in which it is categorical."
            ) from None
    return out


def _frame(columns: dict[str, np.ndarray], kind: str, dtypes: dict[str, Any]) -> Any:
    if kind == "pandas":
        import pandas as pd

        series = {}
        for name, values in columns.items():
            dtype = dtypes.get(name)
            series[name] = pd.Series(values, dtype=dtype) if dtype is not None else values
        return pd.DataFrame(series)
    if kind == "polars":
        import polars as pl

        plain = {n: list(v) if v.dtype.kind == "O" else v for n, v in columns.items()}
        return pl.DataFrame({n: pl.Series(n, v, dtype=dtypes.get(n)) for n, v in plain.items()})
    import pyarrow as pa

    arrays = {name: pa.array(v) for name, v in columns.items()}
    return pa.table({n: a.dictionary_encode() if n in dtypes else a for n, a in arrays.items()})


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def some(names: Sequence[Any], most: int = 8) -> str:
    """Show the first few names of a list."""
    shown = ", ".join(repr(n) if isinstance(n, str) else str(n) for n in names[:most])
    return f"[{shown}, ... {len(names) - most} more]" if len(names) > most else f"[{shown}]"
