"""Arrays as columns of a table, and back.

An array of shape (rows, features, outputs) becomes one column per feature and output, named
`values/age/yes`, in C order. The layout, which the file's header holds, lists the columns of every
array, so that reading needs no parsing of names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.explanation.fields import axes_of

ArrayColumns = Sequence[Mapping[str, Any]]


def array_columns(
    name: str, array: np.ndarray, features: Sequence[str], outputs: Sequence[str]
) -> dict[str, Any]:
    """How one array is spread over columns."""
    labels = {"f": list(features), "o": list(outputs) if len(outputs) > 1 else [""]}
    columns = [name]
    for axis, length in zip(axes_of(name, array)[1:], array.shape[1:], strict=True):
        ends = labels.get(axis, [str(i) for i in range(length)])
        escaped = [end.replace("\\", "\\\\").replace("/", "\\/") for end in ends]
        columns = [f"{column}/{end}" if end else column for column in columns for end in escaped]
    flat = array.reshape(len(array), -1)
    kinds = [_kind(flat[:, j]) for j in range(flat.shape[1])]
    return {
        "name": name,
        "dtype": array.dtype.str,
        "shape": list(array.shape[1:]),
        "columns": columns,
        "kinds": kinds,
    }


def _kind(column: np.ndarray) -> str:
    """The Arrow type of a column: mixed arrays hold numbers, truths or texts, one kind a column."""
    import pyarrow as pa

    if column.dtype.kind == "U":
        return "string"
    if column.dtype.kind != "O":
        return str(pa.from_numpy_dtype(column.dtype))
    try:
        found = str(pa.array(column.tolist()).type)
    except pa.ArrowException as error:
        raise InputError(f"a column mixes types ({error}); save it as .npz instead.") from error
    return "string" if found == "null" else found


def arrow_schema(layout: ArrayColumns) -> Any:
    """The Arrow schema of a layout."""
    import pyarrow as pa

    pairs = [pair for slot in layout for pair in zip(slot["columns"], slot["kinds"], strict=True)]
    return pa.schema([(column, pa.type_for_alias(kind)) for column, kind in pairs])


def to_table(arrays: Mapping[str, np.ndarray], layout: ArrayColumns) -> Any:
    """Arrays -> an Arrow table."""
    import pyarrow as pa

    columns = []
    for slot in layout:
        flat = arrays[slot["name"]].reshape(len(arrays[slot["name"]]), -1)
        text = flat.dtype.kind in "UO"
        for j, kind in enumerate(slot["kinds"]):
            cells = flat[:, j].tolist() if text else np.ascontiguousarray(flat[:, j])
            columns.append(pa.array(cells, pa.type_for_alias(kind)))
    return pa.table(columns, schema=arrow_schema(layout))


def from_table(table: Any, layout: ArrayColumns) -> dict[str, np.ndarray]:
    """An Arrow table -> the arrays it holds."""
    arrays = {}
    if table.num_columns != sum(len(slot["columns"]) for slot in layout):
        raise ValueError(f"it has {table.num_columns} columns, not those of its header")
    columns = iter(table.columns)
    for slot in layout:
        dtype = np.dtype(slot["dtype"])
        flat = np.empty((table.num_rows, len(slot["columns"])), dtype=dtype)
        for j, kind in enumerate(slot["kinds"]):
            flat[:, j] = _cells(next(columns), kind, dtype)
        arrays[slot["name"]] = flat.reshape(table.num_rows, *slot["shape"])
    return arrays


def _cells(column: Any, kind: str, dtype: np.dtype) -> Any:
    if dtype.kind in "UO":
        missing = np.nan if kind in ("double", "float") else None
        return [missing if cell is None else cell for cell in column.to_pylist()]
    return column.to_numpy()
