"""Shapley values: why this prediction.

One definition for every model: the Shapley value of the game v(S) = mean over the background rows b of
f(x_S, b_rest), every background row with the same weight. They sum to f(x) minus the mean prediction. What
differs is how they are found:

* trees, also behind column-wise transformers: exactly, from the patterns of satisfied conditions
  (`gradients.trees.shapley`); the error is round-off;
* additive models (linear models, GAMs): exactly, one feature at a time (`additive`);
* networks and other models with exact gradients: the line integral from the background rows to x
  (`line_integral`), an estimate of the Shapley value whose error bounds are those of the integral;
* other models: walks from background rows to x, one feature after the other (`walks`), with a boosted model of
  the function as a control variate (`control`).

Estimates are made to sum exactly. What is missing in a line integral is divided by the features' distances from
the background, whatever the model, so that the values stay linear in it. What is missing in walks is divided by
the variance of the estimates. Unused features get nothing in either case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from texplainer.attributions import additive, line_integral, walks
from texplainer.attributions.additive import AdditiveParts
from texplainer.attributions.attribution import (
    AttributionResult,
    ExplainContext,
    expected_change,
    moved,
    normally_moved,
    relative,
)
from texplainer.attributions.replaced import noise_floor
from texplainer.attributions.walks import BackgroundSample, PathContributions
from texplainer.errors import InputError, Unsupported
from texplainer.gradients.engine import Engine, ExactShapley
from texplainer.gradients.moves import TREE_MOVES
from texplainer.types import Array

#: how contributions are estimated: (context, background rows) -> contributions of their paths
Estimate = Callable[[ExplainContext, Any], PathContributions]


def shapley(context: ExplainContext) -> AttributionResult:
    """Shapley values by the method that fits the model."""
    exact, _ = exact_shapley(context.engine)
    if exact is not None:
        return _exactly(context, exact)
    context = replace(context, engine=context.engine.at_point)  # the path itself is averaged over
    parts = additive.parts_of(context)
    if parts is None or _left(context, parts) < walks.least_evals(context.rows.shape[1]):
        return _estimated(context)
    return _additively(context, parts)


def _left(context: ExplainContext, parts: AdditiveParts) -> float:
    """The evaluations that are left for a row that turns out not to be additive."""
    budget = np.inf if context.max_evals is None else context.max_evals
    return budget - parts.test_evaluations - (1 + TREE_MOVES) * parts.evaluations


def _additively(context: ExplainContext, parts: AdditiveParts) -> AttributionResult:
    """Values of an additive function; rows between which it is not additive after all are estimated."""
    predictor = context.predictor
    off = parts.gap(predictor, context.rows, context.predictions)
    holds = np.asarray((off <= parts.negligible).all(axis=1))
    spent = np.where(holds, parts.evaluations * (1 + TREE_MOVES), 0) + parts.test_evaluations
    found = []
    if holds.any():
        some = _of_rows(context, holds)
        exact = _exactly(some, lambda rows: parts(predictor, rows))
        error = np.where(exact.values == 0, parts.hidden, exact.error + off[holds][:, None])
        found.append(replace(exact, error=error))
        gap = np.abs(some.predictions - context.background.base - found[0].values.sum(axis=1))
        sums = (gap <= parts.tolerance).all(axis=1)
        holds[holds] = sums
        found[0] = _assembled(lambda name: getattr(found[0], name)[sums])
    if not holds.all():
        budget = None if context.max_evals is None else int(_left(context, parts))
        found.append(_estimated(replace(_of_rows(context, ~holds), max_evals=budget)))
    order = np.argsort(np.concatenate([np.flatnonzero(holds), np.flatnonzero(~holds)]))
    joined = _assembled(lambda name: np.concatenate([getattr(part, name) for part in found])[order])
    return replace(joined, evaluations=joined.evaluations + spent)


def _assembled(part: Callable[[str], np.ndarray]) -> AttributionResult:
    """A result from its arrays with a row for each row."""
    return AttributionResult(part("values"), part("error"), part("relative_change"), part("evaluations"))


def _of_rows(context: ExplainContext, chosen: np.ndarray) -> ExplainContext:
    return replace(context, rows=context.rows[chosen], predictions=context.predictions[chosen])


def shapley_path(context: ExplainContext) -> AttributionResult:
    """Path-dependent Shapley values: the trees' covers in place of the background."""
    exact = _trees_of(context.engine)
    try:
        return _exactly(context, exact.path_values)
    except Unsupported as reason:
        raise _without_covers(str(reason)) from None


def path_base(engine: Engine) -> Array:
    """The base value of path-dependent values, (outputs,)."""
    return _trees_of(engine).path_base()


def _trees_of(engine: Engine) -> ExactShapley:
    exact, reason = exact_shapley(engine)
    if exact is None:
        raise _without_covers(reason or "the model is not a tree ensemble, or another engine was asked for.")
    return exact


def _without_covers(reason: str) -> InputError:
    return InputError(
        "attribution='shapley_path' needs a tree ensemble that holds how many training rows reached each "
        f"node: {reason} Use attribution='shapley', which fits every model."
    )


def exact_shapley(engine: Engine) -> tuple[ExactShapley | None, str]:
    """The exact values of a tree model, or None and the reason why there are none."""
    if engine.shapley is None:
        return None, ""
    try:
        return engine.shapley(), ""
    except Unsupported as reason:
        return None, str(reason)


def way_of_shapley(engine: Engine) -> str:
    """How the values are found, as text."""
    exact, reason = exact_shapley(engine)
    if exact is not None:
        return "exact Shapley values of the trees, all background rows"
    if engine.linear:
        return "closed form of a linear model, all background rows"
    words = "permutations of the features, or closed form if additive"
    if has_line_integral(engine.at_point):
        words = "line integrals of gradients from background rows to the row, or closed form if additive"
    return f"{words} (not from the trees: {reason.rstrip('.')})" if reason else words


def has_line_integral(engine: Engine) -> bool:
    """Whether the engine's gradient can be integrated: exact, and of a model without steps."""
    return engine.exact and not engine.averages


def _exactly(context: ExplainContext, values_of: Callable[[Array], Array]) -> AttributionResult:
    """Values without error beyond round-off; how they change is seen at moved rows."""
    values = values_of(context.rows)
    floor = noise_floor(context.predictor, context.predictions, context.background.output_sd)
    error = np.where(values == 0, 0.0, floor[:, None, :])
    moves = normally_moved(context, TREE_MOVES)
    change = np.mean([_length(values_of(rows) - values) for rows in moves], axis=0)
    change = relative(change, _length(values), context.background.output_sd)
    return AttributionResult(values, error, change, np.zeros(len(values), dtype=np.int64))


def _length(values: Array) -> Array:
    """The Euclidean length over the features, (rows, outputs)."""
    return np.sqrt((values**2).sum(axis=1))


def _estimated(context: ExplainContext) -> AttributionResult:
    """Values from paths, made to sum exactly, with the bounds of their error."""
    estimate, sample = _estimate_of(context)
    paths = estimate(context, sample)
    groups = paths.groups
    if paths.error is None:
        groups = walks.with_control_variate(context, sample, groups)
    values = groups.sum(axis=1)
    missing = context.predictions - context.background.base - values.sum(axis=1)
    if paths.error is None or paths.share is None:
        variance, error = walks.variance_and_bound(context, sample, groups, paths.groups)
        correction = _completed(missing, variance, pooled=context.predictor.task == "classification")
    else:
        correction = paths.share[:, :, None] * missing[:, None, :]
        error = paths.error + np.abs(correction)  # what is added is as uncertain as it is large
    values = values + correction
    floor = noise_floor(context.predictor, context.predictions, context.background.output_sd)
    error = error + np.where(values == 0, 0.0, floor[:, None, :])
    change, spent = _relative_change(context, estimate, sample, paths, values)
    return AttributionResult(values, error, change, np.full(len(values), paths.evaluations + spent))


def _estimate_of(context: ExplainContext) -> tuple[Estimate, BackgroundSample]:
    """How contributions are estimated, and from which background rows."""
    if has_line_integral(context.engine):
        return line_integral.contributions, line_integral.sample_of(context)
    return walks.contributions, walks.sample_of(context)


def _completed(missing: Array, variance: Array, pooled: bool) -> Array:
    """What to add to the features so that they sum up, (rows, features, outputs).

    The classes of a probability sum to 1: their features share alike (`pooled`), so that they cancel.
    """
    if pooled:
        variance = np.broadcast_to(variance.sum(axis=2, keepdims=True), variance.shape)
    total = variance.sum(axis=1, keepdims=True)
    share = np.divide(variance, total, out=np.zeros(variance.shape), where=total > 0)
    return share * missing[:, None, :]


def _relative_change(
    context: ExplainContext,
    estimate: Estimate,
    sample: BackgroundSample,
    paths: PathContributions,
    values: Array,
) -> tuple[Array, int | np.ndarray]:
    """How much the values change under small moves, by some of the paths."""
    few = sample.first_groups(sample.tried)
    here = paths.groups[:, : few.count].sum(axis=1)
    scale = few.weight.sum() / sample.weight.sum()
    changes: list[Array] = []
    spent: int | np.ndarray = 0
    for rows in moved(context):
        there = estimate(replace(context, rows=rows, predictions=context.predictor(rows)), few)
        changes.append((there.groups.sum(axis=1) - here) / scale)
        spent += there.evaluations + 1
    return expected_change(changes, _length(values), context.background.output_sd), spent
