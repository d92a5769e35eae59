"""The committed pages are made of the committed results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments import ranks, wide_plan
from experiments.pages.questions import write_question_pages
from experiments.paper import plan
from experiments.plan import FULL, WIDE_FULL
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


def one_line(path):
    return " ".join(path.read_text(encoding="utf-8").split())


def test_the_headlines_beside_the_paper_are_recomputed():
    runs = [run for run in plan((), FULL) if run.experiment.kind == "stability"]
    tables = [read_run(run.name, RESULTS / "paper") for run in runs]
    said = one_line(ROOT / "docs" / "paper.md")
    rank = {
        (label, setup): f"{ranks.setup_ranks(tables, label, setup)['T-Explainer']:.2f}"
        for label in ranks.HEADLINES
        for setup in ranks.SETUPS
    }
    authors = "authors' set-up"
    assert f"{rank['RIS mean', authors]} in RIS mean and {rank['ROS mean', authors]} in ROS mean" in said
    assert f"as printed {rank['RIS mean', 'as printed']} and {rank['ROS mean', 'as printed']}" in said
    found = [
        re.search(r"in (\d+) of 10 tables, .* in (\d+)\.", ranks.headline(tables, label, authors))
        for label in ranks.HEADLINES
    ]
    (near, reach), (near_ros, reach_ros) = (one.groups() for one in found if one)
    assert f"in {near} tables of 10 (RIS) and {near_ros} of 10 (ROS)" in said
    assert f"reaches that far in {reach} and {reach_ros}:" in said
