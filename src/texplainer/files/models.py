"""Model files in, without running anything from them.

A file's suffix says who reads it: a function of `LOADERS`, or the library that states it as its own
(`models/libraries`), whose files are checked by `BEFORE` and `AFTER` and tried in a child process first. None of
them unpickles: a pickle, also under another name, is only ever opened by the loaders of `UNSAFE`, which the
user has to allow. A model can also be a function of an importable module, written `package.module:function`.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from texplainer.errors import InputError
from texplainer.files.loaders import safety
from texplainer.files.loaders.safety import try_in_child
from texplainer.files.paths import existing, first_line
from texplainer.models.libraries import file_readers
from texplainer.support import hashing

_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


@dataclass(frozen=True)
class Consent:
    """What the user trusts: types in a skops file, pickles, the module for weights."""

    trust: tuple[str, ...] = ()
    allow_pickle: bool = False
    module: str | None = None


def load_model(model: str | os.PathLike[str], consent: Consent | None = None) -> Any:
    """Read the model from a file, or import it as `package.module:function`."""
    consent = consent or Consent()
    if is_reference(model):
        return import_reference(str(model))
    path = existing(model)
    suffix = path.suffix.lower()
    if suffix in UNSAFE:
        return _unsafe(path, consent)
    if suffix not in safe_suffixes():
        known = ", ".join([*safe_suffixes(), *UNSAFE])
        raise InputError(
            f"{path} has the suffix {suffix!r}; expected one of {known} or package.module:function."
        )
    try:
        return LOADERS[suffix](path, consent) if suffix in LOADERS else load_own_format(path)
    except InputError:
        raise
    except ModuleNotFoundError as error:
        raise InputError(f"{path} needs the package {error.name!r}, which is not installed.") from error
    except Exception as error:
        raise InputError(f"{path} is not a {suffix} model, or is damaged ({first_line(error)}).") from error


def safe_suffixes() -> tuple[str, ...]:
    """The suffixes of the files that are read without running anything from them."""
    return (*file_readers(), *LOADERS)


def fingerprint(model: str | os.PathLike[str]) -> dict[str, str]:
    """Name and hash of a model's file, or of the source file of an imported function."""
    if not is_reference(model):
        path = existing(model)
        return {"name": path.name, "sha256": hashing.of_file(path)}
    found = getattr(importlib.import_module(str(model).split(":")[0]), "__file__", None)
    return {"name": str(model), "sha256": hashing.of_file(Path(found)) if found else ""}


def is_reference(model: str | os.PathLike[str]) -> bool:
    """Whether a text means a function of a module, not a file."""
    return _REFERENCE.fullmatch(str(model)) is not None and not Path(model).exists()


def import_reference(reference: str) -> Any:
    """Import `package.module:function`, from the current folder too."""
    module, _, name = reference.partition(":")
    if not _REFERENCE.fullmatch(reference):
        raise InputError(f"{reference!r} does not name a function; expected package.module:function.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise InputError(f"{reference!r}: module {error.name!r} was not found.") from error
    except AttributeError:
        raise InputError(f"{reference!r}: the module {module!r} has no {name!r}.") from None
    except (Exception, SystemExit) as error:
        words = f"{type(error).__name__}: {first_line(error)}"
        raise InputError(f"{reference!r}: importing the module {module!r} failed ({words}).") from error


# ---------------------------------------------------------------- one loader per format


def _skops(path: Path, consent: Consent) -> Any:
    from texplainer.files.loaders import skops

    return skops.load_skops(path, consent.trust)


def _torch_program(path: Path, _: Consent) -> Any:
    from texplainer.files.loaders import torch

    return torch.load_program(path)


def _torch_state(path: Path, consent: Consent) -> Any:
    from texplainer.files.loaders import torch

    if consent.module is None:
        raise InputError(
            f"{path} contains weights without a network; pass the function that builds it with --module "
            "package.module:function, or save the whole network with torch.export.save (.pt2)."
        )
    return torch.load_state(path, import_reference(consent.module))


def _unsafe(path: Path, consent: Consent) -> Any:
    if not consent.allow_pickle:
        raise InputError(
            f"{path} is a pickle: opening it runs any code in the file. If you trust its author, pass "
            "--allow-pickle; better, save the model as .skops, .onnx or in its library's own format."
        )
    try:
        return UNSAFE[path.suffix.lower()](path)
    except Exception as error:
        raise InputError(
            f"{path} cannot be unpickled ({type(error).__name__}: {first_line(error)})."
        ) from error


def _pickle(path: Path) -> Any:
    import pickle

    with path.open("rb") as file:
        return pickle.load(file)


def _joblib(path: Path) -> Any:
    import joblib

    return joblib.load(path)


#: formats that are read here; a library's own are in its file of `models/libraries`
LOADERS: dict[str, Callable[[Path, Consent], Any]] = {
    ".skops": _skops,
    ".pt2": _torch_program,
    ".pt": _torch_state,
    ".pth": _torch_state,
}
UNSAFE: dict[str, Callable[[Path], Any]] = {".pkl": _pickle, ".pickle": _pickle, ".joblib": _joblib}


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
    safety.check_lightgbm(path, text)


#: suffix -> what is looked at before the library's reader meets the file
BEFORE: dict[str, Callable[[Path], object]] = {
    ".json": lambda path: safety.check_xgboost_json(path, path.read_bytes()),
    ".ubj": lambda path: safety.check_ubjson(path.read_bytes()),
    ".txt": _check_lightgbm_text,
}
#: suffix -> what is looked at in the model it made of the file
AFTER: dict[str, Callable[[Path, Any], object]] = {
    ".json": safety.check_xgboost,
    ".ubj": safety.check_xgboost,
}
