"""A data set, ready for a model: split, filled, encoded and scaled, with its origin.

A `Table` is what a source gives: named columns, unscaled and unencoded. `prepare` turns it into a `Dataset`
in the order that leaks nothing: split first, then learn the fill values and the scaling from the training
part alone. (The paper's authors scaled the whole table before splitting it.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Part = Literal["train", "test", "all"]
SPLIT_SEED = 1234
TEST_SHARE = 0.2


@dataclass(frozen=True)
class Table:
    """Columns as their source gives them: floats (NaN = missing) or text ("" = missing).

    `truth` holds, where the generator is known, the coefficients of the true log-odds at each row; it has one
    column per encoded feature, in the order `prepare` gives them.
    """

    name: str
    columns: Mapping[str, Array]  # each (rows,)
    target: Array  # (rows,)
    task: Literal["classification", "regression"] = "classification"
    class_names: tuple[str, ...] = ("0", "1")
    truth: Array | None = None  # (rows, encoded features)
    source: str = ""
    licence: str = ""
    note: str = ""


@dataclass(frozen=True)
class Scaler:
    """Min-max scaling, `(x - low) / span`, with its inverse; a constant column keeps span 1."""

    low: Array  # (features,)
    span: Array  # (features,)

    def __call__(self, rows: Array) -> Array:
        """Scale."""
        return (np.asarray(rows, float) - self.low) / self.span

    def inverse(self, rows: Array) -> Array:
        """Undo the scaling."""
        return np.asarray(rows, float) * self.span + self.low


@dataclass(frozen=True, repr=False)
class Dataset:
    """A data set ready for a model.

    Attributes
    ----------
    X_train, X_test : float64 (rows, features), filled, one-hot encoded and scaled by the training part.
    y_train, y_test : class numbers (int) or regression targets (float).
    feature_names : names of the encoded columns.
    groups : the one-hot groups, `{"Purpose": ("Purpose_car", ...)}`; a two-level category is one 0/1
        column and has a group of one.
    train_rows, test_rows : row numbers of the two parts in `columns`.
    columns, target : the whole table as its source gave it, unscaled and unencoded.
    scaler : the scaling, fitted on the training part.
    truth_train, truth_test : coefficients of the true log-odds in the units of `X`, where they are known.
    checksum : SHA-256 of the content of `columns` and `target`.
    """

    name: str
    task: str
    X_train: Array
    X_test: Array
    y_train: Array
    y_test: Array
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    groups: Mapping[str, tuple[str, ...]]
    train_rows: Array
    test_rows: Array
    columns: Mapping[str, Array]
    target: Array
    scaler: Scaler
    truth_train: Array | None
    truth_test: Array | None
    source: str
    licence: str
    checksum: str
    note: str = field(default="")

    def frame(self, part: Part = "all", *, encoded: bool = False, backend: Any = "pandas") -> Any:
        """Give one part as a data frame: the source's own columns, or the encoded, scaled ones."""
        import narwhals as nw

        rows = {"train": self.train_rows, "test": self.test_rows, "all": np.arange(len(self.target))}[part]
        if encoded:
            matrix = np.empty((len(self.target), len(self.feature_names)))
            matrix[self.train_rows], matrix[self.test_rows] = self.X_train, self.X_test
            columns = dict(zip(self.feature_names, matrix.T, strict=True))
        else:
            columns = dict(self.columns)
        return nw.from_dict(
            {name: column[rows] for name, column in columns.items()}, backend=backend
        ).to_native()

    def __repr__(self) -> str:
        rows, width = len(self.target), len(self.feature_names)
        origin = f"{self.source}, {self.licence}" if self.licence else self.source
        return (
            f"Dataset({self.name!r}: {rows:,} rows ({len(self.X_train):,} train, {len(self.X_test):,} test), "
            f"{len(self.columns)} columns as {width} features, {self.task}; {origin})"
        )


def prepare(table: Table, *, seed: int = SPLIT_SEED) -> Dataset:
    """Split 80/20, fill the gaps, one-hot encode and scale, all learnt from the training part."""
    from sklearn.model_selection import train_test_split

    rows = np.arange(len(table.target))
    train, test = map(np.asarray, train_test_split(rows, test_size=TEST_SHARE, random_state=seed))
    encoded: dict[str, Array] = {}
    groups: dict[str, tuple[str, ...]] = {}
    for name, column in table.columns.items():
        filled = fill_gaps(column, train)
        indicators = {name: filled} if filled.dtype.kind == "f" else one_hot(name, filled)
        encoded |= indicators
        if filled.dtype.kind != "f":
            groups[name] = tuple(indicators)
    matrix = np.column_stack(list(encoded.values())).astype(float)  # (rows, features)
    low, high = matrix[train].min(axis=0), matrix[train].max(axis=0)
    scaler = Scaler(low, np.where(high > low, high - low, 1.0))
    scaled = scaler(matrix)
    # A coefficient per unit of x is `span` times as large per unit of the scaled x.
    truth = None if table.truth is None else table.truth * scaler.span
    return Dataset(
        name=table.name,
        task=table.task,
        X_train=scaled[train],
        X_test=scaled[test],
        y_train=table.target[train],
        y_test=table.target[test],
        feature_names=tuple(encoded),
        class_names=table.class_names if table.task == "classification" else (),
        groups=MappingProxyType(groups),
        train_rows=train,
        test_rows=test,
        columns=MappingProxyType(dict(table.columns)),
        target=table.target,
        scaler=scaler,
        truth_train=None if truth is None else truth[train],
        truth_test=None if truth is None else truth[test],
        source=table.source,
        licence=table.licence,
        checksum=table_digest(table.columns, table.target),
        note=table.note,
    )


def fill_gaps(column: Array, train: Array) -> Array:
    """Replace missing cells by the training mean (numbers) or mode (text; ties: first by name)."""
    if column.dtype.kind == "f":
        return np.where(np.isnan(column), np.nanmean(column[train]), column)
    known = column[train][column[train] != ""]
    levels, counts = np.unique(known, return_counts=True)
    return np.where(column == "", levels[counts.argmax()], column)


def one_hot(name: str, column: Array) -> dict[str, Array]:
    """One 0/1 column per level, by sorted level; two levels need one column (the second level's)."""
    levels = np.unique(column)
    kept = levels[1:] if len(levels) == 2 else levels
    return {f"{name}_{level}": (column == level).astype(float) for level in kept}


def table_digest(columns: Mapping[str, Array], target: Array) -> str:
    """SHA-256 of a table's content, whatever file format it travelled in."""
    hasher = hashlib.sha256()
    for name, column in (*columns.items(), ("", target)):
        numeric = column.dtype.kind in "fiub"
        cells = column.astype("<f8").tobytes() if numeric else "\x1f".join(map(str, column)).encode()
        hasher.update(name.encode() + b"\x1e" + cells + b"\x1d")
    return hasher.hexdigest()
