"""Rows of a table by identifier or by a condition such as "age > 40"; a wrong one is an error, not an empty list."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.support.messages import suggest
from texplainer.types import Array

TESTS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}


def matching_rows(words: Any, schema: Any, rows: Array, labels: Sequence[Any] | None) -> np.ndarray:
    """The positions of the rows that carry an identifier or meet a condition; at least one."""
    if not isinstance(words, str) or not words.strip():
        raise InputError("nothing to look for; type an identifier, or a condition such as age > 40.")
    wanted = re.sub(r"^row\s+", "", words.strip(), flags=re.IGNORECASE)
    known = [str(label) for label in (range(len(rows)) if labels is None else labels)]
    found = np.array([i for i, label in enumerate(known) if label == wanted], dtype=int)
    if len(found):
        return found
    match = re.fullmatch(r"(.+?)\s*(<=|>=|!=|==|=|<|>)\s*(.+)", words.strip())
    if match is None:
        raise InputError(
            f"no row has the identifier {wanted!r}; they go from {known[0]} to {known[-1]}. A condition looks like "
            f"{schema.names[0]} > 1.{suggest(wanted, known[:2000])}"
        )
    found = np.nonzero(_meets(match[1].strip(), match[2], match[3].strip(), schema, rows))[0]
    if not len(found):
        raise InputError(f"no row meets {words.strip()!r}.")
    return found


def _meets(name: str, sign: str, against: str, schema: Any, rows: Array) -> np.ndarray:
    lower = [one.lower() for one in schema.names]
    if name.lower() not in lower:
        raise InputError(f"{name!r} is not a feature.{suggest(name, schema.names)}")
    j = lower.index(name.lower())
    column = rows[:, j]
    if j not in schema.levels:
        try:
            return TESTS[sign](column, float(against))
        except ValueError:
            raise InputError(f"{against!r} is not a number, which {name!r} is compared with.") from None
    levels = [str(level) for level in schema.levels[j]]
    if sign not in ("=", "==", "!="):
        raise InputError(f"{name!r} holds categories; compare it with = or !=.")
    if against not in levels:
        raise InputError(
            f"{against!r} is not a category of {name!r}; it has {', '.join(levels[:8])}.{suggest(against, levels)}"
        )
    return TESTS[sign](column, float(levels.index(against)))
