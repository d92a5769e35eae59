"""What the first Shapley values of trees compile: only the loops that run, each of them once."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("numba")

from texplainer.gradients.machine_code import available_threads, in_threads

CODE = """
import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from texplainer.gradients.trees.kernels import classes, patterns
from texplainer.gradients.trees.readers.table import load
from texplainer.gradients.trees.shapley import pattern_tables

def variants():
    both = {**vars(patterns), **vars(classes)}
    return {name: len(f.signatures) for name, f in both.items() if hasattr(f, "signatures") and f.signatures}

X = np.random.default_rng(0).normal(size=(600, 12))
y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2])
MODEL
pattern_tables(load(model.fit(X, y)), X[:20])(X[:5])
found = variants()
print(*sorted(name for name in found if not name.startswith("_")))
print(*(name for name, count in found.items() if count > 1))
"""
SHALLOW = "model = GradientBoostingRegressor(n_estimators=3, max_depth=3)"
DEEP = "model = RandomForestRegressor(2, max_features=3, random_state=0)"


@pytest.mark.parametrize(
    ("model", "kernels"), [(SHALLOW, {"fill_tables", "add_values"}), (DEEP, {"add_deep_values"})]
)
def test_only_the_loops_that_run_are_compiled_each_of_them_once(model, kernels, tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", CODE.replace("MODEL", model)], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    names, several = (line.split() for line in ran.stdout.split("\n")[:2])
    assert set(names) & {"fill_tables", "add_values", "add_deep_values"} == kernels
    assert several == []


@pytest.mark.parametrize(
    "wish, usable, expected", [("1", 4, 1), ("", 3, 3), ("8", 2, 2), ("0", 2, 2), ("3,2", 4, 3)]
)
def test_no_more_threads_than_the_process_may_use(monkeypatch, wish, usable, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", wish)
    monkeypatch.setattr(os, "cpu_count", lambda: usable)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(usable)), raising=False)
    assert available_threads() == expected
    at: list[tuple[int, int]] = []
    in_threads(lambda first, end: at.append((first, end)), 64, 4, None)
    assert (len(at) == 1) == (expected == 1)
    assert sorted(row for first, end in at for row in range(first, end)) == list(range(64))
