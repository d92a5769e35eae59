"""torch models without code from the file: an exported program, or weights for a module of the user's.

`torch.export` archives can hold pickles (weights, constants, example inputs) and compiled libraries, and
their loader would run them. Here the archive's entries are checked against a list, torch reads
weights only, and the texts of the program that torch evaluates or executes (shape expressions, guards, names,
operators) may hold only the words torch itself writes.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from texplainer.errors import InputError
from texplainer.files.loaders import safety
from texplainer.files.paths import first_line

#: entries below the archive's root folder that torch.export.save writes for a program of tensors
_ENTRIES = re.compile(
    r"(data/weights/(weight_\d+|\w+\.json)|data/constants/(tensor_\d+|\w+\.json)|data/sample_inputs/\w+\.pt"
    r"|models/\w+\.json|archive_format|archive_version|byteorder|version|\.data/\w+|\.format_version"
    r"|\.storage_alignment)"
)
_WORDS = frozenset(
    re.findall(
        r"\w+",
        "Symbol Integer Rational Float Add Mul Pow Mod Max Min FloorDiv CleanDiv CeilDiv PythonMod Eq Ne "
        "Ge Gt Le Lt And Or Not Where True False positive integer nonnegative nonzero even odd real zero "
        "commutative",
    )
)


def load_program(path: Path) -> Any:
    """Read a torch.export archive (.pt2) as a module."""
    import torch

    safety.check_archive(path)
    _check_program(path)
    try:
        with _weights_only():
            program = torch.export.load(path).module()
    except Exception as error:
        raise InputError(
            f"{path} is not an exported program of this torch version, or is damaged ({first_line(error)})."
        ) from error
    return _frozen(torch, program)


def load_state(path: Path, module: Any) -> Any:
    """Read weights (a state dict) into the module that `module()` makes."""
    import torch

    safety.check_archive(path)
    network = module()
    if not isinstance(network, torch.nn.Module):
        raise InputError(f"the named module gave a {type(network).__name__}; expected a torch.nn.Module.")
    try:
        with _weights_only():
            state = torch.load(path, map_location="cpu", weights_only=True)
        network.load_state_dict(state)
    except Exception as error:
        raise InputError(
            f"{path} does not hold the weights of {type(network).__name__} ({first_line(error)})."
        ) from error
    return network.eval()


@contextmanager
def _weights_only() -> Iterator[None]:
    """Have every torch.load inside refuse pickled code, also those whose caller asks for it."""
    import torch

    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 6):
        raise InputError(
            f"torch {torch.__version__} reads weights unsafely; expected 2.6 or newer. Upgrade torch."
        )
    names = ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    before = {name: os.environ.pop(name, None) for name in names}
    os.environ[names[0]] = "1"
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _check_program(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                inside = name.split("/", 1)[-1]
                if not _ENTRIES.fullmatch(inside):
                    raise InputError(
                        f"{path} holds {name!r}; expected an exported program of plain tensors, without "
                        "pickled objects or compiled libraries. Export it again with torch.export.save."
                    )
                if inside.endswith(".json"):
                    _check_json(path, json.loads(archive.read(name)))
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} is not an exported program, or is damaged ({first_line(error)})."
        ) from error


def _check_json(path: Path, node: Any, key: str = "") -> None:
    """Walk the program: no pickled payload, no text that could be code."""
    if isinstance(node, list):
        for value in node:
            _check_json(path, value, key)
    elif isinstance(node, dict):
        if node.get("use_pickle"):
            raise InputError(
                f"{path} holds the pickled tensor {node.get('path_name')!r}; export plain tensors."
            )
        for name, value in node.items():
            _check_json(path, value, name)
    elif isinstance(node, str) and key in _TEXTS and not _TEXTS[key](node):
        raise InputError(f"{path} holds the {key} {node!r}, which torch does not write. It may be forged.")


def _is_expression(text: str) -> bool:
    """A shape expression as sympy's srepr writes it: known words, numbers, no attribute, no index."""
    words = {w for w in re.findall(r"[^\W\d]\w*", text) if not re.fullmatch(r"[suzif]\d+|unbacked\w*", w)}
    return words <= _WORDS and not re.search(r"\.\s*[^\W\d]|[\[\]{};:@\\]", text)


def _is_guard(text: str) -> bool:
    """A condition on the sizes of the inputs, such as L['x'].size()[0] >= 2."""
    bare = re.sub(r"'\w+'", "", text)
    return set(re.findall(r"[^\W\d]\w*", bare)) <= {"L", "size", "stride", "dim", "and", "or", "not"}


#: texts of the program that torch evaluates, by their key -> whether one is harmless
_TEXTS: dict[str, Callable[[str], Any]] = {
    "expr_str": _is_expression,
    "guards_code": _is_guard,
    "name": re.compile(r"[\w.]*").fullmatch,
    "target": re.compile(
        r"torch\.ops\.(aten|prims|higher_order)\.\w+(\.\w+)?|torch\.sym_\w+"
        r"|_?operator\.(add|sub|mul|floordiv|truediv|mod|pow|neg|eq|ne|lt|le|gt|ge|and_|or_|getitem)"
    ).fullmatch,
}


def _frozen(torch: Any, program: Any) -> Any:
    """A module whose mode cannot change: an exported program has the mode it was exported in."""

    class Exported(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.program = program

        def forward(self, rows: Any) -> Any:
            return self.program(rows)

        def train(self, mode: bool = True) -> Any:
            return self

    return Exported()
