"""A name means one thing: no public class or function of two modules has the same name."""

from __future__ import annotations

import ast
from collections import defaultdict

import architecture as house

#: the same name on purpose: one meaning, an implementation a module -> where it is called from
SHARED = {
    "build": "engines and categories: the table of engines calls each by this name",
    "load": "tree readers, and their table; tx.datasets.load",
    "command": "one a subcommand, called by the command line",
    "count": "backends: how many workers there are",
    "main": "what `python -m` and the console script run",
    "facts": "the first lines of a report, of an explanation or an evaluation",
    "payload": "what a report's script reads, of an explanation or an evaluation",
    "introduction": "the first lines of a page of results",
    "contributions": "ways of shares: walks, pairs",
    "lime": "the rival for tables and the one for images",
    "shap": "the rival for tables and the one for images",
}


def test_no_public_name_means_two_things():
    places = defaultdict(list)
    for path in house.SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(house.SOURCE).as_posix())
    twice = {name: where for name, where in places.items() if len(where) > 1 and name not in SHARED}
    assert twice == {}
