"""The committed pages are made of the committed results."""

from __future__ import annotations

import importlib.util
import json
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments import FULL, plan, wide_plan
from experiments.pages.paper import write_page
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


def test_the_pages_of_the_paper_are_made_of_their_results(tmp_path):
    runs, out = plan((), FULL), tmp_path / "paper"
    out.mkdir()
    page, complete, *_ = write_page(runs, [read_run(run.name, RESULTS / "paper") for run in runs], out)
    assert page.read_text(encoding="utf-8") == (RESULTS / "paper.md").read_text(encoding="utf-8")
    kept = (RESULTS / "paper" / "tables.md").read_text(encoding="utf-8")
    assert complete.read_text(encoding="utf-8") == kept


def test_the_page_of_tree_shapley_values_is_made_of_its_figures(monkeypatch):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")  # the script sets them otherwise
    spec = importlib.util.spec_from_file_location("bench_shapley", ROOT / "benchmarks" / "shapley.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    figures = json.loads((RESULTS / "shapley.json").read_text(encoding="utf-8"))
    assert module.page(figures) == (RESULTS / "shapley.md").read_text(encoding="utf-8")
    large = {
        "trees": 9,
        "nodes": 5,
        "rows": 7,
        "seconds": 2,
        "processor seconds": 3,
        "peak MB": 4,
        "gap": 1e-9,
    }
    assert "## A large model\n\n9 LightGBM trees" in module.page(figures | {"large": large})


def scripts() -> list[str]:
    """The scripts that docs/results/README.md names."""
    return re.findall(r"`python benchmarks/(\w+)\.py", (RESULTS / "README.md").read_text(encoding="utf-8"))


def test_every_script_of_a_page_says_what_it_is_measured_on_and_is_run_by_make_results():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipes = makefile[makefile.index("TIMED :=") :]
    assert len(scripts()) > 10
    for name in scripts():
        source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
        assert "measured_on(" in source, name
        assert re.search(rf"\b{name}\b", recipes), name


def test_a_script_names_versions_processor_and_load():
    code = "from conditions import measured_on; print(measured_on('nosuch-library'))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "benchmarks", capture_output=True, text=True, check=True
    )
    said = done.stdout
    assert platform.python_version() in said and f"numpy {np.__version__}" in said
    assert "cores" in said and "load" in said and "nosuch" not in said
