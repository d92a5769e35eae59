"""Where the rows of a run come from: Parquet files, read by row number in a stream.

Parquet is read in place. Any other source is first written as Parquet beside the results, a piece at a time, so
that workers find any row by its number and the table need not fit in memory. Files are read by the readers of
`tables`; for frames there is one function per library. Dask and Spark write in parallel by their own means; all
keep the order of rows. Each worker keeps one open stream and only moves forward in it; row groups before the
wanted row are skipped unread.
"""

from __future__ import annotations

import hashlib
import shutil
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from texplainer.errors import InputError
from texplainer.files.loaders import safety
from texplainer.files.survey import DiskTable, survey
from texplainer.files.tables import STREAMED, TABLES, Dialect, read_blocks, suffix_of
from texplainer.support.messages import suggest
from texplainer.tables.schema import Schema

if TYPE_CHECKING:
    from pyarrow.lib import RecordBatch

GROUP_ROWS = 1 << 16
FOLDER = "_input"


def open_source(table: Any, schema: Schema, destination: Path, label: Any = None) -> ParquetRows:
    """Open any source of rows; a copy is written to `destination` if one is needed.

    `label` names the column that identifies the rows, which is read beside the schema's.
    A path or several, a surveyed table, a frame of any library narwhals knows, a dataset of a cluster.
    """
    wanted = [*schema.names, *([] if label in (None, *schema.names) else [label])] if schema.named else None
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


READ_ROWS = 4096  # decoded at a time


@dataclass(frozen=True)
class ParquetRows:
    """The columns of some Parquet files, one after the other.

    `groups` holds (file, its row group, first row, rows) in order; `copied` says that the files are a copy of
    something else, so that their dates mean nothing.
    """

    files: tuple[str, ...]
    groups: tuple[tuple[int, int, int, int], ...]
    columns: tuple[str, ...]
    copied: bool = False

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.groups[-1][2] + self.groups[-1][3] if self.groups else 0

    @cached_property
    def starts(self) -> list[int]:
        """The first row of every row group."""
        return [first for _, _, first, _ in self.groups]

    def group_of(self, row: int) -> int:
        """The position of the row group that holds a row."""
        return bisect_right(self.starts, row) - 1

    def identity(self) -> dict[str, Any]:
        """Return an identification of this table without reading it."""
        known: dict[str, Any] = {"rows": self.rows, "columns": list(self.columns)}
        if not self.copied:
            known["files"] = {
                Path(file).name: [Path(file).stat().st_size, Path(file).stat().st_mtime_ns]
                for file in self.files
            }
        return known


def open_parquet(files: Sequence[Path], wanted: Sequence[str] | None, *, copied: bool = False) -> ParquetRows:
    """Look at the footers of Parquet files; `wanted` are the columns to read (None: all)."""
    groups: list[tuple[int, int, int, int]] = []
    first, names = 0, None
    for i, file in enumerate(files):
        try:
            meta = pq.read_metadata(file)
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"{file} is not a readable Parquet file ({error}).") from error
        safety.check_parquet(file, meta)
        names = names or meta.schema.to_arrow_schema().names
        if meta.schema.to_arrow_schema().names != names:
            raise InputError(
                f"{file} has the columns {meta.schema.to_arrow_schema().names}, {files[0]} has {names}; "
                "expected the same in all files of a folder."
            )
        for g in range(meta.num_row_groups):
            count = meta.row_group(g).num_rows
            if count:
                groups.append((i, g, first, count))
            first += count
    if not groups:
        raise InputError("the source has 0 rows; expected at least 1.")
    return ParquetRows(tuple(map(str, files)), tuple(groups), wanted_columns(names or [], wanted), copied)


def wanted_columns(names: Sequence[str], wanted: Sequence[str] | None) -> tuple[str, ...]:
    """The columns to read: those the explainer knows; others, such as ids and labels, are left."""
    if wanted is None:
        return tuple(names)
    missing = [name for name in wanted if name not in names]
    if missing:
        raise InputError(
            f"the source does not have the columns {missing}; it has {list(names)}. Rename its columns to "
            f"those of the background.{suggest(missing[0], names)}"
        )
    return tuple(wanted)


class RowStream:
    """One pass over a source that only moves forward; it starts anew when asked for earlier rows."""

    def __init__(self, source: ParquetRows) -> None:
        self.source = source
        self.close()

    def close(self) -> None:
        """Forget the position; the next read opens the files anew."""
        self.at = self.source.rows  # the next row the iterator would give: none is left
        self.rest: pa.Table | None = None
        self.batches: Iterator[pa.RecordBatch] = iter(())

    def read(self, start: int, stop: int) -> pa.Table:
        """Rows [start, stop) as an Arrow table."""
        group = self.source.group_of(start)
        if start < self.at or self.source.starts[group] > self.at:
            self.batches, self.at, self.rest = self._from(group), self.source.starts[group], None
        parts: list[pa.Table] = []
        while self.at < stop:
            table = self.rest if self.rest is not None else pa.Table.from_batches([next(self.batches)])
            skip = min(max(0, start - self.at), len(table))
            part = table.slice(skip, stop - self.at - skip)
            parts.append(part)
            used = skip + len(part)
            self.rest = table.slice(used) if used < len(table) else None
            self.at += used
        return pa.concat_tables(parts)

    def _from(self, group: int) -> Iterator[pa.RecordBatch]:
        for i, file in enumerate(self.source.files):
            own = [g for f, g, _, _ in self.source.groups[group:] if f == i]
            if own:
                with pq.ParquetFile(file, **STREAMED) as opened:
                    yield from opened.iter_batches(
                        READ_ROWS, row_groups=own, columns=list(self.source.columns), use_threads=False
                    )


def encode_parquet(table: pa.Table, metadata: Mapping[str, str], words: Sequence[str]) -> Any:
    """A table as the bytes of a Parquet file; equal tables give equal bytes; `words` repeat."""
    sink = pa.BufferOutputStream()
    # attributions hardly repeat: dictionaries and heavier compression cost time and save nothing
    repeated = [name for name in words if name in table.column_names]
    table = table.replace_schema_metadata(dict(metadata))
    options: dict[str, Any] = {"compression": "lz4", "use_dictionary": repeated, "write_statistics": False}
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def read_shard(path: Path) -> pa.Table:
    """A whole Parquet file that is not trusted."""
    try:
        safety.check_parquet(path, pq.read_metadata(path))
        table = pq.read_table(path, memory_map=False)
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is not a readable Parquet file ({error}).") from error
    return table


def digest_rows(rows: pa.Table) -> str:
    """The SHA-256 of the rows' cells, however they are chunked."""
    batches = rows.combine_chunks().to_batches()
    return hashlib.sha256(batches[0].serialize()).hexdigest()
