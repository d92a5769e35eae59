"""SHA-256 hashes of files, arrays and plain values, the same on every machine.

Arrays are hashed row by row, so the hash does not depend on the blocks in which a table is processed. Equal
values have equal hashes: NaNs have one bit pattern, numbers are little-endian, and text and mixed columns are
hashed as JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


class RowDigest:
    """The running hash of an array that arrives in blocks."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def update(self, rows: np.ndarray) -> None:
        """Add further rows."""
        self._hash.update(canonical_bytes(rows))

    def hexdigest(self) -> str:
        """The fingerprint so far."""
        return self._hash.hexdigest()


def of_array(array: np.ndarray) -> str:
    """The fingerprint of an array; its first axis are the rows."""
    digest = RowDigest()
    digest.update(array)
    return digest.hexdigest()


def of_file(path: Path) -> str:
    """The fingerprint of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_facts(value: Any) -> str:
    """The fingerprint of plain values: numbers, texts, lists, mappings."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def canonical_json(value: Any) -> bytes:
    """Return the canonical JSON of a value: sorted keys, no spaces."""
    return _ENCODER.encode(value).encode()


def json_round_trip(value: Any) -> Any:
    """Return a value after a JSON round trip: its hash is the same before writing and after reading."""
    return json.loads(json.dumps(value, default=plain))


def canonical_bytes(rows: np.ndarray) -> bytes:
    """Return the bytes to hash; those of blocks concatenate to those of the whole array."""
    kind = rows.dtype.kind
    if kind == "f":
        return np.where(np.isnan(rows), np.nan, rows).astype("<f8").tobytes()
    if kind in "iub":
        return rows.astype("<i8").tobytes()
    return b"".join(canonical_json(row) + b"\n" for row in rows.tolist())


def plain(value: Any) -> Any:
    """Convert numpy scalars and arrays, mappings and tuples to JSON types."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON; expected plain values.")


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=plain)
