"""Files that are there, files that are written whole or not at all, and who may write them."""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from texplainer.errors import InputError


def as_path(path: Any) -> Path:
    """A path, whatever it is given as; "~" is the home folder."""
    try:
        found = Path(path)
    except TypeError:
        raise InputError(f"{path!r} is not a path; expected a string or a pathlib.Path.") from None
    if "\0" in str(found):
        raise InputError(f"{str(found)!r} is not a path: it holds a null character.")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(found)) and "://" in str(path):
        raise InputError(f"{path!r} is an address; expected a file of this machine. Copy it there first.")
    return found.expanduser() if found.parts[:1] == ("~",) else found


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the file that cannot be written, or the other one that is in the way, and why."""
    try:
        yield
    except OSError as error:
        why, named = error.strerror or error, error.filename
        if isinstance(named, (str, os.PathLike)) and path.name not in Path(named).name:  # a key, or a folder
            raise InputError(f"{named} cannot be used: {why}. Check the path.") from error
        raise InputError(f"{path} cannot be written: {why}. Choose another place, or change it.") from error


def existing(path: str | os.PathLike[str]) -> Path:
    """A path that is a file and not empty."""
    found = as_path(path)
    if not os.fspath(path):
        raise InputError("the path of a file is empty; expected its name.")
    if found.is_dir():
        raise InputError(f"{found} is a folder; expected a file.")
    if not found.is_file():
        raise InputError(f"there is no file {found}; check the path.")
    if found.stat().st_size == 0:
        raise InputError(f"{found} is empty; expected a file with content.")
    return found


def first_line(error: BaseException) -> str:
    """A library's message without its stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def part_of(path: Path) -> Path:
    """A name for a partial file beside a path, which nobody can guess."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")


def create(path: Path) -> int:
    """Create a file that is not there yet and hold a lock on it while it is written; follows no symlink."""
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
    with contextlib.suppress(ImportError, OSError):  # not on Windows, nor on every file system
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def put_whole(path: Path, data: Any) -> None:
    """Write a file so that it is there whole or not at all, even if the power fails."""
    part = part_of(path)
    try:
        with os.fdopen(create(part), "wb") as file:
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


def sweep_parts(folder: Path, name: str) -> None:
    """Remove the partial files of `name` (a regular expression) that writers which were killed left behind."""
    ours = re.compile(rf"\.(?:{name})\.[0-9a-f]{{32}}\.(?:part|json)")
    for part in folder.iterdir():
        if ours.fullmatch(part.name) and part.is_file() and not part.is_symlink() and not _in_use(part):
            with contextlib.suppress(OSError):
                part.unlink()


def _in_use(path: Path) -> bool:
    """Whether the writer of a file still lives, which it shows by a lock."""
    try:
        import fcntl

        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return False
    except OSError:
        return True
    return False


@contextlib.contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Hold a lock on a file until the process ends; raise `busy` if another process holds it."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with os.fdopen(_opened(path), "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not path.exists() or path.stat().st_ino != os.fstat(file.fileno()).st_ino:
                raise OSError  # the former holder has just finished and taken the file away
        except OSError:
            raise InputError(busy) from None
        yield


def _opened(path: Path) -> int:
    """Open a lock file, made where it is missing; a symlink is refused."""
    try:
        return os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        if path.is_symlink():
            raise InputError(f"{path} is a symbolic link; expected a plain file. Remove it.") from None
        raise error
