"""The reference: every public name stands there, with an example that the build runs."""

from __future__ import annotations

import doctest
import importlib.util
import re
from pathlib import Path

import pytest

import texplainer as tx

PAGES = sorted((Path(__file__).parents[1] / "docs" / "reference").glob("*.md"))
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
CODE = "\n".join(re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE))
ENTRIES = {line.split(".")[-1] for line in re.findall(r"^::: (\S+)", TEXT, re.MULTILINE)}
#: classes that users are given rather than call: the code that gives them
USES = {"Evaluation": r"evaluation = tx\.evaluate\(", "Interactions": r"explainer\.interactions\("}
MODULES = {"datasets", "metrics", "plots", "explainers"}
#: called through `captum`, and shown with all others in one block
BY_NAME = {
    "deeplift",
    "gradient",
    "gradient_shap",
    "input_x_gradient",
    "integrated_gradients",
    "lrp",
    "saliency",
}
BY_NAME |= {"smoothgrad"}


def is_function(module, name):
    return callable(getattr(module, name)) and not isinstance(getattr(module, name), type)


@pytest.mark.parametrize("name", sorted(set(tx.PUBLIC) - MODULES | {"Interactions"}))
def test_a_public_name_is_described_and_used(name):
    assert name in ENTRIES
    assert re.search(USES.get(name, rf"\btx\.{name}\b"), CODE)


@pytest.mark.parametrize("name", sorted(tx.plots.__all__))
def test_a_plot_is_described_and_drawn_beside_it(name):
    after = re.search(
        rf"^::: texplainer\.plots\.\w+\.{name}\.{name}\n\n```python\n(.*?)^```", TEXT, re.DOTALL | re.M
    )
    assert after is not None, f"docs/reference/plots.md has no example under {name}"
    assert f"tx.plots.{name}(" in after.group(1)


@pytest.mark.parametrize("name", sorted(n for n in tx.explainers.__all__ if is_function(tx.explainers, n)))
def test_an_other_explainer_is_described_and_called(name):
    assert f'"{name}"' in CODE if name in BY_NAME else name in ENTRIES and f"tx.explainers.{name}(" in CODE


@pytest.mark.parametrize("name", ["load", "names", "table"])
def test_a_function_of_the_data_sets_is_described_and_called(name):
    assert name in ENTRIES
    assert f"tx.datasets.{name}(" in CODE


def test_examples_in_docstrings_run():
    runner = doctest.DocTestRunner()
    for found in doctest.DocTestFinder().find(tx.TExplainer.interactions, "interactions", globs={}):
        runner.run(found)
    assert runner.tries > 0
    assert runner.failures == 0


def test_the_row_that_readme_shows_is_the_one_its_code_prints(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    code, shown = re.findall(r"^```(?:python)?\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)[:2]
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.split("\n") == shown.split("\n")


def test_every_page_is_in_the_menu():
    docs = Path(__file__).parents[1] / "docs"
    menu = (docs.parent / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    pages = [page for page in pages if not page.startswith(("results/paper/", "results/wide/"))]  # not_in_nav
    assert [page for page in pages if not re.search(rf"[ \[]{re.escape(page)}\b", menu)] == []


def test_every_figure_of_the_comparison_is_on_its_page():
    docs = Path(__file__).parents[1] / "docs"
    spec = importlib.util.spec_from_file_location("execute", docs / "execute.py")
    assert spec is not None and spec.loader is not None
    execute = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(execute)
    page = execute.COMPARE.read_text(encoding="utf-8")
    assert len(execute.FIGURE.findall(page)) > 20
    assert execute.with_figures(page) == page  # python docs/execute.py renews them
    assert execute.with_figures(page.replace("-->6", "-->7")) == page
    with pytest.raises(SystemExit, match="does not have"):
        execute.figure(r"shapley \| no such model \| own")
