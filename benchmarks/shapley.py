# ruff: noqa: E402  (threads are set before numpy is imported)
"""The cost and exactness of Shapley values of trees, beside the libraries' own and shap's.

    python benchmarks/shapley.py [--write docs/results/shapley.md] [--rows 2000]

One thread, processor time, ratios to one prediction of the same rows by the library.
"""

from __future__ import annotations

import argparse
import os
import platform

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.gradients.trees.patterns import pattern_tables
from texplainer.gradients.trees.readers.table import load

BACKGROUND, FEATURES, ROUNDS = 200, 28, 3
SLOW_ROWS = 100  # for methods that are slow: their time is scaled


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, FEATURES))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 3] * (X[:, 4] > 0) + 0.1 * (X[:, 5:] ** 2).sum(axis=1)
    return X, (y + rng.normal(size=len(X)) > np.median(y)).astype(int)


def models(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, Any, Callable[[np.ndarray], Any]]]:
    """Name, fitted model, its raw prediction."""
    import lightgbm
    import xgboost
    from sklearn.ensemble import RandomForestClassifier

    boosted = xgboost.XGBClassifier(n_estimators=300, max_depth=6, n_jobs=1).fit(X, y)
    yield "XGBoost 300 x depth 6", boosted, lambda rows: boosted.predict(rows, output_margin=True)
    light = lightgbm.LGBMClassifier(n_estimators=300, num_leaves=31, n_jobs=1, verbose=-1).fit(X, y)
    yield "LightGBM 300 x 31 leaves", light, lambda rows: light.predict(rows, raw_score=True, num_threads=1)
    try:
        import catboost
    except ModuleNotFoundError:
        pass
    else:
        options = {
            "iterations": 300,
            "depth": 6,
            "verbose": 0,
            "allow_writing_files": False,
            "thread_count": 1,
        }
        cat = catboost.CatBoostClassifier(**options).fit(X, y)
        yield "CatBoost 300 x depth 6", cat, lambda rows: cat.predict(rows, prediction_type="RawFormulaVal")
    forest = RandomForestClassifier(100, min_samples_leaf=3, random_state=0, n_jobs=1).fit(
        X[:12_000], y[:12_000]
    )
    yield "forest of 100, min leaf 3", forest, forest.predict_proba


def seconds(call: Callable[[], Any], rounds: int = ROUNDS) -> float:
    call()
    found = []
    for _ in range(rounds):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found)


def own_values(model: Any) -> Callable[[np.ndarray], Any] | None:
    """The library's own TreeSHAP."""
    library = type(model).__module__.split(".")[0]
    if library == "xgboost":
        xgboost = import_module("xgboost")
        return lambda rows: model.get_booster().predict(xgboost.DMatrix(rows, nthread=1), pred_contribs=True)
    if library == "lightgbm":
        return lambda rows: model.predict(rows, pred_contrib=True, num_threads=1)
    if library == "catboost":
        pool = import_module("catboost").Pool
        return lambda rows: model.get_feature_importance(pool(rows), type="ShapValues", thread_count=1)
    return None


def line(
    name: str, model: Any, predict: Callable[[np.ndarray], Any], rows: np.ndarray, background: np.ndarray
) -> str:
    one = seconds(lambda: predict(rows))
    began = time.process_time()
    tables = pattern_tables(load(model), background)
    tables(rows[:1], threads=1)
    first = time.process_time() - began
    values = seconds(lambda: tables(rows, threads=1), 1 if "forest" in name else ROUNDS)
    cells = [f"{values / one:.1f}", f"{first:.2f} s"]
    few = rows[:SLOW_ROWS]
    scale = len(rows) / len(few)
    own = own_values(model)
    cells.append("" if own is None else f"{scale * seconds(lambda: own(few), 1) / one:.0f}")
    try:
        shap = import_module("shap")
    except ModuleNotFoundError:
        cells += ["", "", ""]
    else:
        masker = shap.maskers.Independent(background, max_samples=len(background))
        inter = shap.TreeExplainer(model, masker, feature_perturbation="interventional")
        path = shap.TreeExplainer(model)
        cells.append(f"{scale * seconds(lambda: path.shap_values(few, check_additivity=False), 1) / one:.0f}")
        cells.append(
            f"{scale * seconds(lambda: inter.shap_values(few, check_additivity=False), 1) / one:.0f}"
        )
        theirs = np.asarray(inter.shap_values(few, check_additivity=False))
        theirs = theirs[..., 1] if theirs.ndim == 3 else theirs
        cells.append(f"{np.abs(theirs - tables(few)[:, :, 0]).max():.1e}")
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--rows", type=int, default=2000)
    given = parser.parse_args()
    X, y = data()
    rows, background = X[: given.rows], X[-BACKGROUND:]
    named = ("xgboost-cpu", "lightgbm", "catboost", "scikit-learn", "numba", "shap")
    packages = ", ".join(f"{name} {version(name)}" for name in named if _has(name))
    packages = f"Python {platform.python_version()}, {packages}; load {os.getloadavg()[0]:.1f}"
    text = [
        "# Shapley values of trees: cost and exactness",
        "",
        f"Made by `python benchmarks/shapley.py`; {given.rows} rows, {BACKGROUND} background rows, {packages}. "
        "Processor time of one thread over one prediction of the same rows; methods in the last columns on "
        f'{SLOW_ROWS} rows, scaled. "own": the library\'s own Shapley values (`pred_contribs`, `pred_contrib`, '
        "ShapValues). "
        '"first": seconds to read the model, build the tables, compile where nothing is cached, and explain one '
        'row. "difference": the largest from shap\'s interventional values, relative.',
        "",
        "| model | texplainer | first | own | shap, path-dependent | shap, interventional | difference |",
        "|---|---|---|---|---|---|---|",
        *(line(*model, rows, background) for model in models(X, y)),
        "",
    ]
    print("\n".join(text))
    if given.write:
        given.write.write_text("\n".join(text), encoding="utf-8")


def _has(name: str) -> bool:
    try:
        version(name)
    except Exception:
        return False
    return True


if __name__ == "__main__":
    main()
