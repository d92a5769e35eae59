"""The file formats of a saved explanation: npz, Parquet, Arrow, CSV, JSON lines.

Every format is a `Format`: `open` gives a sink that takes arrays piece by piece and a header at the
end, `read` gives both back. The four tables share the layout of
`layouts`, which the header repeats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from texplainer import containers, layouts
from texplainer.errors import InputError
from texplainer.fingerprints import plain

KEY = b"texplainer"
FLUSH_BYTES = 32 * 2**20
Arrays = Mapping[str, np.ndarray]
#: the file's layout -> its sealed header
MakeHeader = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class Format:
    """One file format; `short` ones keep the arrays people read."""

    open: Callable[[Path], Any]
    read: Callable[[Path], tuple[dict[str, Any], dict[str, np.ndarray]]]
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
        arrays = {name: np.concatenate(pieces) for name, pieces in self.pieces.items()}
        text = {name: array.tolist() for name, array in arrays.items() if array.dtype.kind == "O"}
        names = [name for name in arrays if name not in text]
        entries = {n if re.fullmatch(r"\w+", n) else f"array_{i}": n for i, n in enumerate(names)}
        header = np.frombuffer(_json(make_header({"entries": entries, "text": text})), dtype=np.uint8)
        with self.path.open("wb") as file:
            content = {entry: arrays[name] for entry, name in entries.items()}
            np.savez_compressed(file, allow_pickle=False, header=header, **content)

    def abandon(self) -> None:
        """Nothing was written yet."""


def read_npz(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read an archive that was checked for bombs and forged names."""
    containers.check(path)
    with np.load(path, allow_pickle=False) as archive:
        header = json.loads(archive["header"].tobytes())
        layout = header["layout"]
        arrays = {name: archive[entry] for entry, name in layout["entries"].items()}
    return header, arrays | {name: np.array(v, dtype=object) for name, v in layout["text"].items()}


# ---------------------------------------------------------------- tables: arrays <-> columns


class TableSink:
    """Turns pieces into Arrow tables and hands them on in portions that are worth writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.layout: list[dict[str, Any]] = []
        self.held: list[Any] = []

    def write(self, arrays: Arrays, features: Sequence[str], outputs: Sequence[str]) -> None:
        """Add rows."""
        if not self.layout:
            self.layout = [layouts.slot(name, array, features, outputs) for name, array in arrays.items()]
            self.start(layouts.schema(self.layout))
        self.held.append(layouts.to_table(arrays, self.layout))
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

        self.writer = pq.ParquetWriter(self.path, schema, compression="zstd", write_page_checksum=True)

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

        self.schema = schema
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


def read_parquet(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read a Parquet result."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        header = _header_of(file.metadata.metadata)
        return header, layouts.from_table(file.read(), header["layout"])


def read_arrow(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read an Arrow (Feather) result."""
    import pyarrow as pa

    with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as file:
        last = file.get_batch_with_custom_metadata(file.num_record_batches - 1)
        header = _header_of(last.custom_metadata)
        return header, layouts.from_table(file.read_all(), header["layout"])


def read_csv(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read a CSV result with the header beside it."""
    from pyarrow import csv

    header = _beside(path)
    schema = layouts.schema(header["layout"])
    convert = csv.ConvertOptions(
        column_types=schema,
        null_values=["", "nan"],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = csv.ParseOptions(newlines_in_values=True)
    return header, layouts.from_table(
        csv.read_csv(path, parse_options=parse, convert_options=convert), header["layout"]
    )


def read_json_lines(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read a JSON lines result with the header beside it."""
    import pyarrow as pa

    header = _beside(path)
    schema = layouts.schema(header["layout"])
    with path.open(encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    columns = []
    for field in schema:
        cells = [record[field.name] for record in records]
        if pa.types.is_floating(field.type):  # infinities are texts
            cells = [None if cell is None else float(cell) for cell in cells]
        columns.append(pa.array(cells, field.type))
    return header, layouts.from_table(pa.table(columns, schema=schema), header["layout"])


FORMATS: dict[str, Format] = {
    ".npz": Format(NpzSink, read_npz),
    ".parquet": Format(ParquetSink, read_parquet),
    ".arrow": Format(ArrowSink, read_arrow),
    ".feather": Format(ArrowSink, read_arrow),
    ".csv": Format(CsvSink, read_csv, short=True),
    ".jsonl": Format(JsonLinesSink, read_json_lines, short=True),
}


def _header_of(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    if not metadata or KEY not in metadata:
        raise ValueError("it has no header of texplainer's")
    return json.loads(metadata[KEY])


def _beside(path: Path) -> dict[str, Any]:
    beside = path.with_name(path.name + ".json")
    if not beside.is_file():
        raise InputError(f"{path} lacks its header {beside.name}; keep the two files together.")
    return json.loads(beside.read_bytes())


def _json(header: Mapping[str, Any]) -> bytes:
    return json.dumps(header, default=plain).encode()


def _json_cell(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(value)
    return value
