"""Zip archives from strangers: checked before a single entry is opened.

npz, skops and torch files are zip archives. An archive can name files outside its folder, hold one name twice
(so that two readers see two contents), share its bytes between entries or unpack to a thousand times its
size. All this is told by its directory, which `check_archive` reads.
"""

from __future__ import annotations

import stat
import zipfile
from collections import Counter
from pathlib import Path, PurePosixPath

from texplainer.errors import InputError

#: an archive may unpack to this many times its size, and always to FREE_BYTES
MOST_EXPANSION = 100
FREE_BYTES = 64 * 2**20
MOST_ENTRIES = 100_000


def check_archive(path: Path) -> None:
    """Reject an archive that is damaged or unsafe to unpack."""
    size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"{path} is not a zip archive, or is damaged ({error}).") from error
    if len(entries) > MOST_ENTRIES:
        raise InputError(f"{path} holds {len(entries)} entries; expected at most {MOST_ENTRIES}.")
    names = [entry.filename for entry in entries]
    twice = (
        next((name for name, count in Counter(names).items() if count > 1), None)
        if len(set(names)) < len(names)
        else None
    )
    if twice is not None:
        raise InputError(f"{path} holds the entry {twice!r} twice; it was not written by a saver.")
    for entry in entries:
        _check_entry(path, entry)
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > max(FREE_BYTES, MOST_EXPANSION * size):
        raise InputError(
            f"{path} of {size:,} bytes would unpack to {unpacked:,} bytes; expected at most "
            f"{MOST_EXPANSION} times its size. It looks like a zip bomb."
        )
    if sum(entry.compress_size for entry in entries) > size:
        raise InputError(f"{path} has entries that share their bytes. It looks like a zip bomb.")


def _check_entry(path: Path, entry: zipfile.ZipInfo) -> None:
    name = PurePosixPath(entry.filename.replace("\\", "/"))
    drive = len(name.parts) > 0 and name.parts[0].endswith(":")
    if name.is_absolute() or ".." in name.parts or drive or not name.parts:
        raise InputError(f"{path} holds the entry {entry.filename!r}, which points outside the archive.")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise InputError(f"{path} holds the symbolic link {entry.filename!r}; expected plain entries.")
    if entry.flag_bits & 1:
        raise InputError(f"{path} holds the encrypted entry {entry.filename!r}; save it without a password.")
