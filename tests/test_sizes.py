"""Limits on the size of files, folders and functions; a function's docstring does not count."""

from __future__ import annotations

import ast
from collections import Counter

import architecture as house

ROOT_MODULES, FOLDER_MODULES, FILE_LINES, FUNCTION_LINES = 9, 20, 600, 70

#: functions that may be longer, by file and name: compiled loops that splitting makes slower (said there)
KERNELS = {
    ("gradients/trees/kernels/classes.py", "add_deep_values"),
}


def lines_of_files():
    return {
        path.relative_to(house.SOURCE).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in house.SOURCE.rglob("*.py")
    }


def lines_of_functions():
    for path in house.SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                words = len((ast.get_docstring(node, clean=False) or "").splitlines())
                lines = node.end_lineno - node.lineno + 1 - words
                yield path.relative_to(house.SOURCE).as_posix(), node.name, lines


def test_the_root_keeps_few_modules():
    assert len(list(house.SOURCE.glob("*.py"))) <= ROOT_MODULES


def test_no_folder_is_crowded():
    held = Counter(path.parent for path in house.SOURCE.rglob("*.py") if path.name != "__init__.py")
    assert [f"{folder}: {count}" for folder, count in held.items() if count > FOLDER_MODULES] == []


def test_no_file_is_long():
    long = {path for path, lines in lines_of_files().items() if lines > FILE_LINES}
    assert long == set()


def test_no_function_is_long():
    long = {(path, name) for path, name, lines in lines_of_functions() if lines > FUNCTION_LINES}
    assert long - KERNELS == set()


def test_kernels_say_why_they_stay_whole():
    for path, name in KERNELS:
        text = (house.SOURCE / path).read_text(encoding="utf-8")
        function = next(n for n in ast.walk(ast.parse(text)) if getattr(n, "name", "") == name)
        assert "split" in ast.get_docstring(function), f"{path}: {name} does not say why it stays whole"


def test_the_page_of_the_architecture_names_every_folder():
    page = (house.SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = {path.parent for path in house.SOURCE.rglob("*.py")} - {house.SOURCE}
    assert [folder.name for folder in folders if f"{folder.name}/" not in page] == []
