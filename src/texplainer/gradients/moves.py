"""Slopes from moves of one feature at a time, the other features as in the row.

    slope_j = (mean of f over moves of x_j upwards - mean of f over moves downwards)
              / (mean move up - mean move down)

Moves are uniform over (0, u] upwards and [-d, 0) downwards, where u and d are the half-width w_j, or what the
range leaves of it. This equals the derivative averaged over a triangular kernel of standard deviation w_j / sqrt(6).
Columns of whole numbers take whole numbers: their positions are rounded.

Trees know their thresholds and answer exactly (`trees/engine`). Everything else is asked at a few Gauss-Legendre
nodes on either side, or at all whole numbers in reach where there are no more of them. The bound of the rule's
error comes from what f gains between neighbouring nodes beyond a straight line: the root mean square error if these
gains were steps, each anywhere between its two nodes, times a factor that background rows give: near `STEPS` for
functions of steps, less for smooth ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from texplainer.background.summary import HALF_WIDTH, robust_sd, varying_columns
from texplainer.errors import InputError
from texplainer.gradients.change import change_of_slopes
from texplainer.gradients.engine import BANDWIDTH, MOVE, Engine, Gradient, Settings
from texplainer.limits import CELLS
from texplainer.models.predictor import Predictor
from texplainer.types import Array

LEAST, LARGEST = 1e-4, 100.0  # of the bandwidth: a smaller one does not move a point, a larger one overflows
LEAST_NODES, MOST_NODES, EXTRA = 2, 8, 32  # on a side; EXTRA evaluations a side are shared by few features
SHARED = 0.3  # part of the features' and of the background's level in a bound: a step that no node saw
TRIAL, TRIAL_OF_MODELS = 1400, 12_000  # evaluations that calibrate: of a function, of a library's model
COARSE = 3 / 8  # of them for whole rows by the rule itself, the others for some of their cells by more nodes
MANY = 8  # nodes on a side that stand for the exact average, or twice those of the rule
MOST = 16  # nodes on a side that `max_evals` may buy
MOST_ROWS = 32
STEPS = 2.5  # root mean square errors in a bound of a function of steps
COVERAGE, UNSURE = 2.9, 30.0  # those seen in a bound; and what few cells add, over their number
NOTHING = 0.1  # of the background's level
TYPICAL = 8  # cells that all features together count for beside a feature's own
LEAST_FACTOR = 0.2
ROUNDINGS = 4
TREE_MOVES = 3  # each costs as much as the values; six would rank rows a little better at twice the cost
STEP_NODES = 4  # on a side, where steps are compared with steps
PATTERNS = 8  # of signs
OTHERS = 3  # evaluations of a row: at the row for the values and for the slopes, and at the end of the steepest move
SPARE = 96  # evaluations of a row for the change of its slopes; or twice as many as features, where these are many
QUANTILES = 8  # of the normal distribution


@dataclass(frozen=True)
class Reach:
    """How far the features of rows are moved, (rows, features) each; 0 for what stays."""

    up: Array
    down: Array

    @property
    def moving(self) -> np.ndarray:
        """Mask of the cells that move at all."""
        return (self.up > 0) | (self.down > 0)


@dataclass(frozen=True)
class Moves:
    """Half-widths (features,), 0 for columns that do not move; the range; and columns of whole numbers."""

    half: Array
    bounds: tuple[Array, Array] | None
    integers: np.ndarray  # (features,) mask

    def reach(self, rows: Array) -> Reach:
        """How far rows can be moved; a row outside the range is its own edge."""
        known = np.where(np.isfinite(rows), rows, 0.0)
        half = np.where(np.isfinite(rows), self.half, 0.0)
        if self.bounds is None:
            return Reach(half, half)
        low, high = self.bounds
        return Reach(np.clip(high - known, 0.0, half), np.clip(known - low, 0.0, half))

    def width(self, rows: Array, reach: Reach) -> Array:
        """Mean move up minus mean move down, (rows, features)."""
        out = (reach.up + reach.down) / 2
        if self.integers.any():
            at = np.ix_(np.arange(len(rows)), np.flatnonzero(self.integers))
            x, up, down = rows[at], reach.up[at], reach.down[at]
            # the mean of a rounded number over an interval, from its integral k y - k²/2, k = round(y)
            above = (_integral(x + up) - _integral(x)) / np.where(up > 0, up, 1.0)
            below = (_integral(x) - _integral(x - down)) / np.where(down > 0, down, 1.0)
            out[at] = np.where(up > 0, above - x, 0.0) - np.where(down > 0, below - x, 0.0)
        return out


def rounded(x: Array) -> Array:
    """The nearest whole numbers, halves upwards."""
    return np.floor(x + 0.5)


def _integral(y: Array) -> Array:
    """Integral of the rounded number from 0 to y."""
    k = rounded(y)
    return k * y - k**2 / 2


def moves_of(predictor: Predictor, background: Array, settings: Settings) -> Moves:
    """The moves of an explainer's continuous columns."""
    features = background.shape[1]
    free = predictor.schema.numeric & varying_columns(background) & ~settings.discrete.mask(features)
    half = np.where(free, HALF_WIDTH * settings.bandwidth * robust_sd(background), 0.0)
    integers = np.zeros(features, bool)
    integers[list(settings.discrete.integers)] = True
    return Moves(half, settings.bounds, integers & free)


# ------------------------------------------------------------------ the positions


@dataclass(frozen=True)
class Positions:
    """Where the cells of some rows are moved to, (rows, features, nodes); and with which weights.

    `weight` sums to 1 less the weight of the row's own value. Nodes of weight 0 are not asked.
    """

    at: Array
    weight: Array
    exact: np.ndarray  # (rows, features): the rule is the definition itself


@lru_cache(maxsize=16)
def gauss(nodes: int) -> tuple[Array, Array]:
    """Nodes and weights of Gauss and Legendre on (0, 1); the last node is the outer one."""
    t, weight = np.polynomial.legendre.leggauss(nodes)
    return (t + 1) / 2, weight / 2


@lru_cache(maxsize=16)
def step_squares(nodes: int) -> Array:
    """Mean square error of the rule on (0, 1) for a unit step between a node and the one before it, (nodes,)."""
    t, weight = gauss(nodes)
    before, seen = np.append(0.0, t[:-1]), np.cumsum(weight) - weight
    return ((t - seen) ** 3 - (before - seen) ** 3) / (3 * (t - before))


def positions(moves: Moves, rows: Array, length: Array, sign: float, nodes: int) -> Positions:
    """The nodes on one side (`sign`) of the rows, over lengths (rows, features)."""
    t, weight = gauss(nodes)
    at = rows[:, :, None] + sign * length[:, :, None] * t
    weights = np.where(length[:, :, None] > 0, weight, 0.0)
    exact = length == 0
    for j in np.flatnonzero(moves.integers):
        at[:, j], weights[:, j], exact[:, j] = _whole(rows[:, j], length[:, j], sign, at[:, j], weights[:, j])
    if moves.bounds is not None:  # a last bit must not leave the range
        edge = moves.bounds[1] if sign > 0 else moves.bounds[0]
        bound = np.maximum(edge, rows) if sign > 0 else np.minimum(edge, rows)
        at = np.minimum(at, bound[:, :, None]) if sign > 0 else np.maximum(at, bound[:, :, None])
    weights[at == rows[:, :, None]] = 0.0
    return Positions(at, weights, exact)


def _whole(x: Array, length: Array, sign: float, at: Array, weight: Array) -> tuple[Array, Array, np.ndarray]:
    """One column of whole numbers: all of them in reach, if there are no more than nodes; or rounded nodes."""
    nodes = at.shape[1]
    home, far = rounded(x), rounded(x + sign * length)
    k = np.arange(1, nodes + 1)
    whole = home[:, None] + sign * k  # (rows, nodes)
    low, high = np.minimum(x, x + sign * length)[:, None], np.maximum(x, x + sign * length)[:, None]
    part = np.clip(np.minimum(whole + 0.5, high) - np.maximum(whole - 0.5, low), 0.0, None)
    share = part / np.where(length > 0, length, 1.0)[:, None]
    few = (sign * (far - home) <= nodes) & (x == home)
    return np.where(few[:, None], whole, rounded(at)), np.where(few[:, None], share, weight), few


# ------------------------------------------------------------------ the differences


@dataclass(frozen=True)
class Differences:
    """What the slopes of some rows are made of."""

    slopes: Array  # (rows, features, outputs), per unit
    unit: Array  # (rows, features), mean move up minus mean move down; 0 for what stays
    gain: Array  # (rows, features, sides, nodes, outputs), f at the nodes minus f(x)
    move: Array  # (rows, features, sides, nodes), signed; 0 for nodes that are not asked
    exact: np.ndarray  # (rows, features)
    count: np.ndarray  # (rows,) evaluations


@dataclass(frozen=True)
class AveragedDifferences:
    """Slopes of a model known by its predictions: 2mn + 1 evaluations a row, and `spare` for their change."""

    predictor: Predictor
    moves: Moves
    sd: Array  # (features,)
    nodes: int
    usual: Array | float = 0.0  # (outputs,), the steps per SD on background rows
    factor: Array | float = STEPS  # (features, 1)
    spare: int = 0  # evaluations of a row for the pairs of features by which their change is judged
    steps: bool = False  # whether f is known to have steps: their change needs moves of several lengths

    def __call__(self, rows: Array) -> Gradient:
        """Slopes of rows per unit, their bounds and their change."""
        size = max(1, CELLS // (2 * self.nodes * max(1, rows.shape[1]) * len(self.predictor.outputs)))
        parts = [self._block(rows[i : i + size]) for i in range(0, max(1, len(rows)), size)]
        return parts[0] if len(parts) == 1 else _joined(parts)

    def _block(self, rows: Array) -> Gradient:
        f0 = self.predictor(rows)
        found = self.differences(rows, f0)
        moving = found.unit > 0
        error = self.factor * self.indicator(found) + self._rounding(rows, f0, found)
        error = np.where(moving[:, :, None], error, 0.0)
        step = np.where(moving, np.abs(found.move).max(axis=(2, 3)), np.nan)
        change, spent = self._change_of_steps(rows, f0) if self.steps else self._change(rows, f0, found)
        cost = 1 + found.count + spent
        return Gradient(found.slopes, error, step, np.zeros(rows.shape, np.uint8), cost, change=change)

    def differences(self, rows: Array, f0: Array, nodes: int | None = None) -> Differences:
        """The differences of rows whose predictions are known, (rows, outputs)."""
        reach = self.moves.reach(rows)
        sides = [
            positions(self.moves, rows, length, sign, nodes or self.nodes)
            for length, sign in ((reach.up, 1.0), (reach.down, -1.0))
        ]
        at = np.stack([side.at for side in sides], axis=2)
        weight = np.stack([side.weight for side in sides], axis=2)
        gain = np.zeros((*at.shape, f0.shape[1]))
        row, column, *_ = where = np.nonzero(weight > 0)
        gain[where] = replaced(self.predictor, rows, row, column, at[where]) - f0[row]
        heard = ~(np.abs(gain).max(axis=(2, 3)) <= self._floor(f0)[:, None])  # True for NaN
        gain = np.where(heard[:, :, None, None], gain, 0.0)
        move = np.where(weight > 0, at - rows[:, :, None, None], 0.0)
        total, unit = np.zeros((*rows.shape, f0.shape[1])), np.zeros(rows.shape)
        for side, sign in enumerate((1.0, -1.0)):  # one by one: bit-identical for any number of rows
            for k in range(at.shape[3]):
                total += sign * weight[:, :, side, k, None] * gain[:, :, side, k]
                unit += sign * weight[:, :, side, k] * move[:, :, side, k]
        slopes = np.divide(total, unit[:, :, None], out=np.zeros(total.shape), where=unit[:, :, None] > 0)
        exact = sides[0].exact & sides[1].exact
        return Differences(slopes, unit, gain, move, exact, (weight > 0).sum(axis=(1, 2, 3)))

    def indicator(self, found: Differences) -> Array:
        """The scale of the rule's error per unit, (rows, features, outputs)."""
        unsure = (found.unit > 0) & ~found.exact
        sd = self.sd[:, None]
        own = self.step_error(found)
        many = np.maximum(1, unsure.sum(axis=1))[:, None, None]
        common = (own**2).sum(axis=1, keepdims=True) / many
        per_sd = np.sqrt(own**2 + SHARED**2 * (common + np.square(self.usual)))
        return np.where(unsure[:, :, None], per_sd / sd, 0.0)

    def step_error(self, found: Differences) -> Array:
        """The root mean square error per SD if f made its gains by steps, (rows, features, outputs).

        The gains between neighbouring nodes less those of the slope; a step is anywhere between its nodes.
        """
        squares = np.zeros(found.slopes.shape)
        for side in range(2):  # one by one: bit-identical for any number of rows
            gain, move = 0.0, 0.0
            for k, weight in enumerate(step_squares(found.move.shape[3])):
                asked = found.move[:, :, side, k, None] != 0
                more = found.gain[:, :, side, k] - gain
                further = (found.move[:, :, side, k] - move)[:, :, None]
                squares += np.where(asked, weight * (more - found.slopes * further) ** 2, 0.0)
                gain, move = found.gain[:, :, side, k], found.move[:, :, side, k]
        unsure = (found.unit > 0) & ~found.exact
        return np.sqrt(squares) * (self.sd / np.where(unsure, found.unit, np.inf))[:, :, None]

    def _floor(self, f0: Array) -> Array:
        """What rounding alone may make of a difference, (rows, outputs)."""
        return ROUNDINGS * self.predictor.unit * np.abs(f0)

    def _rounding(self, rows: Array, f0: Array, found: Differences) -> Array:
        loud = np.abs(f0)[:, None] + np.abs(np.nan_to_num(rows))[:, :, None] * np.abs(found.slopes)
        per_unit = 1 / np.where(found.unit > 0, found.unit, np.inf)
        return 2 * ROUNDINGS * self.predictor.unit * loud * per_unit[:, :, None]

    def _change(self, rows: Array, f0: Array, found: Differences) -> tuple[Array, np.ndarray]:
        """How much sd times the slopes change as all features move by 5% of an SD, (rows, outputs); evaluations."""
        reach, square = self.moves.reach(rows), np.zeros(rows.shape)
        for z in normal_moves(1, QUANTILES).ravel():  # what the range leaves of moves of the mean size
            square += 2 / np.pi * np.clip(MOVE * self.sd * z, -reach.down, reach.up) ** 2 / QUANTILES
        columns, known = np.flatnonzero(self.moves.half > 0), (found.move, found.gain)
        return change_of_slopes(self.predictor, rows, f0, known, columns, self.sd, square, self.spare)

    def _change_of_steps(self, rows: Array, f0: Array) -> tuple[Array, np.ndarray]:
        """As `_change`, at a few rows moved by several lengths: whether a step is crossed depends on the length."""
        here = self.differences(rows, f0, STEP_NODES)
        step = np.where(self.moves.half > 0, MOVE * self.sd, 0.0)
        lengths, cost = [], here.count
        for z in normal_moves(rows.shape[1], TREE_MOVES):
            there = rows + step * z
            if self.moves.bounds is not None:
                low, high = np.minimum(self.moves.bounds[0], rows), np.maximum(self.moves.bounds[1], rows)
                there = np.minimum(np.maximum(there, low), high)
            found = self.differences(there, self.predictor(there), STEP_NODES)
            lengths.append(np.sqrt((((found.slopes - here.slopes) * self.sd[:, None]) ** 2).sum(axis=1)))
            cost = cost + found.count + 1
        return np.mean(lengths, axis=0), cost


def replaced(predictor: Predictor, rows: Array, row: np.ndarray, column: np.ndarray, cells: Array) -> Array:
    """Predictions of rows[row] with the cell in `column` replaced, (entries, outputs)."""
    out = np.empty((len(row), len(predictor.outputs)))
    size = predictor.piece(rows.shape[1])
    for first in range(0, len(row), size):
        part = slice(first, first + size)
        points = rows[row[part]]
        points[np.arange(len(points)), column[part]] = cells[part]
        out[part] = predictor(points)
    return out


def directions(features: int, count: int = 2) -> Array:
    """Fixed moves in standard coordinates, (count, features): signs without a pattern, times the mean size.

    Signs times the mean size of a normal deviate, not deviates: of few of these some features hardly get any,
    while the mean of |J z|² over signs misses least of its expectation (Hutchinson 1990), and nothing
    where J is diagonal. The mean size, for the steps a tree takes grow with |z|, not with z². The moves are
    one pattern times Walsh functions, which are at right angles.
    """
    number = np.arange(1, features + 1)
    first = np.where(number * ((5**0.5 - 1) / 2) % 1.0 < 0.5, 1.0, -1.0)
    bits = np.arange(count)[:, None] & ((number - 1) % PATTERNS)
    odd = (bits ^ bits >> 1 ^ bits >> 2) & 1  # parity
    return np.sqrt(2 / np.pi) * first * np.where(odd, -1.0, 1.0)


def normal_moves(features: int, count: int) -> Array:
    """Fixed moves whose numbers are normal quantiles in every feature, in another order each, (count, features).

    Of mean 0 and mean square 1 (a Latin hypercube, McKay et al. 1979). The steps of a tree need several lengths
    of moves: whether a threshold is crossed depends on the length.
    """
    quantiles = ndtri((np.arange(count) + 0.5) / count)
    quantiles /= np.sqrt((quantiles**2).mean())
    order = [np.random.default_rng((count, j)).permutation(count) for j in range(features)]
    return quantiles[np.transpose(order)]


def _joined(parts: list[Gradient]) -> Gradient:
    """Blocks of rows as one."""
    names = ("values", "error", "step", "flags", "evaluations", "change")
    joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Gradient(**joined)


# ------------------------------------------------------------------ the engine


def smooth(engine: Engine, predictor: Predictor, background: Array, settings: Settings) -> Engine:
    """Average an engine's gradient over the bandwidth of the settings; trees smooth themselves."""
    width = settings.bandwidth
    if settings.step != "auto" and width not in (0.0, BANDWIDTH):
        raise InputError(
            f"step={settings.step!r} and smoothing={width:g} both set the scale of the derivative; "
            "leave one of them at its default."
        )
    asked = settings.average or width != BANDWIDTH
    if engine.averages or width == 0.0 or settings.step != "auto" or not asked:
        return engine
    if engine.linear:
        return replace(engine, gradient=partial(_constant, engine), width=width, point=engine)
    found = averaged_differences(predictor, background, settings)
    how = "differences of predictions, one feature at a time"
    return replace(engine, how=how, gradient=found, width=width, point=engine)


def _constant(engine: Engine, rows: Array) -> Gradient:
    """The gradient of a linear model: its averages are the same, and it does not change."""
    found = engine.gradient(rows)
    return replace(found, change=np.zeros(found.values.shape[::2]))


def checked_smoothing(smoothing: Any) -> float:
    """Check the argument: the bandwidth in SDs."""
    number = isinstance(smoothing, (int, float, np.number)) and not isinstance(smoothing, bool)
    if number and (smoothing == 0 or LEAST <= smoothing <= LARGEST):
        return float(smoothing)
    raise InputError(
        f"smoothing={smoothing!r} is not a bandwidth; expected 0 (the derivative at the point) or a number "
        f"of SDs between {LEAST:g} and {LARGEST:g}, such as 0.25."
    )


def averaged_differences(
    predictor: Predictor, background: Array, settings: Settings, nodes: int | None = None, steps: bool = False
) -> AveragedDifferences:
    """The averaged slopes of a model's predictions, at as many nodes as the row's budget allows."""
    moves, sd = moves_of(predictor, background, settings), robust_sd(background)
    moving = int(np.sum(moves.half > 0))
    discrete = len(settings.discrete.columns)  # their neighbours, also of a moved row
    others = 2 + len(predictor.outputs) + (4 * discrete + 1 if discrete else 0)
    usual, spare = affordable(max(1, moving), settings.max_evals, others)
    found = AveragedDifferences(predictor, moves, sd, nodes or usual, spare=spare, steps=steps)
    return calibrated(found, background)


def affordable(features: int, max_evals: int | None, others: int = OTHERS) -> tuple[int, int]:
    """Nodes on a side, and evaluations for the change, that `max_evals` evaluations a row allow beside the others."""
    spare = SPARE if 4 * features <= SPARE else 2 * features
    spare = min(spare, 2 * features * (features - 1))  # four for every pair of features
    if max_evals is None:
        return max(LEAST_NODES, min(MOST_NODES, LEAST_NODES + EXTRA // features)), spare
    least = least_evals(features, others)
    if max_evals < least:
        raise InputError(
            f"max_evals={max_evals} is too small for {features} features; expected at least {least}. "
            "Raise it, or leave it at None."
        )
    left = max_evals - others
    spare = min(spare, max(2 * features, left // 3))
    return min(MOST, (left - spare) // (2 * features)), spare


def least_evals(features: int, others: int = OTHERS) -> int:
    """The smallest `max_evals`: a move up and one down for every feature, for the slopes and for their change."""
    return 4 * features + others


def calibrated(slopes: AveragedDifferences, background: Array) -> AveragedDifferences:
    """The slopes with bounds that cover the differences to many nodes on some background cells.

    The factor follows from the root mean square of error over indicator, of a feature's cells and of all. Of
    functions of steps it is known to be near `STEPS`; below that, few cells need an allowance.
    """
    sample = background[np.all(np.isfinite(background), axis=1)]
    columns = np.flatnonzero(slopes.moves.half > 0)
    if not len(sample) or not len(columns):
        return slopes
    trial = TRIAL if slopes.predictor.kind == "callable" else TRIAL_OF_MODELS
    count = int(np.clip(COARSE * trial // (2 * slopes.nodes * len(columns)), 1, MOST_ROWS))
    rows = sample[:: max(1, len(sample) // count)][:count]
    f0 = slopes.predictor(rows)
    few = slopes.differences(rows, f0)
    steps = slopes.step_error(few)
    unsure = steps[(few.unit > 0) & ~few.exact]  # (cells, outputs)
    if not len(unsure):
        return slopes
    slopes = replace(slopes, usual=np.sqrt((unsure**2).mean(axis=0)))
    row, column = np.nonzero(few.unit > 0)
    many = max(MANY, 2 * slopes.nodes)  # the rule compared with itself would have no error
    left = trial - len(rows) - int(few.count.sum())
    chosen = np.random.default_rng(0).permutation(len(row))[: max(1, left // (2 * many))]
    row, column = row[chosen], column[chosen]
    true = _precise(slopes, rows, f0, row, column, many)
    bound, found = slopes.indicator(few)[row, column], few.slopes[row, column]
    # cells where next to nothing happens, as of unused features, tell nothing of the others
    known = (bound > 0) & (steps[row, column] >= NOTHING * slopes.usual)
    squares = np.divide(np.abs(found - true), bound, out=np.zeros(bound.shape), where=known) ** 2
    count = known.sum()
    if not count or not np.isfinite(squares).all():
        return slopes
    each, sums = (np.bincount(column, a.sum(axis=1), rows.shape[1]) for a in (known, squares))
    own = np.sqrt((sums + TYPICAL * sums.sum() / count) / (each + TYPICAL))  # (features,)
    seen = COVERAGE * own
    factor = np.maximum(seen, np.minimum(seen * (1 + UNSURE / count), STEPS))
    factor *= 1 + 1 / slopes.nodes**2  # fewer nodes miss more steps: more errors are large
    return replace(slopes, factor=np.maximum(factor, LEAST_FACTOR)[:, None])


def _precise(
    slopes: AveragedDifferences, rows: Array, f0: Array, row: np.ndarray, column: np.ndarray, nodes: int
) -> Array:
    """Slopes of some cells by many nodes, (cells, outputs)."""
    reach, total, unit = slopes.moves.reach(rows), 0.0, 0.0
    for length, sign in ((reach.up, 1.0), (reach.down, -1.0)):
        side = positions(slopes.moves, rows, length, sign, nodes)
        at, weight = side.at[row, column], side.weight[row, column]  # (cells, nodes)
        f = replaced(slopes.predictor, rows, np.repeat(row, nodes), np.repeat(column, nodes), at.ravel())
        total = total + sign * np.einsum("ck,cko->co", weight, f.reshape(*at.shape, -1) - f0[row, None])
        unit = unit + sign * np.sum(weight * (at - rows[row, column, None]), axis=1)
    return total / unit[:, None]
