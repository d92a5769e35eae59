"""The project's vocabulary: plain words in README, documentation and messages, and short sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: words and phrases that a reader from machine learning does not know
FORBIDDEN = (
    r"wobbl\w*",
    r"verdicts?",
    r"fragil\w*",
    r"rivals?",
    r"in any company",
    r"(?:hang|hangs|hung) on",
    r"with a word",
    r"the same bits",
    r"(?<!there )is no [a-z]+(?: or|,|;|\.)",
    r"put right",
    r"says so",
    r"this level",
    r"share of the prediction",
    r"has not\b(?! (?:been|yet))",
    r"in words\b",
    r"is told\b",
    r"one (?:SD|unit) more",  # a slope is local: "per SD"
    r"designed experiment",
)
#: in the text of pages only: code has other uses of these words
FORBIDDEN_IN_PAGES = (
    r"spreads?",
    r"on the way",
    r"readings?\b",
    r"margins?\b",
    r"(?<!top\s)(?<!module\s)levels?\b",
    r"cells?\b",
)
FORBIDDEN_IN_PAGES += (r"the house\b", r"rooms?\b", r"travels?\b", r"in any company", r"smoothed")
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(p for folder in (".", "tutorials", "reference") for p in sorted((ROOT / "docs" / folder).glob("*.md"))),
)
#: pages whose sentences must be short
GUIDE = re.search(r"- User guide:\n(.*?)\n  - ", (ROOT / "mkdocs.yml").read_text(), re.DOTALL)
assert GUIDE is not None
SHORT = ["README.md", *(f"docs/{p}" for p in re.findall(r"[\w/]+\.md", GUIDE.group(1)))]
SHORT += [f"docs/{name}.md" for name in ("index", "from_shap", "compare", "glossary")]
LONGEST = 35


def _found(text: str, words: tuple[str, ...]) -> list[str]:
    return re.findall(rf"\b(?:{'|'.join(words)})", text, flags=re.IGNORECASE)


def _text(page: str) -> str:
    """A page without its code."""
    return re.sub(r"```.*?```|`[^`]*`", "", page, flags=re.DOTALL)


def _literals(source: str) -> Iterator[tuple[int, str]]:
    """The string literals of a module, docstrings among them: (line, text)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def _sentences(page: str) -> list[str]:
    """The sentences of a page's prose; code, tables, headings and links' addresses are left out."""
    for noise in (r"```.*?```", r"<!--.*?-->", r"(?m)^ {4}.*$", r"(?m)^\s*\|.*$"):
        page = re.sub(noise, "", page, flags=re.DOTALL if "```" in noise or "<!--" in noise else 0)
    page = re.sub(r"\]\([^)]*\)", "]", re.sub(r"(?m)^#.*$", "\n", page))
    found = []
    for paragraph in re.split(r"\n\s*\n|\n\s*[-*] |\n\d+\. ", re.sub(r"`[^`]*`", "code", page)):
        found += re.split(r"(?<=[.!?;:])\s+", " ".join(paragraph.split()))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages_use_plain_words(page: Path) -> None:
    assert _found(page.read_text(), FORBIDDEN) == []
    assert _found(_text(page.read_text()), FORBIDDEN_IN_PAGES) == []


MODULES = sorted((ROOT / "src" / "texplainer").rglob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda p: p.stem)
def test_messages_and_docstrings_use_plain_words(module: Path) -> None:
    wrong = [(line, _found(text, FORBIDDEN)) for line, text in _literals(module.read_text())]
    assert [found for found in wrong if found[1]] == []


#: words of the old vocabulary, as parts of names
OLD = {
    "company",
    "fragile",
    "rival",
    "rivals",
    "verdict",
    "verdicts",
    "wobble",
    "wobbles",
    "margins",
    "readings",
}
CODE = sorted(
    p
    for folder in ("src", "experiments", "benchmarks", "examples", "tests")
    for p in (ROOT / folder).rglob("*.py")
)


def _names(source: str) -> set[str]:
    """The names a module gives: its functions, classes, arguments and variables."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name):
            found.add(node.id)
    return found


def test_names_use_plain_words() -> None:
    wrong = {
        (p.name, name) for p in CODE for name in _names(p.read_text()) if OLD & {*name.lower().split("_")}
    }
    assert wrong == set()


#: a parameter described behind another's full stop: neither `help` nor the reference shows it
PACKED = re.compile(r"\. [a-z_, *]+ : ")


@pytest.mark.parametrize("module", MODULES, ids=lambda p: p.stem)
def test_every_parameter_is_described_on_a_line_of_its_own(module: Path) -> None:
    sections = [part for _, text in _literals(module.read_text()) for part in text.split("----\n")[1:]]
    assert [found for section in sections for found in PACKED.findall(section)] == []


ASSETS = sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in {".js", ".html"})


@pytest.mark.parametrize("asset", ASSETS, ids=lambda p: p.name)
def test_pages_of_the_report_and_the_explorer_use_plain_words(asset: Path) -> None:
    assert _found(asset.read_text(), FORBIDDEN) == []


@pytest.mark.parametrize("page", SHORT)
def test_sentences_are_short(page: str) -> None:
    long = [s for s in _sentences((ROOT / page).read_text()) if len(s.split()) > LONGEST]
    assert long == []


def test_the_checks_find_what_they_look_for() -> None:
    assert _found("Its verdict hangs on it.", FORBIDDEN) == ["verdict", "hangs on"]
    assert _found("The slope of one SD more has not changed.", FORBIDDEN) == ["one SD more", "has not"]
    assert _found(_text("Three levels.\n```python\nlevels\n```\n`levels`"), FORBIDDEN_IN_PAGES) == ["levels"]
    assert _sentences("# Head\n\nOne `a b` two. Three\n\n| a | b |\n") == ["", "One code two.", "Three", ""]
