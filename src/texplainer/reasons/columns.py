"""Columns as users name them: checked against the table's names, and what is typical of a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.support.messages import describe, suggest
from texplainer.tables import native


def known_names(argument: str, given: Any, names: Sequence[str]) -> tuple[str, ...]:
    """The columns given for an argument, one name or several; refuses those the table does not have."""
    listed = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    for name in listed:
        if name not in names:
            shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
            raise InputError(
                f"{argument} names the feature {name!r}, which is not in the table; it has {shown}."
                f"{suggest(name, names)}"
            )
    return tuple(dict.fromkeys(listed))


def by_name(argument: str, given: Any) -> dict[str, Any]:
    """An argument that maps names to something; empty for None."""
    if given is None or isinstance(given, Mapping):
        return dict(given or {})
    raise InputError(f"{argument} is {describe(given)}; expected a mapping, such as {{'income': ...}}.")


def typical_values(table: Any, names: Sequence[str]) -> dict[str, Any]:
    """Per feature the mean of a column of numbers, or the most frequent category; None where all is missing.

    `table` is a frame, or an array with one column per name.
    """
    found = native.columns_of(table)
    given = list(names) if found.names is None else found.names
    if len(given) != len(found.values):
        raise InputError(
            f"reference has {len(found.values)} columns; expected {len(names)} ({', '.join(names[:12])}). "
            "Pass a table with the columns of the explained rows."
        )
    columns = dict(zip(given, found.values, strict=True))
    lacking = [name for name in names if name not in columns]
    if lacking:
        raise InputError(
            f"reference lacks the column {lacking[0]!r}; expected the columns of the explained rows, "
            f"{', '.join(names[:12])}."
        )
    return {name: _typical(_values(columns[name])) for name in names}


def _values(column: Any) -> list[Any]:
    return column.to_list() if hasattr(column, "to_list") else list(column)


def _typical(values: Iterable[Any]) -> Any:
    known = [value for value in values if not native.is_missing(value)]
    if not known:
        return None
    if all(isinstance(v, (int, float, np.number)) and not isinstance(v, (bool, np.bool_)) for v in known):
        return float(np.mean(np.asarray(known, dtype=float)))
    return min(Counter(known).items(), key=lambda item: (-item[1], str(item[0])))[0]
