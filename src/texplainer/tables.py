"""Tables on disk, read in pieces: CSV, Parquet, Arrow (Feather), JSON lines.

A table is read twice. `survey` goes through it once and notes the columns, the number of rows and
which columns hold text, so that a column's type is known from all its cells and not from the first
thousand; `pieces` then gives frames of a fixed number of rows, whatever the file's own blocks are.
Memory holds one piece, not the table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from texplainer import fingerprints
from texplainer.errors import InputError
from texplainer.model_files import existing, first_line

BLOCK_BYTES = 4 * 2**20
BLOCK_ROWS = 8192
MOST_LEVELS = 256  # a text column with more is an identifier, no category
BACKGROUND_ROWS = 500


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
        Column name -> the row each of its text levels is first seen in.
    sha256
        Fingerprint of the file.
    """

    path: Path
    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: int
    firsts: dict[str, tuple[int, ...]]
    sha256: str


def survey(path: Any) -> DiskTable:
    """Go through a table once and note what reading it in pieces needs."""
    path = existing(path)
    reader = _reader(path)
    names: list[str] = []
    guesses: dict[int, str] = {}
    levels: dict[int, dict[str, int]] = {}
    rows = 0
    for block in _reading(path, reader(path, None)):
        names = names or list(block.schema.names)
        for j, column in enumerate(block.columns):
            guesses[j] = _widest(guesses.get(j), _type_of(column, path.suffix.lower()))
            _note_levels(levels.setdefault(j, {}), column, rows)
        rows += block.num_rows
    if rows == 0:
        raise InputError(f"{path} has no rows; expected a table with names in its first line or schema.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{path} names the columns {', '.join(map(repr, twice))} twice; rename them.")
    firsts = {
        names[j]: tuple(found.values())
        for j, found in levels.items()
        if guesses[j] == "text" and 0 < len(found) <= MOST_LEVELS
    }
    return DiskTable(
        path,
        tuple(names),
        tuple(guesses[j] for j in range(len(names))),
        rows,
        firsts,
        fingerprints.of_file(path),
    )


def pieces(table: DiskTable, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Read the columns as pandas frames of `rows` rows each; only the last may have fewer."""
    import pyarrow as pa

    held: list[Any] = []
    count = 0
    for block in _reading(table.path, _reader(table.path)(table.path, table)):
        held.append(block.select(list(columns)))
        count += block.num_rows
        while count >= rows:
            joined = pa.Table.from_batches(held)
            yield _frame(joined.slice(0, rows))
            rest = joined.slice(rows)
            held, count = rest.to_batches(), rest.num_rows
    if count:
        yield _frame(pa.Table.from_batches(held))


def take(table: DiskTable, columns: Sequence[str], picks: Sequence[int]) -> Any:
    """Read some rows, given in ascending order, as one pandas frame."""
    import pandas as pd

    wanted, parts, start = list(picks), [], 0
    for piece in pieces(table, columns, BLOCK_ROWS):
        here = [i - start for i in wanted if start <= i < start + len(piece)]
        if here:
            parts.append(piece.iloc[here])
        start += len(piece)
        if start > wanted[-1]:
            break
    return pd.concat(parts, ignore_index=True)


def sample(table: DiskTable, columns: Sequence[str], most: int = BACKGROUND_ROWS) -> list[int]:
    """A fixed choice of rows: evenly spaced, and the first one with every level of a text column."""
    count = min(most, table.rows)
    even = {i * table.rows // count for i in range(count)}
    return sorted(even.union(*(table.firsts.get(name, ()) for name in columns)))


def columns_for(table: DiskTable, wanted: Sequence[str] | None, drop: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns to give the model: the ones it names, else all but those dropped."""
    absent = [name for name in drop if name not in table.names]
    if absent:
        raise InputError(
            f"{table.path} has no column {absent[0]!r} to drop; it has {', '.join(table.names)}."
        )
    if wanted is None:
        return tuple(name for name in table.names if name not in drop)
    # LightGBM writes the blanks of names as underscores
    known = {name.replace(" ", "_"): name for name in table.names} | {name: name for name in table.names}
    missing = [name for name in wanted if name not in known]
    if missing:
        raise InputError(
            f"{table.path} lacks the columns {', '.join(map(repr, missing[:8]))} of the model; it has "
            f"{', '.join(table.names[:20])}. Rename or add them."
        )
    return tuple(known[name] for name in wanted)


# ---------------------------------------------------------------- formats: path, survey or None -> blocks


def _csv(path: Path, table: DiskTable | None) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv

    kinds = {"number": pa.float64(), "bool": pa.bool_(), "text": pa.string()}
    if table is None:
        with csv.open_csv(path, csv.ReadOptions(block_size=BLOCK_BYTES)) as opened:
            types = {name: pa.string() for name in opened.schema.names}
    else:
        types = {name: kinds[kind] for name, kind in zip(table.names, table.types, strict=True)}
    convert = csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    with csv.open_csv(path, csv.ReadOptions(block_size=BLOCK_BYTES), convert_options=convert) as opened:
        yield from opened


def _parquet(path: Path, _: DiskTable | None) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, page_checksum_verification=True) as opened:
        yield from opened.iter_batches(batch_size=BLOCK_ROWS)


def _arrow(path: Path, _: DiskTable | None) -> Iterator[Any]:
    import pyarrow as pa

    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as opened:
        for i in range(opened.num_record_batches):
            yield opened.get_batch(i)


def _json_lines(path: Path, table: DiskTable | None) -> Iterator[Any]:
    import pyarrow as pa

    names = list(table.names) if table else None
    with path.open(encoding="utf-8") as file:
        records: list[dict[str, Any]] = []
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            record = json.loads(line)
            names = names or (list(record) if isinstance(record, dict) else [])
            if not isinstance(record, dict) or set(record) != set(names):
                raise InputError(
                    f"{path}, line {number}: expected an object with the keys {', '.join(names)}."
                )
            records.append(record)
            if len(records) == BLOCK_ROWS:
                yield pa.RecordBatch.from_pydict(_by_column(records, names, table))
                records = []
        if records and names:
            yield pa.RecordBatch.from_pydict(_by_column(records, names, table))


def _by_column(records: list[dict[str, Any]], names: list[str], table: DiskTable | None) -> dict[str, Any]:
    import pyarrow as pa

    kinds = {"number": pa.float64(), "bool": pa.bool_(), "text": pa.string()}
    types = [kinds.get(kind) for kind in table.types] if table else [None] * len(names)
    out = {}
    for name, kind in zip(names, types, strict=True):
        values = [record[name] for record in records]
        if any(isinstance(value, (list, dict)) for value in values):
            raise InputError(f"column {name!r} holds lists or objects; expected numbers, texts or null.")
        mixed = len({str if isinstance(v, str) else float for v in values if v is not None}) > 1
        if mixed or kind == pa.string():  # numbers among texts are texts
            values = [None if v is None else str(v) for v in values]
        elif kind is None and any(isinstance(v, float) for v in values):
            kind = pa.float64()
        out[name] = pa.array(
            [None if v is None else float(v) for v in values] if kind == pa.float64() else values, kind
        )
    return out


READERS: dict[str, Callable[[Path, DiskTable | None], Iterator[Any]]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".jsonl": _json_lines,
}


def _reader(path: Path) -> Callable[[Path, DiskTable | None], Iterator[Any]]:
    if path.suffix.lower() not in READERS:
        raise InputError(f"{path} has the suffix {path.suffix!r}; expected a table: {', '.join(READERS)}.")
    return READERS[path.suffix.lower()]


def _reading(path: Path, blocks: Iterator[Any]) -> Iterator[Any]:
    """Turn whatever a reader raises into one line that names the file."""
    try:
        yield from blocks
    except InputError:
        raise
    except ModuleNotFoundError as error:
        raise InputError(f"reading {path} needs {error.name!r}: pip install 'texplainer[files]'.") from error
    except Exception as error:
        raise InputError(f"{path} is no {path.suffix} table, or is damaged ({first_line(error)}).") from error


# ---------------------------------------------------------------- types


def _type_of(column: Any, suffix: str) -> str:
    """What the cells of a block are; a CSV's are all texts until they prove to be numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return "number"
    kind = column.type
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "number"
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return "other"
    if suffix != ".csv":
        return "text"
    try:
        pc.cast(pc.call_function("utf8_trim_whitespace", [column]), pa.float64())
        return "number"
    except pa.ArrowInvalid:
        words = {value.lower() for value in column.unique().to_pylist() if value is not None}
        return "bool" if words <= {"true", "false"} else "text"


def _widest(known: str | None, new: str) -> str:
    """The type that holds both: a number among texts is a text."""
    if known is None or known == new:
        return new
    return "other" if "other" in (known, new) else "text"


def _note_levels(found: dict[str, int], column: Any, start: int) -> None:
    """Note the first row of every level of a text column, until there are too many to be levels."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(found) > MOST_LEVELS or not (
        pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    ):
        return
    new = [value for value in column.unique().to_pylist() if value is not None and value not in found]
    if len(found) + len(new) > MOST_LEVELS:
        found.update(dict.fromkeys(new, -1))
        return
    for value in new:
        found[value] = start + int(pc.index(column, value).as_py())


def _frame(table: Any) -> Any:
    return table.to_pandas(split_blocks=True)
