"""Where third-party data comes from: the `TEXPLAINER_DATA` folder, the cache, or its public source.

The package ships no third-party data. What is found or downloaded is parsed and the SHA-256 of its *content*
compared with the known one, so that one checksum serves every file format, and a damaged or altered copy is
never used. A cached file carries its own SHA-256 beside it.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import os
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from texplainer.datasets.dataset import Array, table_digest
from texplainer.support import progress

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

    `slope` reads the plain file of `TEXPLAINER_DATA`, `upstream` the bytes of the public source. `checksums`
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
    return DatasetUnavailable(
        f"data set {source.name!r} is not in the cache ({cached_path(source)}), not in TEXPLAINER_DATA "
        f"({folder or 'not set'}), and {reason}. Connect to the internet and load it again, or put "
        f"{source.file} into a folder and set TEXPLAINER_DATA to it; public source: {source.page}"
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
