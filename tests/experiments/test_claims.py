"""README and docs/compare.md claim what the committed results hold, and say which results are of earlier code."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from experiments.plan import definitions_of
from experiments.results import read_run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RESULTS = DOCS / "results"
#: 4,993 or 6.0 or 4e-8; not the digits of a name (h2o), of a version (0.1.0) or of a file
NUMBER = re.compile(r"(?<![\w.\-])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]*\w)")
QUESTIONS = ("compare_slope", "compare_shapley", "compare_variation")
CITED = re.compile(r"\]\((?:docs/)?results/(\w+)\.md\)")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def flat(path: Path) -> str:
    return " ".join(read(path).split())


@pytest.fixture(scope="module")
def figure():
    """The function that finds a figure on a results page."""
    spec = importlib.util.spec_from_file_location("execute", DOCS / "execute.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.figure


def value(text: str) -> float:
    return float(text.replace(",", ""))


def agrees(shown: str, measured: str) -> bool:
    """Whether a number is another one rounded to its own digits."""
    if "e" in shown:
        return value(shown) == float(f"{value(measured):.{len(shown.split('e')[0].replace('.', '')) - 1}e}")
    decimals = len(shown.partition(".")[2])
    return value(shown) == round(value(measured), decimals)


def test_the_costs_of_readme_s_comparison_are_those_of_the_page(figure) -> None:
    part = read(ROOT / "README.md").split("## How it compares")[1].split("\n## ")[0]
    rows = {"XGBoost": "XGBoost 300 x depth 6", "LightGBM": "LightGBM 300 x 31 leaves"}
    rows |= {"CatBoost": "CatBoost 300 x depth 6", "forest": "forest of 100, min leaf 3"}
    lines = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")][1:]
    assert len(lines) == len(rows)
    for name, *shown in lines:
        row = next(row for start, row in rows.items() if name.startswith(start))
        other = "shap, path-dependent" if name.startswith("forest") else "own"
        for cell, column in zip(shown, ("texplainer", "shap, interventional", other), strict=True):
            assert agrees(cell, figure(rf"shapley \| {row} \| {column}")), (name, column)


def claims() -> list[str]:
    """README's table of reasons, line by line, and the sentence on where it loses."""
    text = read(ROOT / "README.md")
    part = text[text.index("Reasons to switch:") : text.index("## Install")]
    table = [line for line in part.splitlines() if line.startswith("| **")]
    return [*table, " ".join(part[part.index("Where it loses:") :].split())]


@pytest.mark.parametrize("claim", claims())
def test_every_number_of_readme_is_on_the_page_it_cites(claim: str) -> None:
    shown = NUMBER.findall(re.sub(r"\]\(.*?\)|`.*?`", "", claim))
    pages = [RESULTS / f"{name}.md" for name in CITED.findall(claim)]
    assert pages or not shown, f"numbers without a page: {shown}"
    measured = [number for page in pages for number in NUMBER.findall(read(page))]
    for number in shown:
        assert any(agrees(number, one) for one in measured), number


def test_the_costs_of_readme_are_the_cells_they_are_said_to_be(figure) -> None:
    said, row = flat(ROOT / "README.md"), r"shapley \| XGBoost 300 x depth 6 \| "
    found = re.search(
        r"300 trees of depth 6, one row takes as long as (\S+) predictions, .+ XGBoost's own values take (\S+), "
        r"shap's interventional ones (\S+)\. The largest difference from shap's is (\S+)",
        said,
    )
    assert found
    columns = ("texplainer", "own", "shap, interventional", "difference")
    for shown, column in zip(found.groups(), columns, strict=True):
        assert agrees(shown.strip(","), figure(row + column)), column
    forest = re.search(r"a forest of 100 deep trees takes as long as (\S+) predictions", said)
    assert forest and agrees(forest.group(1), figure(r"shapley \| forest of 100, min leaf 3 \| texplainer"))


def rows_of_compare() -> list[str]:
    text = read(DOCS / "compare.md")
    return [line for line in text.splitlines() if "<!--" in line]


def test_every_figure_of_the_comparison_is_on_the_page_its_row_cites(figure) -> None:
    cited: list[str] = []
    rows = rows_of_compare()
    assert len(rows) > 10
    for row in rows:
        cited = CITED.findall(row) or cited  # a row with an empty first cell belongs to the one above
        for place in re.findall(r"<!-- (\w+ \\.+?) -->", row):
            assert place.split("\\")[0].strip() in cited, row
            assert figure(place).strip(), place


def test_no_number_of_the_comparison_is_typed_by_hand() -> None:
    for row in rows_of_compare():
        bare = re.sub(r"<!-- .+?<!-- end -->|\]\(.*?\)", "", row).strip("|")
        bare = bare.partition("|")[2]  # the first cell states the task and its sizes
        assert not re.search(r"\d", bare), bare


def test_the_areas_of_the_definition_are_those_within_data_sets() -> None:
    said = flat(DOCS / "meaning.md")
    table = [one for one in read(RESULTS / "stability.md").splitlines() if one.startswith("| ")]
    for attribution, given, who in (
        ("slope", True, "slopes of trees given as a function"),
        ("slope", False, "slopes of models"),
        ("shapley", False, "Shapley values of trees"),
    ):
        lines = [
            one for one in table if one.startswith(f"| {attribution} ") and ("as a function" in one) == given
        ]
        areas = [float(area) for line in lines for area in re.findall(r"([\d.]+) / [\d.]+", line)]
        assert len(areas) == 6 * len(lines) > 0
        assert f"of {min(areas):.2f} to {max(areas):.2f} for {who}" in said


@pytest.mark.parametrize(
    ("page", "folder", "run"),
    [("paper", "paper", "3hnn_4ft"), *((name, "wide", "banknote_network_0") for name in QUESTIONS)],
)
def test_pages_say_whether_their_results_are_of_an_earlier_definition(
    page: str, folder: str, run: str
) -> None:
    configuration = read_run(run, RESULTS / folder).configuration
    now = definitions_of(configuration["experiment"]["lines"])
    assert ("earlier definition of the attributions" in flat(RESULTS / f"{page}.md")) == (
        configuration.get("definitions", 1) != now
    )
