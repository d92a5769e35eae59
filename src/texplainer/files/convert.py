"""Anything that is not Parquet becomes Parquet, a piece at a time.

Files are read by the readers of `tables`; for frames there is one function per library. Dask and Spark write
in parallel by their own means; all keep the order of rows.
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
from texplainer.files.parquet_rows import ParquetRows, open_parquet, wanted_columns
from texplainer.files.survey import DiskTable, survey
from texplainer.files.tables import TABLES, Dialect, read_blocks, suffix_of
from texplainer.tables.schema import Schema

if TYPE_CHECKING:
    from pyarrow.lib import RecordBatch

GROUP_ROWS = 1 << 16
FOLDER = "_input"


def open_source(table: Any, schema: Schema, destination: Path) -> ParquetRows:
    """Open any source of rows; a copy is written to `destination` if one is needed.

    A path or several, a surveyed table, a frame of any library narwhals knows, a dataset of a cluster.
    """
    wanted = list(schema.names) if schema.named else None
    if isinstance(table, (str, Path)):
        table = _files(Path(table), destination)
    if isinstance(table, DiskTable):
        return _from_disk([table.path], schema, wanted, destination, table.dialect)
    if _looks_like_paths(table):
        return _from_disk([Path(p) for p in table], schema, wanted, destination)
    library = type(table).__module__.split(".")[0]
    if library in WRITERS:
        folder = _fresh(destination)
        WRITERS[library](table, wanted, folder)
        return _copied(folder, wanted)
    return _copy(_eager_batches(table, schema), wanted, destination)


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
    if not files:
        raise InputError(
            f"the folder {path} does not contain tables; expected files of one kind: {', '.join(TABLES)}."
        )
    return [f.resolve() for f in files]


def _from_disk(
    files: list[Path],
    schema: Schema,
    wanted: Sequence[str] | None,
    destination: Path,
    dialect: Dialect | None = None,
) -> ParquetRows:
    """Parquet is read in place, every other format is copied."""
    endings = sorted({suffix_of(file) for file in files})
    if len(endings) > 1:
        raise InputError(
            f"the source holds files ending in {', '.join(endings)}; expected one kind of "
            f"{', '.join(TABLES)}."
        )
    if endings == [".parquet"]:
        return open_parquet(files, wanted)
    surveyed = [survey(file, dialect) for file in files]
    return _copy(_disk_batches(surveyed, schema), wanted, destination)


def _disk_batches(surveyed: list[DiskTable], schema: Schema) -> Iterator[Any]:
    """The batches of some files; a column is text if it is text in any of them, or a text to the schema."""
    kinds = dict(surveyed[0].kinds)
    for table in surveyed[1:]:
        kinds |= {name: "text" for name, kind in table.kinds.items() if kinds.get(name, kind) != kind}
    for j, levels in schema.levels.items():
        if any(isinstance(level, str) for level in levels):
            kinds[schema.names[j]] = "text"
    for table in surveyed:
        yield from read_blocks(table.path, kinds, table.dialect)


def _looks_like_paths(table: Any) -> bool:
    return isinstance(table, (list, tuple)) and bool(table) and all(isinstance(p, (str, Path)) for p in table)


def _fresh(destination: Path) -> Path:
    folder = destination / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _copied(folder: Path, wanted: Sequence[str] | None) -> ParquetRows:
    return open_parquet(sorted(f.resolve() for f in folder.glob("*.parquet")), wanted, copied=True)


def _copy(batches: Iterable[RecordBatch], wanted: Sequence[str] | None, destination: Path) -> ParquetRows:
    """Write batches to one file, only the wanted columns."""
    folder = _fresh(destination)
    writer: pq.ParquetWriter | None = None
    try:
        for batch in batches:
            batch = batch.select(list(wanted_columns(batch.schema.names, wanted)))
            if writer is None:
                writer = pq.ParquetWriter(folder / "rows.parquet", batch.schema, compression="none")
            writer.write_batch(batch, row_group_size=GROUP_ROWS)
    finally:
        if writer is not None:
            writer.close()
    return _copied(folder, wanted)


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
                f"a {type(table).__name__} of shape {columns.shape} is not a source; expected a path, a "
                "frame "
                f"or an array of {schema.width} columns."
            )
        arrow = pa.table({name: columns[:, j] for j, name in enumerate(schema.names)})
    for start in range(0, len(arrow), GROUP_ROWS):
        yield arrow.slice(start, GROUP_ROWS).combine_chunks().to_batches()[0]


def _dask(frame: Any, wanted: Sequence[str] | None, folder: Path) -> None:
    chosen = frame[list(wanted_columns([str(c) for c in frame.columns], wanted))]
    chosen.to_parquet(
        str(folder), write_index=False, write_metadata_file=False, name_function=lambda i: f"{i:09d}.parquet"
    )


def _spark(frame: Any, wanted: Sequence[str] | None, folder: Path) -> None:
    chosen = frame.select(*[f"`{name}`" for name in wanted_columns(frame.columns, wanted)])
    chosen.write.mode("overwrite").parquet(folder.resolve().as_uri())


def _ray(dataset: Any, wanted: Sequence[str] | None, folder: Path) -> None:
    chosen = dataset.select_columns(list(wanted_columns(dataset.schema().names, wanted)))
    chosen.context.execution_options.preserve_order = True  # blocks arrive as they finish otherwise
    for i, batch in enumerate(chosen.iter_batches(batch_size=GROUP_ROWS, batch_format="pyarrow")):
        pq.write_table(batch, folder / f"{i:09d}.parquet", compression="none")


WRITERS: dict[str, Callable[[Any, Sequence[str] | None, Path], None]] = {
    "dask": _dask,
    "pyspark": _spark,
    "ray": _ray,
}
