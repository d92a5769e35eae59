"""What the gradient of a smoothed tree ensemble costs, as multiples of the model's own prediction.

    python benchmarks/trees.py [--quick] [--write docs/results/trees_speed.md]

All contenders see the same rows of the same models in one run, round by round; the least time of
several rounds counts. One-thread times are CPU times, so that a busy machine does not favour anyone;
two-thread times are wall times, beside the wall time of one thread. Slow other explainers explain fewer rows. A
other explainer that is not installed is left out, and said so.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from texplainer.gradients.trees.vectors import WIDTH
from texplainer.gradients.trees.width import DEFAULT

from texplainer import TExplainer, datasets
from texplainer.gradients.trees.ensemble import LEAF
from texplainer.gradients.trees.layout import coherent_order
from texplainer.gradients.trees.readers.table import load
from texplainer.gradients.trees.soft import with_half_widths

ROUNDS = 5
FLOOR = """
A deep forest's neighbourhood reaches tens of times the nodes of a row's path (`reached / path`). The kernel
carries 16 rows at a time through a node, in vector instructions, and so visits what any of them reaches
(`by 16 alike`); `ns a node` is what a visit costs for each row, leaves counted. A prediction reads only its
path. So four predictions, as aimed at, would need both: 16 rows that reach the same nodes, of which 2,000
rows hold few, and no visit slower than now. Tried: groups of 8 rows (2% less or more on deep forests, 4% more
on boosted trees), blocks of 384 rows (5% less, but too few of them for two threads), blocks of 96 rows (10%
more), one row at a time (eight times as much).
"""


def friedman(rows, features=10):
    from sklearn.datasets import make_friedman1

    return make_friedman1(rows, n_features=features, noise=1.0, random_state=0)


def boosted(x, y, trees, kind="XGBRegressor", **options):
    import xgboost

    return getattr(xgboost, kind)(n_estimators=trees, max_depth=6, n_jobs=1, **options).fit(x, y)


def forest(x, y, **options):
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestRegressor if y.dtype.kind == "f" else RandomForestClassifier
    return kind(200, random_state=0, **options).fit(x, y)


def cases():
    """Name -> (model, training rows, rows to explain)."""
    x, y = friedman(12000)
    yield (
        "500 x depth 6, Friedman-1",
        boosted(x[:2000], y[:2000], 500, learning_rate=0.05),
        x[:2000],
        x[2000:],
    )
    higgs = datasets.load("higgs", download=False)
    model = boosted(higgs.X_train[:20000], higgs.y_train[:20000], 100, "XGBClassifier")
    yield "100 x depth 6, HIGGS (28 features)", model, higgs.X_train, higgs.X_test[:6000]
    twenty = datasets.load("20ft", download=False)
    model = boosted(twenty.X_train, twenty.y_train, 500, "XGBClassifier", learning_rate=0.01, gamma=1)
    yield "XRFC 500 x depth 6, 20-FT", model, twenty.X_train, twenty.X_train
    bank = datasets.load("banknote", download=False)
    yield "RandomForest 200, Banknote", forest(bank.X_train, bank.y_train), bank.X_train, bank.X_train
    yield "RandomForest 200, 20-FT", forest(twenty.X_train, twenty.y_train), twenty.X_train, twenty.X_train
    model = forest(x[:2000], y[:2000], min_samples_leaf=5)
    yield "RandomForest 200, leaves of 5, Friedman-1", model, x[:2000], x[2000:5000]
    yield "deep: RandomForest 200, Friedman-1, 2,000 rows", forest(x[:2000], y[:2000]), x[:2000], x[2000:4000]
    model = forest(higgs.X_train[:8000], higgs.y_train[:8000])
    yield "deep: RandomForest 200, HIGGS, 8,000 rows", model, higgs.X_train[:8000], higgs.X_test[:1000]


def own_prediction(model):
    return model.predict_proba if hasattr(model, "predict_proba") else model.predict


def contenders(model, train, few):
    """Name -> (function of rows, the most rows it is given)."""
    predict = own_prediction(model)
    smoothed = with_half_widths(load(model), DEFAULT * train.std(axis=0))
    yield "predict", predict, None
    yield "gradient", lambda rows: smoothed(rows, threads=1), None
    engine = TExplainer(model, train).engine
    yield "engine (with bounds, link)", lambda rows: engine.gradient(rows), None

    def differences(rows):
        step = DEFAULT * train.std(axis=0)
        moves = np.concatenate([np.diag(step), -np.diag(step)])
        predict((rows[:, None, :] + moves).reshape(-1, rows.shape[1]))

    yield "finite differences", differences, 20 * few
    if hasattr(model, "get_booster"):
        import xgboost

        booster = model.get_booster()
        yield "pred_contribs", lambda rows: booster.predict(xgboost.DMatrix(rows), pred_contribs=True), few
    yield from shap_contenders(model, train, few)
    yield from woodelf_contenders(model, train, few)


def shap_contenders(model, train, few):
    try:
        import shap
    except ImportError:
        return
    path = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    yield "shap, path-dependent", lambda rows: path.shap_values(rows), few
    sample = train[:: max(1, len(train) // 100)][:100]
    mixed = shap.TreeExplainer(model, sample, feature_perturbation="interventional")
    yield "shap, interventional", lambda rows: mixed.shap_values(rows, check_additivity=False), few


@contextlib.contextmanager
def silence():
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


def woodelf_contenders(model, train, few):
    try:
        import pandas as pd
        from woodelf import WoodelfExplainer

        names = [f"f{j}" for j in range(train.shape[1])]
        explainer = WoodelfExplainer(model, None, feature_perturbation="tree_path_dependent")
        with silence():
            explainer.shap_values(pd.DataFrame(train[:10], columns=names))
    except Exception as reason:
        print(f"  woodelf left out: {type(reason).__name__}: {str(reason)[:100]}", file=sys.stderr)
        return

    def explain(rows):
        with silence():
            explainer.shap_values(pd.DataFrame(rows, columns=names))

    yield "woodelf, path-dependent", explain, 40 * few


def measure(model, train, rows, few):
    """Microseconds a row, by contender: CPU time of one thread."""
    runs = list(contenders(model, train, few))
    best = dict.fromkeys((name for name, _, _ in runs), np.inf)
    for number in range(ROUNDS + 1):
        for name, function, most in runs:
            if number > 1 and most is not None:
                continue  # the slow ones: once to warm up, once to count
            given = np.ascontiguousarray(rows[:most])
            began = time.process_time()
            function(given)
            if number:
                best[name] = min(best[name], 1e6 * (time.process_time() - began) / len(given))
    return best


def visits(smoothed, rows):
    """Nodes on a row's path, nodes its neighbourhood reaches, and those of any of 16 rows alike; per tree."""
    ensemble, half_widths = smoothed.ensemble, smoothed.widths
    order = coherent_order(rows, smoothed.importance, WIDTH)
    groups = rows[order[: 20 * WIDTH]].reshape(-1, WIDTH, rows.shape[1])
    counts = np.zeros(3)
    for group in groups:
        for at, (some, reach) in enumerate(
            ((group[:1], 0 * half_widths), (group[:1], half_widths), (group, half_widths))
        ):
            waiting, here = ensemble.roots.astype(int), np.ones((len(some), len(ensemble.roots)), dtype=bool)
            while len(waiting):
                counts[at] += len(waiting)
                split = (ensemble.kind[waiting] & LEAF) == 0
                inner, here = waiting[split], here[:, split]
                column, threshold = ensemble.column[inner].astype(int), ensemble.threshold[inner]
                left = here & (some[:, column] - reach[column] <= threshold)
                right = here & (some[:, column] + reach[column] > threshold)
                waiting = np.concatenate([inner + 1, ensemble.right[inner].astype(int)])
                here = np.concatenate([left, right], axis=1)
                waiting, here = waiting[here.any(axis=0)], here[:, here.any(axis=0)]
    return counts / (len(groups) * len(ensemble.roots))


def two_threads(model, train, rows):
    """Wall time of one thread over that of two, for 10,000 rows (a short table is repeated)."""
    rows = np.tile(rows, (-(-10_000 // len(rows)), 1))[:10_000]
    smoothed = with_half_widths(load(model), DEFAULT * train.std(axis=0))
    best = {1: np.inf, 2: np.inf}
    for _ in range(ROUNDS):
        for threads in best:
            began = time.perf_counter()
            smoothed(rows, threads=threads)
            best[threads] = min(best[threads], time.perf_counter() - began)
    return best[1] / best[2]


def first_use():
    """CPU seconds until the first gradient in a fresh process: compiled anew, and from the cache."""
    code = (
        "import time, numpy as np; from sklearn.ensemble import RandomForestRegressor as R;"
        "from sklearn.datasets import make_friedman1 as f; x, y = f(500, random_state=0); m = R(5).fit(x, y);"
        "t = time.process_time(); from texplainer.gradients.trees.readers.table import load;"
        "from texplainer.gradients.trees.soft import with_half_widths; "
        "s = with_half_widths(load(m), x.std(0)); s(x, threads=1);"
        "print(time.process_time() - t)"
    )
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        run = [sys.executable, "-c", code]
        return [
            float(subprocess.run(run, env=environment, capture_output=True, check=True).stdout) for _ in "ab"
        ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows, first two models")
    parser.add_argument("--write", type=Path, help="write the table there as Markdown")
    options = parser.parse_args()
    lines, names = [], []
    for number, (case, model, train, rows) in enumerate(cases()):
        if options.quick and number > 1:
            break
        rows = rows[:2000] if options.quick else rows
        began = time.process_time()
        ensemble = load(model)
        loading = time.process_time() - began
        speed_up = two_threads(model, train, rows)
        deep = len(ensemble.kind) > 1000 * len(
            ensemble.roots
        )  # the other explainers take seconds a row there
        best = measure(model, train, rows, few=5 if options.quick or deep else 15)
        base = best["predict"]
        nodes = len(ensemble.kind) / len(ensemble.roots)
        path, reached, alike = visits(with_half_widths(ensemble, DEFAULT * train.std(axis=0)), rows)
        cells = {
            "nodes a tree": f"{nodes:.0f}",
            "reached / path": f"{reached / path:.1f}",
            "by 16 alike / path": f"{alike / path:.1f}",
            "ns a node": f"{1e3 * best['gradient'] / len(ensemble.roots) / alike:.2f}",
            "predict": f"{base:.2f} us",
            **{
                name: f"{t / base:,.2f}" if t / base < 10 else f"{t / base:,.0f}"
                for name, t in best.items()
                if name != "predict"
            },
            "contribs / gradient": f"{best['pred_contribs'] / best['gradient']:,.0f}"
            if "pred_contribs" in best
            else "",
            "2 threads": f"{speed_up:.2f}x",
            "load": f"{loading:.2f} s",
        }
        names += [name for name in cells if name not in names]
        lines.append((case, cells))
        print(case, cells, flush=True)
    cold, warm = first_use()
    table = ["| model | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    table += [
        f"| {case} | " + " | ".join(cells.get(name, "") for name in names) + " |" for case, cells in lines
    ]
    table += [
        "",
        f"First gradient in a fresh process: {cold:.1f} CPU seconds compiling, {warm:.1f} from the cache.",
        FLOOR.rstrip(),
    ]
    print("\n".join(table))
    if options.write:
        head = "# The cost of a gradient, over the model's own prediction\n\n"
        note = (
            "Made by `python benchmarks/trees.py --write docs/results/trees_speed.md`. `predict` is "
            "microseconds a row, the other columns are multiples of it: CPU time of one thread, half-width "
            f"{DEFAULT:g} standard deviations. `gradient` is the compiled kernel with its preparation; "
            "`engine` adds the link and the change under small moves. `2 threads` is a ratio of wall times "
            "for 10,000 rows; a busy machine hides it. "
            f"Load of the machine at the end: {os.getloadavg()[1]:.0f} on {os.cpu_count()} cores.\n\n"
        )
        options.write.write_text(head + note + "\n".join(table) + "\n")


if __name__ == "__main__":
    main()
