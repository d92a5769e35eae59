# ruff: noqa: E402  (threads are set before numpy is imported)
"""The cost and exactness of Shapley values of trees, beside the libraries' own and shap's.

    python benchmarks/shapley.py [--write docs/results/shapley.md] [--rows 2000] [--many 20000]
    python benchmarks/shapley.py --big [--trees 1000] [--rows 100000] [--write docs/results/shapley.md]

`--big` measures time and memory of a large model, and puts its section at the end of the page.

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
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.gradients.trees.readers.table import load
from texplainer.gradients.trees.shapley import cover_tables, pattern_tables

BACKGROUND, FEATURES, ROUNDS = 200, 28, 3
LARGE = "## A large model"
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


def woodelf(model: Any, background: np.ndarray) -> Callable[[np.ndarray], Any]:
    frame = import_module("pandas").DataFrame
    explainer = import_module("woodelf").WoodelfExplainer(
        model, frame(background), feature_perturbation="interventional"
    )
    return lambda rows: explainer.shap_values(frame(rows), verbose=False)


def shapiq_interventional(model: Any, background: np.ndarray) -> Callable[[np.ndarray], Any]:
    kind = import_module("shapiq").TreeExplainer
    return kind(model, mode="interventional", reference_dataset=background).explain_X


def shapiq_path(model: Any, background: np.ndarray) -> Callable[[np.ndarray], Any]:
    return import_module("shapiq").TreeExplainer(model, mode="pathdependent").explain_X


def treeig(model: Any, background: np.ndarray) -> Callable[[np.ndarray], Any]:
    return import_module("treeig").TreeIG(model, baseline=background).attribute


def fasttreeshap(model: Any, background: np.ndarray) -> Callable[[np.ndarray], Any]:
    kind = import_module("fasttreeshap").TreeExplainer
    return kind(model, algorithm="v2", n_jobs=1).shap_values


#: method -> what it computes, and (model, background) -> the function from rows
OTHERS = {
    "woodelf-explainer": ("interventional", woodelf),
    "shapiq": ("interventional", shapiq_interventional),
    "shapiq, path": ("path-dependent", shapiq_path),
    "treeig": ("integrated gradients", treeig),
    "fasttreeshap v2": ("path-dependent", fasttreeshap),
}
FEW_ROWS = {
    "shapiq": 50,
    "shapiq, path": 500,
    "treeig": 20,
}  # of methods that take longest: their time is scaled


def many_rows(
    name: str, model: Any, predict: Callable[[np.ndarray], Any], rows: np.ndarray, background: np.ndarray
) -> list[str]:
    """Lines: what many rows cost with each method, in predictions; a method that does not run says why."""
    one, ensemble = seconds(lambda: predict(rows), 1), load(model)
    exact, path = pattern_tables(ensemble, background), cover_tables(ensemble)
    lines = [
        f"| {name} | texplainer | interventional | {seconds(lambda: exact(rows, threads=1), 1) / one:.1f} |",
        f"| {name} | texplainer | path-dependent | {seconds(lambda: path(rows, threads=1), 1) / one:.1f} |",
    ]
    own = own_values(model)
    methods: dict[str, tuple[str, Any]] = dict(OTHERS)
    if own is not None:
        methods["own"] = ("path-dependent", lambda model, background: own)
    for method, (kind, make) in methods.items():
        few = rows[: FEW_ROWS.get(method, len(rows))]
        try:
            run = make(model, background)
            cost = f"{len(rows) / len(few) * seconds(lambda run=run, few=few: run(few), 1) / one:.0f}"
        except Exception as error:  # whatever a library raises
            cost = f"{type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''}"
        lines.append(f"| {name} | {method} | {kind} | {cost} |")
    return lines


def interaction_line(
    name: str, model: Any, predict: Callable[[np.ndarray], Any], rows: np.ndarray, background: np.ndarray
) -> str:
    """One line: interaction values of some rows, in predictions."""
    few, ensemble = rows[:SLOW_ROWS], load(model)
    scale = len(rows) / len(few)
    one = seconds(lambda: predict(rows))
    exact, path = pattern_tables(ensemble, background), cover_tables(ensemble)
    cells = [f"{scale * seconds(partial(t.pairs, few, threads=1), 1) / one:.0f}" for t in (exact, path)]
    if type(model).__module__.startswith("xgboost"):
        table = import_module("xgboost").DMatrix(few, nthread=1)
        booster = model.get_booster()
        took = seconds(lambda: booster.predict(table, pred_interactions=True), 1)
        own = booster.predict(table, pred_interactions=True)[:, :-1, :-1]
        cells += [f"{scale * took / one:.0f}", f"{np.abs(own - path.pairs(few)[..., 0]).max():.1e}"]
    else:
        cells += ["", ""]
    try:
        explainer = import_module("shap").TreeExplainer(model)
        few_shap = few[:10]
        took = seconds(lambda: explainer.shap_interaction_values(few_shap), 1)
        cells.append(f"{len(rows) / len(few_shap) * took / one:.0f}")
    except Exception as error:  # whatever a library raises
        cells.append(type(error).__name__)
    return f"| {name} | {' | '.join(cells)} |"


def big_data() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(20_000, 500))


def fit_big(trees: int, path: str) -> None:
    """Fit the large model and save it, in a process of its own: training takes more memory than explaining."""
    import lightgbm

    X = big_data()
    noise = np.random.default_rng(1).normal(size=len(X))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 3:200].sum(axis=1) / 10 + noise
    options = {"max_depth": 10, "num_leaves": 1024, "min_child_samples": 5, "learning_rate": 0.05}
    model = lightgbm.LGBMRegressor(n_estimators=trees, verbose=-1, **options).fit(X, y)
    model.booster_.save_model(path)


def big(trees: int, rows: int, page: Path | None) -> None:
    """Measure time and memory of a large model: trees of depth 10, 500 features."""
    import resource
    import tempfile
    from multiprocessing import get_context

    import lightgbm

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.txt")
        fitting = get_context("spawn").Process(target=fit_big, args=(trees, path))
        fitting.start()
        fitting.join()
        model = lightgbm.Booster(model_file=path)
    X = big_data()
    base = model.predict(X[-BACKGROUND:]).mean()
    began, cpu = time.perf_counter(), time.process_time()
    tables = pattern_tables(load(model), X[-BACKGROUND:])
    gap, size = 0.0, 2000
    for first in range(0, rows, size):  # as the explainer does, a block at a time
        block = X[np.arange(first, min(first + size, rows)) % len(X)]
        missing = model.predict(block) - base - tables(block).sum(axis=(1, 2))
        gap = max(gap, float(np.abs(missing).max()))
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    said = (
        f"{trees:,} LightGBM trees of depth 10 ({len(tables.nodes.kind):,} nodes), 500 features, {rows:,} rows, "
        f"{BACKGROUND} background rows: {took:.0f} s by the clock, {cpu:.0f} s of processor time, peak memory "
        f"{peak:.0f} MB, largest gap of the sums {gap:.1e}. Made by `python benchmarks/shapley.py --big`."
    )
    print(said)
    if page is not None:
        kept = page.read_text(encoding="utf-8").split(LARGE)[0].rstrip()
        page.write_text(f"{kept}\n\n{LARGE}\n\n{said}\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--rows", type=int)
    parser.add_argument(
        "--many", type=int, default=20_000, help="rows beside the other libraries; 0 for none"
    )
    parser.add_argument("--big", action="store_true", help="a large model: time and memory")
    parser.add_argument("--trees", type=int, default=1000, help="of the large model")
    given = parser.parse_args()
    if given.big:
        return big(given.trees, given.rows or 100_000, given.write)
    given.rows = given.rows or 2000
    X, y = data()
    fitted = list(models(X, y))
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
        *(line(*model, rows, background) for model in fitted),
        "",
        "## Interaction values",
        "",
        f"Over one prediction of the same rows; {SLOW_ROWS} rows (shap 10), scaled.",
        "",
        "| model | texplainer | texplainer, path-dependent | XGBoost's pred_interactions | difference | shap |",
        "|---|---|---|---|---|---|",
        *(interaction_line(*model, rows, background) for model in fitted[:2]),
        "",
        f"## Beside other libraries, {given.many} rows",
        "",
        "Over one prediction of the same rows. A method that does not run says why.",
        "",
        "| model | method | values | cost |",
        "|---|---|---|---|",
        *(
            cells
            for model in fitted[:2]
            if given.many
            for cells in many_rows(*model, X[np.arange(given.many) % len(X)], background)
        ),
        "",
    ]
    print("\n".join(text))
    if given.write:
        given.write.write_text("\n".join(text), encoding="utf-8")
    return None


def _has(name: str) -> bool:
    try:
        version(name)
    except Exception:
        return False
    return True


if __name__ == "__main__":
    main()
