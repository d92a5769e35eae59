"""Interactions of a table, block by block: slopes of slopes from predictions, or exact Shapley values of pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.replaced import noise_floor
from texplainer.attributions.shapley import exact_shapley
from texplainer.attributions.table import DEFAULT
from texplainer.background.summary import HALF_WIDTH, Background
from texplainer.categories.detect import Categories
from texplainer.errors import InputError, Unsupported
from texplainer.explanation.interactions import Interactions
from texplainer.gradients.engine import BANDWIDTH, Engine
from texplainer.interactions.differences import SecondOrder, calibrated, second_differences
from texplainer.models.predictor import Predictor
from texplainer.support.progress import track
from texplainer.types import Array

CELLS = 2**19  # of the matrices of a block
MOST_BYTES = 2**33  # of one result
MOST_PREDICTIONS = 2**32
#: model evaluations a row up to which both features of a pair take two moves to either side, otherwise one
BUDGET = 20_000
AT_POINT = 8.0  # for derivatives at the row: moves of 8 unit^(1/4) SDs, where both errors are small


def second_order(
    predictor: Predictor,
    background: Background,
    engine: Engine,
    categories: Categories,
    rows: Array,
    refused: Sequence[int],
    progress: bool | None,
    attribution: str = DEFAULT,
    bandwidth: float = BANDWIDTH,
    max_evals: int | None = None,
) -> Interactions:
    """Compute the interactions of all rows; those of rejected rows are NaN.

    `max_evals` is the number of model evaluations a row may cost.
    """
    exact = None if attribution == DEFAULT else _shapley_pairs(engine, attribution)
    outputs = len(predictor.outputs)
    shape = (len(rows), rows.shape[1], rows.shape[1], outputs)
    _check_size(shape)
    moves = bandwidth or AT_POINT * predictor.unit**0.25 / HALF_WIDTH
    asked = _pairs(engine, rows.shape[1]) if exact is None else np.empty((0, 2), dtype=int)
    nodes = 2 if 16 * len(asked) <= (BUDGET if max_evals is None else max_evals) else 1
    _check_work(len(rows), len(asked), nodes)
    values, error = np.full(shape, np.nan), np.full(shape, np.nan)
    predictions, cost = np.full((len(rows), outputs), np.nan), np.zeros(len(rows), dtype=np.int64)
    todo = np.delete(np.arange(len(rows)), refused)
    size = max(1, CELLS // max(rows.shape[1] ** 2 * outputs, 4 * nodes**2 * len(asked)))
    blocks = [todo[i : i + size] for i in range(0, len(todo), size)]
    for block in track(blocks, "interactions", progress, [len(b) for b in blocks]):
        f0 = predictor(rows[block])
        context = ExplainContext(rows[block], f0, background, predictor, engine, background.bounds)
        if exact is not None:
            found = _exact(exact, context)
        else:
            part = background.cached(
                ("interactions", moves, nodes), partial(calibrated, context, categories, moves, nodes, asked)
            )
            found = second_differences(
                context, categories, moves, nodes, asked, np.arange(rows.shape[1]), part
            )
        values[block], error[block], predictions[block] = found.values, found.error, f0
        cost[block] = found.evaluations + 1
    arrays = {"values": values, "error": error, "predictions": predictions, "evaluations": cost}
    names = predictor.output_names
    if predictor.predicted:
        arrays, names = _of_predicted_class(arrays), ("predicted",)
    sd = np.where(predictor.schema.numeric, background.sigma, np.nan)
    return Interactions(
        arrays,
        predictor.schema.names,
        names,
        predictor.scale,
        engine.name,
        bandwidth if exact is None else 0.0,
        sd,
        frozenset("o") if len(names) == 1 else frozenset(),
        attribution,
    )


def _check_size(shape: tuple[int, int, int, int]) -> None:
    """Refuse what would not fit into memory, before anything is computed."""
    needed = 2 * 8 * prod(shape)  # values and error bounds
    if needed > MOST_BYTES:
        rows, columns, _, outputs = shape
        raise InputError(
            f"interactions of {rows} rows, {columns} x {columns} pairs and {outputs} outputs take "
            f"{needed / 2**30:.0f} GB; at most {MOST_BYTES / 2**30:.0f} GB are computed at once. Pass fewer rows, "
            "explain one output (output=...), or select columns."
        )


def _check_work(rows: int, pairs: int, nodes: int) -> None:
    """Refuse what would take days, before anything is computed."""
    needed = rows * pairs * 4 * nodes**2
    if needed > MOST_PREDICTIONS:
        raise InputError(
            f"interactions of {rows} rows and {pairs} pairs take {needed:.1e} predictions; at most "
            f"{MOST_PREDICTIONS:.1e} are made at once. Pass fewer rows, or explain a model of fewer features."
        )


def _pairs(engine: Engine, features: int) -> np.ndarray:
    """The pairs of columns that may interact, (pairs, 2): in a sum of trees only those that share a tree."""
    try:
        trees, _ = exact_shapley(engine)
    except Unsupported:
        trees = None
    together = None if trees is None else trees.together()
    upper = np.triu(np.ones((features, features), bool), 1)
    return np.argwhere(upper if together is None else upper & together)


def _shapley_pairs(engine: Engine, attribution: str) -> Callable[[Array], Array]:
    """The Shapley interaction values of trees as a function of rows."""
    if attribution not in ("shapley", "shapley_path"):
        raise InputError(
            f"attribution={attribution!r} has no interactions; expected 'slope', 'shapley' or 'shapley_path'."
        )
    exact, reason = exact_shapley(engine)
    if exact is None:
        reason = reason or "the model is not a tree ensemble, or another engine was asked for."
        raise _only_of_trees(attribution, reason)

    def pairs(rows: Array) -> Array:
        try:
            return exact.pairs(rows, attribution == "shapley_path")
        except Unsupported as reason:
            raise _only_of_trees(attribution, str(reason)) from None

    return pairs


def _only_of_trees(attribution: str, reason: str) -> InputError:
    return InputError(
        f"interactions with attribution={attribution!r} are computed for sums of trees only: {reason} "
        "Use interactions(X), the second-order slopes, which every model has."
    )


def _exact(pairs: Callable[[Array], Array], context: ExplainContext) -> SecondOrder:
    """Values without error beyond round-off."""
    values = pairs(context.rows)
    floor = noise_floor(context.predictor, context.predictions, context.background.output_sd)
    error = np.where(values == 0, 0.0, floor[:, None, None, :])
    return SecondOrder(values, error, np.zeros(len(values), dtype=np.int64))


def _of_predicted_class(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Keep each row's own greatest output only."""
    pick = np.nan_to_num(arrays["predictions"], nan=-np.inf).argmax(axis=1)
    return {
        name: np.take_along_axis(array, pick.reshape(-1, *(1,) * (array.ndim - 1)), axis=-1)
        if array.ndim > 1
        else array
        for name, array in arrays.items()
    }
