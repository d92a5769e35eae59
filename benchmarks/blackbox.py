"""What black-box explanations cost and how exact they are, side by side in one run.

    TEXPLAINER_DATA=folder python benchmarks/blackbox.py            writes docs/results/blackbox.md

It needs Python 3.12 or later, with shap, shapiq and lime.

1. Overhead: the time of `TExplainer(step=0.01)` over one batched predict of the same stencil rows.
2. Rows per second against SHAP and LIME on the paper's 16-FT task.
3. Peak memory at 100,000 rows over that at 10,000 rows, each in a process of its own.
4. Error of Shapley values against evaluations, beside shap and shapiq.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one thread each, so that processor time tells
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import texplainer as tx
from texplainer.attributions.control import MOST_POINTS

OUT = Path(__file__).parents[1] / "docs" / "results" / "blackbox.md"
ROWS, FEATURES = 2000, 20
BLACK_BOX = {"engine": "finite-difference", "smoothing": 0, "attribution": "gradient"}


def best(function, repeats: int = 5) -> float:
    """The shortest processor time of some runs: the least disturbed by the rest of the machine."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def overhead() -> list[str]:
    from sklearn.neural_network import MLPClassifier
    from xgboost import XGBClassifier

    rng = np.random.default_rng(0)
    X = rng.uniform(size=(ROWS, FEATURES))
    y = ((X - 0.5) @ rng.normal(size=FEATURES) > 0).astype(int)
    models = {
        "MLP (64, 64, 64)": MLPClassifier((64, 64, 64), max_iter=20, random_state=0).fit(X, y),
        "XGBoost, 500 trees of depth 6": XGBClassifier(n_estimators=500, max_depth=6, n_jobs=1).fit(X, y),
    }
    lines = ["| model | explain, s | predict of the same rows, s | ratio |", "|---|---|---|---|"]
    for name, model in models.items():
        explainer = tx.TExplainer(model, X, step=0.01, **BLACK_BOX)
        # f(x) and two points a feature, at the row and once more a little beside it, for the relative change
        asked = int(explainer(X[:1]).diagnostics.evaluations[0])
        stencil = np.repeat(X, asked, axis=0)
        stencil[np.arange(len(stencil)), np.arange(len(stencil)) % FEATURES] += 0.01
        model.predict_proba(stencil), explainer(X)
        ratios = []
        for _ in range(15):  # alternating, so that a busy moment hits both
            a, b = best(lambda: explainer(X), 1), best(lambda: model.predict_proba(stencil), 1)  # noqa: B023
            ratios.append((a / b, a, b))
        ratio, a, b = sorted(ratios)[len(ratios) // 2]
        lines.append(f"| {name} | {a:.3f} | {b:.3f} | {ratio:.2f} |")
    return lines


def throughput() -> list[str]:
    data = tx.datasets.load("16ft")
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier((64, 64, 64), solver="sgd", learning_rate_init=0.01, max_iter=500, random_state=0)
    X, y = np.asarray(data.X_train), np.asarray(data.y_train)
    model.fit(X, y)
    test = np.asarray(data.X_test)
    background = X[:100]
    function = {"engine": "finite-difference"}  # as a black box
    #: explainer -> the question it answers; the first of a question is what the others are compared with
    explainers = {
        "T-Explainer slope, black box": ("slope", tx.TExplainer(model, X, **function)),
        "T-Explainer slope": ("slope", tx.TExplainer(model, X)),
        "T-Explainer gradient, black box": ("slope", tx.TExplainer(model, X, **BLACK_BOX)),
        "Algorithm 1": ("slope", tx.TExplainer(model, X, step="paper")),
        "LIME continuous": ("slope", tx.explainers.lime(model, X, discretize=False)),
        "T-Explainer shapley, black box": (
            "shapley",
            tx.TExplainer(model, background, attribution="shapley", **function),
        ),
        "T-Explainer shapley": ("shapley", tx.TExplainer(model, background, attribution="shapley")),
        "SHAP permutation": ("shapley", tx.explainers.shap(model, background, algorithm="permutation")),
        "SHAP kernel": ("shapley", tx.explainers.shap(model, background, algorithm="kernel")),
        "LIME": ("shapley", tx.explainers.lime(model, X)),
    }
    lines = ["| explainer | compared as | rows/s at 10 rows | at 100 rows | slower than ours, black box |",
             "|---|---|---|---|---|"]  # fmt: skip
    reference: dict[str, float] = {}
    for name, (question, explainer) in explainers.items():
        explainer(test[:2])  # compile and warm up
        ten, hundred = (n / best(lambda: explainer(test[:n]), 2) for n in (10, 100))  # noqa: B023
        slower = reference.setdefault(question, hundred) / hundred
        lines.append(f"| {name} | {question} | {ten:,.0f} | {hundred:,.0f} | {slower:,.2f} |")
    return lines


def memory() -> list[str]:
    peaks = {}
    for rows in (10_000, 100_000):
        run = [sys.executable, __file__, "--memory-of", str(rows)]
        peaks[rows] = float(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    lines = ["| rows | peak memory, MB |", "|---|---|"]
    lines += [f"| {rows:,} | {peak:,.0f} |" for rows, peak in peaks.items()]
    return [*lines, "", f"Ratio: {peaks[100_000] / peaks[10_000]:.2f}."]


def memory_of(rows: int) -> None:
    """Explain so many rows in this process and print its peak memory in MB."""
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2000, FEATURES))
    model = MLPClassifier((64, 64), max_iter=5, random_state=0).fit(X, X[:, 0] > 0.5)
    table = rng.uniform(size=(rows, FEATURES))
    tx.TExplainer(model, X, step=0.01, **BLACK_BOX)(table)
    # not getrusage: it inherits the peak of the process that started this one
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    print(int(peak.split()[1]) / 1024)


#: six models with exact Shapley values: trees, and models of few features by all subsets
SHAPLEY_MODELS = [
    ("satellite", "XGBoost"),
    ("vehicle", "LightGBM"),
    ("breast_cancer", "random forest"),
    ("credit_data", "HistGradientBoosting"),
    ("pima", "network"),
    ("concrete", "Gaussian process"),
]
BUDGETS = (64, 256, 1024)  # evaluations of a row over n + 1
REFERENCES = (10, 30, 100, 200)  # background rows that the others average over: the best of these counts
TABLE_ROWS = 100  # the fit of the control variate is one for all rows of a table: of so many
ESTIMATORS = ("RegressionMSR", "ProxySHAP", "LeverageSHAP", "OddSHAP")  # of shapiq; the best two are shown


def shap_permutation(predict, rows, background, coalitions):
    import shap

    explainer = shap.PermutationExplainer(
        predict, shap.maskers.Independent(background, len(background)), seed=0
    )
    return explainer(rows, max_evals=coalitions, silent=True).values


def shap_kernel(predict, rows, background, coalitions):
    import shap

    np.random.seed(0)  # noqa: NPY002 (it has no other seed)
    return shap.KernelExplainer(predict, background).shap_values(rows, nsamples=coalitions, silent=True)


def shapiq_with(estimator):
    def values(predict, rows, background, coalitions):
        references = len(background)
        choice = {"estimator": estimator, "budget": coalitions, "references": references}
        return tx.explainers.shapiq(predict, background, **choice)(rows).values

    return values


def shapley_errors(table: str, name: str, rows_of: int = 4) -> dict[int, dict[str, float]]:
    """Relative error of every explainer at every budget."""
    from bounds import fitted, shapley_reference

    model, background, rows = fitted(table, name)
    rows, n = rows[:rows_of], rows.shape[1]
    exact = np.asarray(shapley_reference(model, name, rows, background)[0])

    def error(values) -> float:
        return float(np.linalg.norm(np.reshape(values, exact.shape) - exact) / np.linalg.norm(exact))

    others = {"shap Permutation": shap_permutation, "shap Kernel": shap_kernel}
    others |= {f"shapiq {estimator}": shapiq_with(estimator) for estimator in ESTIMATORS}
    found: dict[int, dict[str, float]] = {}
    for budget in BUDGETS:
        evaluations = budget * (n + 1)
        own = evaluations - min(evaluations, MOST_POINTS) // TABLE_ROWS
        ours = tx.TExplainer(lambda t: model.predict(t), background, attribution="shapley", max_evals=own)
        found[evaluations] = {"texplainer": error(ours(rows).values)}
        for other, values in others.items():
            tried = []
            for references in REFERENCES:
                coalitions = min(evaluations // references, 2**n)
                if coalitions >= 2 * n + 1:
                    some = background[:: len(background) // references][:references]
                    tried.append(error(values(model.predict, rows, some, coalitions)))
            found[evaluations][other] = min(tried, default=np.nan)
    return found


def shapley_table() -> list[str]:
    found = {pair: shapley_errors(*pair) for pair in SHAPLEY_MODELS}
    every = [one for by_budget in found.values() for one in by_budget.values()]
    mean = {estimator: np.nanmean([one[f"shapiq {estimator}"] for one in every]) for estimator in ESTIMATORS}
    best_two = [f"shapiq {estimator}" for estimator in sorted(mean, key=lambda key: mean[key])[:2]]
    names = ["texplainer", "shap Permutation", "shap Kernel", *best_two]
    lines = [
        f"| table | model | evaluations | {' | '.join(names)} | texplainer / best other |",
        "|---" * (len(names) + 4) + "|",
    ]
    above = []
    for (table, model), by_budget in found.items():
        for evaluations, errors in by_budget.items():
            ratio = errors["texplainer"] / np.nanmin([errors[name] for name in names[1:]])
            cells = " | ".join(f"{errors[name]:.1%}" for name in names)
            lines.append(f"| {table} | {model} | {evaluations:,} | {cells} | {ratio:.2f} |")
            if not ratio <= 0.5:
                above.append(f"{model} on {table} at {evaluations:,} evaluations ({ratio:.2f})")
    return [
        *lines,
        "",
        f"Not at most half the error of the best other explainer: {'; '.join(above) or 'nowhere'}.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory-of", type=int)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.memory_of:
        return memory_of(arguments.memory_of)
    from conditions import measured_on

    page = [
        "# Black-box explanations: cost and error",
        "",
        "How exact are Shapley values of a function, at equal evaluations? Relative error of the values of a row;",
        "lower is better.",
        "",
        *shapley_table(),
        "",
        "## Rows explained per second (3H-NN on 16-FT)",
        "",
        *throughput(),
        "",
        f"## Time to explain over time to predict the same stencil ({ROWS:,} rows x {FEATURES} features)",
        "",
        *overhead(),
        "",
        f"## Peak memory ({FEATURES} features, an MLP, step 0.01)",
        "",
        *memory(),
        "",
        "## How",
        "",
        "`TEXPLAINER_DATA=folder python benchmarks/blackbox.py`; processor seconds of one thread. Errors are means",
        "over four rows, at equal evaluations of the model a row; the background has 200 rows. The reference is",
        "exact: from the trees, or from all subsets of the features. texplainer spends a third of its evaluations on",
        "the relative change. Its control variate is fitted once, to as many predictions as one row costs (at most",
        f"{MOST_POINTS:,}); a hundredth of them is counted here, as in a table of {TABLE_ROWS} rows. The others",
        f"average every coalition over background rows: {', '.join(map(str, REFERENCES))} were tried, and the least",
        "error counts.",
        f"Of shapiq's estimators ({', '.join(ESTIMATORS)}) the two with the least mean error are shown.",
        "",
        measured_on("shap", "shapiq", "lime", "xgboost-cpu", "lightgbm", "numba"),
        "",
        "## Limits",
        "",
        "- For a few rows the control variate is not free: its fit costs as many evaluations as one row.",
        "- Rows per second are at each explainer's own settings, not at equal error. LIME's values are local",
        "  regressions.",
    ]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join(page) + "\n")
    print(OUT.read_text())


if __name__ == "__main__":
    main()
