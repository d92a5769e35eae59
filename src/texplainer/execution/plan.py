"""How a table is cut: blocks of fixed rows, shards of whole blocks, one Parquet file per shard.

A row's last bits may depend on the rows that went through the model with it: a matrix product takes other
code paths for 7 rows than for 1000. Therefore the table is cut in blocks of fixed rows counted from its first
row, each block is explained by one call, and a shard holds whole blocks. Whatever the shard size and wherever
it runs, a row meets the same neighbours, at the same place, in the same call.

The columns of a shard are those of a saved Explanation (`values/age`, `error/age`, `predictions`, `stability` ...;
with several outputs `values/age/class_a`), after `row`, the row's number in the table, and `index`, its identifier
(`id_column=`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.explanation import fields
from texplainer.explanation.explanation import Explanation
from texplainer.files import formats
from texplainer.gradients.engine import BATCH

BLOCKS = {True: BATCH, False: 512}  # of exact engines, whose calls are short; of all others
MOST_ROWS = 32_768  # a shard by default: seconds to minutes of work
MOST_CELLS = 2**19  # of a shard by default, rows times features: some ten MB, however wide the table
SHARDS_A_WORKER = 4  # so that no worker is idle for long at the end
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
COPIES_IN, COPIES_OUT = 3, 5  # of a shard's rows at once: columns, floats, arrays, Arrow, Parquet
COPIES_BATCH = 8  # of a batch of model inputs: moved rows, the model's own copies and layers


@dataclass(frozen=True)
class Shard:
    """Rows [start, stop) of the table."""

    index: int
    start: int
    stop: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.stop - self.start

    @property
    def file(self) -> str:
        """The name of the shard's file; names sort in the order of rows."""
        return f"part-{self.index:08d}.parquet"


def cut_shards(rows: int, shard_rows: int) -> list[Shard]:
    """Cut rows into shards of `shard_rows`, which is whole blocks."""
    return [
        Shard(i, start, min(start + shard_rows, rows)) for i, start in enumerate(range(0, rows, shard_rows))
    ]


def whole_blocks(rows: int, block: int) -> int:
    """A shard size rounded up to whole blocks."""
    return max(1, -(-rows // block)) * block


def default_rows(rows: int, features: int, workers: int, block: int) -> int:
    """Shards worth a file, small enough to keep every worker busy and memory from growing with the table."""
    most = max(block, min(MOST_ROWS, MOST_CELLS // features) // block * block)
    return min(most, whole_blocks(-(-rows // (SHARDS_A_WORKER * workers)), block))


def checked_rows(shard_rows: int, block: int) -> int:
    """The user's shard size in whole blocks."""
    if isinstance(shard_rows, bool) or not isinstance(shard_rows, int) or shard_rows < 1:
        raise InputError(f"shard_rows={shard_rows!r} is invalid; expected a whole number of at least 1.")
    return whole_blocks(shard_rows, block)


def parse_bytes(memory: str | int) -> int:
    """Read "2GB", "500 MB" or a number as bytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", str(memory), re.IGNORECASE)
    if found is None or float(found[1]) == 0:
        raise InputError(
            f"memory={memory!r} is invalid; expected an amount of memory such as '2GB' or '500MB'."
        )
    unit = UNITS[found[2].upper()]
    if found[3]:
        unit = 2 ** (10 * list(UNITS).index(found[2].upper()))
    return int(float(found[1]) * unit)


def fit_to_memory(
    memory: str | int, features: int, row_bytes: int, block: int, shard_rows: int, batch_rows: int
) -> tuple[int, int]:
    """(shard_rows, batch_rows) that a worker's tables stay below a budget with; never above those given.

    The budget is for what grows with the rows, on top of the interpreter and the model: half of it for the
    shard (`row_bytes` a result), half for the batches given to the model.
    """
    half = parse_bytes(memory) // 2
    row = COPIES_IN * 8 * features + COPIES_OUT * row_bytes
    fitting = half // row // block * block
    batch = half // (COPIES_BATCH * 8 * features)
    if fitting < block or batch < 1:
        least = 2 * max(block * row, COPIES_BATCH * 8 * features)
        raise InputError(
            f"memory={memory!r} is too small for one block of {block} rows; a table of {features} features "
            f"needs at least {-(-least // 10**6)}MB."
        )
    return min(shard_rows, fitting), min(batch_rows, batch)


@dataclass(frozen=True)
class ShardColumns:
    """The columns every shard of a run has, learnt from one explanation."""

    features: tuple[str, ...]
    outputs: tuple[str, ...]
    like: Mapping[str, np.ndarray]  # one row of every kept array
    base_values: tuple[float, ...]
    labels: Mapping[str, np.ndarray] = field(
        default_factory=dict
    )  # "index": one identifier, if rows have them

    @classmethod
    def of(cls, explanation: Explanation, labels: Mapping[str, np.ndarray] | None = None) -> ShardColumns:
        """Learn the layout from an explanation of at least one row; `labels` are identifiers of rows."""
        like = {name: array[:1] for name, array in stored_arrays(explanation).items()}
        base = () if "base_values" in like else tuple(explanation.arrays["base_values"].tolist())
        own = {name: array[:1] for name, array in (labels or {}).items()}
        return cls(explanation.feature_names, explanation.output_names, like, base, own)

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
        arrays = {
            name: np.concatenate([block[name] for block in blocks]) for name in (*self.labels, *self.like)
        }
        numbers = np.arange(start, start + len(arrays["predictions"]))
        return formats.to_table({"row": numbers, **arrays}, self.array_columns)

    @property
    def array_columns(self) -> list[dict[str, Any]]:
        """How the arrays are spread over columns, after those of the row numbers and the identifiers."""
        like = {"row": np.zeros(1, int), **self.labels, **self.like}
        return [formats.array_columns(n, array, self.features, self.outputs) for n, array in like.items()]


def row_labels(rows: Any, label: Any) -> dict[str, np.ndarray]:
    """The identifiers of some rows, an Arrow table, as `index`: whole numbers or texts."""
    if label not in rows.column_names:
        return {}
    cells = rows.column(label)
    if not str(cells.type).lstrip("u").startswith("int"):
        return {"index": np.array([None if v is None else str(v) for v in cells.to_pylist()], dtype=object)}
    if cells.null_count:
        raise InputError(f"the identifier {label!r} has {cells.null_count} missing values; fill them.")
    return {"index": cells.to_numpy().astype(np.int64)}


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
