"""The derivative at a point, by centred differences whose displacement h is found on a ladder.

A ladder of shrinking steps for every row and feature. The centred difference errs by h²M/6 through
truncation and by eps/h through the model's rounding; going down the ladder, the change between two rungs
measures the first and eps/h bounds the second. The rung with the smallest sum wins, and the sum is the error
bound (the balance of Gill, Murray, Saunders & Wright 1983, with the noise level of Moré & Wild 2011).

The derivative of a step function is 0 almost everywhere and means nothing. Whether the model is one is seen
on background rows (`noise.is_step_function`); zeros are then flagged STEP.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from texplainer.background.summary import robust_sd
from texplainer.gradients.engine import JUMP, KINK, NOISY, STEP, Gradient, Settings
from texplainer.gradients.finite_difference.noise import Noise, is_step_function, noise_of
from texplainer.gradients.finite_difference.stencil import Stencil, entries, evaluate_stencil, place
from texplainer.models.predictor import Predictor
from texplainer.types import Array

GradientFunction = Callable[[Array], Gradient]

#: rungs in units of a feature's SD, by the model's float width
LADDERS = {8: (1e-2, 1e-3, 1e-4, 1e-5), 4: (3e-3, 1e-3, 3e-4)}
LOUD_LADDER = (0.3, 0.1, 0.03, 0.01)  # where the noise is above LOUD of the outputs' SD
LOUD = 1e-5
TOLERANCE = {8: 1e-7, 4: 1e-4}


def ladder(predictor: Predictor, background: Array, settings: Settings) -> tuple[GradientFunction, str]:
    """The noise-aware ladder, `step="auto"`."""
    sigma = robust_sd(background)

    @cache
    def seen() -> tuple[Noise, bool]:
        """The noise, and whether the model is a step function; some 700 evaluations."""
        return noise_of(predictor, background, sigma), is_step_function(predictor, background, sigma)

    def gradient(rows: Array) -> Gradient:
        return _climb(predictor, settings, sigma, *seen(), rows)

    why = "centred differences on a noise-aware ladder of steps"
    if settings.average and settings.bandwidth:  # slopes of a neighbourhood are shown: this one may never run
        return gradient, why
    if seen()[1]:
        why += "; the model is a step function, so its derivative is 0 almost everywhere"
    return gradient, why


def _climb(
    predictor: Predictor, settings: Settings, sigma: Array, noise: Noise, stepped: bool, rows: Array
) -> Gradient:
    """Walk down the ladder: two rungs for all entries, the others only where they can still help."""
    f0 = predictor(rows)  # (rows, outputs)
    row, column = entries(rows, predictor.schema.numeric)
    rungs = LOUD_LADDER if noise.relative > LOUD else LADDERS[predictor.dtype.itemsize]
    walk = _Walk(predictor, rows, f0, row, column, sigma[column], noise.at(f0)[row], settings.bounds)
    walk.descend(rungs[0])
    for rung in rungs[1:]:
        walk.descend(rung)
        if not len(walk.active):
            break
    walk.step_aside()
    if stepped:
        walk.flags[np.all(walk.value == 0, axis=1)] |= STEP
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
        f = evaluate_stencil(self.predictor, self.rows, self.row[a], self.column[a], at)
        self.evaluations += 2 * np.bincount(self.row[a], minlength=len(self.rows))
        return f[:, 0], f[:, 1]
