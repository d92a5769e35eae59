"""The names users and their programs rely on: none is lost, all are found, in a fresh interpreter too."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys

import pytest

import texplainer as tx
from texplainer import datasets, explainers, metrics, plots
from texplainer.cli import COMMANDS
from texplainer.gradients.choose import ENGINES

PUBLIC = {
    "Evaluation",
    "Explanation",
    "ImageExplainer",
    "Refitted",
    "TExplainer",
    "datasets",
    "evaluate",
    "metrics",
    "plots",
    "explainers",
    "run",
}
PLOTS = {
    "agreement", "bar", "beeswarm", "category_effects", "decision", "dependence", "force", "heatmap", "ice", "image",
    "interactions", "scatter",
    "stability_boxplot", "stability_faithfulness", "step_trace", "timing", "waterfall",
}  # fmt: skip
EXPLAINERS = {
    "constant", "deeplift", "from_function", "gradient", "input_x_gradient", "integrated_gradients", "lime",
    "lrp", "random", "saliency", "shap", "suite", "two_point", "zero",
}  # fmt: skip
METRICS = {"DEFAULT", "METRICS", "Evaluation", "Metric", "evaluate"}
EXPLAINER = {
    "model", "background", "output", "scale", "engine", "step", "smoothing", "attribution", "categorical",
    "bounds", "feature_names", "batch_rows",
}  # fmt: skip
EXPLANATION = {
    "values", "base_values", "predictions", "data", "feature_names", "output_names", "scale", "diagnostics",
    "surrogate", "importance", "to_frame", "to_shap", "save", "load", "report", "attribution", "engine",
}  # fmt: skip
EVALUATION = {
    "table",
    "to_frame",
    "plot",
    "save",
    "load",
    "report",
    "compare",
    "ranks",
    "agreement",
    "per_row",
}
COMMAND_NAMES = {
    "explain",
    "reasons",
    "evaluate",
    "report",
    "serve",
    "datasets",
    "verify",
    "completion",
}
DATASETS = {"4ft", "20ft", "16ft", "banknote", "german", "heloc", "higgs"}


def test_the_public_names_are_these():
    assert set(tx.__all__) == set(tx.PUBLIC) == PUBLIC
    assert set(dir(tx)) == PUBLIC | {"__version__"}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_works_in_a_fresh_interpreter(name):
    subprocess.run([sys.executable, "-c", f"import texplainer as tx; tx.{name}"], check=True)


@pytest.mark.parametrize(
    ("module", "names"),
    [(plots, PLOTS), (explainers, EXPLAINERS), (metrics, METRICS)],
    ids=["plots", "explainers", "metrics"],
)
def test_the_names_of_a_public_module_are_there(module, names):
    assert names <= set(module.__all__)
    assert names <= set(dir(module))
    assert all(getattr(module, name) is not None for name in names)


def test_editors_are_told_the_plots_of_the_table():
    tree = ast.parse(inspect.getsource(plots))
    describe = {
        node.names[0].name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("texplainer.plots.")
    }
    assert describe == plots.PLOTS


def test_a_plot_is_the_function_before_and_after_its_file_is_imported():
    from texplainer.plots.explanations import bar

    assert plots.bar is bar.bar


def test_plots_without_matplotlib_say_what_to_install():
    code = "import sys; sys.modules['matplotlib'] = None; import texplainer as tx; tx.plots.bar"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: plots need matplotlib" in out.stderr
    assert "texplainer[plot]" in out.stderr


def test_the_explainer_takes_what_it_took():
    assert set(inspect.signature(tx.TExplainer).parameters) >= EXPLAINER


def test_every_parameter_of_the_explainer_is_documented():
    words = inspect.getdoc(tx.TExplainer)
    for name in set(inspect.signature(tx.TExplainer).parameters) - {"unknown"}:
        assert f"\n{name}\n    " in words, f"{name} is not documented"


def test_results_have_what_they_had():
    fields = set(tx.Explanation.__dataclass_fields__)
    assert fields | set(dir(tx.Explanation)) >= EXPLANATION
    assert set(dir(tx.Evaluation)) >= EVALUATION


def test_the_words_users_type_are_known():
    assert set(COMMANDS) >= COMMAND_NAMES
    assert set(ENGINES) >= {"closed-form", "autodiff", "tree", "finite-difference"}
    assert set(datasets.names()) >= DATASETS
