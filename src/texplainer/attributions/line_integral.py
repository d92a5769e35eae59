"""Line integrals of exact gradients: from background rows to x on straight lines.

    T_j(x; b) = (x_j - b_j) * integral over t in [0, 1] of df/dx_j at b + t (x - b)

The mean over the background ("expected gradients", Aumann-Shapley values; Sundararajan et al. 2017, Erion et
al. 2021) is an estimate of the Shapley value; `docs/results/line_integrals.md` has its distance.

`POINTS` gradients are computed for a row, one or more on the line from every background row, more on long lines.
The places of one line lie in equal parts of [0, 1], moved by the golden section from line to line, in the order of
the rows' first principal component, so that the places of similar rows together cover the interval evenly. Of a
larger background some rows are taken, weighted such that the mean of every column is that of all rows.

Three things that are known besides reduce the error of the few places:

* the gradients at both ends of a line (that of a background row is computed once): the line between them is
  integrated exactly, the places only tell the difference from it;
* the mean of that exact part over all background rows, also those without a place: it follows from three means
  over the background;
* f(x) - f(b), the sum of the contributions. What is missing is added by the least change of the mean gradient,
  in units of the features' SDs, that makes the sum right (Broyden 1965).

All are linear in f. The error bound follows from what the sums of single lines miss. How that is divided among
the features, and the factor that covers the error, are found on background rows, where the integrals are computed
with many places.

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

POINTS = 224  # gradients a row
FARTHEST = 4.0  # times as many places as in the middle, at most, has a background row far from the others
GOLDEN = (5**0.5 - 1) / 2
TRIED = 12  # one in so many paths judges the relative change
CALIBRATION = 8  # times as many gradients on the background rows where the bound is calibrated
CALIBRATION_ROWS, CALIBRATION_VALUES = (24, 32), 480  # the least and the most rows; values aimed at
COVERAGE, SAFETY = 0.99, 1.3  # of the errors on background rows, and a factor, for these are few
FACTOR = 3.0  # on standard errors, where there are no complete rows
LEARNED = 0.8  # of a row's squared error is divided as on background rows, the rest equally
LARGEST_FLOAT32 = 2500.0  # SDs: larger values are too coarse in float32
TRIAL_ROWS, AGREE = 64, 1e-4  # how float32 gradients are compared, relative to the steepest
ROUNDINGS = 32 * 2.0**-24  # of a sum in float32, relative to the values


@dataclass(frozen=True)
class Lines(BackgroundSample):
    """Background rows with a place each, (paths,), and the gradients there, (paths, features, outputs)."""

    place: Array = None  # type: ignore[assignment]
    slopes: Array = None  # type: ignore[assignment]
    centre: Array = None  # type: ignore[assignment]  # (features,), subtracted first: fewer digits are lost
    ends: LineEnds | None = None  # None where background rows are incomplete
    omitted: float = 0.0  # part of the background rows that is left out
    float32: bool = False  # whether gradients may be computed in it

    @property
    def late(self) -> np.ndarray:
        """(paths,) whether stepped features change after the numbers have moved."""
        return self.number % 2 == 0

    def first_groups(self, count: int) -> Lines:
        """The paths of the first groups, with their own weight."""
        few, kept = super().first_groups(count), self.groups < count
        return replace(few, place=self.place[kept], slopes=self.slopes[kept])  # type: ignore[return-value,type-var]


@dataclass(frozen=True)
class LineEnds:
    """Averages over all background rows b, less the centre, and what they have more than the rows of the lines."""

    mean: Array  # (features,) of b
    square: Array  # (features,) of its square
    rows: Array  # (features,) what b has more
    slopes: Array  # (features, outputs) what the gradient at b has more
    products: Array  # (features, outputs) what the product of both has more

    def added(self, x: Array, slopes: Array) -> Array:
        """What is added to the integrals to rows, less the centre, with such gradients."""
        return 0.5 * (x[:, :, None] * self.slopes - self.products - slopes * self.rows[:, None])

    def distances(self, x: Array) -> Array:
        """The mean squared distances of rows, less the centre, from all background rows, (rows, features)."""
        return (x - self.mean) ** 2 + (self.square - self.mean**2)


def sample_of(context: ExplainContext) -> Lines:
    """The lines from the background; made once."""
    return context.background.cached(("lines", POINTS), lambda: _lines(context, POINTS))


def _lines(context: ExplainContext, points: int) -> Lines:
    """So many lines; a background row may have several places, or none if there are more rows."""
    rows, sigma, total = context.background.rows, context.background.sigma, len(context.background.rows)
    standard = _standardised(rows[:, context.predictor.schema.numeric])
    order = np.argsort(_main_component(standard), kind="stable")  # neighbours get different places
    rows, expected = rows[order], _expected_places(standard[order], points)
    each = np.diff(np.floor(np.cumsum(expected) + 0.5).astype(int), prepend=0)
    chosen = np.flatnonzero(each)
    number = np.repeat(np.arange(len(chosen)), each[chosen])
    if len(chosen) == total:
        weight = 1.0 / (total * each[number])
    else:
        weight = _calibrated_weights(rows, chosen[number], 1.0 / expected[chosen[number]], sigma)
    nth = np.arange(len(number)) - np.searchsorted(number, number)
    turn = ((number + 0.5) * GOLDEN) % 1.0
    some = rows[chosen]
    slopes = np.zeros((len(chosen), rows.shape[1], len(context.predictor.outputs)))
    complete = np.isfinite(some).all(axis=1)
    slopes[complete] = context.engine.gradient(some[complete]).values
    centre = np.median(some[complete], axis=0) if complete.any() else np.zeros(rows.shape[1])
    return Lines(
        some[number],
        np.arange(len(number)),
        (np.arange(len(number)) % TRIED > 0).astype(int),
        2,
        weight,
        context.predictor(some)[number],
        1,
        (nth + turn) / each[chosen[number]],
        slopes[number],
        centre,
        _line_ends(context, centre, some[number], weight, slopes[number]),
        1.0 - len(chosen) / total,
        _accepts_float32(context.engine, rows),
    )


def _standardised(rows: Array) -> Array:
    """Rows less the mean, in SDs; 0 where values are missing."""
    known = np.isfinite(rows)
    count = np.maximum(1, known.sum(axis=0))
    away = np.where(known, rows, 0.0) - np.sum(rows, axis=0, where=known) / count
    away[~known] = 0.0
    sd = np.sqrt((away**2).sum(axis=0) / count)
    return np.divide(away, sd, out=np.zeros_like(away), where=sd > 0)


def _main_component(standard: Array) -> Array:
    """About the first principal component, (rows,); from fixed weights, so that small changes stay small."""
    weights = np.ones(standard.shape[1])
    for _ in range(4):
        weights = standard.T @ (standard @ weights)
        weights /= max(float(np.linalg.norm(weights)), np.finfo(float).tiny)
    return standard @ weights


def _expected_places(standard: Array, points: int) -> Array:
    """How many places every background row is to have: more the farther it lies from the others."""
    square = (standard**2).sum(axis=1) / max(1, standard.shape[1])
    reach = np.minimum(np.sqrt(1 + square), FARTHEST)
    expected = reach * points / reach.sum()
    if len(standard) > points:
        return expected
    more = np.maximum(expected - 1, 0.0)  # every row has one place
    return 1 + more * (points - len(standard)) / max(more.sum(), np.finfo(float).tiny)


def _calibrated_weights(rows: Array, chosen: np.ndarray, weight: Array, sigma: Array) -> Array:
    """Weights of the chosen rows that reproduce the mean of every column over all rows (Deville & Särndal 1992)."""
    weight = weight / weight.sum()
    if not np.isfinite(rows).all() or rows.shape[1] > len(chosen) // 4:
        return weight
    centred = (rows - rows.mean(axis=0)) / sigma
    parts = np.column_stack([np.ones(len(chosen)), centred[chosen]])
    target = np.zeros(parts.shape[1])
    target[0] = 1.0
    change = np.linalg.lstsq(parts.T * weight @ parts, target - weight @ parts, rcond=1e-9)[0]
    calibrated = weight * (1 + parts @ change)
    return calibrated if calibrated.min() > 0 else weight


def _line_ends(
    context: ExplainContext, centre: Array, starts: Array, weight: Array, slopes: Array
) -> LineEnds | None:
    """Compare all background rows with the weighted starts of the lines."""
    rows = context.background.rows
    if not np.isfinite(rows).all():
        return None
    starts, centred = starts - centre, rows - centre
    more = -np.einsum("p,pfo->fo", weight, slopes)
    products = -np.einsum("p,pf,pfo->fo", weight, starts, slopes)
    for first in range(0, len(rows), BATCH):
        part = slice(first, first + BATCH)
        found = context.engine.gradient(rows[part]).values
        more += found.sum(axis=0) / len(rows)
        products += np.einsum("bf,bfo->fo", centred[part], found) / len(rows)
    mean = centred.mean(axis=0)
    return LineEnds(mean, np.mean(centred**2, axis=0), mean - weight @ starts, more, products)


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


@dataclass(frozen=True)
class Missed:
    """What the standard errors follow from."""

    square: Array  # (rows, outputs), the sum over the lines of what their sums miss, weighted and squared
    lengths: Array  # (rows, features, outputs), the mean squared distances in SDs; 0 of unused features
    sampling: Array  # (rows, features, outputs), the variance by omitted background rows

    def parts(self) -> Array:
        """Squared distances as parts of the row's, (rows, features, outputs)."""
        return _parts(self.lengths)

    def standard_error(self, difficulty: Array) -> Array:
        """Standard errors, given the features' squared errors for a unit of squared distance, (features,)."""
        used = self.lengths > 0
        equal = used / np.maximum(1, used.sum(axis=1, keepdims=True))
        learned = _parts(self.lengths * difficulty[:, None])
        part = LEARNED * learned + (1 - LEARNED) * equal
        return np.sqrt(self.square[:, None] * part + self.sampling)


def _parts(sizes: Array) -> Array:
    """Sizes (rows, features, outputs) as parts of their sum over the features."""
    whole = sizes.sum(axis=1, keepdims=True)
    return np.divide(sizes, whole, out=np.zeros_like(sizes), where=whole > 0)


def contributions(context: ExplainContext, sample: Lines) -> PathContributions:
    """Contributions of the lines from every background row of the sample to every row, with their error."""
    found, missed = _integrated(context, sample)
    if sample.count == 1:  # some of the lines, for the relative change
        return found
    difficulty, factor = context.background.cached(
        ("line errors", POINTS), lambda: _calibrated_errors(context, sample)
    )
    error = missed.standard_error(difficulty)
    size = np.sqrt((found.groups.sum(axis=1) ** 2).sum(axis=1, keepdims=True))
    rounding = np.where(error > 0, ROUNDINGS * size * sample.float32, 0.0)
    return replace(found, error=factor * error + rounding)


def _calibrated_errors(context: ExplainContext, sample: Lines) -> tuple[Array, float]:
    """Errors of background rows, where many places are taken: how they are divided, and the factor that covers them."""
    rows = context.background.rows
    rows = rows[np.isfinite(rows).all(axis=1)]
    count = int(np.clip(CALIBRATION_VALUES // rows.shape[1], *CALIBRATION_ROWS))
    rows = rows[:: max(1, len(rows) // count)][:count]
    difficulty = np.ones(rows.shape[1])
    if not len(rows):
        return difficulty, FACTOR
    here = replace(context, rows=rows, predictions=context.predictor(rows))
    (few, missed), (many, _) = (
        _integrated(here, sample),
        _integrated(here, _lines(here, CALIBRATION * POINTS)),
    )
    gap = np.abs(few.groups.sum(axis=1) - many.groups.sum(axis=1))
    square = missed.square[:, None]
    relative = np.divide(gap**2, square, out=np.zeros_like(gap), where=square > 0)
    length = missed.parts().sum(axis=(0, 2))
    difficulty = np.divide(relative.sum(axis=(0, 2)), length, out=difficulty, where=length > 0)
    error = missed.standard_error(difficulty)
    unsure = error > 0
    if not unsure.any():
        return difficulty, FACTOR
    return difficulty, max(1.0, SAFETY * float(np.quantile(gap[unsure] / error[unsure], COVERAGE)))


def _integrated(context: ExplainContext, lines: Lines) -> tuple[PathContributions, Missed]:
    """The integrals and how the missing part of a sum is divided, and what single lines miss."""
    rows, (count, features) = context.rows, context.rows.shape
    outputs = len(context.predictor.outputs)
    stepped = ~context.predictor.schema.numeric | np.isnan(lines.rows).any(axis=0) | np.isnan(rows)
    sums = np.zeros((count, lines.count, features, outputs))
    missed = Missed(*(np.zeros((count, *shape)) for shape in ((outputs,), *[(features, outputs)] * 2)))
    share = np.zeros((count, features))
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
            sums[part], found, share[part] = _block(some, lines, stepped[part], slopes[part], kind)
            for name, values in vars(found).items():
                getattr(missed, name)[part] = values
    steps = stepped.sum(axis=1)
    cost = len(lines.rows) * (1 + steps + (steps > 0)) + plain
    return PathContributions(sums, cost, share=share), missed


def _block(
    context: ExplainContext, lines: Lines, stepped: np.ndarray, ends: Array, kind: type
) -> tuple[Array, Missed, Array]:
    """Integrals of some rows by group, what their lines miss, and the division of what is missing."""
    away, slopes = _slopes(context, lines, stepped, kind)
    gap = context.predictions[:, None, :] - lines.predictions  # (rows, paths, outputs)
    belongs = (lines.groups == np.arange(lines.count)[:, None]) * lines.weight  # (groups, paths)
    some = np.flatnonzero(stepped.any(axis=1))
    plain = np.flatnonzero(~stepped.any(axis=1))
    sums = np.zeros((len(away), lines.count, away.shape[2], slopes.shape[3]))
    distance, scale = np.zeros((len(away), away.shape[2])), 1.0 / context.background.sigma**2
    if len(some):
        steps = _take_steps(context, lines, stepped, some)  # (rows, paths, features, outputs)
        gap[some] -= steps.sum(axis=2)
        sums[some] = np.einsum("gp,rpfo->rgfo", belongs, steps)
        apart = _squared_steps(context.rows[some], lines.rows, context.predictor.schema.numeric, scale)
        distance[some] = np.einsum("p,rpf->rf", lines.weight, apart * stepped[some, None, :])
    square = away * away  # (rows, paths, features)
    if lines.ends is None or len(some):
        distance += (lines.weight.astype(kind) @ square) * scale
    if len(plain):
        x = context.rows[plain] - lines.centre
        sums[plain], along = _tilt(x, lines, belongs, ends[plain], kind)
        gap[plain] -= along
        if lines.ends is not None:
            distance[plain] = lines.ends.distances(x) * scale
            more = lines.ends.added(x, ends[plain])
            sums[plain] += belongs.sum(axis=1)[:, None, None] * more[:, None]
    squares = np.zeros((len(away), slopes.shape[3]))
    lengths, sampling = np.zeros((2, len(away), *slopes.shape[2:]))
    squared = (lines.weight**2).astype(kind)
    for o in range(slopes.shape[3]):
        own = away * slopes[..., o]
        total = belongs.astype(kind) @ own
        used = total.any(axis=1) | (sums[..., o].any(axis=1) & ~stepped)  # (rows, features): others stay 0
        weighted = used * scale
        missed = gap[..., o] - own @ np.ones(own.shape[2], kind)  # (rows, paths)
        length = np.matmul(square, weighted[:, :, None].astype(kind))[..., 0]
        push = np.divide(missed, length, out=np.zeros_like(missed), where=length > 0)
        total = total + ((push[:, None, :] * belongs).astype(kind) @ square) * weighted[:, None, :]
        sums[..., o] += total
        squares[:, o] = np.sum(np.square(lines.weight * missed), axis=1)
        lengths[..., o] = distance * used
        if lines.omitted and len(some):
            apart = own[some] - own[some].mean(axis=1, keepdims=True)
            sampling[some, :, o] = lines.omitted * (squared @ apart**2)
    distance *= sums.any(axis=(1, 3))
    whole = distance.sum(axis=1, keepdims=True)
    share = np.divide(distance, whole, out=np.zeros_like(distance), where=whole > 0)
    return sums, Missed(squares, lengths, sampling), share


def _slopes(context: ExplainContext, lines: Lines, stepped: np.ndarray, kind: type) -> tuple[Array, Array]:
    """The ways x - b (rows, paths, features) and the gradient at every line's place (..., outputs)."""
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
    return away, found.reshape(*away.shape, -1)


def _tilt(x: Array, lines: Lines, belongs: Array, ends: Array, kind: type) -> tuple[Array, Array]:
    """What the line between the gradients at both ends, with its integral, adds to that at the place.

    By group (rows, groups, features, outputs), and the sum over the features for every line (rows, paths, outputs);
    `x` are rows less the centre.
    """
    tilt = 0.5 - lines.place
    b = lines.rows - lines.centre
    part = belongs * tilt  # (groups, paths)
    x_part = x[:, None, :, None] * part.sum(axis=1)[:, None, None] - (part @ b)[:, :, None]
    starts = b[:, :, None] * lines.slopes
    tilted = ends[:, None] * x_part
    tilted -= x[:, None, :, None] * np.einsum("gp,pfo->gfo", part, lines.slopes)
    tilted += np.einsum("gp,pfo->gfo", part, starts)
    along = np.empty((len(x), len(tilt), ends.shape[2]))
    for o in range(ends.shape[2]):
        end = ends[..., o]
        there = np.concatenate([end, x], axis=1, dtype=kind)
        here = np.concatenate([b.T, lines.slopes[..., o].T], dtype=kind)
        across = np.matmul(there[:, None], here)[:, 0]  # row by row: its bits depend on no other row
        along[..., o] = tilt * (np.sum(x * end, axis=1)[:, None] + starts[..., o].sum(axis=1) - across)
    return tilted, along


def _squared_steps(rows: Array, starts: Array, numeric: np.ndarray, scale: Array) -> Array:
    """Squared lengths of steps (rows, paths, features): in SDs, or 1 to another category or to a missing value."""
    x, gaps = rows[:, None], np.isnan(rows)[:, None]
    square = np.where(numeric, (x - starts) ** 2 * scale, x != starts)
    return np.where(gaps | np.isnan(starts), gaps != np.isnan(starts), square)


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
