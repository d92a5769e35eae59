"""The committed pages say what the committed results say, and the README what the pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments import ranks, wide_plan
from experiments.pages.questions import PAGES, write_question_pages
from experiments.paper import plan
from experiments.plan import FULL, WIDE_FULL
from experiments.results import read_run
from experiments.wide.blocks import cost_of

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
QUESTIONS = ("slopes", "shares", "effects")


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


#: page -> (words of the README with {} for each rank, then criterion and line of each)
RANK_CLAIMS = {
    "slopes": (
        ("first in locality (average rank {} of 5", ("Locality, r = 0.75", "T-Explainer slope")),
        ("less steady (RIS*, {}) than continuous LIME ({})", ("RIS*", "T-Explainer slope"),
         ("RIS*", "LIME continuous")),
        ("infidelity ({}) and in dependence on the background ({}) to the plain derivative ({} and {})",
         ("Infidelity", "T-Explainer slope"), ("Background", "T-Explainer slope"),
         ("Infidelity", "T-Explainer gradient"), ("Background", "T-Explainer gradient")),
    ),
    "shares": (
        ("background's sample ({} of 3) and on seeds ({})", ("Background", "T-Explainer shapley"),
         ("Seed", "T-Explainer shapley")),
        ("separable from SHAP ({} to its {})", ("PGI mean", "T-Explainer shapley"), ("PGI mean", "SHAP")),
        ("steadier (RIS*, {} to {})", ("RIS*", "SHAP"), ("RIS*", "T-Explainer shapley")),
    ),
    "effects": (
        ("first in PGI marginal ({} of 9)", ("PGI marginal", "T-Explainer variation")),
        ("in PGI mean ({}), not separable", ("PGI mean", "T-Explainer variation")),
    ),
}  # fmt: skip
#: criterion -> who is first, and whom it cannot be told from, as the README words it
SEPARABLE = {
    ("slopes", "Locality, r = 0.75"): ("T-Explainer slope", set()),
    ("slopes", "RIS*"): ("LIME continuous", set()),
    ("slopes", "Infidelity"): ("T-Explainer gradient", set()),
    ("slopes", "Background"): ("T-Explainer gradient", set()),
    ("shares", "Background"): ("T-Explainer shapley", set()),
    ("shares", "Seed"): ("T-Explainer shapley", set()),
    ("shares", "PGI mean"): ("SHAP", {"T-Explainer shapley"}),
    ("shares", "RIS*"): ("SHAP", set()),
    ("effects", "PGI marginal"): ("T-Explainer variation", set()),
    ("effects", "PGI mean"): ("T-Explainer variation", {"SHAP", "T-Explainer shapley"}),
}


def one_line(path):
    return " ".join(path.read_text(encoding="utf-8").split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.file)
def test_the_ranks_of_the_readme_are_recomputed(wide_results, page):
    """Not only does the figure stand on the page: it is the rank of that line by that criterion."""
    tests = page.tests([r for r in wide_results if r.configuration["experiment"]["kind"] == "wide"])
    readme = one_line(ROOT / "README.md")
    for words, *claims in RANK_CLAIMS[page.file]:
        assert words.format(*(f"{tests[label].average[line]:.2f}" for label, line in claims)) in readme
    for (name, label), (first, beside) in SEPARABLE.items():
        if name == page.file:
            assert (tests[label].first, set(tests[label].beside(first))) == (first, beside)


def test_the_costs_of_the_readme_are_recomputed(wide_results):
    def milliseconds(kind, line):
        runs = [r for r in wide_results if r.configuration["experiment"]["model"] == kind]
        return f"{cost_of(runs, line)[1]:.4g}"

    readme = one_line(ROOT / "README.md")
    networks = [milliseconds("network", line) for line in ("T-Explainer shapley", "SHAP")]
    assert "networks at {} ms of processor time a row to its {};".format(*networks) in readme
    trees = [milliseconds("boosted", line) for line in ("SHAP", "TreeSHAP (path)", "T-Explainer shapley")]
    assert "TreeSHAP ({}, by paths {}, to {})".format(*trees) in readme


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
