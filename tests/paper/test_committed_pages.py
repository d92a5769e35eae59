"""The committed pages say what the committed results say, and the README what the pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from texplainer.paper import wide_plan
from texplainer.paper.pages.questions import write_question_pages
from texplainer.paper.plan import WIDE_FULL
from texplainer.paper.results import read_run

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
QUESTIONS = ("slopes", "shares", "effects")


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory):
    folder = RESULTS / "wide"
    results = [read_run(run.name, folder) for run in wide_plan((), WIDE_FULL)]
    out = tmp_path_factory.mktemp("results") / "wide"
    out.mkdir()
    write_question_pages(results, out)
    return out.parent


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_pages_of_the_wide_evaluation_are_made_of_its_results(rewritten, name):
    made, kept = ((folder / f"{name}.md").read_text(encoding="utf-8") for folder in (rewritten, RESULTS))
    assert made == kept


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_figure_of_the_readme_stands_on_the_page_it_names(name):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    points = [one for one in readme.split("\n- ") if f"(docs/results/{name}.md)" in one]
    assert len(points) == 1
    page = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    text = re.sub(r"\(docs/[^)]*\)", "", points[0].split("\n\n")[0])
    figures = re.findall(r"\d+\.\d+", text)
    assert figures
    assert [one for one in figures if not re.search(rf"(?<![\d.]){re.escape(one)}(?![\d])", page)] == []
