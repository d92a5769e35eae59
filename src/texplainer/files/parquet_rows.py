"""Where rows come from: Parquet files, read by row number in a stream.

Parquet is read in place. Everything else (see `convert`) is first written as Parquet beside the results, so
that workers find any row by its number and the table need not fit in memory. Each worker keeps one open
stream and only moves forward in it; row groups before the wanted row are skipped unread.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from texplainer.errors import InputError
from texplainer.files.tables import STREAMED
from texplainer.support.messages import suggest

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
        table = pq.read_table(path, memory_map=False)
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is not a readable Parquet file ({error}).") from error
    return table


def digest_rows(rows: pa.Table) -> str:
    """The SHA-256 of the rows' cells, however they are chunked."""
    batches = rows.combine_chunks().to_batches()
    return hashlib.sha256(batches[0].serialize()).hexdigest()
