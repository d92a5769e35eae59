"""The direction of imports, and what importing texplainer costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import texplainer as tx

SOURCE = Path(tx.__file__).parent
CORE = ("signatures", "errors", "frames", "prediction", "adapters", "gradients", "background", "attribution",
        "effects", "categorical", "diagnostics", "explanation", "explainer", "progress")  # fmt: skip
EDGES = ("metrics", "rivals", "plots", "report", "datasets", "benchmark", "execution", "app", "cli", "demo")
HEAVY = ("torch", "jax", "keras", "shap", "lime", "captum", "matplotlib", "pandas", "polars", "pyarrow", "xgboost",
         "lightgbm", "catboost", "numba", "treelite", "dask", "ray", "pyspark", "onnxruntime")  # fmt: skip


def imported_parts(path: Path) -> set[str]:
    """First parts below texplainer that a file imports, at module level or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("texplainer"):
            rest = node.module.split(".")[1:]
            found |= {rest[0]} if rest else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("texplainer.")}
    return found


def test_nothing_in_the_core_imports_an_edge():
    allowed = {"explanation": {"files", "report"}}  # save, load and report delegate
    for part in CORE:
        paths = [SOURCE / f"{part}.py", *(SOURCE / part).glob("**/*.py")]
        for path in paths:
            if path.exists():
                wrong = imported_parts(path) & (set(EDGES) | {"files"}) - allowed.get(part, set())
                assert not wrong, f"{path.name} imports {wrong}"


def test_metrics_plots_and_rivals_know_only_the_explanation():
    """They see explanations and callables, never the machinery that made them."""
    machinery = {"explainer", "gradients", "attribution", "effects", "diagnostics"}
    for edge in ("metrics", "plots", "rivals"):
        for path in (SOURCE / edge).glob("**/*.py"):
            wrong = imported_parts(path) & machinery
            assert not wrong, f"{edge}/{path.name} imports {wrong}"


def test_importing_texplainer_imports_nothing_heavy():
    code = f"import sys, texplainer; print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_public_names_are_there():
    for name in tx.__all__:
        assert getattr(tx, name) is not None
