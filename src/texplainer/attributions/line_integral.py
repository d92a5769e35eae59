"""Line integrals of exact gradients: from background rows to x on straight lines.

    T_j(x; b) = (x_j - b_j) * integral over t in [0, 1] of df/dx_j at b + t (x - b)

The mean over the background ("expected gradients", Aumann-Shapley values; Sundararajan et al. 2017, Erion et
al. 2021) is an estimate of the Shapley value: on networks of three tables it lay 9 to 14% from it. All
background rows are taken up to `POINTS`, with one place or more each. The places of one row lie in equal parts
of [0, 1], moved by the golden section from row to row, so that all places together cover the interval evenly.
Of a larger background some rows are taken, weighted such that the mean of every column is that of all rows.

Two things that are known of a line besides reduce the error of its few places:

* the gradients at both ends (that of a background row is computed once): the line between them is integrated
  exactly, the places only tell the difference from it;
* f(x) - f(b), the sum of the contributions. What is missing is added by the least change of the mean gradient,
  in units of the features' SDs, that makes the sum right (Broyden 1965).

Both are linear in f. The error bound comes from the sums too: what they miss on single lines, times a factor
that covers the error on background rows, where the integrals are computed with many places.

Categories and values that are missing at either end cannot be followed along a line. They are changed one
after the other, at x after the numbers have moved for half of the paths, at the background row before they
move for the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.replaced import predict_points
from texplainer.attributions.walks import BackgroundSample, PathContributions
from texplainer.gradients.engine import BATCH, Engine
from texplainer.types import Array

POINTS = 252  # gradients a row
GOLDEN = (5**0.5 - 1) / 2
TRIED = 12  # one in so many paths judges the relative change
CALIBRATION = 8  # times as many gradients on the background rows where the bound is calibrated
CALIBRATION_ROWS, CALIBRATION_VALUES = (
    (12, 32),
    480,
)  # the least and the most rows, and how many values are aimed at
COVERAGE, SAFETY = 0.99, 1.3  # of the errors on background rows, and a factor, for these are few
FACTOR = 3.0  # on standard errors, where there are no complete rows
LARGEST_FLOAT32 = 2500.0  # SDs: larger values are too coarse in float32
TRIAL_ROWS, AGREE = 64, 1e-4  # how float32 gradients are compared, relative to the steepest
ROUNDINGS = 32 * 2.0**-24  # of a sum in float32, relative to the values


@dataclass(frozen=True)
class Lines(BackgroundSample):
    """Background rows with a place each, (paths,), and the gradients there, (paths, features, outputs)."""

    place: Array = None  # type: ignore[assignment]
    slopes: Array = None  # type: ignore[assignment]
    omitted: float = 0.0  # part of the background rows that is left out
    float32: bool = False  # whether gradients may be computed in it
    gradient_variance: Array = None  # type: ignore[assignment]  # (features,) of the gradients

    @property
    def late(self) -> np.ndarray:
        """(paths,) whether stepped features change after the numbers have moved."""
        return self.number % 2 == 0

    def first_groups(self, count: int) -> Lines:
        """The paths of the first groups, with their own weight."""
        few, kept = super().first_groups(count), self.groups < count
        return replace(few, place=self.place[kept], slopes=self.slopes[kept])  # type: ignore[return-value,type-var]


def sample_of(context: ExplainContext) -> Lines:
    """The lines from the background; made once."""
    return context.background.cached(("lines", POINTS), lambda: _lines(context, POINTS))


def _lines(context: ExplainContext, points: int) -> Lines:
    """At most so many lines; few background rows have several places each."""
    rows, total = context.background.rows, len(context.background.rows)
    if total > points:
        chosen = ((np.arange(points) + 0.5) * total / points).astype(int)
        weight, each = _calibrated_weights(rows, chosen, context.background.sigma), np.ones(points, dtype=int)
    else:
        chosen = np.arange(total)
        each = np.diff((np.arange(total + 1) * points) // total)
        weight = np.full(total, 1.0 / total)
    turn = ((np.arange(len(chosen)) + 0.5) * GOLDEN) % 1.0
    number = np.repeat(np.arange(len(chosen)), each)
    nth = np.arange(len(number)) - np.repeat(np.cumsum(each) - each, each)
    some = rows[chosen]
    slopes = np.zeros((len(chosen), rows.shape[1], len(context.predictor.outputs)))
    complete = np.isfinite(some).all(axis=1)
    slopes[complete] = context.engine.gradient(some[complete]).values
    scaled = (slopes[complete] * context.background.sigma[:, None]) if complete.any() else slopes
    return Lines(
        some[number],
        np.arange(len(number)),
        (np.arange(len(number)) % TRIED > 0).astype(int),
        2,
        (weight / each)[number],
        context.predictor(some)[number],
        1,
        (nth + turn[number]) / each[number],
        slopes[number],
        1.0 - len(chosen) / total,
        _accepts_float32(context.engine, rows),
        scaled.var(axis=0).sum(axis=1),
    )


def _calibrated_weights(rows: Array, chosen: np.ndarray, sigma: Array) -> Array:
    """Weights of the chosen rows that reproduce the mean of every column over all rows (Deville & Särndal 1992)."""
    equal = np.full(len(chosen), 1.0 / len(chosen))
    if not np.isfinite(rows).all() or rows.shape[1] > len(chosen) // 4:
        return equal
    centred = (rows - rows.mean(axis=0)) / sigma
    parts = np.column_stack([np.ones(len(chosen)), centred[chosen]])
    target = np.zeros(parts.shape[1])
    target[0] = 1.0
    change = np.linalg.lstsq(parts.T * equal @ parts, target - equal @ parts, rcond=1e-9)[0]
    weight = equal * (1 + parts @ change)
    return weight if weight.min() > 0 else equal


def _accepts_float32(engine: Engine, background: Array) -> bool:
    """Whether the engine's gradients in float32 agree with those in float64."""
    sample = background[np.all(np.isfinite(background), axis=1)][:TRIAL_ROWS]
    if not engine.narrow or not len(sample):
        return False
    try:
        short = engine.gradient(sample.astype(np.float32)).values
    except Exception:  # whatever a network raises on another dtype, float64 remains
        return False
    full = engine.gradient(sample.astype(np.float32).astype(np.float64)).values
    return bool(np.quantile(np.abs(short - full), 0.99) <= AGREE * np.abs(full).max(initial=0.0))


def _needs_float64(rows: Array, sigma: Array) -> np.ndarray:
    """Rows with values so large in SDs that float32 resolves them coarsely."""
    least = np.min(sigma, initial=np.inf, where=sigma > 0)
    return np.max(np.abs(np.nan_to_num(rows)) * (sigma > 0), axis=1, initial=0.0) >= LARGEST_FLOAT32 * least


def contributions(context: ExplainContext, sample: Lines) -> PathContributions:
    """Contributions of the lines from every background row of the sample to every row, with their error."""
    found = _integrated(context, sample)
    if sample.count == 1:  # some of the lines, for the relative change
        return found
    factor = context.background.cached(("line factor", POINTS), lambda: _factor(context, sample))
    assert found.error is not None
    size = np.sqrt((found.groups.sum(axis=1) ** 2).sum(axis=1, keepdims=True))
    rounding = np.where(found.error > 0, ROUNDINGS * size * sample.float32, 0.0)
    return replace(found, error=factor * found.error + rounding)


def _factor(context: ExplainContext, sample: Lines) -> float:
    """The factor on standard errors that covers the errors of background rows, where many places are taken."""
    rows = context.background.rows
    rows = rows[np.isfinite(rows).all(axis=1)]
    count = int(np.clip(CALIBRATION_VALUES // rows.shape[1], *CALIBRATION_ROWS))
    rows = rows[:: max(1, len(rows) // count)][:count]
    if not len(rows):
        return FACTOR
    here = replace(context, rows=rows, predictions=context.predictor(rows))
    few, many = _integrated(here, sample), _integrated(here, _lines(here, CALIBRATION * POINTS))
    gap = np.abs(few.groups.sum(axis=1) - many.groups.sum(axis=1))
    assert few.error is not None
    unsure = few.error > 0
    if not unsure.any():
        return FACTOR
    return max(1.0, SAFETY * float(np.quantile(gap[unsure] / few.error[unsure], COVERAGE)))


def _integrated(context: ExplainContext, lines: Lines) -> PathContributions:
    """The integrals, with standard errors and how the missing part of a sum is divided."""
    rows, (count, features) = context.rows, context.rows.shape
    outputs = len(context.predictor.outputs)
    stepped = ~context.predictor.schema.numeric | np.isnan(lines.rows).any(axis=0) | np.isnan(rows)
    sums = np.zeros((count, lines.count, features, outputs))
    error, share = np.zeros((count, features, outputs)), np.zeros((count, features))
    wide = np.ones(count, bool)
    if lines.float32:
        wide = _needs_float64(rows, context.background.sigma)
        wide |= _needs_float64(lines.rows, context.background.sigma).any()
    slopes = np.zeros((count, features, outputs))
    plain = ~stepped.any(axis=1)
    slopes[plain] = context.engine.gradient(rows[plain]).values
    together = max(1, BATCH // len(lines.rows))
    for kind, chosen in ((np.float32, np.flatnonzero(~wide)), (np.float64, np.flatnonzero(wide))):
        for first in range(0, len(chosen), together):
            part = chosen[first : first + together]
            some = replace(context, rows=rows[part], predictions=context.predictions[part])
            sums[part], error[part], share[part] = _block(some, lines, stepped[part], slopes[part], kind)
    steps = stepped.sum(axis=1)
    cost = len(lines.rows) * (1 + steps + (steps > 0)) + plain
    return PathContributions(sums, cost, error, share)


def _block(
    context: ExplainContext, lines: Lines, stepped: np.ndarray, ends: Array, kind: type
) -> tuple[Array, Array, Array]:
    """Integrals of some rows by group, their standard errors, and the division of what is missing."""
    away, slopes = _slopes(context, lines, stepped, ends, kind)
    gap = context.predictions[:, None, :] - lines.predictions  # (rows, paths, outputs)
    belongs = (lines.groups == np.arange(lines.count)[:, None]) * lines.weight  # (groups, paths)
    some = np.flatnonzero(stepped.any(axis=1))
    sums = np.zeros((len(away), lines.count, away.shape[2], slopes.shape[3]))
    distance = np.zeros((len(away), away.shape[2]))
    if len(some):
        steps = _take_steps(context, lines, stepped, some)  # (rows, paths, features, outputs)
        gap[some] -= steps.sum(axis=2)
        sums[some] = np.einsum("gp,rpfo->rgfo", belongs, steps)
        differs = (context.rows[some, None, :] != lines.rows) & stepped[some, None, :]
        distance[some] = np.einsum("p,rpf->rf", lines.weight, differs)
    square = away * away  # (rows, paths, features)
    scale = 1.0 / context.background.sigma**2
    distance += (lines.weight.astype(kind) @ square) * scale
    error = np.zeros((len(away), away.shape[2], slopes.shape[3]))
    variance = (lines.weight**2).astype(kind) @ square * scale  # (rows, features)
    for o in range(slopes.shape[3]):
        own = away * slopes[..., o]
        total = belongs.astype(kind) @ own
        used = total.any(axis=1) * scale  # (rows, features): unused features stay as they are
        missed = gap[..., o] - own @ np.ones(own.shape[2], kind)  # (rows, paths)
        length = np.matmul(square, used[:, :, None].astype(kind))[..., 0]
        push = np.divide(missed, length, out=np.zeros_like(missed), where=length > 0)
        total = total + ((push[:, None, :] * belongs).astype(kind) @ square) * used[:, None, :]
        sums[..., o] += total
        error[..., o] = _standard_error(missed, lines, variance * (used > 0))
        if lines.omitted:
            apart = own - own.mean(axis=1, keepdims=True)
            between = (lines.weight**2).astype(kind) @ apart**2
            error[..., o] = np.sqrt(error[..., o] ** 2 + lines.omitted * between)
    distance *= sums.any(axis=(1, 3))
    whole = distance.sum(axis=1, keepdims=True)
    return sums, error, np.divide(distance, whole, out=np.zeros_like(distance), where=whole > 0)


def _slopes(
    context: ExplainContext, lines: Lines, stepped: np.ndarray, ends: Array, kind: type
) -> tuple[Array, Array]:
    """The ways x - b (rows, paths, features) and the mean gradient of every line (..., outputs)."""
    x, b = context.rows.astype(kind)[:, None, :], lines.rows.astype(kind)
    away = x - b
    points = lines.place[:, None].astype(kind) * away
    points += b
    some = np.asarray(stepped.any(axis=1))
    if some.any():  # a row's own gaps, whatever is missing in the others
        still = stepped[some, None, :]
        away[some] = np.where(still, 0.0, away[some])
        points[some] = np.where(still, np.where(lines.late[:, None], b, x[some]), points[some])
    found = context.engine.gradient(points.reshape(-1, points.shape[2])).values
    slopes = found.reshape(*away.shape, -1)
    # the line between the gradients at both ends, integrated exactly; not where the ends are not the line's
    tilt = (0.5 - lines.place)[:, None, None]
    start = (tilt * lines.slopes).astype(kind)
    for one, end, broken in zip(slopes, ends, list(some), strict=True):
        if not broken:
            one -= start
            one += tilt.astype(kind) * end.astype(kind)
    return away, slopes


def _standard_error(missed: Array, lines: Lines, variance: Array) -> Array:
    """Standard errors (rows, features) from what the sums of single lines miss, (rows, paths).

    A feature's part is its distance times how much its gradients vary, half of it, and an equal part.
    """
    total = (lines.weight * missed) ** 2
    part = variance * lines.gradient_variance
    count = np.maximum(1, (part > 0).sum(axis=1, keepdims=True))
    whole = part.sum(axis=1, keepdims=True)
    part = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
    return np.sqrt(total.sum(axis=1, keepdims=True) * (0.5 * part + 0.5 * (part > 0) / count))


def _take_steps(context: ExplainContext, lines: Lines, stepped: np.ndarray, some: np.ndarray) -> Array:
    """What the stepped features of some rows change, one by one, forwards on half of the paths."""
    rows, stepped = context.rows[some], stepped[some]
    # numbers at x or still at the background row, the others there
    state = np.where(~stepped[:, None, :] & lines.late[:, None], rows[:, None, :], lines.rows)
    forwards = (lines.number // 2) % 2 == 0
    last = predict_points(context.predictor, state)
    found = np.zeros((*state.shape, last.shape[2]))
    columns = np.flatnonzero(stepped.any(axis=0))
    for ahead, behind in zip(columns, columns[::-1], strict=True):
        column = np.where(forwards, ahead, behind)  # (paths,)
        row, start = np.nonzero(stepped[:, column])
        at = column[start]
        state[row, start, at] = rows[row, at]
        there = context.predictor(state[row, start])
        found[row, start, at] = there - last[row, start]
        last[row, start] = there
    return found
