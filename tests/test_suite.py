"""Rules for the tests themselves: each asserts something, shares no random state and does not watch the clock."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
FILES = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}
CLOCKS = {"time", "monotonic", "perf_counter", "process_time", "times"}
GENERATORS = {"default_rng", "RandomState", "Random", "Generator"}

SHARED_GENERATOR = "RNG = np.random.default_rng(0)\nX = RNG.normal(size=3)\n"
SHARED_LATER = (
    "class Drawn:\n    rng = np.random.default_rng(0)\n",
    "def draw(size, rng=np.random.default_rng(0)):\n    return rng.normal(size=size)\n",
)
TIMED = (
    "def test_fast():\n    began = time.monotonic()\n    work()\n    assert time.monotonic() - began < 1\n"
)
TIMED_LATER = "def test_fast():\n    spent = time.monotonic() - began\n    assert spent < 1\n"
SLEEPY = "def test_it():\n    start()\n    time.sleep(3)\n    assert done()\n"
SILENT = "def helper():\n    return 1\n\n\ndef test_it():\n    helper()\n"


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def called(node: ast.AST) -> str:
    """The last part of the name of what a call calls, "" for anything else."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def shared_generators(tree: ast.Module) -> Iterator[int]:
    """Lines on which a module, a class or a default argument keeps a random generator that tests would share."""
    bodies = [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]
    for node in (node for owner in bodies for node in owner.body):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value and called(node.value) in GENERATORS:
            yield node.lineno
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            defaults = [*function.args.defaults, *function.args.kw_defaults]
            yield from (node.lineno for node in defaults if node is not None and called(node) in GENERATORS)


def timed_assertions(tree: ast.Module) -> Iterator[int]:
    """Lines that assert something about a clock, or about a name computed from one."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name.startswith("test_"):
            measured = {
                target.id
                for node in ast.walk(function)
                if isinstance(node, ast.Assign) and _reads_clock(node.value)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            for node in ast.walk(function):
                if isinstance(node, ast.Assert):
                    names = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
                    if _reads_clock(node.test) or names & measured:
                        yield node.lineno


def _reads_clock(node: ast.AST) -> bool:
    return any(
        called(part) in CLOCKS
        and isinstance(part.func, ast.Attribute)
        and getattr(part.func.value, "id", "") in {"time", "os"}
        for part in ast.walk(node)
        if isinstance(part, ast.Call)
    )


def blind_sleeps(tree: ast.Module) -> Iterator[int]:
    """Lines of tests that sleep outside a loop which asks whether the wait is over."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name.startswith("test_"):
            asked = {
                id(part)
                for loop in ast.walk(function)
                if isinstance(loop, (ast.While, ast.For))
                for part in ast.walk(loop)
            }
            yield from (
                node.lineno
                for node in ast.walk(function)
                if called(node) == "sleep" and id(node) not in asked
            )


def silent_tests(tree: ast.Module) -> Iterator[int]:
    """Lines of tests that neither assert nor call something of the file that does."""
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))}
    for name, function in functions.items():
        if name.startswith("test_") and not _asserts(function, functions, {name}):
            yield function.lineno


def _asserts(node: ast.AST, functions: dict[str, ast.AST], seen: set[str]) -> bool:
    for part in ast.walk(node):
        name = called(part)
        if isinstance(part, ast.Assert) or name.startswith(("assert_", "check", "raises", "warns", "fail")):
            return True
        if isinstance(part, ast.Call) and any(keyword.arg == "check" for keyword in part.keywords):
            return True
        if name in functions and name not in seen and _asserts(functions[name], functions, seen | {name}):
            return True
    return False


RULES = {
    shared_generators: [SHARED_GENERATOR, *SHARED_LATER],
    timed_assertions: [TIMED, TIMED_LATER],
    blind_sleeps: [SLEEPY],
    silent_tests: [SILENT],
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_suite_keeps_the_rule(rule):
    assert [f"{name}:{line}" for name, path in FILES.items() for line in rule(tree_of(path))] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_breach_of_the_rule_is_found(rule):
    for text in RULES[rule]:
        assert list(rule(ast.parse(text))), text


def test_the_makefile_names_tests_that_exist():
    named = sorted(set(re.findall(r"tests/[\w/.]+", (ROOT.parent / "Makefile").read_text(encoding="utf-8"))))
    assert named and [name for name in named if not (ROOT.parent / name).exists()] == []


def test_folders_of_tests_are_those_of_the_source():
    source = ROOT.parent / "src" / "texplainer"
    own = {"helpers", "recipes", "hostile", "zoo", "plots/golden", "paper", "experiments"}
    folders = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_dir()}
    folders = {name for name in folders if "__pycache__" not in name}
    assert [name for name in folders - own if not (source / name).is_dir()] == []
