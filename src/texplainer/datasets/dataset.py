"""A data set, ready for a model (split, filled, encoded and scaled), and where third-party data comes from.

A `Table` is what a source gives: named columns, unscaled and unencoded. `prepare` turns it into a `Dataset`
in the order that leaks nothing: split first, then learn the fill values and the scaling from the training
part alone. (The paper's authors scaled the whole table before splitting it.)

The package ships no third-party data: `fetch` reads it from the folder `TEXPLAINER_DATA`, the cache, or its public
source. What is found or downloaded is parsed and the SHA-256 of its *content* compared with the known one, so that
one checksum serves every file format, and a damaged or altered copy is never used. A cached file has its own SHA-256
beside it.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import os
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from texplainer.support import progress

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


Content = tuple[Mapping[str, Array], Array]  # columns, target
BLOCK = 1 << 16
TIMEOUT = 60.0


class DatasetUnavailable(OSError):
    """The data is neither at hand nor to be had; the message says what to do."""


class ChecksumError(ValueError):
    """The data at hand is not the data that was expected."""


@dataclass(frozen=True)
class Source:
    """One third-party data set: where it is, how it is read, how it is verified.

    `local` reads the plain file of `TEXPLAINER_DATA`, `upstream` the bytes of the public source. `checksums`
    are the content digests that are accepted. Where the public table's digest is not known in advance,
    `published` asks the source for (file address, MD5), and that MD5 is verified instead.
    """

    name: str
    file: str
    url: str
    page: str
    licence: str
    local: Callable[[bytes], Content]
    upstream: Callable[[bytes], Content]
    checksums: frozenset[str]
    published: Callable[[bytes], tuple[str, str]] | None = None


def cache_folder() -> Path:
    """`TEXPLAINER_CACHE`, else `texplainer` in the user's cache folder."""
    chosen = os.environ.get("TEXPLAINER_CACHE")
    return (
        Path(chosen)
        if chosen
        else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "texplainer"
    )


def local_path(source: Source) -> Path | None:
    """Find the source's file in `TEXPLAINER_DATA`."""
    folder = os.environ.get("TEXPLAINER_DATA")
    path = Path(folder) / source.file if folder else None
    return path if path and path.is_file() else None


def cached_path(source: Source) -> Path:
    """Name the source's file in the cache."""
    return cache_folder() / "datasets" / f"{source.name}.data"


def state(source: Source) -> str:
    """Where `fetch` would find the data now."""
    if local_path(source):
        return "in TEXPLAINER_DATA"
    if cached_path(source).is_file():
        return "cached"
    return "to download" if source.url else "to put into TEXPLAINER_DATA"


def fetch(source: Source, *, download: bool = True) -> Content:
    """Give the verified content of a source, downloaded into the cache if need be."""
    path = local_path(source)
    if path:
        data = path.read_bytes()
        return verified(
            source, source.local(gzip.decompress(data) if path.suffix == ".gz" else data), str(path)
        )
    path = cached_path(source)
    if not path.is_file():
        if not download:
            raise unavailable(source, "downloading was not allowed")
        if not source.url:
            raise unavailable(source, "no public address of the plain file is known")
        download_to(path, source)
    data = path.read_bytes()
    found, expected = hashlib.sha256(data).hexdigest(), side_file(path).read_text(encoding="ascii").strip()
    if found != expected:
        raise ChecksumError(
            f"{path} has SHA-256 {found}, not {expected}: it is damaged; delete it and load again"
        )
    return source.upstream(data)


def download_to(path: Path, source: Source) -> None:
    """Download, verify, and only then put the file and its SHA-256 in place."""
    try:
        url, md5 = (
            source.published(fetch_bytes(source.url, source.name)) if source.published else (source.url, "")
        )
        data = fetch_bytes(url, source.name)
    except OSError as error:
        raise unavailable(source, f"downloading {source.url} failed ({error})") from error
    if md5 and hashlib.md5(data, usedforsecurity=False).hexdigest() != md5:
        raise ChecksumError(f"{url} does not have the MD5 {md5} its publisher states; try again")
    if not md5:
        verified(source, source.upstream(data), url)
    for target, content in ((side_file(path), hashlib.sha256(data).hexdigest().encode()), (path, data)):
        with in_place(target) as part:
            part.write_bytes(content)


def fetch_bytes(url: str, label: str) -> bytes:
    """Fetch the bytes behind an address, with a progress bar when a terminal is watching."""
    request = urllib.request.Request(url, headers={"User-Agent": "texplainer"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        length = response.headers.get("Content-Length")
        with progress.counting_bytes(f"downloading {label}", int(length) if length else None) as tell:
            blocks: list[bytes] = []
            while block := response.read(BLOCK):
                blocks.append(block)
                tell(len(block))
    data = b"".join(blocks)
    if length and len(data) != int(length):
        raise OSError(f"the connection closed after {len(data):,} of {int(length):,} bytes")
    return data


def verified(source: Source, content: Content, origin: str) -> Content:
    """Give the content back if its checksum is a known one."""
    found = table_digest(*content)
    if found not in source.checksums:
        expected = " or ".join(sorted(source.checksums))
        raise ChecksumError(
            f"{origin} is not the data set {source.name!r}: its content has SHA-256 {found}, "
            f"expected {expected}; take it from {source.page}"
        )
    return content


def unavailable(source: Source, reason: str) -> DatasetUnavailable:
    """Say what was tried and what to do."""
    folder = os.environ.get("TEXPLAINER_DATA")
    put = f"ut {source.file} into a folder and set TEXPLAINER_DATA to it"
    return DatasetUnavailable(
        f"data set {source.name!r} is not in the cache ({cached_path(source)}), not in TEXPLAINER_DATA "
        f"({folder or 'not set'}), and {reason}. "
        f"{f'Connect to the internet and load it again, or p{put}' if source.url else f'P{put}'}; "
        f"public source: {source.page}"
    )


@contextmanager
def in_place(path: Path) -> Iterator[Path]:
    """Give a file beside `path` to write to, and rename it at the end: no reader ever meets half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    part = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove what killed processes left of `path`; others may be at work on it."""
    if os.name != "posix":  # elsewhere asking after a process is not harmless
        return
    for part in path.parent.glob(f".*-{glob.escape(path.name)}"):
        process = part.name[1:].partition("-")[0]
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            part.unlink(missing_ok=True)
        except (ValueError, PermissionError):
            continue


def side_file(path: Path) -> Path:
    """Name the file that holds a cached file's SHA-256."""
    return path.with_name(path.name + ".sha256")
