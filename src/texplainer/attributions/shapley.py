"""Shares: where f(x) - E f comes from.

On the way from a background row b to x every feature contributes something, T_j(x; b), and the contributions
of one way sum to f(x) - f(b). A share is their mean over the background:

    phi_j = sum_b w_b [T_j(x; b) + L_j(b)],      sum_j phi_j = f(x) - E f

The ways by engine: straight lines through trees, cut exactly where they cross a threshold (`lines` of the
tree engine); straight lines with one exact gradient each, at a place of its own (`pairs`); one feature after
the other for black boxes (`walks`). A few rows cannot carry the means of all columns, a control variate can:
L_j is the part of f that is linear in feature j, taken at b, less its mean over the whole background. Linear
models are then exact, and the weights, tilted as little as it takes, make f - L at the chosen rows average to
its mean over the background, so that sums are exact.

Rows are taken evenly from the background and nothing is drawn: the same background gives the same shares,
and a background that differs in its last digits differs in theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.stats import t as student

from texplainer.attributions import pairs, walks
from texplainer.attributions.attribution import AttributionResult, ExplainContext
from texplainer.attributions.replaced import noise_floor
from texplainer.attributions.stability import expected_change, moved
from texplainer.attributions.starts import BackgroundSample, PathContributions, starts_of
from texplainer.gradients.engine import Engine
from texplainer.types import Array

LINES = 128  # as many as make them depend on the background's sample no more than SHAP with 100 rows
TRIED = {
    True: 1,
    False: 4,
}  # groups of starts by which the relative change is judged, where ways are exact and not
COVER = 0.997  # of Student's distribution on either side: what the error bars are to cover

#: how contributions are found: (place, starts) -> Ways
Find = Callable[[ExplainContext, BackgroundSample], PathContributions]


def shapley(context: ExplainContext) -> AttributionResult:
    """Mean contributions on the ways from the background to x, with the scatter between groups of ways."""
    context = replace(context, engine=context.engine.at_point)  # the way itself is averaged over
    find, count = _find(context)
    starts = context.background.cached(("starts", count), lambda: starts_of(context, count))
    ways = find(context, starts)
    values = ways.groups.sum(axis=1) + ways.correction + starts.centre
    error = np.hypot(np.hypot(_scatter(ways, starts), _correction_error(ways)), starts.slack)
    if ways.exact and starts.whole:  # every way of the whole background, each exact: nothing was sampled
        error = np.zeros_like(error)
    floor = noise_floor(context.predictor, context.predictions, context.background.output_sd)
    error += np.where(values == 0, 0.0, floor[:, None, :])
    relative_change, spent = _relative_change(context, find, starts, ways)
    return AttributionResult(values, error, relative_change, np.full(len(values), ways.evaluations + spent))


def way_of_shares(engine: Engine) -> str:
    """The way, in words."""
    if engine.lines is not None:
        return f"straight lines through the trees from up to {LINES} background rows, cut at every threshold"
    if _has_pairs(engine):
        return f"exact slopes on straight lines from up to {pairs.PAIRS} background rows"
    return f"walks from up to {walks.WALKS} background rows to the row, one feature after the other"


def _has_pairs(engine: Engine) -> bool:
    return engine.exact and not engine.averages


def _find(context: ExplainContext) -> tuple[Find, int]:
    """How contributions are found with this engine, and from how many rows."""
    if context.engine.lines is not None:
        return _lines, LINES
    if _has_pairs(context.engine):
        return pairs.contributions, pairs.PAIRS
    return walks.contributions, walks.WALKS


def _lines(context: ExplainContext, starts: BackgroundSample) -> PathContributions:
    """Straight lines through trees, cut exactly where they cross a threshold."""
    assert context.engine.lines is not None
    found = context.engine.lines(starts.rows, starts.weights, starts.groups, context.rows)
    stepped = bool(context.predictor.schema.levels) or bool(np.isnan(starts.rows).any())
    return PathContributions(found, exact=not stepped)


def _scatter(ways: PathContributions, starts: BackgroundSample) -> Array:
    """Standard error of the mean over groups of ways, widened to a bound."""
    count = int(starts.groups.max()) + 1
    total = np.bincount(starts.groups, starts.weights, count)  # (groups,)
    linear = np.zeros((count, *starts.linear.shape[1:]))
    np.add.at(linear, starts.groups, starts.weights[:, None, None] * starts.linear)
    own = (ways.groups + linear) / total[
        :, None, None
    ]  # (rows, groups, features, outputs): each group's answer
    if count < 3:
        return np.full(own[:, 0].shape, np.nan)
    away = own - own.mean(axis=1, keepdims=True)
    sums = away.sum(
        axis=2, keepdims=True
    )  # the weights are tilted to the sum, so what follows it is no error
    along = (away * sums).sum(axis=1) / np.maximum((sums**2).sum(axis=1), np.finfo(float).tiny)
    away -= along[:, None] * sums
    deviation = np.sqrt((away**2).sum(axis=1) / (count - 2))
    return student.ppf(COVER, count - 2) * deviation / np.sqrt(count)


def _correction_error(ways: PathContributions) -> Array:
    """What the tilt of the weights put right is as uncertain as it is large, in a feature and in its row.

    Without it the bars of log-odds of a class against the rest covered nine tenths of the true shares.
    """
    size = np.broadcast_to(np.abs(ways.correction), ways.groups[:, 0].shape)
    typical = np.sqrt((size**2).mean(axis=1, keepdims=True))
    return np.where(size > 0, size + typical, 0.0)


def _relative_change(
    context: ExplainContext, find: Find, starts: BackgroundSample, ways: PathContributions
) -> tuple[Array, int | np.ndarray]:
    """How much the shares change under small moves, by some of the ways."""
    tried = TRIED[ways.exact]
    few = starts.some(tried)
    here = ways.groups[:, :tried].sum(axis=1)
    scale = few.weights.sum()
    changes: list[Array] = []
    spent: int | np.ndarray = 0
    for rows in moved(context):
        there = find(replace(context, rows=rows, predictions=context.predictor(rows)), few)
        changes.append((there.groups.sum(axis=1) - here) / scale)
        spent += there.evaluations + 1
    size = np.sqrt(((ways.groups.sum(axis=1) + ways.correction + starts.centre) ** 2).sum(axis=1))
    return expected_change(changes, size, context.background.output_sd), spent
