"""SHAP (Lundberg and Lee, 2017): Shapley values of the explained output, by the algorithm asked for.

`ALGORITHMS` holds one builder each. The model is asked for the explained output's probability (or margin);
`labels=True` explains hard class labels, as the paper did. KernelSHAP's default regularisation, which zeroes
all but ten features, is off.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.explainers.base import (
    Attribute,
    Counter,
    OtherExplainer,
    Task,
    evenly_spaced,
    needs,
    rebuildable,
    row_by_row,
    task_of,
)
from texplainer.explainers.captum import torch_network
from texplainer.models.libraries import library_called
from texplainer.models.libraries.torch import evaluation_copy
from texplainer.support.process import isolated
from texplainer.types import Array


@rebuildable
def shap(
    model: Any,
    background: Any,
    *,
    algorithm: str = "auto",
    labels: bool = False,
    references: int = 100,
    seed: int | None = 0,
    **choice: Any,
) -> OtherExplainer:
    """Explain with SHAP.

    Parameters
    ----------
    algorithm : "auto" (trees: "tree"; others what SHAP itself takes, "exact" for few features and
        "permutation" for many), "exact", "kernel", "permutation", "tree" (interventional: against the
        background), "tree_path" (by the training rows' paths), "gradient" or "deep".
    labels : explain the hard label (0 or 1) instead of the probability: the paper's set-up.
    references : the most background rows SHAP averages over.
    seed : each row starts from it; None leaves the draws to numpy's global generator.
    **choice : `output`, `scale`, `feature_names`, `categorical`, as for TExplainer.
    """
    if algorithm not in ALGORITHMS:
        raise Unsupported(f"algorithm={algorithm!r} is unknown; expected one of {', '.join(ALGORITHMS)}.")
    library = needs("shap")
    task = task_of(model, background, **choice)
    predict = _hard(task) if labels else task.output_of
    counter = Counter(predict)
    chosen = "tree" if algorithm == "auto" and _is_tree(task) and not labels else algorithm
    rows = evenly_spaced(task.background.rows, references)
    with isolated(0 if seed is None else seed):  # building an explainer may reseed the global generator
        attribute = ALGORITHMS[chosen](library, task, counter, rows, seed)
    name = "SHAP" if algorithm == "auto" else f"SHAP ({algorithm})"
    settings = {"algorithm": chosen, "labels": labels, "references": len(rows), "seed": seed}
    return OtherExplainer(name, task, attribute, settings=settings, predict=predict if labels else None,
                 scale="label" if labels else "")  # fmt: skip


def _hard(task: Task) -> Callable[[Array], Array]:
    if task.predictor.everything(task.background.rows[:1]).shape[1] < 2:
        raise Unsupported("labels=True explains a class; the model has one output only.")

    def label(rows: Array) -> Array:
        return (task.predictor.everything(rows).argmax(axis=1) == task.output).astype(float)

    return label


def _is_tree(task: Task) -> bool:
    return (
        library_called(task.predictor.kind).trees
        or hasattr(task.predictor.model, "tree_")
        or any(
            hasattr(one, "tree_") for one in np.ravel(getattr(task.predictor.model, "estimators_", []))[:1]
        )
    )


def _auto_shap(library: Any, task: Task, counter: Counter, rows: Array, seed: int | None) -> Attribute:
    return _modern(library.Explainer(counter, _masker(library, rows), seed=seed), counter, seed)


def _exact_shap(library: Any, task: Task, counter: Counter, rows: Array, seed: int | None) -> Attribute:
    if rows.shape[1] > 16:
        raise Unsupported(
            f"exact Shapley values of {rows.shape[1]} features need 2^{rows.shape[1]} evaluations."
        )
    return _modern(library.ExactExplainer(counter, _masker(library, rows)), counter, seed, max_evals=2**17)


def _permutation_shap(library: Any, task: Task, counter: Counter, rows: Array, seed: int | None) -> Attribute:
    return _modern(library.PermutationExplainer(counter, _masker(library, rows), seed=seed), counter, seed)


def _masker(library: Any, rows: Array) -> Any:
    return library.maskers.Independent(rows, max_samples=len(rows))


def _modern(explainer: Any, counter: Counter, seed: int | None, **options: Any) -> Attribute:
    def one(row: Array) -> Array:
        return np.asarray(explainer(row[None], silent=True, **options).values, dtype=float).reshape(len(row))

    return row_by_row(one, counter, seed)


def _kernel_shap(library: Any, task: Task, counter: Counter, rows: Array, seed: int | None) -> Attribute:
    explainer = library.KernelExplainer(counter, rows)

    def one(row: Array) -> Array:
        return np.asarray(explainer.shap_values(row[None], l1_reg=False, silent=True)).reshape(len(row))

    return row_by_row(one, counter, seed)


def _tree_shap(library: Any, task: Task, counter: Counter, rows: Array, seed: int | None) -> Attribute:
    predictor = task.predictor
    if predictor.scale == "log-odds" and len(predictor.all_names) > 2:
        raise Unsupported(
            "TreeSHAP explains the scores of several classes, not their log-odds; pass scale='raw'."
        )
    wants = "probability" if predictor.scale == "probability" else "raw"
    return _by_trees(
        task, lambda: library.TreeExplainer(predictor.model, data=rows, model_output=wants), rows
    )


def _tree_path_shap(library: Any, task: Task, counter: Counter, rows: Array, seed: int | None) -> Attribute:
    booster, several = library_called(task.predictor.kind).trees, len(task.predictor.all_names) > 2
    if booster and (
        task.predictor.scale == "probability" or (task.predictor.scale == "log-odds" and several)
    ):
        wanted = "raw" if several else "log-odds"
        raise Unsupported(f"path-dependent TreeSHAP explains a booster's scores; pass scale={wanted!r}.")
    return _by_trees(task, lambda: library.TreeExplainer(task.predictor.model), rows)


def _by_trees(task: Task, make: Callable[[], Any], rows: Array) -> Attribute:
    predictor = task.predictor

    def values_of(explainer: Any, table: Array) -> Array:
        with warnings.catch_warnings():  # of LightGBM: that the shape has changed
            warnings.filterwarnings("ignore", category=UserWarning)
            return np.asarray(explainer.shap_values(table, check_additivity=False), dtype=float)

    try:
        explainer = make()
        values_of(explainer, rows[:1])
    except Exception as error:
        raise Unsupported(f"TreeSHAP cannot explain a {type(predictor.model).__name__}: {error}") from error

    def attribute(table: Array) -> tuple[Array, Array]:
        found = values_of(explainer, table)
        outputs = found.shape[2] if found.ndim == 3 else 1
        values = found[:, :, predictor.outputs[0]] if outputs > 1 else found.reshape(table.shape)
        # one score column means class 1 of two: class 0 is its mirror image
        mirrored = outputs == 1 and predictor.task == "classification" and predictor.outputs[0] == 0
        return -values if mirrored else values, np.full(len(table), np.nan)

    return attribute


def _gradient_shap(library: Any, task: Task, counter: Counter, rows: Array, seed: int | None) -> Attribute:
    torch, network = _torch(task)
    network, dtype = network.float(), torch.float32  # SHAP samples in single precision
    explainer = library.GradientExplainer(network, torch.tensor(rows, dtype=dtype))

    def one(row: Array) -> Array:
        counter.rows += 200  # SHAP's default number of samples
        # SHAP draws a seed from numpy's global generator when it gets none.
        found = explainer.shap_values(torch.tensor(row[None], dtype=dtype), nsamples=200)
        return np.asarray(found, dtype=float).reshape(len(row), -1)[:, task.output]

    return row_by_row(one, counter, seed)


def _deep_shap(library: Any, task: Task, counter: Counter, rows: Array, seed: int | None) -> Attribute:
    torch, network = _torch(task)
    dtype = next(network.parameters()).dtype
    explainer = library.DeepExplainer(network, torch.tensor(rows, dtype=dtype))

    def attribute(table: Array) -> tuple[Array, Array]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning)
            found = explainer.shap_values(torch.tensor(table, dtype=dtype), check_additivity=False)
        values = np.asarray(found, dtype=float).reshape(*table.shape, -1)[:, :, task.output]
        return values, np.full(len(table), 2.0 * len(rows))

    return attribute


def _torch(task: Task) -> tuple[Any, Any]:
    """Find the network, or the twin of an MLP, on the explained scale."""
    torch = needs("torch")
    predictor = task.predictor
    if predictor.kind != "torch":
        return torch, torch_network(predictor.model, predictor.scale)
    if predictor.scale != "raw":
        raise Unsupported("the network is explained on its raw outputs; pass scale='raw'.")
    return torch, evaluation_copy(predictor.model)


Builder = Callable[[Any, Task, Counter, Array, int | None], Attribute]
ALGORITHMS: dict[str, Builder] = {
    "auto": _auto_shap,
    "exact": _exact_shap,
    "kernel": _kernel_shap,
    "permutation": _permutation_shap,
    "tree": _tree_shap,
    "tree_path": _tree_path_shap,
    "gradient": _gradient_shap,
    "deep": _deep_shap,
}
