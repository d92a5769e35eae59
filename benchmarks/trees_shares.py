"""What shares of trees cost, over the model's own prediction; and the first call in a fresh process.

    python benchmarks/trees_shares.py [--write docs/results/trees_shares.md]

All contenders see the same rows of the same models, round by round in one run; CPU time of one thread, the
median of `ROUNDS` rounds. Slow other explainers explain fewer rows. Those not installed are left out.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from texplainer import datasets
from texplainer.gradients.trees.lines import line_shares, rank_thresholds
from texplainer.gradients.trees.readers.table import load

ROUNDS = 5
LINES = (16, 64, 128)


def cases():
    """Name -> (model, its margin, training rows, rows to explain)."""
    import xgboost
    from sklearn.datasets import make_friedman1

    higgs = datasets.load("higgs", download=False)
    train, rows = higgs.X_train[:20000], np.ascontiguousarray(higgs.X_test[:2000])
    model = xgboost.XGBClassifier(n_estimators=300, max_depth=6, n_jobs=1).fit(train, higgs.y_train[:20000])
    yield "300 x depth 6, HIGGS", model, train, rows
    x, y = make_friedman1(12000, n_features=10, noise=1.0, random_state=0)
    model = xgboost.XGBRegressor(n_estimators=500, max_depth=6, learning_rate=0.05, n_jobs=1)
    yield "500 x depth 6, Friedman-1", model.fit(x[:2000], y[:2000]), x[:2000], x[2000:4000]


def contenders(model, train):
    """Name -> (function of rows, the most rows it is given)."""
    import xgboost

    predict = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    yield "predict", predict, None
    prepared, booster = rank_thresholds(load(model)), model.get_booster()
    for count in LINES:
        starts = train[:: len(train) // count][:count]
        given = (prepared, starts, np.full(count, 1 / count), np.zeros(count, int))
        yield f"shares, {count} lines", lambda rows, given=given: line_shares(*given, rows, threads=1), None
    yield "pred_contribs", lambda rows: booster.predict(xgboost.DMatrix(rows), pred_contribs=True), 60
    try:
        import shap
    except ImportError:
        return
    path = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    yield "shap, path-dependent", lambda rows: path.shap_values(rows), 60
    sample = train[:: len(train) // LINES[0]][: LINES[0]]
    mixed = shap.TreeExplainer(model, sample, feature_perturbation="interventional")
    yield (
        f"shap, interventional, {LINES[0]} rows",
        lambda rows: mixed.shap_values(rows, check_additivity=False),
        60,
    )


def measure(model, train, rows):
    """Microseconds a row, by contender."""
    runs = list(contenders(model, train))
    took = {name: [] for name, _, _ in runs}
    for _ in range(ROUNDS + 1):
        for name, function, most in runs:
            given = np.ascontiguousarray(rows[:most])
            began = time.process_time()
            function(given)
            took[name].append(1e6 * (time.process_time() - began) / len(given))
    return {name: float(np.median(times[1:])) for name, times in took.items()}


def largest_gap(model, train, rows):
    """How far the sums are from the change of the model's own margin, over the margins' SD."""
    starts = train[:: len(train) // 16][:16]
    found = line_shares(rank_thresholds(load(model)), starts, np.full(16, 1 / 16), np.zeros(16, int), rows)
    margin, base = (model.predict(table, output_margin=True).astype(float) for table in (rows, starts))
    return np.abs(found[:, 0].sum(axis=(1, 2)) - (margin - base.mean())).max() / margin.std()


FIRST_CALL = """
import time, numpy as np, xgboost, sklearn, scipy.stats, numba
rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 10))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
model = xgboost.XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1).fit(X, y)
began = time.process_time()
from texplainer import TExplainer
TExplainer(model, X, attribution={attribution!r})(X[:10])
print(time.process_time() - began)
"""


def first_calls(spec):
    """CPU seconds of the first explanation beyond imports: compiled anew, then from the cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        run = [sys.executable, "-c", FIRST_CALL.format(spec=spec)]
        return [
            float(subprocess.run(run, env=environment, capture_output=True, check=True).stdout.split()[-1])
            for _ in "ab"
        ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", type=Path, help="write the tables there as Markdown")
    options = parser.parse_args()
    lines, names = [], []
    for case, model, train, rows in cases():
        took = measure(model, train, rows)
        unit = took["predict"]
        cells = {
            "predict": f"{unit:.2f} us",
            **{n: f"{t / unit:,.1f}" for n, t in took.items() if n != "predict"},
        }
        cells["a line (64)"] = f"{took['shares, 64 lines'] / unit / 64:.2f}"
        for count in LINES:
            ratio = took["pred_contribs"] / took[f"shares, {count} lines"]
            cells[f"pred_contribs over {count} lines"] = f"{ratio:.1f}"
        cells["largest gap of a sum"] = f"{largest_gap(model, train, rows):.1e}"
        names += [name for name in cells if name not in names]
        lines.append((case, cells))
        print(case, cells, flush=True)
    table = ["| model | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    table += [f"| {case} | " + " | ".join(cells.get(n, "") for n in names) + " |" for case, cells in lines]
    table += [
        "",
        "| first explanation of 10 rows, CPU seconds | fresh cache | second process |",
        "|---|---|---|",
    ]
    for spec in ("slope", "shapley"):
        cold, warm = first_calls(spec)
        table.append(f"| {spec} | {cold:.1f} | {warm:.2f} |")
    text = (
        "# The cost of shares of trees\n\nMade by `python benchmarks/trees_shares.py --write "
        "docs/results/trees_shares.md`. `predict` is microseconds a row, the other costs are multiples of "
        "it: CPU time of one thread, medians of five rounds. Sums: the largest gap to the change of the "
        "model's own margin, over the margins' SD (XGBoost adds up in float32). "
        f"Load of the machine at the end: {os.getloadavg()[1]:.0f} on {os.cpu_count()} cores.\n\n"
    )
    text += "\n".join(table) + "\n"
    print(text)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
