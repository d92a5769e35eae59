"""The recipes of CONTRIBUTING.md name files and tables that exist, and count them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "texplainer"
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = {
    cells[0]: cells[1:]
    for cells in ([cell.strip() for cell in line.strip("| \n").split("|")] for line in PAGE.splitlines())
    if len(cells) == 5 and re.match(r"(an?|another) ", cells[0])
}


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def found(path: str) -> bool:
    """Whether a file, or the folder of a file that is to be written, exists."""
    known = path.partition("<")[0]
    return any((base / known).exists() for base in (SOURCE, ROOT))


def test_there_are_ten_recipes_each_with_its_test():
    assert len(RECIPES) == 10
    tests = {path.stem for path in Path(__file__).parent.glob("test_add_*.py")}
    for what in RECIPES:
        word = "an explainer" if what == "another explainer" else what
        assert f"test_add_{word.replace(' ', '_')}" in tests


@pytest.mark.parametrize("what", RECIPES)
def test_a_recipe_names_files_that_exist(what):
    code, line, also, _ = RECIPES[what]
    paths = [name for name in names(code + line + also) if "/" in name or "." in name]
    assert paths and [path for path in paths if not found(path)] == []


@pytest.mark.parametrize("what", RECIPES)
def test_a_recipe_names_the_table_where_it_is(what):
    code, line, _, _ = RECIPES[what]
    table, *places = names(line)
    place = places[0] if places else names(code)[0]
    tree = ast.parse((SOURCE / place).read_text(encoding="utf-8"))
    targets = [t for node in tree.body if isinstance(node, ast.Assign) for t in node.targets]
    targets += [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
    assert table in {getattr(target, "id", None) for target in targets}


@pytest.mark.parametrize("what", RECIPES)
def test_a_recipe_needs_at_most_three_files_of_the_source(what):
    least, most = (re.findall(r"\d+", RECIPES[what][3].partition("+")[0]) * 2)[:2]
    assert 1 <= int(least) <= int(most) <= 3
