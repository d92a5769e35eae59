"""Tables on disk as Arrow batches: one row of `TABLES` a format.

The same readers serve `explain` to one file and to a folder of shards; a new format is one function and one
row. Every batch is validated in full before anybody touches its cells: a damaged byte in an Arrow file would
otherwise be an address outside the memory.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from texplainer.errors import InputError
from texplainer.files.loaders import safety
from texplainer.files.paths import first_line

BLOCK_BYTES = 4 * 2**20
BLOCK_ROWS = 8192
#: how Parquet is read: ahead within a column only; pyarrow's own way keeps all it has read until the end
STREAMED: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 18}
#: column -> "number", "bool" or "text"; any other word keeps the file's own type
Kinds = Mapping[str, str]


@dataclass(frozen=True)
class Dialect:
    """How a table of text is written; None stands for the format's own way, which may be doubted."""

    separator: str | None = None
    decimal: str | None = None


@dataclass(frozen=True)
class TableFormat:
    """How one kind of file is read: (path, kinds or None, dialect) -> Arrow batches.

    `texts` says that cells are texts until they prove to be numbers, `separator` what is between them.
    """

    blocks: Callable[[Path, Kinds | None, Dialect], Iterator[Any]]
    texts: bool = False
    separator: str = ""


def suffix_of(path: Path) -> str:
    """The ending that says a table's format, in small letters; that of a packed file has two parts."""
    endings = [ending.lower() for ending in path.suffixes]
    return "".join(endings[-2:] if endings[-1:] == [".gz"] else endings[-1:])


def table_format(path: Path) -> TableFormat:
    """The row of `TABLES` for a file."""
    if suffix_of(path) not in TABLES:
        raise InputError(f"{path} has the suffix {suffix_of(path)!r}; expected a table: {', '.join(TABLES)}.")
    return TABLES[suffix_of(path)]


def read_blocks(path: Path, kinds: Kinds | None = None, dialect: Dialect | None = None) -> Iterator[Any]:
    """Read a table as Arrow batches; any error becomes an InputError that names the file."""
    found = table_format(path)
    try:
        for block in found.blocks(path, kinds, dialect or Dialect()):
            block.validate(full=True)
            _ = block.schema.names  # damaged names show when they are asked for
            yield block
    except InputError:
        raise
    except ModuleNotFoundError as error:
        raise InputError(f"reading {path} needs {error.name!r}: pip install 'texplainer[files]'.") from error
    except Exception as error:
        if found.texts and open_quote(path):
            raise InputError(
                f"{path} has a quotation mark that is not closed; close or remove it."
            ) from error
        if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error):
            raise InputError(f"{path} is not in UTF-8; save it again in this encoding.") from error
        raise InputError(
            f"{path} is not a {suffix_of(path)} table, or is damaged ({first_line(error)})."
        ) from error


def open_quote(path: Path) -> bool:
    """Whether a text table has an odd number of quotation marks."""
    opened = gzip.open if suffix_of(path).endswith(".gz") else open
    try:
        with opened(path, "rb") as file:
            marks = sum(chunk.count(b'"') for chunk in iter(lambda: file.read(1 << 20), b""))
    except (OSError, EOFError, zlib.error):  # a damaged archive has other troubles
        return False
    return marks % 2 == 1


# ---------------------------------------------------------------- one reader a format


def _delimited(path: Path, kinds: Kinds | None, dialect: Dialect) -> Iterator[Any]:
    """CSV and its kin; all cells as texts where the kinds are not known yet."""
    from pyarrow import csv

    parse = csv.ParseOptions(
        delimiter=dialect.separator or table_format(path).separator, newlines_in_values=True
    )
    read = csv.ReadOptions(block_size=BLOCK_BYTES)
    if kinds is None:
        with csv.open_csv(path, read, parse) as opened:
            kinds = dict.fromkeys(opened.schema.names, "text")
    types = {name: kind for name, word in kinds.items() if (kind := _arrow_type(word)) is not None}
    convert = csv.ConvertOptions(
        column_types=types, strings_can_be_null=True, decimal_point=dialect.decimal or "."
    )
    with csv.open_csv(path, read, parse, convert) as opened:
        yield from opened


def _parquet(path: Path, _: Kinds | None, __: Dialect) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, page_checksum_verification=True, **STREAMED) as opened:
        safety.check_parquet(path, opened.metadata)
        yield from opened.iter_batches(batch_size=BLOCK_ROWS, use_threads=False)


def _arrow(path: Path, _: Kinds | None, __: Dialect) -> Iterator[Any]:
    """An Arrow file or stream; Feather (version 2) is an Arrow file."""
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:
        if file.read(6) == b"ARROW1":
            with pa.ipc.open_file(file) as opened:
                yield from (opened.get_batch(i) for i in range(opened.num_record_batches))
        else:
            file.seek(0)
            yield from pa.ipc.open_stream(file)


def _json_lines(path: Path, kinds: Kinds | None, _: Dialect) -> Iterator[Any]:
    """One object a line, all with the same keys."""
    names = list(kinds) if kinds else []
    records: list[dict[str, Any]] = []
    with path.open(encoding="utf-8") as file:
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
                yield _by_column(records, names, kinds or {})
                records = []
    if records and names:
        yield _by_column(records, names, kinds or {})


def _by_column(records: list[dict[str, Any]], names: list[str], kinds: Kinds) -> Any:
    import pyarrow as pa

    columns = {name: _cells([record[name] for record in records], name, kinds) for name in names}
    return pa.RecordBatch.from_pydict(columns)


def _cells(cells: list[Any], name: str, kinds: Kinds) -> Any:
    import pyarrow as pa

    kind = _arrow_type(kinds.get(name, ""))
    if any(isinstance(cell, (list, dict)) for cell in cells):
        raise InputError(f"column {name!r} holds lists or objects; expected numbers, texts or null.")
    mixed = len({str if isinstance(cell, str) else float for cell in cells if cell is not None}) > 1
    if mixed or kind == pa.string():  # numbers among texts are texts
        return pa.array([None if cell is None else str(cell) for cell in cells], kind)
    if kind == pa.float64() or (kind is None and any(isinstance(cell, float) for cell in cells)):
        return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
    return pa.array(cells, kind)


def _arrow_type(kind: str) -> Any:
    import pyarrow as pa

    return {"number": pa.float64(), "bool": pa.bool_(), "text": pa.string()}.get(kind)


#: a file's ending -> how it is read
TABLES: dict[str, TableFormat] = {
    ".csv": TableFormat(_delimited, texts=True, separator=","),
    ".csv.gz": TableFormat(_delimited, texts=True, separator=","),
    ".tsv": TableFormat(_delimited, texts=True, separator="\t"),
    ".tsv.gz": TableFormat(_delimited, texts=True, separator="\t"),
    ".jsonl": TableFormat(_json_lines),
    ".parquet": TableFormat(_parquet),
    ".arrow": TableFormat(_arrow),
    ".feather": TableFormat(_arrow),
    ".ipc": TableFormat(_arrow),
}
