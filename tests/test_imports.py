"""The direction of imports, and what importing texplainer costs."""

from __future__ import annotations

import shutil
import subprocess
import sys

import architecture as house
import pytest

HEAVY = ("torch", "jax", "keras", "shap", "lime", "captum", "matplotlib", "pandas", "polars", "pyarrow", "xgboost",
         "lightgbm", "catboost", "numba", "treelite", "dask", "distributed", "ray", "pyspark", "onnxruntime",
         "skops", "starlette", "uvicorn", "skimage", "PIL")  # fmt: skip

#: module -> a line that must not stand in it
FORBIDDEN = {
    "errors": "from texplainer.types import Array",  # the lowest to the next
    "background.summary": "from texplainer.files import results",  # core to edge
    "support.hashing": "def late():\n    from texplainer.tables import schema",  # lazily
    "models.predictor": "def late():\n    import texplainer.gradients.engine",  # lazily, the whole name
    "tables.schema": "from ..models import predictor",  # relatively
    "tables.onehot": "from .. import explainer",
    "gradients.engine": "from texplainer import TExplainer",  # through the public names
    "gradients.moves": "import texplainer.plots.style as style",
    "explanation.fields": "from texplainer.categories.swaps import swap_of",  # sideways
    "diagnostics": "from texplainer import explainer",
    "explainers.lime": "from texplainer.plots.style import POSITIVE",
    "metrics.comparison": "from texplainer.gradients.choose import choose",  # a view that is not granted
    "plots.style": "from texplainer.explainer import TExplainer",
    "report.notebook": "from importlib import import_module\nload = import_module('texplainer.execution.plan')",
    "plots.evaluations.timing": "import importlib\nload = importlib.import_module('...app', __package__)",
    "datasets.real": "from texplainer.tables.schema import Schema",
    "execution.plan": "def late(name):\n    return __import__(f'texplainer.cli.{name}')",
    "categories.swaps": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from texplainer import attributions",
}


def test_every_import_points_downwards():
    assert house.wrong_imports() == []


def test_every_exception_is_needed():
    assert set(house.EXCEPTIONS) - house.used_exceptions() == set()


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """What is wrong with a copy of the source in which every forbidden import was made."""
    copy = tmp_path_factory.mktemp("copy") / "texplainer"
    shutil.copytree(house.SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "assets"))
    known = house.modules(copy)
    for module, line in FORBIDDEN.items():
        with known[module].open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
    (copy / "stray.py").write_text("")
    return house.wrong_imports(copy)


@pytest.mark.parametrize("module", FORBIDDEN)
def test_a_forbidden_import_is_refused(refused, module):
    assert [line for line in refused if line.startswith(f"{module} imports ")], FORBIDDEN[module]


def test_a_module_in_no_layer_is_refused(refused):
    assert "stray stands in no layer" in refused


def test_there_is_one_style_of_imports():
    assert house.other_styles() == []


def test_no_modules_import_each_other_in_a_circle():
    assert house.import_cycles() == []


def test_a_circle_of_any_length_is_found(tmp_path):
    """Also one that is closed by an import inside a function."""
    texts = {
        "errors": "from texplainer.types import Array",
        "types": "from texplainer.support import Name",
        "support": "def late():\n    from texplainer.errors import InputError",
    }
    for name, text in {"__init__": "", **texts}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    assert house.import_cycles(tmp_path) == ["errors · support · types"]


def test_importing_texplainer_imports_nothing_heavy():
    code = f"import sys, texplainer; print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
