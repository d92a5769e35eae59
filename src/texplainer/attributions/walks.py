"""Contributions in a black box: walks from a background row to x, one feature after the other.

A feature is credited with what its step changes; the steps of a walk sum to f(x) - f(b) exactly, those of
categories and missing values among them. Every walk has an order of its own, fixed once and for all, and the
next walk the same order backwards (Shapley values, sampled: Castro et al. 2009; antithetic: Mitchell 2022).
The walks of many rows are predicted together.

A boosted model fitted to the function is a control variate (`control`): the walks estimate only what it leaves.

The bounds follow from the differences between neighbouring pairs of walks. A feature that few walks see act has
too small a variance by chance, or none. So no variance is taken to be below 0.7 of the median of the row's features;
of a feature no walk saw act only as much as the rule of three leaves open (3 over the walks it could have acted in).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.stats import t as student

from texplainer.attributions.attribution import MOVES, ExplainContext
from texplainer.attributions.control import control_variate
from texplainer.attributions.replaced import noise_floor
from texplainer.errors import InputError
from texplainer.types import Array

GROUPS = 32
TRIED = 4  # every fourth group comes first; the relative change is judged by these
LEAST_WALKS = 4
#: where `max_evals` does not say: as many walks as make so many evaluations, within limits
EVALUATIONS, FEWEST, MOST = 5_000, 64, 256
#: of the bounds, which are to cover 99%: chosen on eleven pairs of model and table and three budgets, confirmed on the
#: twenty-four other pairs of `benchmarks/bounds.py`
COVER = 0.9965  # of Student's distribution, on either side
FLOOR = 0.7  # of the median variance: the least of a feature
OF_FUNCTION = 0.1  # of the variance without a control variate: the least of a feature
POOLED = 6  # degrees of freedom beyond a feature's own, for its variance is compared with the others'


@dataclass(frozen=True)
class BackgroundSample:
    """Background rows (paths, features), one for every path, with their weights.

    A background of no more rows than paths is taken whole, every row equally often. `number` (paths,) tells
    paths apart, `groups` (paths,) is the group of each, `count` the number of groups.
    """

    rows: Array
    number: np.ndarray
    groups: np.ndarray
    count: int
    weight: Array  # (paths,)
    predictions: Array  # (paths, outputs) f at the rows
    tried: int = 4  # groups by which the relative change is judged

    @property
    def in_order(self) -> np.ndarray:
        """(count,) the groups in the order of their paths."""
        return np.argsort(np.unique(self.groups, return_index=True)[1])

    def first_groups(self, count: int) -> BackgroundSample:
        """The paths of the first groups, with their own weight."""
        kept = self.groups < count
        return replace(
            self,
            rows=self.rows[kept],
            number=self.number[kept],
            groups=self.groups[kept],
            predictions=self.predictions[kept],
            weight=self.weight[kept],
            count=min(count, self.count),
        )


@dataclass(frozen=True)
class PathContributions:
    """Contributions of the paths from background rows to rows.

    `groups` (rows, groups, features, outputs) are summed over the paths of every group, with their weight.
    """

    groups: Array
    evaluations: int | np.ndarray = 0  # a row
    #: (rows, features, outputs): the bound of the error, where it is not told by the scatter of the groups
    error: Array | None = None
    #: (rows, features): how what is missing in the sum is divided, whatever the model; None: by the variances
    share: Array | None = None


def sample_of(context: ExplainContext) -> BackgroundSample:
    """The background rows of as many walks as `max_evals` allows, those of the relative change included."""
    width = context.rows.shape[1]
    count = usual_walks(width)
    if context.max_evals is not None:
        least = least_evals(width)
        if context.max_evals < least:
            raise InputError(
                f"max_evals={context.max_evals} is too small for {width} features; expected at "
                f"least {least}. Raise it, or leave it at None."
            )
        budget = context.max_evals - MOVES - 1  # predictions of the row and of the moved rows
        walks = budget // between(width)  # of few, one and not a quarter judges the relative change
        count = max(2, min(int(budget / (1 + MOVES / TRIED)) // between(width), walks - MOVES))
    return sample_background(context, count)


def usual_walks(width: int) -> int:
    """How many walks to a row of so many features, where `max_evals` does not say; an even number."""
    return min(MOST, max(FEWEST, EVALUATIONS // between(width) // 2 * 2))


def least_evals(width: int) -> int:
    """The smallest `max_evals`."""
    return LEAST_WALKS * (width + 1)


def between(width: int) -> int:
    """The evaluations of one walk: the predictions at its ends are known."""
    return max(1, width - 1)


def contributions(context: ExplainContext, sample: BackgroundSample) -> PathContributions:
    """One walk from every background row of the sample to every row."""
    floor = noise_floor(context.predictor, context.predictions, context.background.output_sd)
    ends = sample.predictions, context.predictions
    groups = _summed(context, sample, context.predictor, ends, floor)
    return PathContributions(groups, evaluations=len(sample.rows) * between(context.rows.shape[1]))


def with_control_variate(context: ExplainContext, sample: BackgroundSample, groups: Array) -> Array:
    """The groups of `contributions`, less the error that their walks make for a model of known Shapley values.

    The model is fitted once, to as many predictions as a row costs. A feature no walk saw act keeps its zero; if the
    outputs cancel, it acts on all of them or on none.
    """
    cost = int(len(sample.rows) * between(context.rows.shape[1]) * (1 + MOVES / TRIED))
    control = control_variate(context, cost)
    if control is None:
        return groups
    ends = control(sample.rows), control(context.rows)
    walked = _summed(context, sample, control, ends, np.zeros(context.predictions.shape))
    weight = np.bincount(sample.groups, sample.weight)[:, None, None]
    acted = (groups != 0).any(axis=(1, 3) if control.completes else 1, keepdims=True)
    return np.where(acted, groups - walked + weight * control.shapley(context.rows)[:, None], 0.0)


def _summed(
    context: ExplainContext,
    sample: BackgroundSample,
    predict: Callable[[Array], Array],
    ends: tuple[Array, Array],
    floor: Array,
) -> Array:
    """What every feature's steps change in all walks of a group, (rows, groups, features, outputs).

    `ends` are the predictions of the sample's rows and of the rows, `floor` (rows, outputs) what counts as none.
    """
    rows, width = context.rows, context.rows.shape[1]
    walks = len(sample.rows)
    sums = np.zeros((len(rows), sample.count, width, len(context.predictor.outputs)))
    place = np.stack([walk_order(int(number), width) for number in sample.number])  # (walks, features)
    together = max(1, context.predictor.piece(width) // between(width))  # walks in one call of the model
    for first in range(0, len(rows) * walks, together):
        pair = np.arange(first, min(first + together, len(rows) * walks))
        row, walk = pair // walks, pair % walks
        known = ends[0][walk], ends[1][row]
        effects = _walk(predict, sample.rows[walk], rows[row], place[walk], known)
        effects[np.abs(effects) <= floor[row, None, :]] = 0.0
        np.add.at(sums, (row, sample.groups[walk]), sample.weight[walk, None, None] * effects)
    return sums


def variance_and_bound(
    context: ExplainContext, sample: BackgroundSample, groups: Array, plain: Array
) -> tuple[Array, Array]:
    """Variance of the values and the bound of their error, (rows, features, outputs) each.

    The paths are ordered by the predictions of their background rows. The variance is estimated from the
    differences between successive groups, which what varies with the prediction hardly enters. `groups` give the
    values, `plain` are those of the function itself, without a control variate.
    """
    variance, of_function = _variance(sample, groups), _variance(sample, plain)
    least = np.maximum(FLOOR * _typical(variance), OF_FUNCTION * of_function)
    unseen = FLOOR * _typical(of_function) * _open_share(context, sample)
    acted = (plain != 0).any(axis=1)
    freedom = max(1, 2 * (sample.count - 1) / 3) + POOLED  # of a sum of successive differences
    bounded = np.maximum(variance, np.where(acted, least, unseen))
    return variance, student.ppf(COVER, freedom) * np.sqrt(bounded)


def _variance(sample: BackgroundSample, groups: Array) -> Array:
    """The variance of a sum of groups, (rows, features, outputs), from the differences of successive ones."""
    weight = np.bincount(sample.groups, sample.weight)[:, None, None]
    own = (groups / weight)[:, sample.in_order]  # (rows, groups, features, outputs): each group's answer
    return (np.diff(own, axis=1) ** 2).sum(axis=1) / (2 * (sample.count - 1) * sample.count)


def _typical(variance: Array) -> Array:
    """The median variance of the features that act, (rows, 1, outputs)."""
    seen = np.where(variance > 0, variance, np.nan)
    seen[:, 0][np.isnan(seen).all(axis=1)] = 0.0  # no feature acted
    return np.nanmedian(seen, axis=1, keepdims=True)


def _open_share(context: ExplainContext, sample: BackgroundSample) -> Array:
    """How often a feature no walk saw act may act nevertheless, (rows, features, 1): by the rule of three.

    None where all background rows have the row's own value.
    """
    rows, background = context.rows, context.background.rows
    gaps, low, high = np.isnan(rows), np.fmin.reduce(background), np.fmax.reduce(background)
    same = (sample.rows == rows[:, None, :]) | (gaps[:, None, :] & np.isnan(sample.rows))
    elsewhere = (~same).sum(axis=1)[:, :, None]  # walks from another value
    other = np.isnan(background).any(axis=0) | (low != rows) | (high != rows)
    possible = np.where(gaps, ~np.isnan(low), other)[:, :, None]
    return np.minimum(1.0, 3 / np.maximum(elsewhere, 1)) * possible


def walk_order(index: int, width: int) -> np.ndarray:
    """The place of every feature in a walk: a fixed order for two walks, forwards and backwards."""
    order = _shuffled(index // 2, width)
    return order if index % 2 == 0 else width - 1 - order


@lru_cache(maxsize=4096)
def _shuffled(stream: int, width: int) -> np.ndarray:
    """A fixed order of features, another for each stream."""
    return np.random.default_rng((stream, width)).permutation(width)


def _walk(
    predict: Callable[[Array], Array],
    start: Array,
    rows: Array,
    place: np.ndarray,
    ends: tuple[Array, Array],
) -> Array:
    """What every feature's step changes, (pairs, features, outputs); one background row and row a pair."""
    count, width = rows.shape
    taken = place[:, None, :] < np.arange(1, width)[:, None]  # (pairs, steps, features)
    points = np.where(taken, rows[:, None, :], start[:, None, :]).reshape(-1, width)
    f = [end[:, None, :] for end in ends]
    if len(points):
        f.insert(1, predict(points).reshape(count, width - 1, -1))
    return np.take_along_axis(np.diff(np.concatenate(f, axis=1), axis=1), place[:, :, None], axis=1)


def sample_background(context: ExplainContext, paths: int) -> BackgroundSample:
    """Background rows for about as many paths, evenly over the predictions; made once per background."""
    return context.background.cached(("sample", paths), lambda: _sampled(context, paths))


def _sampled(context: ExplainContext, paths: int) -> BackgroundSample:
    rows, predictions = context.background.rows, context.background.predictions
    total = len(rows)
    order = np.argsort(predictions[:, 0], kind="stable")
    if total >= paths:
        chosen = order[((np.arange(paths) + 0.5) * total / paths).astype(int)]
    else:
        times = paths // total if context.max_evals else round(paths / total)  # a budget is not exceeded
        chosen = np.repeat(order, max(1, times))
    if len(chosen) == 1:  # one row: two paths, so that there is a scatter
        chosen = np.repeat(chosen, 2)
    count = len(chosen)
    unit = np.arange(count) // (2 if count >= GROUPS else 1)  # pairs of paths, where there are enough
    position = unit * min(GROUPS, unit[-1] + 1) // (unit[-1] + 1)
    group = np.argsort(np.argsort(np.arange(position[-1] + 1) % TRIED, kind="stable"))
    return BackgroundSample(
        rows[chosen],
        np.arange(count),
        group[position],
        len(group),
        np.full(count, 1.0 / count),
        predictions[chosen],
        tried=max(1, int(np.searchsorted(np.cumsum(np.bincount(group[position])), count / TRIED, "right"))),
    )
