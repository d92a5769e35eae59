"""Tables on disk, whatever their format, read in pieces of equal size.

A table is read twice. `survey` goes through it once and notes the columns, the number of rows and which
columns hold text, so that a column's type is known from all its cells and not from the first thousand;
`pieces` then gives frames of a fixed number of rows, whatever the file's own blocks are. Memory holds one
piece, not the table.

A table of text can be written in another way than it is read: a column of `1,5` or `1 000` would be taken for a
category, a table with semicolons for one wide column. Such a table is refused, with the remedy, unless the
separator or the decimal mark is passed.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from texplainer.errors import InputError
from texplainer.files import tables
from texplainer.files.paths import existing
from texplainer.support import hashing
from texplainer.support.messages import suggest

MOST_LEVELS = 256  # a text column with more is an identifier, no category
BACKGROUND_ROWS = 500
TEXTS = ("string", "large_string")  # Arrow's types of text


@dataclass(frozen=True)
class DiskTable:
    """What the survey found.

    Attributes
    ----------
    names, types
        One name and one of "number", "bool", "text" or "other" (the file's own type is kept) per column.
    rows
        How many there are.
    firsts
        Column name -> the first row of each of its text categories.
    sha256
        Fingerprint of the file.
    dialect
        How its cells are written.
    """

    path: Path
    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: int
    firsts: dict[str, tuple[int, ...]]
    sha256: str
    dialect: tables.Dialect

    @property
    def kinds(self) -> dict[str, str]:
        """Column -> what its cells are."""
        return dict(zip(self.names, self.types, strict=True))


def survey(path: Any, dialect: tables.Dialect | None = None) -> DiskTable:
    """Scan a table once, to prepare reading it in blocks."""
    path, dialect = existing(path), dialect or tables.Dialect()
    texts = tables.table_format(path).texts
    if texts:
        check_separator(path, dialect)
    notes: dict[int, ColumnNotes] = {}
    rows = 0
    for block in tables.read_blocks(path, None, dialect):
        for j, (name, column) in enumerate(zip(block.schema.names, block.columns, strict=True)):
            if texts:
                check_quotes(path, column, name, rows)
            notes.setdefault(j, ColumnNotes(name)).add(column, rows, dialect if texts else None)
        rows += block.num_rows
    if rows == 0:
        raise InputError(f"{path} has no rows; expected a table with names in its first line or schema.")
    names = tuple(note.name for note in notes.values())
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InputError(f"{path} names the columns {', '.join(map(repr, twice))} twice; rename them.")
    if dialect.decimal is None:
        check_numbers(path, {note.name: note.odd for note in notes.values() if note.odd})
    firsts = {note.name: tuple(note.levels.values()) for note in notes.values() if note.has_levels}
    types = tuple(note.kind for note in notes.values())
    return DiskTable(path, names, types, rows, firsts, hashing.of_file(path), dialect)


def with_texts(table: DiskTable, levels: Mapping[str, Sequence[Any]]) -> DiskTable:
    """The table with the columns as text whose categories are texts, also where they look like numbers."""
    texts = {name for name, own in levels.items() if own and all(isinstance(level, str) for level in own)}
    if not tables.table_format(table.path).texts:
        return table
    types = zip(table.names, table.types, strict=True)
    return replace(table, types=tuple("text" if name in texts else kind for name, kind in types))


def pieces(table: DiskTable, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Read the columns as pandas frames of `rows` rows each; only the last may have fewer."""
    import pyarrow as pa

    held: list[Any] = []
    count = 0
    for block in tables.read_blocks(table.path, table.kinds, table.dialect):
        held.append(block.select(list(columns)))
        count += block.num_rows
        while count >= rows:
            joined = pa.Table.from_batches(held)
            yield _frame(joined.slice(0, rows))
            rest = joined.slice(rows)
            held, count = rest.to_batches(), rest.num_rows
    if count:
        yield _frame(pa.Table.from_batches(held))


def take_rows(table: DiskTable, columns: Sequence[str], picks: Sequence[int]) -> Any:
    """Read some rows, given in ascending order, as one pandas frame."""
    import pandas as pd

    wanted, parts, start = list(picks), [], 0
    for piece in pieces(table, columns, tables.BLOCK_ROWS):
        here = [i - start for i in wanted if start <= i < start + len(piece)]
        if here:
            parts.append(piece.iloc[here])
        start += len(piece)
        if start > wanted[-1]:
            break
    return pd.concat(parts, ignore_index=True)


def sample_rows(table: DiskTable, columns: Sequence[str], most: int = BACKGROUND_ROWS) -> list[int]:
    """A fixed choice of rows: evenly spaced, plus the first row of every category of a text column."""
    count = min(most, table.rows)
    even = {i * table.rows // count for i in range(count)}
    return sorted(even.union(*(table.firsts.get(name, ()) for name in columns)))


def columns_for(table: DiskTable, wanted: Sequence[str] | None, drop: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns to give the model: the ones it names, else all but those dropped."""
    absent = [name for name in drop if name not in table.names]
    if absent:
        raise InputError(
            f"{table.path} does not have a column {absent[0]!r} to drop; it has "
            f"{', '.join(table.names[:20])}."
            f"{suggest(absent[0], table.names)}"
        )
    if wanted is None:
        return tuple(name for name in table.names if name not in drop)
    # LightGBM writes the blanks of names as underscores
    known = {name.replace(" ", "_"): name for name in table.names} | {name: name for name in table.names}
    missing = [name for name in wanted if name not in known]
    if missing:
        raise InputError(
            f"{table.path} does not have the model's columns {', '.join(map(repr, missing[:8]))}; it has "
            f"{', '.join(table.names[:20])}. Rename or add them.{suggest(missing[0], table.names)}"
        )
    return tuple(known[name] for name in wanted)


# ---------------------------------------------------------------- columns


class ColumnNotes:
    """What is learnt of one column, block by block.

    `levels` holds the first row of every text, until there are too many to be levels; `odd` a cell that would
    be a number in another dialect, as long as all cells of the column would be one.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind = ""
        self.levels: dict[str, int] = {}
        self.odd: str | None = ""

    def add(self, column: Any, start: int, dialect: tables.Dialect | None) -> None:
        """Note a block; with a `dialect` its cells are texts that may prove to be numbers."""
        kind = cell_kind(column, dialect)
        self.kind = kind if self.kind in ("", kind) else "other" if "other" in (self.kind, kind) else "text"
        if str(column.type) in TEXTS:
            self._note_levels(column, start)
        if dialect is not None and kind != "number" and self.odd is not None:
            self.odd = odd_number(column)

    @property
    def has_levels(self) -> bool:
        """Return whether the number of distinct texts is small enough for a categorical column."""
        return self.kind == "text" and 0 < len(self.levels) <= MOST_LEVELS

    def _note_levels(self, column: Any, start: int) -> None:
        import pyarrow.compute as pc

        if len(self.levels) > MOST_LEVELS:
            return
        new = [v for v in column.unique().to_pylist() if v is not None and v not in self.levels]
        many = len(self.levels) + len(new) > MOST_LEVELS
        for value in new:
            self.levels[value] = -1 if many else start + int(pc.index(column, value).as_py())


def cell_kind(column: Any, dialect: tables.Dialect | None) -> str:
    """What the cells of a block are: "number", "bool", "text" or "other"."""
    import pyarrow as pa

    if column.null_count == len(column):
        return "number"
    if pa.types.is_boolean(column.type):
        return "bool"
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return "number"
    if str(column.type) not in TEXTS:
        return "other"
    return "text" if dialect is None else _kind_of_texts(column, dialect.decimal or ".")


def _kind_of_texts(column: Any, decimal: str) -> str:
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc  # made of C++ functions as it is imported, which type checkers do not see
    bare = compute.utf8_trim_whitespace(column)
    try:
        pc.cast(compute.replace_substring(bare, decimal, ".") if decimal != "." else bare, pa.float64())
        return "number"
    except pa.ArrowInvalid:
        words = {value.lower() for value in column.unique().to_pylist() if value is not None}
        return "bool" if words <= {"true", "false"} else "text"


def _frame(table: Any) -> Any:
    # without the writer's notes to pandas: they come with the file, and say nothing the types do not
    return table.replace_schema_metadata(None).to_pandas(split_blocks=True)


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
