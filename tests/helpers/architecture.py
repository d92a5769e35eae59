"""The rules on imports as data, and what of a source tree breaks them.

An import is found wherever it stands: at the top of a file, inside a function, relative, under
`TYPE_CHECKING`, or as a literal name of a module that something imports later ("texplainer.plots.bar").
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import texplainer as tx

SOURCE = Path(tx.__file__).parent

#: the only direction imports may point: a module sees its own package and what stands before it
LAYERS = (
    "errors", "types", "limits", "support", "tables", "models", "background", "gradients", "explanation", "categories",
    "attributions", "interactions", "diagnostics", "explainer", "reasons", "images", "files", "datasets", "metrics", "explainers", "plots",
    "report", "mlflow", "execution", "app", "cli", "__main__", "demo",
)  # fmt: skip

MACHINERY = ("gradients", "categories", "attributions", "interactions", "diagnostics", "explainer", "images")
#: layers that see less than what stands before them: they know explanations, not how these are made
UNSEEN = {
    "datasets": tuple(LAYERS[LAYERS.index("tables") : LAYERS.index("datasets")]),
    "metrics": MACHINERY,
    "explainers": MACHINERY,
    "plots": MACHINERY,
    "report": MACHINERY,
}
#: what everybody may read of the machinery: it is data and imports none of it
OPEN = ("attributions.table",)

#: (importing module, imported layer or module) -> why it may, though it points upwards or to what is unseen
EXCEPTIONS = {
    ("", "*"): "the public names, imported when they are first used",
    ("types", "explanation"): "the type of what an explainer returns; nothing is imported",
    ("explanation.text", "attributions.table"): "what the columns of a printed row are called; it is data",
    ("explanation.explanation", "files"): "Explanation.save and .load delegate",
    ("explanation.explanation", "report"): "Explanation.report and its table in notebooks delegate",
    ("explanation.explanation", "reasons"): "Explanation.reasons delegates",
    ("explainer", "reasons"): "TExplainer.recourse delegates",
    ("explainers.images", "images"): "other explainers are given the same segments and masks",
    ("metrics.evaluation", "plots"): "Evaluation.plot delegates",
    ("metrics.evaluation", "report"): "Evaluation.report and its table in notebooks delegate",
}


def modules(source: Path = SOURCE) -> dict[str, Path]:
    """Every module by its name below texplainer, "" for the package itself."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def layer_of(module: str) -> str:
    return module.split(".")[0]


def wrong_imports(source: Path = SOURCE) -> list[str]:
    """What points the wrong way, one line each."""
    known = modules(source)
    found = [f"{name} stands in no layer" for name in known if name and layer_of(name) not in LAYERS]
    for name, path in known.items():
        for target in imported(path, name, known):
            if not _may(name, target) and not _excuses(name, target):
                found.append(f"{name or 'texplainer'} imports {target}")
    return found


def used_exceptions(source: Path = SOURCE) -> set[tuple[str, str]]:
    """The exceptions that something needs."""
    known, used = modules(source), set()
    for name, path in known.items():
        for target in imported(path, name, known):
            if not _may(name, target):
                used |= set(_excuses(name, target))
    return used


def _may(name: str, target: str) -> bool:
    """Whether a module may import another by the order of the layers and what they may not see."""
    if not target:  # texplainer itself: its version
        return True
    if layer_of(name) not in LAYERS or layer_of(target) not in LAYERS:
        return False
    above, below = layer_of(name), layer_of(target)
    unseen = below in UNSEEN.get(above, ()) and target not in OPEN
    return LAYERS.index(below) <= LAYERS.index(above) and not unseen


def _excuses(name: str, target: str) -> list[tuple[str, str]]:
    return [
        (who, what) for who, what in EXCEPTIONS if who == name and what in ("*", target, layer_of(target))
    ]


def imported(path: Path, name: str, known: dict[str, Path]) -> set[str]:
    """The modules of texplainer that a file imports, at once or later."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        found |= {_resolve(dotted, known) for dotted in _mentioned(node, package)}
    return found - {None, name}


def _mentioned(node: ast.AST, package: str) -> Iterator[str]:
    """Full names of what a node imports: modules, or things in modules."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = _absolute(node.level, node.module or "", package)
        yield from (tx.PUBLIC.get(a.name, f"{base}.{a.name}") if base == "texplainer" else f"{base}.{a.name}"
                    for a in node.names)  # fmt: skip
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        if re.fullmatch(r"texplainer(\.\w+)+(:\w+)?", node.value):
            yield node.value
    elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
        yield str(node.values[0].value).rpartition(".")[0]  # f"texplainer.cli.{command}"
    elif (
        isinstance(node, ast.Call) and node.args and getattr(node.func, "attr", None) == "import_module"
    ) or (isinstance(node, ast.Call) and node.args and getattr(node.func, "id", None) == "import_module"):
        yield from _relative_name(node.args[0], package)


def _relative_name(argument: ast.expr, package: str) -> Iterator[str]:
    """import_module("..plots", __package__): the name the dots stand for."""
    text = argument.value if isinstance(argument, ast.Constant) else None
    if isinstance(text, str) and text.startswith("."):
        rest = text.lstrip(".")
        yield _absolute(len(text) - len(rest), rest, package)


def _absolute(level: int, module: str, package: str) -> str:
    """The full name of what `from ..module import` stands for."""
    if not level:
        return module
    parts = ["texplainer", *filter(None, package.split("."))]
    return ".".join([*parts[: len(parts) - level + 1], *filter(None, [module])])


def _resolve(dotted: str, known: dict[str, Path]) -> str | None:
    """The module a full name lies in, below texplainer; None for other packages."""
    first, *rest = dotted.replace(":", ".").split(".")
    if first != "texplainer":
        return None
    while ".".join(rest) not in known:
        rest.pop()
    return ".".join(rest)


def other_styles(source: Path = SOURCE) -> list[str]:
    """Imports that are not `from texplainer.package import name`, one line each."""
    found = []
    for name, path in modules(source).items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                found.append(f"{name} imports relatively, line {node.lineno}")
            elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                found.append(f"{name} imports a star, line {node.lineno}")
            elif isinstance(node, ast.Import) and any(_resolve(a.name, {"": path}) == "" for a in node.names):
                found.append(f"{name} imports texplainer as a whole, line {node.lineno}")
    return found


def import_cycles(source: Path = SOURCE) -> list[str]:
    """Groups of modules that import each other, in any number of steps, at once or later.

    Imports for type checkers alone do not count, those that `EXCEPTIONS` names, and the entries of a table, which are
    imported by a name put together when they are asked for.
    """
    known = modules(source)
    graph = {
        name: {
            target for target in imported_when_run(path, name, known) if target and not _excuses(name, target)
        }
        for name, path in known.items()
        if name
    }
    reached = {name: _reached(name, graph) for name in graph}
    groups = {frozenset(b for b in reached[a] if a in reached[b]) for a in graph if a in reached[a]}
    return sorted(" · ".join(sorted(group)) for group in groups)


def _reached(start: str, graph: dict[str, set[str]]) -> set[str]:
    """The modules that one imports, directly or through others."""
    found: set[str] = set()
    left = set(graph[start])
    while left:
        name = left.pop()
        found.add(name)
        left |= graph.get(name, set()) - found
    return found


def imported_when_run(path: Path, name: str, known: dict[str, Path]) -> set[str]:
    """The modules a file imports, at once or later, other than for type checkers."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typed = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for part in ast.walk(statement)
    }
    # a package whose data files are read is not imported by that
    data = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "files"
        for argument in node.args
    }
    nodes = (node for node in ast.walk(tree) if id(node) not in typed | data)
    return {_resolve(dotted, known) for node in nodes for dotted in _mentioned(node, package)} - {None, name}
