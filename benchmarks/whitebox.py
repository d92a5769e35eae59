"""White-box engines: time to explain over time to predict, and throughput beside the other explainers.

One run, every ratio from the same process: each pair of jobs is timed alternately, in CPU seconds of
one thread, and the median ratio is shown. Run it from the repository's root:

    python benchmarks/whitebox.py [--quick] [--write docs/results/whitebox.md]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import texplainer as tx
from texplainer import datasets, explainers
from texplainer.gradients import autodiff, smoothing

ROWS = 10_000
NETWORKS = {"3H-NN": (64, 64, 64), "5H-64-NN": (64,) * 5, "5H-128-NN": (64, 128, 128, 128, 64)}
BACKGROUND = 200
AIM = {"scikit-learn": 4, "torch, float64": 5, "torch, float32": 5}  # predictions a point gradient may cost
AVERAGED = {"scikit-learn": 1.5, "torch, float64": 1.5, "torch, float32": 2}  # and a point of an average
ABOUT = """\
# White-box engines: cost beside a prediction, throughput beside the other explainers

    python benchmarks/whitebox.py --write docs/results/whitebox.md

Aimed at: a point gradient at the cost of at most 4 predictions (scikit-learn) and 5 (torch); a gradient
averaged over m points at most 3m/2, of a float32 torch module 2m; all rows of the HIGGS file in less time
than SHAP's default explainer needs for 20 rows. `whole explanation` adds to the point gradient the model's
own prediction of every row, one more for the Taylor residual, the stability labels and the arrays. Averages are
taken in float32, of a float64 torch module on a copy of it. A float32 module has no cheaper form to be
averaged in: `floor` is what torch itself needs for the same points, nothing else done, a forward pass and
`autograd.grad` in blocks of 2,016 rows. It is about 2 predictions a point, the aim; what comes on top is
laying out the points, their scatter (the error bar) and the change under small moves (the stability).
`torch.func.vmap`, parameters without gradients and other blocks gain nothing, a reverse pass written by
hand 12%. On two virtual cores the medians scatter by 10 to 15% from run to run, most for the small 3H-NN."""


def cpu(job: Callable[[], Any]) -> float:
    began = time.process_time()
    job()
    return time.process_time() - began


def ratio(job: Callable[[], Any], unit: Callable[[], Any], repeats: int) -> float:
    """Median of CPU time over CPU time, the two timed alternately."""
    job(), unit()
    return float(np.median([cpu(job) / max(cpu(unit), 1e-9) for _ in range(repeats)]))


def fit(layers: tuple[int, ...], data: Any) -> Any:
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier(layers, solver="sgd", learning_rate_init=0.01, max_iter=30, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few epochs are enough for timing
        return model.fit(data.X_train[:5000], data.y_train[:5000])


def torch_twin(model: Any) -> Any:
    """The same network in torch, float64, giving the logit."""
    import torch

    torch.set_num_threads(1)
    layers: list[Any] = []
    for i, (weight, offset) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        linear = torch.nn.Linear(*weight.shape).double()
        linear.weight.data, linear.bias.data = torch.tensor(weight.T.copy()), torch.tensor(offset.copy())
        layers += [linear] if i == len(model.coefs_) - 1 else [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers)


def ratios(data: Any, repeats: int) -> list[str]:
    """Explaining 10,000 rows x 28 features, in units of predicting them."""
    rows = np.tile(data.X_test, (ROWS // len(data.X_test) + 1, 1))[:ROWS]
    background = data.X_train[:BACKGROUND]
    lines = [
        "| network | library | point gradient | aim | whole explanation with diagnostics "
        f"| smoothed, {smoothing.POINTS} points | aim | floor |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in ("3H-NN", "5H-128-NN"):
        fitted = fit(NETWORKS[name], data)
        models = (fitted, torch_twin(fitted), torch_twin(fitted).float())
        for library, model in zip(AIM, models, strict=True):
            scale = "probability"
            point = tx.TExplainer(model, background, smoothing=0, attribution="gradient", scale=scale)
            smooth = tx.TExplainer(model, background, smoothing=0.2, attribution="gradient", scale=scale)
            predict = lambda p=point.predictor: p(rows)  # noqa: E731
            alone = ratio(lambda p=point: p.engine.gradient(rows), predict, repeats)
            whole = ratio(lambda p=point: p(rows, progress=False), predict, repeats)
            averaged = ratio(lambda s=smooth: s.engine.gradient(rows), predict, repeats)
            lines.append(
                f"| {name} | {library} | {alone:.1f} | {AIM[library]} | {whole:.1f} | {averaged:.0f} "
                f"({averaged / smoothing.POINTS:.2f} a point) | {AVERAGED[library] * smoothing.POINTS:.0f} "
                f"| {bare_torch(model, rows, predict, repeats) if 'float32' in library else ''} |"
            )
    return lines


def bare_torch(model: Any, rows: np.ndarray, predict: Callable[[], Any], repeats: int) -> str:
    """What torch's own forward and reverse passes cost, at as many points as an average has."""
    import torch

    parts = torch.tensor(rows, dtype=torch.float32).split(autodiff.BLOCK)

    def passes() -> None:
        for _ in range(smoothing.POINTS):
            for part in parts:
                x = part.clone().requires_grad_()
                torch.autograd.grad(model(x).sum(), x)

    return f"{ratio(passes, predict, repeats):.0f}"


def throughput(data: Any, quick: bool) -> list[str]:
    """Rows a second of CPU time, 5H-64-NN, beside the other explainers; each on as many rows as it needs."""
    model, background = fit(NETWORKS["5H-64-NN"], data), data.X_train[:100]
    ours = {
        "T-Explainer, point gradient": (2000, {"attribution": "gradient", "smoothing": 0}),
        "T-Explainer, local (default)": (500, {}),
        "T-Explainer, shares": (200, {"attribution": "shapley"}),
        "T-Explainer, effect": (50, {"attribution": "variation"}),
        "T-Explainer, Algorithm 1": (200, {"step": "paper"}),
    }
    jobs = {
        label: (count, tx.TExplainer(model, background, **options))
        for label, (count, options) in ours.items()
    }
    names = {
        "shap": 2,
        "shap_kernel": 1,
        "lime": 4,
        "integrated_gradients": 200,
        "shap_gradient": 20,
        "shap_deep": 100,
    }
    for name, built in explainers.suite(model, background, names if not quick else ("lime",)).items():
        jobs[name] = (names[name], built)
    speed: dict[str, float | str] = {}
    for label, (count, explain) in jobs.items():
        if isinstance(explain, explainers.Skipped):
            speed[label] = explain.reason
            continue
        try:
            explain(data.X_test[:1])  # compilation is not counted
            took = [cpu(lambda e=explain, n=count: e(data.X_test[:n])) for _ in range(3)]
            speed[label] = count / float(np.median(took))
        except Exception as error:
            speed[label] = f"{type(error).__name__}: {error}"
    shap = speed.get("shap", 1.0)
    unit = shap if isinstance(shap, float) else 1.0
    lines = ["| explainer | rows a second | times SHAP's default |", "|---|---|---|"]
    for label, value in speed.items():
        words = f"{value:,.1f} | {value / unit:,.1f}" if isinstance(value, float) else f"skipped: {value} | "
        lines.append(f"| {label} | {words} |")
    return lines


def whole_file(data: Any) -> list[str]:
    """All rows of HIGGS with the 5H-64-NN, against SHAP's default explainer on 20 rows."""
    model, background = fit(NETWORKS["5H-64-NN"], data), data.X_train[:100]
    rows = np.concatenate([data.X_train, data.X_test])
    explainer = tx.TExplainer(model, background, attribution="gradient", smoothing=0)
    ours = cpu(lambda: explainer(rows, progress=False))
    shap = explainers.shap(model, background)
    shap(rows[:1])
    theirs = cpu(lambda: shap(rows[:20]))
    return [
        f"All {len(rows):,} rows of HIGGS by T-Explainer (point gradient, with diagnostics): {ours:.2f} s. "
        f"SHAP's default explainer, 20 rows, 100 background rows: {theirs:.2f} s."
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", default=None)
    arguments = parser.parse_args()
    with threadpool_limits(1):  # both sides of a ratio get one thread
        measure(datasets.load("higgs"), arguments.quick, arguments.write)


def measure(data: Any, quick: bool, write: str | None) -> None:
    repeats = 3 if quick else 7
    parts = [
        ABOUT,
        "## Time to explain over time to predict",
        f"{ROWS:,} rows x 28 features (HIGGS), CPU seconds of one thread, median of {repeats} runs in turn.",
        "\n".join(ratios(data, repeats)),
        "## Throughput",
        "5H-64-NN on HIGGS, 100 background rows, CPU seconds of one thread, median of three calls.",
        "\n".join(throughput(data, quick)),
    ]
    if not quick:
        parts += ["## A whole file", *whole_file(data)]
    text = "\n\n".join(parts) + "\n"
    print(text)
    if write:
        with open(write, "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
