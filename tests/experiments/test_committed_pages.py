"""The committed pages are made of the committed results."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments import wide_plan
from experiments.pages.questions import write_question_pages
from experiments.plan import WIDE_FULL
from experiments.results import read_run

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
QUESTIONS = ("compare_slope", "compare_shapley", "compare_variation")


@pytest.fixture(scope="module")
def wide_results():
    return [read_run(run.name, RESULTS / "wide") for run in wide_plan((), WIDE_FULL)]


@pytest.fixture(scope="module")
def rewritten(wide_results, tmp_path_factory):
    results = wide_results
    out = tmp_path_factory.mktemp("results") / "wide"
    out.mkdir()
    write_question_pages(results, out)
    return out.parent


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_pages_of_the_wide_evaluation_are_made_of_its_results(rewritten, name):
    made, kept = ((folder / f"{name}.md").read_text(encoding="utf-8") for folder in (rewritten, RESULTS))
    assert made == kept
