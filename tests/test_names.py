"""Every name that is defined is used."""

from __future__ import annotations

import ast
import re
from collections import Counter

import architecture as house

EXPERIMENTS = house.SOURCE.parents[1] / "experiments"  # use the library, too

#: what only users or another library call, by name
CALLED_ELSEWHERE = {
    "_repr_html_": "notebooks",
    "with_interactions": "users, for the second-order surrogate",
    "to_excel": "users",
    "engine_report": "users",
    "log_explanation": "users",
    "log_explainer": "users",
    "_load_pyfunc": "MLflow",
    "list_commands": "click",
    "get_command": "click",
    "format_commands": "click",
    "teardown": "Dask's worker plugins",
}


def test_nothing_is_defined_that_nothing_uses():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in house.SOURCE.rglob("*.py")]
    users = [ast.parse(path.read_text(encoding="utf-8")) for path in EXPERIMENTS.rglob("*.py")]
    used = Counter(name for tree in (*trees, *users) for node in ast.walk(tree) for name in _names_in(node))
    unused = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            unused |= {node.name} if not used[node.name] and not node.name.startswith("__") else set()
    for node in (node for tree in trees for node in tree.body):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):  # a constant: its definition is one use
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            unused |= {name for name in names if used[name] < 2 and not name.startswith("__")}
    assert unused == set(CALLED_ELSEWHERE)


def _names_in(node):
    """The names a node mentions, those in strings that are names of things among them."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.keyword) and node.arg:
        yield node.arg
    elif isinstance(node, ast.alias) and node.asname:
        yield node.name
    elif isinstance(node, ast.Constant) and re.fullmatch(r"[\w.:]+", str(node.value)):
        yield from re.findall(r"\w+", str(node.value))
