# ruff: noqa: E402  (threads are set before numpy is imported)
"""The cost and exactness of Shapley values of trees, beside the libraries' own and shap's.

    python benchmarks/shapley.py [--write docs/results/shapley.md] [--rows 2000] [--many 20000]
    python benchmarks/shapley.py --big [--trees 1000] [--rows 100000] [--write docs/results/shapley.md]
    python benchmarks/shapley.py --page docs/results/shapley.md

The first measures everything, the second the large model alone, in a process of its own; the figures are kept in
a JSON file beside the page. The third writes the page from that file.

One thread, processor time, ratios to one prediction of the same rows by the library.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import texplainer as tx
from texplainer.gradients.trees.readers.table import load
from texplainer.gradients.trees.shapley import cover_tables, pattern_tables

BACKGROUND, FEATURES, ROUNDS = 200, 28, 3
SLOW_ROWS = 100  # for methods that are slow: their time is scaled
Cells = dict[str, float | str | None]  # method -> cost, or why it did not run


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


def costs(
    name: str, model: Any, predict: Callable[[np.ndarray], Any], rows: np.ndarray, background: np.ndarray
) -> Cells:
    """The values alone, the whole explanation, and the other ways, in predictions; the distance from shap's."""
    one = seconds(lambda: predict(rows))
    began = time.process_time()
    tables = pattern_tables(load(model), background)
    tables(rows[:1], threads=1)
    first = time.process_time() - began
    rounds = 1 if "forest" in name else ROUNDS
    few = rows[:SLOW_ROWS]
    scale = len(rows) / len(few)
    explainer, own = tx.TExplainer(model, background), own_values(model)
    found: Cells = {
        "texplainer": seconds(lambda: tables(rows, threads=1), rounds) / one,
        "with stability": seconds(lambda: explainer(rows, attribution="shapley"), rounds) / one,
        "first": first,
        "own": None if own is None else scale * seconds(lambda: own(few), 1) / one,
    }
    shap = import_module("shap")
    masker = shap.maskers.Independent(background, max_samples=len(background))
    inter = shap.TreeExplainer(model, masker, feature_perturbation="interventional")
    path = shap.TreeExplainer(model)
    for method, kind in {"shap, path-dependent": path, "shap, interventional": inter}.items():
        took = seconds(lambda kind=kind: kind.shap_values(few, check_additivity=False), 1)
        found[method] = scale * took / one
    theirs = np.asarray(inter.shap_values(few, check_additivity=False))
    theirs = theirs[..., 1] if theirs.ndim == 3 else theirs
    found["difference"] = float(np.abs(theirs - tables(few)[:, :, 0]).max())
    return found


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


#: method -> (model, background) -> the function from rows; treeig computes integrated gradients
OTHERS: dict[str, Any] = {
    "woodelf-explainer": woodelf,
    "shapiq": shapiq_interventional,
    "shapiq, path-dependent": shapiq_path,
    "treeig": treeig,
    "fasttreeshap v2, path-dependent": fasttreeshap,
}
FEW_ROWS = {
    "shapiq": 50,
    "shapiq, path-dependent": 500,
    "treeig": 20,
}  # of methods that take longest: their time is scaled


def many_rows(
    model: Any, predict: Callable[[np.ndarray], Any], rows: np.ndarray, background: np.ndarray
) -> Cells:
    """What many rows cost with each method, in predictions; of a method that does not run, its error."""
    one, ensemble = seconds(lambda: predict(rows), 1), load(model)
    exact, path = pattern_tables(ensemble, background), cover_tables(ensemble)
    found: Cells = {
        "texplainer": seconds(lambda: exact(rows, threads=1), 1) / one,
        "texplainer, path-dependent": seconds(lambda: path(rows, threads=1), 1) / one,
    }
    own = own_values(model)
    methods = dict(OTHERS) | ({} if own is None else {"own": lambda model, background: own})
    for method, make in methods.items():
        few = rows[: FEW_ROWS.get(method, len(rows))]
        try:
            run = make(model, background)
            found[method] = len(rows) / len(few) * seconds(lambda run=run, few=few: run(few), 1) / one
        except Exception as error:  # whatever a library raises
            found[method] = f"{type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''}"
    return found


def interactions(
    model: Any, predict: Callable[[np.ndarray], Any], rows: np.ndarray, background: np.ndarray
) -> Cells:
    """What interaction values of some rows cost, in predictions."""
    few, ensemble = rows[:SLOW_ROWS], load(model)
    scale = len(rows) / len(few)
    one = seconds(lambda: predict(rows))
    exact, path = pattern_tables(ensemble, background), cover_tables(ensemble)
    found: Cells = {
        name: scale * seconds(partial(tables.pairs, few, threads=1), 1) / one
        for name, tables in {"texplainer, pairs": exact, "texplainer, path-dependent pairs": path}.items()
    }
    if type(model).__module__.startswith("xgboost"):
        table = import_module("xgboost").DMatrix(few, nthread=1)
        booster = model.get_booster()
        took = seconds(lambda: booster.predict(table, pred_interactions=True), 1)
        theirs = booster.predict(table, pred_interactions=True)[:, :-1, :-1]
        found["XGBoost's pred_interactions"] = scale * took / one
        found["difference"] = float(np.abs(theirs - path.pairs(few)[..., 0]).max())
    try:
        explainer = import_module("shap").TreeExplainer(model)
        few_shap = few[:10]
        took = seconds(lambda: explainer.shap_interaction_values(few_shap), 1)
        found["shap, pairs"] = len(rows) / len(few_shap) * took / one
    except Exception as error:  # whatever a library raises
        found["shap, pairs"] = (
            f"{type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''}"
        )
    return found


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


def big(trees: int, rows: int) -> dict[str, float]:
    """Time and memory of a large model: trees of depth 10, 500 features."""
    import resource
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
    return {
        "trees": trees,
        "nodes": len(tables.nodes.kind),
        "rows": rows,
        "seconds": took,
        "processor seconds": cpu,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10,
        "gap": gap,
    }


def compile_seconds() -> float:
    """Processor time of the first explanation where nothing is compiled, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--first"]
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        return float(
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        )


def first_explanation() -> float:
    """Processor time of explaining a first row, both columns."""
    import xgboost

    X, y = data()
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=6, n_jobs=1).fit(X[:1000], y[:1000])
    began = time.process_time()
    tx.TExplainer(model, X[:BACKGROUND])(X[:1], attribution=("slope", "shapley"))
    return time.process_time() - began


# The page. -------------------------------------------------------------------------------------------------

#: column of the first table -> how a number is written
COLUMNS = {
    "texplainer": ".1f",
    "with stability": ".1f",
    "first": ".2f",
    "own": ".0f",
    "shap, path-dependent": ".0f",
    "shap, interventional": ".0f",
    "difference": ".1e",
}


def table(found: dict[str, Cells], styles: dict[str, str]) -> list[str]:
    """Lines of a table: a row a model, a column a method; a dash where nothing was measured."""

    def text(value: Any, style: str) -> str:
        return f"{value:{style}}" if isinstance(value, int | float) else "–"

    return [
        f"| model | {' | '.join(styles)} |",
        "|---|" + "---:|" * len(styles),
        *(
            f"| {model} | {' | '.join(text(cells.get(name), style) for name, style in styles.items())} |"
            for model, cells in found.items()
        ),
    ]


def failures(*parts: dict[str, Cells]) -> list[str]:
    """What did not run, and why: a line each."""
    why = {name: value for part in parts for cells in part.values() for name, value in cells.items()}
    return [f"- {name} did not run: {value}" for name, value in why.items() if isinstance(value, str)]


def methods_of(part: dict[str, Cells]) -> dict[str, str]:
    """The methods that ran, and how their cost is written."""
    names = dict.fromkeys(
        name for cells in part.values() for name, v in cells.items() if not isinstance(v, str)
    )
    styles = {"difference": ".1e", "texplainer": ".1f", "texplainer, path-dependent": ".1f"}
    return {name: styles.get(name, ".0f") for name in names}


def page(found: dict[str, Any]) -> str:
    """The page, from the figures."""
    large = found["large"]
    compiled = found["compile seconds"]
    lines = [
        "# Shapley values of trees: cost and exactness",
        "",
        "What do exact Shapley values cost, and how far are they from shap's? Cost of a row, in predictions of the",
        "same model; lower is better.",
        "",
        *table(found["models"], COLUMNS),
        "",
        '"texplainer": the values alone, as in the columns of the others. "with stability": `explainer(X)`, which also',
        'gives every row its bounds and its stability label. "own": the library\'s own values (`pred_contribs`,',
        '`pred_contrib`, ShapValues), path-dependent. "first": seconds to read the model, build the tables and explain',
        'one row, already compiled. "difference": the largest from shap\'s interventional values, in the unit of the',
        "output.",
        "",
        f"## Beside other libraries, {found['many rows']:,} rows",
        "",
        *table(found["many"], methods_of(found["many"])),
        "",
        "## Interaction values",
        "",
        *table(found["pairs"], methods_of(found["pairs"])),
        "",
    ]
    if large:
        lines += [
            "## A large model",
            "",
            f"{large['trees']:,} LightGBM trees of depth 10 ({large['nodes']:,} nodes), 500 features, "
            f"{large['rows']:,} rows: "
            f"{large['seconds']:.0f} s by the clock, {large['processor seconds']:.0f} s of processor time, peak memory",
            f"{large['peak MB']:.0f} MB, largest gap of the sums {large['gap']:.1e}.",
            "",
        ]
    return "\n".join(
        [
            *lines,
            "## How",
            "",
            f"`python benchmarks/shapley.py --write docs/results/shapley.md`: {found['rows']} rows, {BACKGROUND} "
            f"background rows, {FEATURES} features. {found['environment']}.",
            "Processor time over that of one prediction of the same rows, with one thread. Of slow methods "
            f"{SLOW_ROWS} rows or fewer are measured, and the time is scaled.",
            "",
            "## Limits",
            "",
            "- Methods named path-dependent, and the libraries' own, compute other values, without a background.",
            "  treeig computes integrated gradients.",
            "- Deep forests remain expensive: a leaf deep in a tree has many patterns.",
            *(
                [f"- The first explanation on a new machine compiles for {compiled:.0f} s."]
                if compiled
                else []
            ),
            *failures(found["many"], found["pairs"]),
            "",
        ]
    )


def environment() -> str:
    """Versions, processor and load."""
    from conditions import measured_on  # not beside a test that loads this file

    boosters = ("xgboost-cpu", "lightgbm", "catboost", "numba")
    return measured_on(*boosters, "shap", "shapiq", "woodelf_explainer", "treeig").rstrip(".")


def everything(rows_count: int, many: int) -> dict[str, Any]:
    """All figures but those of the large model."""
    found: dict[str, Any] = {"environment": environment(), "rows": rows_count, "many rows": many}
    X, y = data()
    fitted = list(models(X, y))
    rows, background = X[:rows_count], X[-BACKGROUND:]
    several = X[np.arange(many) % len(X)]
    found["models"] = {one[0]: costs(*one, rows, background) for one in fitted}
    found["pairs"] = {n: interactions(model, predict, rows, background) for n, model, predict in fitted[:2]}
    found["many"] = {}
    for name, model, predict in fitted[:2] if many else ():
        found["many"][name] = many_rows(model, predict, several, background)
    found["compile seconds"] = compile_seconds()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", type=Path, metavar="PAGE")
    parser.add_argument("--page", type=Path, help="only write this page from the figures beside it")
    parser.add_argument("--rows", type=int)
    parser.add_argument(
        "--many", type=int, default=20_000, help="rows beside the other libraries; 0 for none"
    )
    parser.add_argument("--big", action="store_true", help="only the large model: time and memory")
    parser.add_argument("--trees", type=int, default=1000, help="of the large model; 0 leaves it out")
    parser.add_argument("--first", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.first:
        print(first_explanation())
        return
    path = given.write or given.page
    kept = path.with_suffix(".json") if path else None
    if given.big:
        measured: dict[str, Any] = {"large": big(given.trees, given.rows or 100_000)}
        print(json.dumps(measured))
    elif given.page:
        measured = {}
    else:
        measured = everything(given.rows or 2000, given.many)
        print(page(measured | {"large": None}))
    if not kept or not path:
        return
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    figures = {"large": None} | known | measured
    kept.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if "models" in figures:
        path.write_text(page(figures), encoding="utf-8")
    if given.write and not given.big and given.trees:  # in another process: its peak memory is its own
        again = ["--big", "--trees", str(given.trees), "--write", str(path)]
        subprocess.run([sys.executable, __file__, *again], check=True)


if __name__ == "__main__":
    main()
