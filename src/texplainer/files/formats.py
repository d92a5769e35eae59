"""The file formats of a saved explanation: npz, Parquet, Arrow, CSV, JSON lines.

Every format is a `ResultFormat`: `open` gives a sink that takes arrays piece by piece and a header at the end,
`blocks` gives the header and then the arrays, some rows at a time. In the four tables an array of shape
(rows, features, outputs) becomes one column per feature and output, named `values/age/yes`, in C order. The
layout, which the header holds, lists the columns of every array, so that reading needs no parsing of names.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.explanation.fields import axes_of
from texplainer.files.loaders import safety
from texplainer.files.tables import STREAMED
from texplainer.support.hashing import plain

BLOCK_ROWS = 4096  # read at a time
KEY = b"texplainer"
FLUSH_BYTES = 32 * 2**20
ArrayColumns = Sequence[Mapping[str, Any]]
Arrays = Mapping[str, np.ndarray]
#: the header, then the arrays of some rows at a time
ResultBlocks = Iterator[dict[str, Any]]
#: the file's layout -> its sealed header
MakeHeader = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class ResultFormat:
    """One file format; `short` ones keep the arrays people read."""

    open: Callable[[Path], Any]
    blocks: Callable[[Path], ResultBlocks]
    short: bool = False


# ---------------------------------------------------------------- npz


class NpzSink:
    """Collects all pieces: an npz archive holds whole arrays."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pieces: dict[str, list[np.ndarray]] = {}

    def write(self, arrays: Arrays, *_: Sequence[str]) -> None:
        """Add rows."""
        for name, array in arrays.items():
            self.pieces.setdefault(name, []).append(array)

    def close(self, make_header: MakeHeader) -> None:
        """Write the archive: numbers as arrays, text in the header."""
        arrays = {n: np.ascontiguousarray(np.concatenate(pieces)) for n, pieces in self.pieces.items()}
        text = {name: array.tolist() for name, array in arrays.items() if array.dtype.kind == "O"}
        names = [name for name in arrays if name not in text]
        entries = {n if re.fullmatch(r"\w+", n) else f"array_{i}": n for i, n in enumerate(names)}
        header = np.frombuffer(_json(make_header({"entries": entries, "text": text})), dtype=np.uint8)
        with self.path.open("wb") as file:
            content = {entry: arrays[name] for entry, name in entries.items()}
            np.savez_compressed(file, allow_pickle=False, header=header, **content)

    def abandon(self) -> None:
        """Nothing was written yet."""


def npz_blocks(path: Path) -> Iterator[dict[str, Any]]:
    """An archive that was checked for bombs and forged names, some rows of all its entries at a time."""
    safety.check_archive(path)
    with zipfile.ZipFile(path) as archive, ExitStack() as stack:
        with archive.open("header.npy") as file:
            header = json.loads(np.lib.format.read_array(file, allow_pickle=False).tobytes())
        yield header
        entries = {
            name: NpyStream(stack.enter_context(archive.open(f"{entry}.npy")))
            for entry, name in header["layout"]["entries"].items()
        }
        text = header["layout"]["text"]
        rows = {len(column) for column in text.values()} | {entry.rows for entry in entries.values()}
        if len(rows) != 1:
            raise ValueError("its arrays have different numbers of rows")
        for start in range(0, rows.pop(), BLOCK_ROWS):
            arrays = {name: entry.next_rows(BLOCK_ROWS) for name, entry in entries.items()}
            words = {n: np.array(v[start : start + BLOCK_ROWS], dtype=object) for n, v in text.items()}
            yield arrays | words


class NpyStream:
    """The rows of one array of an archive, one after the other."""

    def __init__(self, file: Any) -> None:
        major = np.lib.format.read_magic(file)[0]
        read = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}[major]
        shape, fortran, self.dtype = read(file)
        if fortran or self.dtype.hasobject or not shape:
            raise ValueError("it contains an array of an unexpected format")
        self.file, self.rows, self.shape = file, shape[0], shape[1:]

    def next_rows(self, most: int) -> np.ndarray:
        """The next rows, at most so many."""
        size = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        content = self.file.read(min(most, self.rows) * size)
        count = min(most, self.rows)
        self.rows -= count
        if len(content) != count * size:
            raise ValueError("one of its arrays ends early")
        return np.frombuffer(content, self.dtype).reshape(count, *self.shape).copy()


# ---------------------------------------------------------------- tables: arrays <-> columns


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
    same = array.dtype.kind != "O"  # one kind for all columns
    kinds = [_kind(flat)] * flat.shape[1] if same else [_kind(flat[:, j]) for j in range(flat.shape[1])]
    return {
        "name": name,
        "dtype": array.dtype.str,
        "shape": list(array.shape[1:]),
        "columns": columns,
        "kinds": kinds,
    }


def _kind(column: np.ndarray) -> str:
    """The Arrow type of a column, or of an array of one dtype; a mixed array has one kind a column."""
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


def to_table(arrays: Mapping[str, np.ndarray], layout: ArrayColumns, schema: Any = None) -> Any:
    """Arrays -> an Arrow table; `schema` is that of the layout, if it is known."""
    import pyarrow as pa

    schema = schema or arrow_schema(layout)
    types = iter(schema.types)
    columns = []
    for slot in layout:
        flat = arrays[slot["name"]].reshape(len(arrays[slot["name"]]), -1)
        text = flat.dtype.kind in "UO"
        flat = flat if text else np.asfortranarray(flat)
        for j in range(flat.shape[1]):
            columns.append(pa.array(flat[:, j].tolist() if text else flat[:, j], next(types)))
    return pa.table(columns, schema=schema)


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


class TableSink:
    """Turns pieces into Arrow tables and hands them on in portions that are worth writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.layout: list[dict[str, Any]] = []
        self.held: list[Any] = []

    def write(self, arrays: Arrays, features: Sequence[str], outputs: Sequence[str]) -> None:
        """Add rows."""
        if not self.layout:
            self.layout = [array_columns(name, array, features, outputs) for name, array in arrays.items()]
            self.schema = arrow_schema(self.layout)
            self.start(self.schema)
        self.held.append(to_table(arrays, self.layout, self.schema))
        if sum(table.nbytes for table in self.held) >= FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand on what is held."""
        import pyarrow as pa

        if self.held:
            self.portion(pa.concat_tables(self.held).combine_chunks())
            self.held = []

    def close(self, make_header: MakeHeader) -> bytes | None:
        """Write the rest and the header; a format without a place for it gives it back."""
        self.flush()
        return self.end(_json(make_header(self.layout)))

    def start(self, schema: Any) -> None:
        """Open the file."""
        raise NotImplementedError

    def portion(self, table: Any) -> None:
        """Write some rows."""
        raise NotImplementedError

    def end(self, header: bytes) -> bytes | None:
        """Close the file, with its header if there is a place for it."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Close an unfinished file."""
        writer = getattr(self, "writer", None)
        if writer is not None:
            writer.close()


class ParquetSink(TableSink):
    """Row groups, page checksums, the header among the file's key-value metadata."""

    def start(self, schema: Any) -> None:
        """Open the file."""
        import pyarrow.parquet as pq

        texts = [field.name for field in schema if str(field.type) == "string"]
        self.writer = pq.ParquetWriter(
            self.path,
            schema,
            compression="zstd",
            use_dictionary=texts,  # pyright: ignore[reportArgumentType]  numbers hardly repeat
            write_statistics=False,
            write_page_checksum=True,
        )

    def portion(self, table: Any) -> None:
        """Write some rows."""
        self.writer.write_table(table)

    def end(self, header: bytes) -> None:
        """Close the file."""
        self.writer.add_key_value_metadata({KEY: header})
        self.writer.close()


class ArrowSink(TableSink):
    """Record batches; a last, empty one carries the header."""

    def start(self, schema: Any) -> None:
        """Open the file."""
        import pyarrow as pa

        self.writer = pa.ipc.new_file(str(self.path), schema)

    def portion(self, table: Any) -> None:
        """Write some rows."""
        self.writer.write_table(table)

    def end(self, header: bytes) -> None:
        """Close the file."""
        import pyarrow as pa

        empty = pa.RecordBatch.from_pylist([], schema=self.schema)
        self.writer.write_batch(empty, custom_metadata={KEY: header})
        self.writer.close()


class CsvSink(TableSink):
    """Text is quoted, numbers have as many digits as their exact value needs."""

    def start(self, schema: Any) -> None:
        """Open the file."""
        from pyarrow import csv

        self.writer = csv.CSVWriter(str(self.path), schema)

    def portion(self, table: Any) -> None:
        """Write some rows."""
        self.writer.write_table(table)

    def end(self, header: bytes) -> bytes:
        """Close the file."""
        self.writer.close()
        return header


class JsonLinesSink(TableSink):
    """One object a line; NaN is null, infinities are texts, as JSON has neither."""

    def start(self, schema: Any) -> None:
        """Open the file."""
        self.writer = self.path.open("w", encoding="utf-8")

    def portion(self, table: Any) -> None:
        """Write some rows."""
        columns = [[_json_cell(v) for v in column.to_pylist()] for column in table.columns]
        for cells in zip(*columns, strict=True):
            line = dict(zip(table.schema.names, cells, strict=True))
            self.writer.write(json.dumps(line, allow_nan=False, ensure_ascii=False) + "\n")

    def end(self, header: bytes) -> bytes:
        """Close the file."""
        self.writer.close()
        return header


def parquet_blocks(path: Path) -> ResultBlocks:
    """A Parquet result."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, page_checksum_verification=True, **STREAMED) as file:
        safety.check_parquet_result(path, file.metadata)
        header = _header_of(file.metadata.metadata)
        yield header
        for batch in file.iter_batches(BLOCK_ROWS, use_threads=False):
            yield from_table(_sound(batch), header["layout"])


def arrow_blocks(path: Path) -> ResultBlocks:
    """An Arrow (Feather) result."""
    import pyarrow as pa

    with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as file:
        last = file.get_batch_with_custom_metadata(file.num_record_batches - 1)
        header = _header_of(last.custom_metadata)
        yield header
        for i in range(file.num_record_batches - 1):
            table = _sound(file.get_batch(i))
            for start in range(0, len(table), BLOCK_ROWS):
                yield from_table(table.slice(start, BLOCK_ROWS), header["layout"])


def csv_blocks(path: Path) -> ResultBlocks:
    """A CSV result with the header beside it."""
    from pyarrow import csv

    header = _beside(path)
    yield header
    convert = csv.ConvertOptions(
        column_types=arrow_schema(header["layout"]),
        null_values=["", "nan"],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = csv.ParseOptions(newlines_in_values=True)
    with csv.open_csv(path, parse_options=parse, convert_options=convert) as opened:
        for batch in opened:
            yield from_table(_sound(batch), header["layout"])


def json_lines_blocks(path: Path) -> ResultBlocks:
    """A JSON lines result with the header beside it."""
    header = _beside(path)
    yield header
    schema = arrow_schema(header["layout"])
    with path.open(encoding="utf-8") as file:
        while lines := list(islice(file, BLOCK_ROWS)):
            table = _from_records([json.loads(line) for line in lines], schema)
            yield from_table(table, header["layout"])


def _from_records(records: list[dict[str, Any]], schema: Any) -> Any:
    import pyarrow as pa

    columns = []
    for field in schema:
        cells = [record[field.name] for record in records]
        if pa.types.is_floating(field.type):  # infinities are texts
            cells = [None if cell is None else float(cell) for cell in cells]
        columns.append(pa.array(cells, field.type))
    return pa.table(columns, schema=schema)


def _sound(batch: Any) -> Any:
    """A batch as a table, validated in full: a damaged offset would be an address outside the memory."""
    import pyarrow as pa

    batch.validate(full=True)
    return pa.Table.from_batches([batch])


FORMATS: dict[str, ResultFormat] = {
    ".npz": ResultFormat(NpzSink, npz_blocks),
    ".parquet": ResultFormat(ParquetSink, parquet_blocks),
    ".arrow": ResultFormat(ArrowSink, arrow_blocks),
    ".feather": ResultFormat(ArrowSink, arrow_blocks),
    ".csv": ResultFormat(CsvSink, csv_blocks, short=True),
    ".jsonl": ResultFormat(JsonLinesSink, json_lines_blocks, short=True),
}


def _header_of(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    if not metadata or KEY not in metadata:
        raise ValueError("it does not have a texplainer header")
    return json.loads(metadata[KEY])


def _beside(path: Path) -> dict[str, Any]:
    beside = path.with_name(path.name + ".json")
    if not beside.is_file():
        raise InputError(f"{path} does not have its header {beside.name}; keep the two files together.")
    return json.loads(beside.read_bytes())


def _json(header: Mapping[str, Any]) -> bytes:
    return json.dumps(header, default=plain).encode()


def _json_cell(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(value)
    return value
