"""Anything that is not Parquet becomes Parquet, a piece at a time.

One function per kind of table, found by the name of the library its type comes from or by the ending of
the file. Dask and Spark write in parallel by their own means; all keep the order of rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from texplainer.errors import InputError
from texplainer.execution.sources import Source, open_files, pick
from texplainer.frames import Schema

if TYPE_CHECKING:
    from pyarrow.lib import RecordBatch

GROUP_ROWS = 1 << 16
FOLDER = "_input"


def open_source(table: Any, schema: Schema, destination: Path) -> Source:
    """Find the rows of whatever the user calls a table; `destination` takes the copy if one is needed."""
    wanted = list(schema.names) if schema.named else None
    if isinstance(table, (str, Path)):
        files = _files(Path(table), destination)
        if files[0].suffix == ".parquet":
            return open_files(files, wanted)
        ending = "".join(files[0].suffixes[-2:]) if files[0].suffix == ".gz" else files[0].suffix
        return _spooled(_file_batches(files, READERS[ending], schema), wanted, destination)
    if _looks_like_paths(table):
        return open_files([Path(p) for p in table], wanted)
    library = type(table).__module__.split(".")[0]
    if library in WRITERS:
        folder = _fresh(destination)
        WRITERS[library](table, wanted, folder)
        return _copied(folder, wanted)
    return _spooled(_eager_batches(table, schema), wanted, destination)


def _files(path: Path, destination: Path) -> list[Path]:
    if path.is_dir():
        if path.resolve() == destination.resolve():
            raise InputError(
                f"source and destination are the same folder, {path}; choose another destination."
            )
        files = sorted(f for f in path.iterdir() if f.is_file() and not f.name.startswith((".", "_")))
    elif path.is_file():
        files = [path]
    else:
        raise InputError(f"the source {path} does not exist; expected a file or a folder of files.")
    endings = {f.suffix for f in files}
    if len(endings) != 1 or not endings <= {".parquet", ".gz", *READERS}:
        raise InputError(
            f"{path} holds files ending in {sorted(endings)}; expected one kind of .parquet, .csv, .csv.gz, "
            ".arrow or .feather."
        )
    return [f.resolve() for f in files]


def _looks_like_paths(table: Any) -> bool:
    return isinstance(table, (list, tuple)) and bool(table) and all(isinstance(p, (str, Path)) for p in table)


def _fresh(destination: Path) -> Path:
    folder = destination / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _copied(folder: Path, wanted: Sequence[str] | None) -> Source:
    return open_files(sorted(f.resolve() for f in folder.glob("*.parquet")), wanted, spooled=True)


def _spooled(batches: Iterable[RecordBatch], wanted: Sequence[str] | None, destination: Path) -> Source:
    """Write batches to one file, only the wanted columns."""
    folder = _fresh(destination)
    writer: pq.ParquetWriter | None = None
    try:
        for batch in batches:
            batch = batch.select(list(pick(batch.schema.names, wanted)))
            if writer is None:
                writer = pq.ParquetWriter(folder / "rows.parquet", batch.schema, compression="none")
            writer.write_batch(batch, row_group_size=GROUP_ROWS)
    finally:
        if writer is not None:
            writer.close()
    return _copied(folder, wanted)


# ---------------------------------------------------------------- files


def _file_batches(
    files: list[Path], reader: Callable[[Path, Schema], Iterator[Any]], schema: Schema
) -> Iterator[Any]:
    for file in files:
        try:
            yield from reader(file, schema)
        except pa.ArrowInvalid as error:
            raise InputError(f"{file} cannot be read: {error}. Convert or repair it.") from error


def _csv(file: Path, schema: Schema) -> Iterator[Any]:
    """A CSV file in a stream; numbers as float64, for its first rows do not tell what follows."""
    from pyarrow import csv

    types = {
        name: pa.string()
        if any(isinstance(level, str) for level in schema.levels.get(j, ()))
        else pa.float64()
        for j, name in enumerate(schema.names)
    }
    convert = csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    parse = csv.ParseOptions(delimiter="\t" if ".tsv" in file.suffixes else ",", newlines_in_values=True)
    yield from csv.open_csv(file, parse_options=parse, convert_options=convert)


def _ipc(file: Path, schema: Schema) -> Iterator[Any]:
    """An Arrow file or stream; Feather (version 2) is an Arrow file."""
    with pa.memory_map(str(file)) as mapped:
        try:
            opened = pa.ipc.open_file(mapped)
            yield from (opened.get_batch(i) for i in range(opened.num_record_batches))
        except pa.ArrowInvalid:
            mapped.seek(0)
            yield from pa.ipc.open_stream(mapped)


READERS: dict[str, Callable[[Path, Schema], Iterator[Any]]] = {
    ".csv": _csv,
    ".csv.gz": _csv,
    ".tsv": _csv,
    ".tsv.gz": _csv,
    ".arrow": _ipc,
    ".ipc": _ipc,
    ".feather": _ipc,
}

# ---------------------------------------------------------------- frames


def _eager_batches(table: Any, schema: Schema) -> Iterator[Any]:
    import narwhals as nw

    frame = nw.from_native(table, pass_through=True, eager_only=True)
    if isinstance(frame, nw.DataFrame):
        arrow = frame.to_arrow()
    else:
        columns = np.asarray(table)
        if columns.ndim != 2 or columns.shape[1] != schema.width:
            raise InputError(
                f"a {type(table).__name__} of shape {columns.shape} is no source; expected a path, a frame "
                f"or an array of {schema.width} columns."
            )
        arrow = pa.table({name: columns[:, j] for j, name in enumerate(schema.names)})
    for start in range(0, len(arrow), GROUP_ROWS):
        yield arrow.slice(start, GROUP_ROWS).combine_chunks().to_batches()[0]


def _dask(frame: Any, wanted: Sequence[str] | None, folder: Path) -> None:
    chosen = frame[list(pick([str(c) for c in frame.columns], wanted))]
    chosen.to_parquet(
        str(folder), write_index=False, write_metadata_file=False, name_function=lambda i: f"{i:09d}.parquet"
    )


def _spark(frame: Any, wanted: Sequence[str] | None, folder: Path) -> None:
    chosen = frame.select(*[f"`{name}`" for name in pick(frame.columns, wanted)])
    chosen.write.mode("overwrite").parquet(folder.resolve().as_uri())


def _ray(dataset: Any, wanted: Sequence[str] | None, folder: Path) -> None:
    chosen = dataset.select_columns(list(pick(dataset.schema().names, wanted)))
    chosen.context.execution_options.preserve_order = True  # blocks arrive as they finish otherwise
    for i, batch in enumerate(chosen.iter_batches(batch_size=GROUP_ROWS, batch_format="pyarrow")):
        pq.write_table(batch, folder / f"{i:09d}.parquet", compression="none")


WRITERS: dict[str, Callable[[Any, Sequence[str] | None, Path], None]] = {
    "dask": _dask,
    "pyspark": _spark,
    "ray": _ray,
}
