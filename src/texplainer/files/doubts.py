"""Signs that a table of text is read in another way than it was written.

A column of `1,5` or `1 000` would be taken for a category, a table with semicolons for one wide column:
explanations would come out, of something else. So such a table is refused, with the remedy; whoever passes
the separator or the decimal mark expressly is believed.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from texplainer.errors import InputError
from texplainer.files import tables

SEPARATORS = (";", "\t", "|", ",")
_PLAIN = r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*"
_BETWEEN = " \u00a0\u2009\u202f'\u2019,"  # blanks of several widths, apostrophes, the comma
#: how a number may be written that is not read as one -> what to do about it
WRITTEN = {
    r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*": "its numbers have decimal commas; pass --decimal ,",
    rf"\s*[+-]?\d{{1,3}}([{_BETWEEN}]\d{{3}})+([.,]\d+)?\s*": "its numbers have thousands separators; "
    "remove them, or pass --decimal . if they are not numbers",
}


def check_separator(path: Path, dialect: tables.Dialect) -> None:
    """Reject a table whose first line has a different separator."""
    expected = tables.table_format(path).separator
    if dialect.separator is not None:
        return
    opened = gzip.open if tables.suffix_of(path).endswith(".gz") else open
    try:
        with opened(path, "rb") as file:
            line = file.readline(1 << 16).decode("utf-8", "replace")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be unpacked ({error}).") from error
    others = [mark for mark in SEPARATORS if mark in line]
    if others and expected not in line:
        mark = {"\t": "tab"}.get(others[0], others[0])
        raise InputError(
            f"{path} does not have {expected!r} in its first line but {others[0]!r}; if that is the "
            f"delimiter, pass --separator '{mark}', otherwise --separator '{expected}'."
        )


def check_quotes(path: Path, column: Any, name: str, start: int) -> None:
    """Reject a table with an unclosed quotation mark."""
    if column.type != "string":
        return
    compute = _compute()
    at = compute.index(compute.match_substring(column, "\n"), True).as_py()
    if at >= 0 and tables.open_quote(path):
        raise InputError(
            f"{path}, row {start + at}: the value of {name!r} spans several lines: a quotation mark is not "
            "closed; close or remove it."
        )


def odd_number(column: Any) -> str | None:
    """A cell of a column of texts all of which are numbers in some dialect, but not in ours; or None."""
    compute = _compute()
    for pattern in WRITTEN:
        if compute.all(compute.match_substring_regex(column, f"^({pattern}|{_PLAIN})$")).as_py():
            at = compute.index(compute.match_substring_regex(column, f"^({pattern})$"), True).as_py()
            if at >= 0:
                return column[at].as_py()
    return None


def check_numbers(path: Path, odd: Mapping[str, str]) -> None:
    """Refuse a table with columns (name -> a cell) that hold numbers of another dialect."""
    for name, cell in odd.items():
        remedy = next(words for pattern, words in WRITTEN.items() if re.fullmatch(pattern, cell))
        raise InputError(f"{path}: the column {name!r} holds {cell!r}; {remedy}.")


def _compute() -> Any:
    """Arrow's functions, which are made as they are imported: type checkers do not see them."""
    import pyarrow.compute

    return pyarrow.compute
