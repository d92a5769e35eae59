"""Archives of arrays from strangers, some rows at a time."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.files.loaders import zip_safety

BLOCK_ROWS = 4096  # read at a time


def npz_blocks(path: Path) -> Iterator[dict[str, Any]]:
    """An archive that was checked for bombs and forged names, some rows of all its entries at a time."""
    zip_safety.check_archive(path)
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
