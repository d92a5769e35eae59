"""The schema of a table: the names of its columns and the meaning of their floats.

Inside texplainer a table is a float64 array and a `Schema`. The schema is learnt once, from the background.
It stores the column names, converts later tables to floats (`read`; columns are reordered by name, and tables
that do not fit are rejected) and converts floats back to the model's input type (`write`). A categorical
column (text, a category dtype, or declared by name) is held as integer codes, the positions in its `levels`;
a missing category is NaN. Categories that first occur in the rows to explain get further codes (`unseen`). A
group of one-hot columns is one such column.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v1 as nw  # the API that stays
import numpy as np

from texplainer.errors import InputError
from texplainer.support.messages import some, suggest
from texplainer.tables import native, onehot
from texplainer.tables.columns import (
    check_times,
    check_zone,
    float_dtype,
    floats_of,
    frame_of,
    levels_of,
    missing_mark,
    stacked,
)
from texplainer.types import Array


class UnseenCategories:
    """The codes of categories that first occur in the rows to explain, by the name of their column.

    A category gets the next free code of its column when it is first read, and keeps it. So a code means one
    category in all calls and threads, and what one call adds changes nothing in another.
    """

    _lock = threading.Lock()

    def __init__(self) -> None:
        self._codes: dict[str, dict[Any, int]] = {}

    def code(self, column: str, category: Any, known: int) -> int:
        """The code of a category of a column; codes below `known` are those of the background."""
        with self._lock:
            codes = self._codes.setdefault(column, {})
            return codes.setdefault(category, known + len(codes))

    def of(self, column: str) -> list[Any]:
        """The categories of a column in the order of their codes."""
        return list(self._codes.get(column, ()))


@dataclass(frozen=True)
class Schema:
    """The columns of a table: names, categories and types.

    Attributes
    ----------
    names
        One name per column.
    kind
        The table's type: "array", "pandas", "polars" or "pyarrow".
    levels
        Column index -> the categories of its codes.
    dtypes
        Column index -> the categorical dtype to restore when writing (None: plain values).
    named
        Whether the columns have names: the background's own, `feature_names` or those of the model.
    missing
        Column index -> the marker of a missing category (None, NaN, NA) in the background.
    ordinal
        Indices of the categorical columns whose categories are ordered.
    inner, layout
        For a schema with groups: the schema of the model's table, and the columns of each group.
    labels
        The header of a pandas frame whose column names are not strings.
    times
        Column index -> the dtype of a column of datetimes or durations.
    zones
        Column index -> its time zone.
    restore
        Column index -> the dtype of a frame's column, where it is not written as plain floats.
    narrow_floats
        Whether all of the user's numbers were float32; the model then gets float32.
    header
        The background's own names if `feature_names` replaced them; a table may have either.
    absent
        What the model takes a value for that a scipy sparse table does not store: 0, or NaN (missing).
    unseen
        The codes of categories that the background does not have. It is the only part that changes: reading a table
        adds codes.
    """

    names: tuple[str, ...]
    kind: str
    levels: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    dtypes: Mapping[int, Any] = field(default_factory=dict)
    named: bool = True
    missing: Mapping[int, Any] = field(default_factory=dict)
    ordinal: frozenset[int] = frozenset()
    inner: Schema | None = None
    layout: onehot.OneHotLayout | None = None
    labels: Any = None
    times: Mapping[int, np.dtype] = field(default_factory=dict)
    zones: Mapping[int, Any] = field(default_factory=dict)
    restore: Mapping[int, Any] = field(default_factory=dict)
    narrow_floats: bool = False
    header: tuple[str, ...] = ()
    absent: float = 0.0
    unseen: UnseenCategories = field(default_factory=UnseenCategories, compare=False)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.names)

    @property
    def numeric(self) -> np.ndarray:
        """Mask of the numeric columns."""
        return np.array([j not in self.levels for j in range(self.width)])

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """Features encoded in several columns: name -> their columns in the model's table."""
        found = {} if self.layout is None else self.layout.groups
        return {self.names[j]: group.columns for j, group in found.items()}

    @property
    def encoded(self) -> bool:
        """Whether the model's input differs from this schema's floats (category names, one-hot columns)."""
        own = any(levels != tuple(range(len(levels))) for levels in self.levels.values())
        return own or self.layout is not None

    def read(self, table: Any) -> Array:
        """Convert a table to floats, (rows, features), in this schema's column order."""
        if self.inner is not None and self.layout is not None:
            return self.layout.to_codes(self.inner.read(table), self.inner.names)
        found = native.columns_of(table, one_row=True, absent=self.absent)
        columns = found.values
        order: Sequence[int] = range(len(columns))
        if found.names is not None and (self.named or set(found.names) == set(self.names)):
            order = self.order_of(found.names)
        elif len(columns) != self.width:
            raise InputError(
                f"the table has {len(columns)} columns; expected {self.width} ({some(self.names)}). "
                "Pass the columns the model was trained on."
            )
        rows = len(columns[0]) if columns else 0
        if rows == 0:
            raise InputError("the table has 0 rows; expected at least 1. Pass the rows to explain.")
        out = np.empty((rows, self.width))  # (rows, features)
        for j, place in enumerate(order):
            column, name, zone = columns[place], self.names[j], found.zones.get(place)
            own, kind = self.times.get(j), "M" if j in self.zones else None  # categories may be times, too
            kind = kind if own is None else own.kind
            if kind is not None and zone is None:
                column, zone = native.times_among(column, name, kind, self.zones.get(j))
            if j not in self.levels:
                check_times(column, name, own)
            if j not in self.levels or j in self.zones:
                check_zone(column, name, self.zones.get(j), zone)
            out[:, j] = self._codes(column, j) if j in self.levels else floats_of(column, self.names[j])
        return out

    def write(self, rows: Array) -> Any:
        """Convert floats back to the model's input type."""
        if self.inner is not None and self.layout is not None:
            return self.inner.write(self.layout.to_cells(rows))
        array = self.kind == "array"
        if not self.levels and not self.times and (array or not self.restore):
            numbers = rows.astype(np.float32) if self.narrow_floats else rows
            if array:
                return numbers
            if self.kind == "pandas":
                import pandas as pd

                labels = list(self.names) if self.labels is None else self.labels
                return pd.DataFrame(numbers, columns=labels, copy=False)
        if array and not self.encoded and len(self.times) < self.width:
            return rows
        columns = {name: self.column(rows, j) for j, name in enumerate(self.names)}
        if array:
            return stacked(list(columns.values()))
        own = {self.names[j]: dtype for j, dtype in self.restore.items()}
        own |= {self.names[j]: self._dtype(rows, j) for j in self.dtypes}
        return frame_of(columns, self.kind, own, self.labels)

    def column(self, rows: Array, index: int) -> np.ndarray:
        """Return the original values of one column (categories instead of codes)."""
        values = rows[:, index]
        if index in self.times:
            return native.times_of(values, self.times[index])
        if index not in self.levels:
            return values.astype(np.float32) if self.narrow_floats else values
        missing = ~np.isfinite(values)
        known, codes = len(self.levels[index]), np.where(missing, 0, values).astype(int)
        new = self._new(values, index)
        levels = (*self.levels[index], *new.values())
        codes = np.where(codes < known, codes, known + np.searchsorted([*new], codes))
        numbers = bool(levels) and all(isinstance(level, (int, float)) for level in levels)
        if numbers and not (missing.any() and any(isinstance(v, bool) or abs(v) > 2**53 for v in levels)):
            out = np.asarray(levels)[codes]
            return np.where(missing, np.nan, out) if missing.any() else out
        table = np.empty(max(1, len(levels)), dtype=object)
        table[: len(levels)] = levels
        out = table[codes]
        out[missing] = self.missing.get(index)
        return out

    def shown(self, rows: Array) -> np.ndarray:
        """Return the original values of all columns, for display and saving; a missing category is None."""
        if not self.levels:
            return rows
        out = np.empty(rows.shape, dtype=object)
        for j in range(self.width):
            values = out[:, j] = self.column(rows, j)
            if j in self.levels and values.dtype.kind == "O":
                out[np.isnan(rows[:, j]), j] = None
        return out

    def _dtype(self, rows: Array, index: int) -> Any:
        """Return the dtype of a categorical column, extended by the categories that occur only in `rows`."""
        new = self._new(rows[:, index], index)
        return native.wider(self.dtypes[index], list(new.values())) if new else self.dtypes[index]

    def _new(self, values: Array, index: int) -> dict[int, Any]:
        """Code -> category of what a column holds beyond its levels: what other calls met changes nothing here."""
        if not np.nanmax(values, initial=-1.0) >= len(self.levels[index]):
            return {}
        met = self.unseen.of(self.names[index])
        present = np.unique(values[values >= len(self.levels[index])]).astype(int)
        return {code: met[code - len(self.levels[index])] for code in present.tolist()}

    def categories(self, index: int) -> list[str]:
        """The categories of a column as text, by code; those met after the background come last."""
        return [str(level) for level in (*self.levels[index], *self.unseen.of(self.names[index]))]

    def keys(self, rows: Array) -> list[tuple[bytes, tuple[Any, ...]]]:
        """What tells rows apart, also in another process: their floats, and their categories without a level."""
        rows = np.array(rows, dtype=np.float64, order="C")
        new: list[tuple[Any, ...]] = [()] * len(rows)
        for j, levels in self.levels.items():
            categories = self._new(rows[:, j], j)
            for i in np.flatnonzero(rows[:, j] >= len(levels)) if categories else ():
                new[i] += (categories[int(rows[i, j])],)
                rows[i, j] = len(levels)
        return [(row.tobytes(), own) for row, own in zip(rows, new, strict=True)]

    def wide(self, rows: Array) -> Array:
        """Return the rows of the model's table, as floats."""
        return rows if self.layout is None else self.layout.to_cells(rows)

    def narrow(self, bounds: tuple[Array, Array] | None) -> tuple[Array, Array] | None:
        """Fold the bounds of the model's table; codes do not have bounds."""
        if self.layout is None or bounds is None:
            return bounds
        low, high = bounds
        return self.layout.narrow(low, axis=0, fill=-np.inf), self.layout.narrow(high, axis=0, fill=np.inf)

    def grouped(self, groups: Mapping[str, Sequence[int]], rows: Array) -> tuple[Schema, Array]:
        """Fold each group of columns into one column of codes; its categories are the patterns in `rows`."""
        layout, labels = onehot.layout_of(groups, rows)
        names = tuple(self.names[x] if isinstance(x, int) else x for x in labels)
        plain = {x: j for j, x in enumerate(labels) if isinstance(x, int)}  # wide column -> narrow one
        levels = {plain[c]: own for c, own in self.levels.items() if c in plain}
        ordinal = {plain[c] for c in self.ordinal if c in plain}
        for j, group in layout.groups.items():
            columns = [self.names[c] for c in group.columns]
            levels[j] = onehot.level_names(names[j], columns, group.patterns)
            ordinal |= {j} if len(columns) == 1 else set()  # a 0/1 column has a direction
        schema = Schema(
            names,
            self.kind,
            levels,
            named=self.named,
            ordinal=frozenset(ordinal),
            inner=self,
            layout=layout,
            unseen=self.unseen,
        )
        return schema, layout.to_codes(rows, self.names)

    def _codes(self, column: Any, index: int) -> Array:
        """Codes of a column of categories; a category met for the first time gets the next free code."""
        values = column.to_list() if isinstance(column, nw.Series) else column
        where = {level: float(code) for code, level in enumerate(self.levels[index])}
        out = np.empty(len(values))
        for i, value in enumerate(values):
            if native.is_missing(value):
                out[i] = np.nan
            elif value in where:
                out[i] = where[value]
            else:
                self._check_new(value, i, index)
                out[i] = self.unseen.code(self.names[index], value, len(where))
        return out

    def _check_new(self, value: Any, row: int, index: int) -> None:
        """Reject a string in a column of numbers, and a number in a column of strings."""
        levels = self.levels[index]
        texts = any(isinstance(level, str) for level in levels)
        if levels and isinstance(value, str) != texts:
            raise InputError(
                f"row {row}: category {value!r} of column {self.names[index]!r} is unknown; expected one of "
                f"{some(levels)}. Add a row with this category to the background, or map it to a known one."
            )

    def order_of(self, names: Sequence[str]) -> list[int]:
        """Where a table with these names holds this schema's columns."""
        where = {name: i for i, name in enumerate(names)}
        if self.header and set(names) == set(self.header):
            return [where[name] for name in self.header]
        if not self.header and list(names) == [str(i) for i in range(self.width)]:
            return list(range(self.width))  # the positions of a frame without names
        missing = [name for name in self.names if name not in where]
        known = set(self.names)
        extra = [name for name in names if name not in known]
        if missing or extra:
            parts, near = [], ""
            if missing:
                parts.append(f"lacks the columns {some(missing)}")
                near = next(
                    (f" Did you mean {missing[0]!r} by {e!r}?" for e in extra if suggest(e, missing[:1])), ""
                )
            if extra:
                parts.append(f"has the unexpected columns {some(extra)}")
                if len(extra) == 1 and not missing:
                    near = f" If {extra[0]!r} identifies the rows, pass id_column={extra[0]!r}."
            raise InputError(
                f"the table {' and '.join(parts)}; expected exactly {some(self.names)}. "
                f"Select the background's columns before explaining.{near}"
            )
        return [where[name] for name in self.names]


def learn(
    table: Any,
    feature_names: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    absent: float = 0.0,
) -> tuple[Schema, Array]:
    """Learn the schema of a background table and read it.

    `categorical` names numeric columns that hold category codes; text and category columns are detected.
    """
    found = native.columns_of(table, absent=absent)
    own_names, columns, kind = found.names, found.values, found.kind
    if not columns:
        raise InputError("the background has 0 columns; expected at least 1.")
    if not len(columns[0]):
        raise InputError("the background has 0 rows; expected some hundred rows of the training data.")
    if feature_names is not None and len(feature_names) != len(columns):
        raise InputError(
            f"feature_names has {len(feature_names)} names for a background of {len(columns)} columns; "
            "pass one name per column."
        )
    names = tuple(str(n) for n in (feature_names or own_names or [f"x{j}" for j in range(len(columns))]))
    if feature_names is not None and own_names and names != tuple(own_names) and set(names) == set(own_names):
        raise InputError(
            f"feature_names={some(names)} are the background's own names in another order; the columns would be "
            "taken for each other. Leave out feature_names, or reorder the columns."
        )
    native.check_names(names)
    declared = set(categorical)
    unknown = sorted(declared - set(names))
    if unknown:
        raise InputError(
            f"categorical columns {some(unknown)} are not in the table; it has {some(names)}."
            f"{suggest(unknown[0], names)}"
        )
    levels, kept, missing, restore = {}, {}, {}, {}
    for j, column in enumerate(columns):
        known = levels_of(column, names[j], names[j] in declared)
        own = found.dtypes[j] if found.dtypes else None
        if known is not None:
            levels[j], dtype = known
            if dtype is not None:
                kept[j] = dtype
            missing[j] = missing_mark(column, kind)
        elif own is not None and column.dtype.kind not in "mM":
            own = float_dtype(own, column, j in found.nulls)
        if own is not None and j not in kept:
            restore[j] = own
    plain = [c for j, c in enumerate(columns) if j not in levels]
    schema = Schema(
        names,
        kind,
        levels,
        kept,
        own_names is not None or feature_names is not None,
        missing,
        _ordered(levels, kept),
        labels=None if feature_names is not None else found.labels,
        times={j: c.dtype for j, c in enumerate(columns) if j not in levels and c.dtype.kind in "mM"},
        zones=found.zones,
        restore=restore,
        header=tuple(own_names or ()) if feature_names is not None else (),
        absent=absent,
        narrow_floats=bool(plain) and all(c.dtype == np.float32 for c in plain),
    )
    return schema, schema.read(found)


def names_of(table: Any, feature_names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the column names that `learn` would give a table."""
    found = native.columns_of(table)
    return tuple(
        str(n) for n in (feature_names or found.names or [f"x{j}" for j in range(len(found.values))])
    )


def _ordered(levels: Mapping[int, tuple[Any, ...]], dtypes: Mapping[int, Any]) -> frozenset[int]:
    """Return the columns of an ordered category dtype and those with two numeric categories."""
    numbers = {
        j for j, own in levels.items() if len(own) == 2 and all(isinstance(v, (int, float)) for v in own)
    }
    return frozenset(numbers | {j for j, dtype in dtypes.items() if getattr(dtype, "ordered", False)})
