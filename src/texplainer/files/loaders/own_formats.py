"""Model files in a library's own format: looked at, tried in a child process, then read by the library.

What a library says of its files stands in `models/libraries`. Here is what its reader does not look at
by itself, by suffix: the file before it is read, and the model that came out of it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from texplainer.errors import InputError
from texplainer.files.loaders import tree_safety, ubjson
from texplainer.files.loaders.trial import try_in_child
from texplainer.models.libraries import file_readers


def load_own_format(path: Path) -> Any:
    """Read a model by the library whose suffix the file has."""
    suffix = path.suffix.lower()
    library, file = file_readers()[suffix]
    _check_opening(path, file.openings)
    if suffix in BEFORE:
        BEFORE[suffix](path)
    import_module(file.package)  # a forked child then has it
    try_in_child(path, library.name, _read_and_ask, suffix)
    return _read(path, suffix, threads=0)


def _read_and_ask(suffix: str, path: Path) -> None:
    """In the child: the model is looked at before it is asked, for its library believes what it read."""
    file_readers()[suffix][1].ask(_read(path, suffix, threads=1))


def _read(path: Path, suffix: str, threads: int) -> Any:
    model = file_readers()[suffix][1].read(path, threads)
    if suffix in AFTER:
        AFTER[suffix](path, model)
    return model


def _check_opening(path: Path, openings: tuple[bytes, ...]) -> None:
    """Refuse a file of another format before its library's parser meets it."""
    if not openings:
        return
    with path.open("rb") as file:
        start = file.read(max(map(len, openings)))
    if not start.startswith(openings):
        raise InputError(
            f"{path} starts with {start!r}; a {path.suffix} model starts with {openings[0]!r}. "
            "It is another kind of file, or damaged."
        )


def _check_lightgbm_text(path: Path) -> None:
    text = path.read_bytes()
    if b"\nend of trees" not in text:
        raise InputError(f"{path} ends before its last tree; it is truncated.")
    tree_safety.check_lightgbm(path, text)


#: suffix -> what is looked at before the library's reader meets the file
BEFORE: dict[str, Callable[[Path], object]] = {
    ".json": lambda path: tree_safety.check_xgboost_json(path, path.read_bytes()),
    ".ubj": lambda path: ubjson.check_ubjson(path.read_bytes()),
    ".txt": _check_lightgbm_text,
}
#: suffix -> what is looked at in the model it made of the file
AFTER: dict[str, Callable[[Path, Any], object]] = {
    ".json": tree_safety.check_xgboost,
    ".ubj": tree_safety.check_xgboost,
}
