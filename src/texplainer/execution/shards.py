"""Where results go: one Parquet file a shard, there whole or not at all.

A file is written under a temporary name, flushed to the disk and renamed. Columns are those of a saved
Explanation (`values/age`, `error/age`, `predictions`, `stability` ...; with several outputs
`values/age/class_a`), after `row`, the row's number in the table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.explanation import fields
from texplainer.explanation.explanation import Explanation
from texplainer.files import columns


@dataclass(frozen=True)
class ShardColumns:
    """The columns every shard of a run has, learnt from one explanation."""

    features: tuple[str, ...]
    outputs: tuple[str, ...]
    like: Mapping[str, np.ndarray]  # one row of every kept array
    base_values: tuple[float, ...]

    @classmethod
    def of(cls, explanation: Explanation) -> ShardColumns:
        """Learn the layout from an explanation of at least one row."""
        like = {name: array[:1] for name, array in stored_arrays(explanation).items()}
        base = () if "base_values" in like else tuple(explanation.arrays["base_values"].tolist())
        return cls(explanation.feature_names, explanation.output_names, like, base)

    @property
    def row_bytes(self) -> int:
        """The size of one result in memory."""
        return sum(array.nbytes for array in self.like.values())

    def blank(self, rows: int, reason: str) -> dict[str, np.ndarray]:
        """Results of rows that could not be explained."""
        out = {name: fields.blank_like(name, array, rows) for name, array in self.like.items()}
        return {**out, "reason": np.full(rows, reason, dtype=object)}

    def table(self, start: int, blocks: Sequence[Mapping[str, np.ndarray]]) -> Any:
        """The results of consecutive blocks as one Arrow table; `start` is the number of the first row."""
        arrays = {name: np.concatenate([block[name] for block in blocks]) for name in self.like}
        numbers = np.arange(start, start + len(arrays["predictions"]))
        return columns.to_table({"row": numbers, **arrays}, self.array_columns)

    @property
    def array_columns(self) -> list[dict[str, Any]]:
        """How the arrays are spread over columns, after that of the row numbers."""
        like = {"row": np.zeros(1, int), **self.like}
        return [columns.array_columns(n, array, self.features, self.outputs) for n, array in like.items()]


def stored_arrays(explanation: Explanation) -> dict[str, np.ndarray]:
    """The arrays of an explanation that go into a file."""
    arrays = fields.held(explanation.every_array(), "shard")
    if arrays["base_values"].ndim == 1:
        del arrays["base_values"]
    return arrays


def evaluations_of(block: Mapping[str, np.ndarray]) -> int:
    """The model evaluations of some rows, in all their attributions."""
    return sum(int(array.sum()) for name, array in block.items() if name.rpartition("/")[2] == "evaluations")


def bytes_digest(data: Any) -> str:
    """The SHA-256 of some bytes, as `sha256sum` prints it."""
    return hashlib.sha256(data).hexdigest()


def digest_file(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
