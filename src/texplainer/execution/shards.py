"""Where results go: one Parquet file a shard, there whole or not at all.

A file is written under a temporary name, flushed to the disk and renamed. Columns are those of a saved
Explanation (`values/age`, `error/age`, `predictions`, `verdict` ...; with several outputs
`values/age/class_a`), after `row`, the row's number in the table.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from texplainer import layouts
from texplainer.explanation import Explanation

#: the arrays of an Explanation that are kept; its gradient, steps and data are not
KEPT = (
    "predictions",
    "predicted_class",
    "values",
    "error",
    "taylor_residual",
    "completeness",
    "evaluations",
    "verdict",
    "reason",
)
TEXT = ("verdict", "reason")


@dataclass(frozen=True)
class Layout:
    """The columns every shard of a run has, learnt from one explanation."""

    features: tuple[str, ...]
    outputs: tuple[str, ...]
    like: Mapping[str, np.ndarray]  # one row of every kept array
    base_values: tuple[float, ...]

    @classmethod
    def of(cls, explanation: Explanation) -> Layout:
        """Learn the layout from an explanation of at least one row."""
        like = {name: array[:1] for name, array in kept(explanation).items()}
        base = tuple(float(b) for b in explanation.arrays["base_values"])
        return cls(explanation.feature_names, explanation.output_names, like, base)

    @property
    def row_bytes(self) -> int:
        """The size of one result in memory."""
        return sum(array.nbytes for array in self.like.values())

    def blank(self, rows: int, reason: str) -> dict[str, np.ndarray]:
        """Results of rows that could not be explained."""
        out: dict[str, np.ndarray] = {}
        for name, array in self.like.items():
            fill: Any = np.nan if array.dtype.kind == "f" else 0
            fill = {"verdict": "undefined", "reason": reason}.get(name, fill)
            out[name] = np.full((rows, *array.shape[1:]), fill, dtype=object if name in TEXT else array.dtype)
        return out

    def table(self, start: int, blocks: Sequence[Mapping[str, np.ndarray]]) -> pa.Table:
        """The results of consecutive blocks as one Arrow table; `start` is the number of the first row."""
        arrays = {name: np.concatenate([block[name] for block in blocks]) for name in self.like}
        slots = [layouts.slot(name, like, self.features, self.outputs) for name, like in self.like.items()]
        table = layouts.to_table(arrays, slots)
        return table.add_column(0, "row", pa.array(np.arange(start, start + len(table))))


def kept(explanation: Explanation) -> dict[str, np.ndarray]:
    """The arrays of an explanation that go into a file."""
    return {name: explanation.arrays[name] for name in KEPT if name in explanation.arrays}


def encode(table: pa.Table, metadata: Mapping[str, str]) -> Any:
    """A table as the bytes of a Parquet file; equal tables give equal bytes."""
    sink = pa.BufferOutputStream()
    # attributions hardly repeat: dictionaries and heavier compression cost time and save nothing
    words = [name for name in TEXT if name in table.column_names]
    table = table.replace_schema_metadata(dict(metadata))
    options: dict[str, Any] = {"compression": "lz4", "use_dictionary": words, "write_statistics": False}
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def digest(data: Any) -> str:
    """The SHA-256 of some bytes, as `sha256sum` prints it."""
    return hashlib.sha256(data).hexdigest()


def digest_file(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def put(path: Path, data: Any) -> None:
    """Write a file so that it is there whole or not at all, even if the power fails."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    with contextlib.suppress(OSError):  # some file systems cannot flush a folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def sweep(folder: Path) -> None:
    """Remove what writers that were killed left behind."""
    for part in folder.glob(".*.part"):
        with contextlib.suppress(OSError):
            part.unlink()
