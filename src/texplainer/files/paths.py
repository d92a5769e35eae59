"""Files that are there, files that are written whole or not at all, and who may write them."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from texplainer.errors import InputError


def as_path(path: Any) -> Path:
    """A path, whatever it is given as."""
    try:
        return Path(path)
    except TypeError:
        raise InputError(f"the path {path!r} is none; expected a text or a pathlib.Path.") from None


def existing(path: str | os.PathLike[str]) -> Path:
    """A path that is a file and not empty."""
    found = as_path(path)
    if not found.is_file():
        raise InputError(f"there is no file {found}; check the path.")
    if found.stat().st_size == 0:
        raise InputError(f"{found} is empty; expected a file with content.")
    return found


def first_line(error: BaseException) -> str:
    """A library's message without its stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def put_whole(path: Path, data: Any) -> None:
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


def sweep_parts(folder: Path) -> None:
    """Remove what writers that were killed left behind."""
    for part in folder.glob(".*.part"):
        with contextlib.suppress(OSError):
            part.unlink()


@contextlib.contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Hold a lock on a file, which ends with the process, however it ends; `busy` if another holds it."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not path.exists() or path.stat().st_ino != os.fstat(file.fileno()).st_ino:
                raise OSError  # the former holder has just finished and taken the file away
        except OSError:
            raise InputError(busy) from None
        yield
