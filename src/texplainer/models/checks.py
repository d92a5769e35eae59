"""Which rows a model takes, and whether it answers the user's own table as it answers what is explained.

Rows with infinite values, and those with missing values that the model rejects, are not explained.

A table is read as floats and written again before the model sees it. If the model answers differently to the
two, for example because it turns whole numbers into text, an explanation would be of another prediction. A
few rows are asked of every table that is not simply an array of floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from texplainer.errors import InputError, ModelError
from texplainer.models.predictor import Predictor, call_model
from texplainer.tables import native
from texplainer.tables.schema import Schema
from texplainer.types import Array


def refused_rows(predictor: Predictor, names: Sequence[str], rows: Array) -> dict[int, Any]:
    """Return the rows with infinite values, and those with missing values that this model rejects."""
    refused: dict[int, Any] = {}
    infinite = np.isinf(rows).any(axis=1)
    gaps = np.isnan(rows)
    minded = _rejected_rows(predictor, rows, gaps, np.flatnonzero(gaps.any(axis=1) & ~infinite))
    for i in np.flatnonzero(infinite):
        cell = _cell(names, rows[i], np.isinf(rows[i]))
        refused[int(i)] = f"{cell}; expected a finite number. Clip or drop it."
    for i in minded:
        cell = _cell(names, rows[i], gaps[i])
        refused[int(i)] = f"{cell} and the model does not accept missing values. Impute or drop it."
    return refused


def _rejected_rows(predictor: Predictor, rows: Array, gaps: np.ndarray, holed: np.ndarray) -> np.ndarray:
    """Return the rows with missing values that the model rejects; one row is predicted per pattern."""
    if not len(holed):
        return holed
    packed = np.packbits(gaps[holed], axis=1)  # an eighth of the bytes to sort
    words = packed.view(f"S{packed.shape[1]}")[:, 0]  # ten times faster to sort than rows of an array
    _, first, pattern = np.unique(words, return_index=True, return_inverse=True)
    return holed[~_taken(predictor, rows[holed[first]])[pattern]]


def _taken(predictor: Predictor, rows: Array) -> np.ndarray:
    """Return whether the model predicts a number for each row."""
    try:
        return np.asarray(np.isfinite(predictor(rows)).all(axis=1))
    except ModelError:  # one of them is too much for it: ask again, one by one
        return np.array([_predicts(predictor, rows[i : i + 1]) for i in range(len(rows))])


def _predicts(predictor: Predictor, row: Array) -> bool:
    try:
        return bool(np.isfinite(predictor(row)).all())
    except ModelError:
        return False


def _cell(names: Sequence[str], row: Array, bad: np.ndarray) -> str:
    j = int(np.flatnonzero(bad)[0])
    return f"value {names[j]!r} is {row[j]}"


# ---------------------------------------------------------------- the user's own table


ROWS = 8
MOST_COLUMNS = 64  # that are exchanged one by one to find the one which matters
OF_RANGE, OF_SIZE = 1e-4, 1e-5  # what rounding may explain: of the answers' range, and of their size


def check_original(predictor: Predictor, table: Any, rows: Array) -> None:
    """Compare the model's answers to some rows of `table` with those to the `rows` read from it."""
    if not predictor.repeatable or _is_floats(table):
        return
    which = _sample(predictor.schema, rows)[: predictor.batch_rows]
    original = _presented(predictor, table, which)
    if original is None:
        return
    expected = _answer(predictor, original, len(which))
    if expected is None:  # the model takes the written table only
        return
    found = _answer(predictor, predictor.schema.write(rows[which]), len(which))
    if found is None or _same(expected, found):
        return
    again = _answer(predictor, original, len(which))
    if again is None or not _same(expected, again):  # it is random: nothing can be compared
        return
    row, output = np.unravel_index(np.argmax(_gap(expected, found)), found.shape)
    raise InputError(
        f"the model predicts {expected[row, output]:.6g} for row {which[row]} of your table and "
        f"{found[row, output]:.6g} for the same row as it is "
        f"explained{_culprit(predictor, original, rows[which])}"
    )


def _is_floats(table: Any) -> bool:
    """Whether a table is an array of floats, which is handed on as it is."""
    return type(table) is np.ndarray and table.dtype in (np.float64, np.float32)


def _sample(schema: Schema, rows: Array) -> np.ndarray:
    """Some rows from all over the table; those with missing values and new categories first.

    Then whole numbers in a column of fractions, or the reverse: their text may differ from that of a float.
    """
    odd = np.isnan(rows).any(axis=1)
    for j, levels in schema.levels.items():
        odd |= rows[:, j] >= len(levels)
    rest = np.linspace(0, len(rows) - 1, min(ROWS, len(rows))).astype(int)
    finite = np.atleast_1d(~np.isinf(rows).any(axis=1))
    whole = rows == np.rint(rows)
    share = whole.mean(axis=0)
    rare = ((whole == (share < 0.5)) & (share > 0) & (share < 1)).any(axis=1)
    first = [*np.flatnonzero(odd)[: ROWS // 2], *np.flatnonzero(rare)[: ROWS // 4]]
    chosen = [i for i in dict.fromkeys([*first, *rest]) if finite[i]]
    return np.array(sorted(chosen[:ROWS]), dtype=int)


def _presented(predictor: Predictor, table: Any, which: np.ndarray) -> Any:
    """Rows of the user's table, in the background's order of columns and the kind of table the model gets.

    None if the user's object is not a frame or an array.
    """
    schema = predictor.schema.inner or predictor.schema
    kind = type(table).__module__.split(".")[0]
    if not len(which) or hasattr(table, "collect"):  # a lazy frame was read in one go
        return None
    part: Any
    if native.is_sparse(table):
        return table.tocsr()[which] if schema.kind == "array" else None
    if isinstance(table, np.ndarray):
        if type(table) is not np.ndarray or table.ndim != 2:
            return None
        part = table[which]
    elif kind == "pandas" and hasattr(table, "columns"):
        order = _order(schema, native.plain_names(table.columns))
        part = _rows_of_pandas(table, which, order)
    elif kind == "polars" and hasattr(table, "columns"):
        part = table[which.tolist()]
        part = part.select([part.columns[i] for i in _order(schema, part.columns)])
    elif kind == "pyarrow" and hasattr(table, "column_names"):
        import pyarrow as pa

        table = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
        part = pa.concat_tables([table.slice(i, 1) for i in which.tolist()])  # `take` lacks some types
        part = part.select(_order(schema, part.column_names))
        part = _pandas_of_arrow(part, schema) if schema.kind == "pandas" else part
    else:
        return None
    return _converted(part, schema)


def _pandas_of_arrow(part: Any, schema: Schema) -> Any:
    """An Arrow table for a model of pandas frames, its nulls marked as in the background: NaN or None."""
    frame = part.to_pandas()
    for j, mark in schema.missing.items():
        column = frame.iloc[:, j]
        if column.dtype.kind == "O" and not hasattr(column, "cat") and column.isna().any():
            frame.isetitem(j, column.astype(object).where(column.notna(), mark))
    return frame


def _rows_of_pandas(table: Any, which: np.ndarray, order: list[int]) -> Any:
    """Some rows of a pandas frame, also where pandas cannot select them: big-endian numbers, some Arrow types."""
    try:
        return table.iloc[which, order]
    except (ValueError, NotImplementedError):
        import pandas as pd

        rows = [table.iloc[i : i + 1] for i in which.tolist()]
        columns = [pd.concat([row.iloc[:, j] for row in rows]) for j in order]
        return pd.concat(columns, axis=1)


def _order(schema: Schema, names: Sequence[str]) -> list[int]:
    """Where a table holds the schema's columns; as they stand where either side has no names of its own."""
    try:
        return schema.order_of(names) if schema.named else list(range(len(names)))
    except InputError:  # the model was given other names than the table has
        return list(range(len(names)))


def _converted(part: Any, schema: Schema) -> Any:
    """A model fitted without names gets an array, one fitted with names a frame: it would warn of the other."""
    if schema.kind == "array":
        if hasattr(part, "to_pandas") and not hasattr(part, "to_numpy"):
            part = part.to_pandas()
        return part if isinstance(part, np.ndarray) else part.to_numpy()
    if isinstance(part, np.ndarray):
        import pandas as pd

        return pd.DataFrame(part, columns=list(schema.names))
    return part


def _answer(predictor: Predictor, table: Any, rows: int) -> Array | None:
    try:
        return call_model(predictor.call, table, rows)
    except ModelError:
        return None


def _gap(expected: Array, found: Array) -> Array:
    """How far two answers are apart beyond what rounding explains; 0 where they agree."""
    both = np.concatenate([expected, found])
    finite = np.where(np.isfinite(both), both, 0.0)
    slack = OF_RANGE * np.ptp(finite, axis=0) + OF_SIZE * np.abs(finite).max(axis=0)
    same = (expected == found) | (np.isnan(expected) & np.isnan(found))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.nan_to_num(np.abs(expected - found), nan=np.inf))
    return np.where(gap > slack, gap, 0.0)


def _same(expected: Array, found: Array) -> bool:
    return expected.shape == found.shape and not _gap(expected, found).any()


def _culprit(predictor: Predictor, original: Any, rows: Array) -> str:
    """Name the column whose written form changes the answer, found by exchanging one at a time."""
    schema = predictor.schema.inner or predictor.schema
    written = predictor.schema.write(rows)
    expected = _answer(predictor, original, len(rows))
    exchange = next((f for name, f in EXCHANGES.items() if type(written).__module__.startswith(name)), None)
    if expected is not None and exchange is not None and type(original) is type(written):
        for j in _different(original, written, schema.names)[:MOST_COLUMNS]:
            found = _answer(predictor, exchange(original, written, j), len(rows))
            if found is None or not _same(expected, found):
                name, old, new = schema.names[j], _dtype(original, j), _dtype(written, j)
                return (
                    f": the column {name!r} is {old} and is passed as {new}. If it holds codes, pass "
                    f"categorical=[{name!r}]; otherwise convert it to {new} before it reaches the model."
                )
    return (
        ", and no single column explains the difference. Convert the table to floats and categories, or wrap "
        "the model in a function that takes them."
    )


def _dtype(table: Any, j: int) -> str:
    if hasattr(table, "column_names"):
        return str(table.schema.types[j])
    return str(table.dtypes.iloc[j] if hasattr(table.dtypes, "iloc") else table.dtypes[j])


def _different(original: Any, written: Any, names: Sequence[str]) -> list[int]:
    """Columns of another dtype first, then all others."""
    return sorted(range(len(names)), key=lambda j: _dtype(original, j) == _dtype(written, j))


def _in_pandas(original: Any, written: Any, j: int) -> Any:
    frame = original.copy()
    frame.isetitem(j, written.iloc[:, j].set_axis(original.index))
    return frame


def _in_polars(original: Any, written: Any, j: int) -> Any:
    return original.with_columns(written.to_series(j))


def _in_arrow(original: Any, written: Any, j: int) -> Any:
    return original.set_column(j, written.column_names[j], written.column(j))


EXCHANGES: dict[str, Callable[[Any, Any, int], Any]] = {
    "pandas": _in_pandas,
    "polars": _in_polars,
    "pyarrow": _in_arrow,
}
