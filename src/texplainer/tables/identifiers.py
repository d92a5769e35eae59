"""The column that identifies the rows: it is not a feature, but it labels what is explained.

It is the one that `id_column` names. Without it, a column that the model does not know is taken for an
identifier by its name, such as "id", "customer_id" or "orderId", and if nothing else is unexpected.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from texplainer.errors import BackgroundWarning
from texplainer.support.names import some
from texplainer.tables import native

_NAME = re.compile(r"(?i:(^|.*[_\s.-])(id|uuid|guid)($|[_\s.-].*))|.*[a-z](Id|ID)|Unnamed: 0")


def is_identifier(name: str) -> bool:
    """Whether a column's name is that of an identifier."""
    return _NAME.fullmatch(name) is not None


def identifier_among(extra: Sequence[str]) -> str | None:
    """The identifier among columns that are not features; a written index only if there is no other."""
    found = sorted(filter(is_identifier, extra), key=lambda name: name.startswith("Unnamed"))
    return found[0] if found else None


def split(
    table: Any, features: Sequence[str] | None, id_column: Any = None, *, stacklevel: int = 3
) -> tuple[Any, np.ndarray | None]:
    """A table without its identifiers, and its row labels, (rows,): its identifiers, or a pandas index.

    `features` are the names of the model's columns, None if they are not known.
    """
    given, table = table, native.unwrapped(table)
    names = _names_of(table)
    if names is None:
        return given, None
    declared = None if id_column is None else native.plain_names([id_column])[0]
    known = set(names if features is None else features)
    extra = [name for name in names if name not in known]
    if declared in names:
        chosen = declared
        extra = extra if features is not None else [declared]
    else:
        chosen = identifier_among(extra) if known <= set(names) and all(map(is_identifier, extra)) else None
    if chosen is None:
        return given, native.index_of(table)
    if chosen != declared:
        warnings.warn(
            f"the model does not know the columns {some(extra)}: they are left out, and the values of {chosen!r} "
            f"label the rows. Pass id_column={chosen!r} to confirm.",
            BackgroundWarning,
            stacklevel=stacklevel,
        )
    left_out = {name for name in extra if name == declared or is_identifier(name)}
    return _without(table, names, left_out) if left_out else given, native.object_array(
        _column(table, names.index(chosen))
    )


def _names_of(table: Any) -> list[str] | None:
    """The names of a table's columns; None if it has none."""
    if isinstance(table, Mapping):
        return [str(name) for name in table] if not native.is_sparse(table) else None
    kind = type(table).__module__.split(".")[0]
    if kind not in ("pandas", "polars", "pyarrow"):
        return None
    columns = getattr(table, "column_names", None) or getattr(table, "columns", None)
    if columns is None or (kind == "pyarrow" and not hasattr(table, "column_names")):
        columns = getattr(table, "index", None)  # of a pandas Series: one row
    return None if columns is None else native.plain_names(columns)


def _column(table: Any, place: int) -> list[Any]:
    if isinstance(table, Mapping):
        return np.atleast_1d(native.array_of(list(table.values())[place])).tolist()
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
