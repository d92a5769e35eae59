"""How the displacement h is found.

`auto`: a ladder of shrinking steps for every row and feature. The centred difference errs by
h²M/6 through truncation and by eps/h through the model's rounding; going down the ladder, the
change between two rungs measures the first and eps/h bounds the second. The rung with the smallest
sum wins, and the sum is the error bound (the balance of Gill, Murray, Saunders & Wright 1983, with
the noise level of Moré & Wild 2011).

`paper`: Algorithm 1 of the T-Explainer paper, line by line, for all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
from scipy.special import factorial

from texplainer.errors import InputError
from texplainer.gradients import JUMP, KINK, NOISY, Gradient, Settings
from texplainer.gradients.finite_difference import Stencil, differences, entries, evaluate, place
from texplainer.prediction import Predictor
from texplainer.signatures import Array
from texplainer.spreads import spread

GradientFunction = Callable[[Array], Gradient]

#: rungs in units of a feature's spread, by the model's float width
LADDERS = {8: (1e-2, 1e-3, 1e-4, 1e-5), 4: (3e-3, 1e-3, 3e-4)}
TOLERANCE = {8: 1e-7, 4: 1e-4}

# Algorithm 1's constants
C, H_MAX, MAX_ITERATIONS = 0.5, 1.0, 50
MOST_DISTANCE_ROWS = 20_000


# ---------------------------------------------------------------- the ladder


def ladder(predictor: Predictor, background: Array, settings: Settings) -> tuple[GradientFunction, str]:
    """The noise-aware ladder, `step="auto"`."""
    sigma = spread(background)
    noise = noise_level(predictor, background, sigma)
    gradient = partial(_climb, predictor, settings, sigma, noise)
    return gradient, "centred differences on a noise-aware ladder of steps"


def noise_level(predictor: Predictor, background: Array, sigma: Array) -> float:
    """Absolute rounding noise of f: that of its float width, or what ECnoise sees if that is more.

    ECnoise (Moré & Wild 2011): differences of order k of equally spaced values annihilate the smooth
    part of f and leave its noise, magnified by a known factor.
    """
    sample = background[np.all(np.isfinite(background), axis=1)]
    if not len(sample):
        return 0.0
    typical = float(np.median(np.abs(predictor(sample[:: max(1, len(sample) // 64)][:64]))))
    centre = sample[len(sample) // 2]
    # a fixed direction with irrational ratios, so that no two coordinates move in step
    direction = np.where(predictor.schema.numeric, np.cos(np.sqrt(2) * np.arange(1, len(sigma) + 1)), 0.0)
    length = max(64 * predictor.unit, 1e-12)
    table = predictor(centre + np.arange(7)[:, None] * length * sigma * direction)  # (7, outputs)
    levels = []
    for k in range(1, 7):
        table = np.diff(table, axis=0)
        gamma = factorial(k) ** 2 / factorial(2 * k)
        levels.append(np.sqrt(gamma * np.mean(table**2)))
    settled = [b for a, b in pairwise(levels) if max(a, b) <= 4 * min(a, b)]
    estimate = float(settled[0]) if settled and np.isfinite(settled[0]) else 0.0
    floor = 2 * predictor.unit * typical if np.isfinite(typical) else 0.0
    return max(floor, min(estimate, 1e4 * floor))  # a kink under the probe must not pass for noise


def _climb(predictor: Predictor, settings: Settings, sigma: Array, noise: float, rows: Array) -> Gradient:
    """Walk down the ladder: two rungs for all entries, the others only where they can still help."""
    f0 = predictor(rows)  # (rows, outputs)
    row, column = entries(rows, predictor.schema.numeric)
    rungs = LADDERS[predictor.dtype.itemsize]
    eps = np.maximum(2 * predictor.unit * np.abs(f0[row]), noise)  # (entries, outputs)
    walk = _Walk(predictor, rows, f0, row, column, sigma[column], eps, settings.bounds)
    walk.descend(rungs[0])
    for rung in rungs[1:]:
        walk.descend(rung)
        if not len(walk.active):
            break
    walk.step_aside()
    return walk.gradient()


class _Walk:
    """The ladder's state: the best estimate so far of every entry, and which entries go on."""

    def __init__(
        self,
        predictor: Predictor,
        rows: Array,
        f0: Array,
        row: np.ndarray,
        column: np.ndarray,
        sigma: Array,
        eps: Array,
        bounds: tuple[Array, Array] | None,
    ) -> None:
        self.predictor, self.rows, self.f0, self.bounds = predictor, rows, f0, bounds
        self.row, self.column, self.sigma, self.eps = row, column, sigma, eps
        shape = eps.shape
        self.value, self.error = np.zeros(shape), np.full(shape, np.inf)
        self.step, self.flags = np.full(len(row), np.nan), np.zeros(len(row), np.uint8)
        self.last = np.full(shape, np.nan)  # the estimate of the rung above
        self.bend = np.full(shape, np.nan)  # and its one-sided slopes' gap
        self.active = np.arange(len(row))
        self.evaluations = np.ones(len(rows), dtype=np.int64)

    def descend(self, rung: float) -> None:
        """Evaluate one rung for the active entries and keep what is better."""
        a = self.active
        stencil = self._stencil(a, rung * self.sigma[a])
        f1, f2 = self._evaluate(a, stencil)
        f0, eps = self.f0[self.row[a]], self.eps[a]
        d = stencil.derivative(f0, f1, f2)
        bend = np.abs((f1 - f0) / stencil.p[:, None] - (f2 - f0) / stencil.q[:, None])
        h = np.abs(stencil.p)[:, None]
        # internal roundings of the coordinate itself, u|x|, act like noise of size u|x f'|
        rounding = (
            eps + self.predictor.unit * np.abs(self.rows[self.row[a], self.column[a]])[:, None] * np.abs(d)
        ) / h
        if not np.all(np.isnan(self.last[a])):
            change = np.abs(d - self.last[a])
            error = change + rounding
            better = ~(error >= self.error[a])  # NaN counts as better: a failed row must show
            self.value[a] = np.where(better, d, self.value[a])
            self.error[a] = np.where(better, error, self.error[a])
            moved = np.any(better, axis=1)
            self.step[a[moved]] = np.abs(stencil.p)[moved]
            self._classify(a, d, bend, rounding, moved)
            tolerance = TOLERANCE[self.predictor.dtype.itemsize] * np.abs(d)
            useful = (error > tolerance) & (change > rounding)
            self.last[a], self.bend[a] = d, bend
            self.active = a[useful.any(axis=1)]
        else:
            self.last[a], self.bend[a] = d, bend

    def _classify(self, a: np.ndarray, d: Array, bend: Array, rounding: Array, moved: np.ndarray) -> None:
        """Kink: the one-sided slopes' gap stays as h shrinks. Jump: the slope itself grows like 1/h."""
        loud = bend > 8 * rounding
        kink = loud & (bend > 0.5 * self.bend[a]) & (bend > 1e-3 * np.abs(d))
        jump = (np.abs(d) > 2.0 * np.abs(self.last[a])) & (np.abs(d - self.last[a]) > 8 * rounding) & loud
        noisy = rounding > 0.1 * np.abs(d)
        flags = (
            np.where(jump.any(axis=1), JUMP, np.where(kink.any(axis=1), KINK, 0))
            | np.where((noisy & (d != 0)).any(axis=1), NOISY, 0)
        ).astype(np.uint8)
        self.flags[a] = np.where(moved, flags, self.flags[a] | (flags & JUMP))

    def step_aside(self) -> None:
        """Next to a jump: the one-sided stencil on the side where f bends less."""
        a = np.nonzero(self.flags & JUMP)[0]
        if not len(a):
            return
        h = np.where(np.isfinite(self.step[a]), self.step[a], self.sigma[a])
        x, f0 = self.rows[self.row[a], self.column[a]], self.f0[self.row[a]]
        sides = []
        for sign in (1.0, -1.0):
            first, second = (x + sign * h), (x + 2 * sign * h)
            one = Stencil(first, second, first - x, second - x)
            f1, f2 = self._evaluate(a, one)
            sides.append((one.derivative(f0, f1, f2), np.abs(f2 - 2 * f1 + f0)))
        (right, bend_right), (left, bend_left) = sides
        choose_right = bend_right <= bend_left
        value = np.where(choose_right, right, left)
        self.error[a] = np.minimum(bend_right, bend_left) / h[:, None] + self.eps[a] / h[:, None]
        self.value[a] = value

    def gradient(self) -> Gradient:
        """Scatter the entries back into (rows, features, outputs)."""
        shape = (*self.rows.shape, self.f0.shape[1])
        values, error = np.zeros(shape), np.zeros(shape)
        values[self.row, self.column], error[self.row, self.column] = self.value, self.error
        step, flags = np.full(self.rows.shape, np.nan), np.zeros(self.rows.shape, np.uint8)
        step[self.row, self.column], flags[self.row, self.column] = self.step, self.flags
        return Gradient(values, error, step, flags, self.evaluations)

    def _stencil(self, a: np.ndarray, step: Array) -> Stencil:
        return place(self.predictor, self.rows, self.row[a], self.column[a], step, self.bounds)

    def _evaluate(self, a: np.ndarray, stencil: Stencil) -> tuple[Array, Array]:
        at = np.stack([stencil.first, stencil.second], axis=1)
        f = evaluate(self.predictor, self.rows, self.row[a], self.column[a], at)
        self.evaluations += 2 * np.bincount(self.row[a], minlength=len(self.rows))
        return f[:, 0], f[:, 1]


# ---------------------------------------------------------------- Algorithm 1


def paper(predictor: Predictor, background: Array, settings: Settings) -> tuple[GradientFunction, str]:
    """Algorithm 1 with h_min the smallest non-zero distance between background rows, `step="paper"`."""
    h_min = smallest_distance(background)
    gradient = partial(_bisect, predictor, settings, h_min)
    return gradient, f"Algorithm 1 of the paper, h in [{h_min:.3g}, {H_MAX:g}]"


def smallest_distance(background: Array) -> float:
    """The smallest non-zero distance between two rows, by a k-d tree over at most 20,000 of them."""
    from scipy.spatial import KDTree

    unique = np.unique(background[np.all(np.isfinite(background), axis=1)], axis=0)
    if len(unique) < 2:
        raise InputError(
            f"step='paper' needs two different background rows to find h_min; found {len(unique)}. "
            "Pass a background with more rows, or step='auto'."
        )
    if len(unique) > MOST_DISTANCE_ROWS:
        unique = unique[np.linspace(0, len(unique) - 1, MOST_DISTANCE_ROWS).astype(int)]
    distances, _ = KDTree(unique).query(unique, k=2)
    return float(distances[:, 1].min())


def _bisect(predictor: Predictor, settings: Settings, h_min: float, rows: Array) -> Gradient:
    """All rows advance together; the comments give the lines of Algorithm 1."""
    count = len(rows)
    f0 = predictor(rows)  # line 5, the same in every iteration
    left, right = np.full(count, h_min), np.full(count, H_MAX)  # line 1
    previous = np.ones(count)
    h, cost = np.zeros(count), np.zeros(count)
    values, step = np.zeros((*rows.shape, f0.shape[1])), np.full(rows.shape, np.nan)
    iterations = np.zeros(count, dtype=np.int64)
    trace_h = np.full((count, MAX_ITERATIONS + 1), np.nan)
    trace_cost = trace_h.copy()
    active = np.arange(count)
    noise = 4 * predictor.unit * np.maximum(1.0, np.abs(f0))  # theta's threshold
    while len(active):
        a = active
        iterations[a] += 1
        h[a] = (left[a] + right[a]) / 2  # line 6
        epsilon = C * left[a] ** 2  # line 7
        steps = np.repeat(h[a][:, None], rows.shape[1], axis=1)
        values[a], step[a] = differences(predictor, rows[a], f0[a], steps, settings.bounds)  # line 8
        cost[a] = _linear_cost(predictor, rows[a], f0[a], h[a], values[a], settings.bounds)  # lines 9-10
        trace_h[a, iterations[a] - 1], trace_cost[a, iterations[a] - 1] = h[a], cost[a]
        rejected = ~(cost[a] <= epsilon)  # line 11; a NaN cost is no acceptance
        singular = np.all(np.abs(values[a]).max(axis=1) * h[a][:, None] <= noise[a], axis=1)
        settled = (previous[a] != 0) & (np.abs(cost[a] - previous[a]) < epsilon)
        stop = ~rejected & ~singular & settled  # line 17
        right[a[rejected]] = h[a[rejected]]  # line 12
        raised = ~rejected & ~stop
        left[a[raised]] = h[a[raised]]  # lines 15 and 19
        previous[a] = cost[a]  # line 22
        stop |= iterations[a] > MAX_ITERATIONS  # line 23
        active = a[~stop]
    evaluations = 1 + iterations * (2 * (np.isfinite(rows) & predictor.schema.numeric).sum(axis=1) + 1)
    trace = {"trace_h": trace_h, "trace_cost": trace_cost}
    extras = {"h": h, "cost": cost, "iterations": iterations, **trace}
    error = np.full(values.shape, np.nan)  # a secant at a large h, not a derivative: no bound is claimed
    return Gradient(values, error, step, np.zeros(rows.shape, np.uint8), evaluations, extras)


def _linear_cost(
    predictor: Predictor,
    rows: Array,
    f0: Array,
    h: Array,
    gradient: Array,
    bounds: tuple[Array, Array] | None,
) -> Array:
    """Mean squared error of the linear model along the diagonal, with the displacement really made."""
    moved = rows + np.where(predictor.schema.numeric, h[:, None], 0.0)
    if bounds is not None:
        moved = np.clip(moved, np.minimum(bounds[0], rows), np.maximum(bounds[1], rows))
    delta = np.nan_to_num(moved - rows)
    rest = predictor(moved) - np.einsum("rf,rfo->ro", delta, gradient) - f0
    return np.mean(rest**2, axis=1)


SEARCHES = {"auto": ladder, "paper": paper}
