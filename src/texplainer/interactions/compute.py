"""Interactions of a table, block by block, by the way that fits the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.replaced import noise_floor
from texplainer.attributions.shapley import exact_shapley
from texplainer.attributions.table import DEFAULT
from texplainer.background.summary import Background
from texplainer.categories.detect import Categories
from texplainer.errors import InputError, Unsupported
from texplainer.explanation.interactions import Interactions
from texplainer.gradients.engine import Engine
from texplainer.interactions.discrete import with_discrete
from texplainer.interactions.double_swaps import with_double_swaps
from texplainer.interactions.factorial import designed
from texplainer.interactions.second_order import SecondOrder, symmetric
from texplainer.interactions.slopes_of_slopes import fitted, slope_differences
from texplainer.models.predictor import Predictor
from texplainer.support.progress import track
from texplainer.types import Array

CELLS = 2**19  # of the matrices of a block
MOST_BYTES = 2**33  # of one result


def second_order(
    predictor: Predictor,
    background: Background,
    engine: Engine,
    categories: Categories,
    rows: Array,
    refused: Sequence[int],
    progress: bool | None,
    attribution: str = DEFAULT,
) -> Interactions:
    """Compute the interactions of all rows; those of rejected rows are NaN."""
    pairs = None if attribution == DEFAULT else _shapley_pairs(engine, attribution)
    outputs = len(predictor.outputs)
    shape = (len(rows), rows.shape[1], rows.shape[1], outputs)
    _check_size(shape)
    values, error = np.full(shape, np.nan), np.full(shape, np.nan)
    predictions, cost = np.full((len(rows), outputs), np.nan), np.zeros(len(rows), dtype=np.int64)
    todo = np.delete(np.arange(len(rows)), refused)
    size = max(1, CELLS // (rows.shape[1] ** 2 * outputs))
    blocks = [todo[i : i + size] for i in range(0, len(todo), size)]
    for block in track(blocks, "interactions", progress, [len(b) for b in blocks]):
        f0 = predictor(rows[block])
        context = ExplainContext(rows[block], f0, background, predictor, engine, background.bounds)
        if pairs is not None:
            found = _exact(pairs, context)
        else:
            found = with_discrete(symmetric(_continuous(context)), context)
            found = with_double_swaps(found, context, categories)
        values[block], error[block], predictions[block] = found.values, found.error, f0
        cost[block] = found.evaluations + 1
    arrays = {"values": values, "error": error, "predictions": predictions, "evaluations": cost}
    names = predictor.output_names
    if predictor.predicted:
        arrays, names = _of_predicted_class(arrays), ("predicted",)
    spreads = np.where(predictor.schema.numeric, background.sigma, np.nan)
    return Interactions(
        arrays,
        predictor.schema.names,
        names,
        predictor.scale,
        engine.name,
        engine.width if pairs is None else 0.0,
        spreads,
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


def _continuous(context: ExplainContext) -> SecondOrder:
    """The continuous features' matrix by the way that fits the engine; discrete columns stay where they are."""
    engine, predictor, background = context.engine, context.predictor, context.background
    moves = predictor.schema.numeric & ~background.discrete.mask(len(background.sigma))
    sigma = np.where(moves, background.sigma, 0.0)
    if not engine.exact:
        return designed(predictor, sigma, engine.width, context.bounds, context.rows)
    if engine.averages or not engine.width:
        return slope_differences(engine, predictor, sigma, context.rows)
    return fitted(engine, predictor, sigma, context.bounds, context.rows)


def _of_predicted_class(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Keep each row's own greatest output only."""
    pick = np.nan_to_num(arrays["predictions"], nan=-np.inf).argmax(axis=1)
    return {
        name: np.take_along_axis(array, pick.reshape(-1, *(1,) * (array.ndim - 1)), axis=-1)
        if array.ndim > 1
        else array
        for name, array in arrays.items()
    }
