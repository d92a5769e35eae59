"""Algorithm 1 of the T-Explainer paper, line by line, for all rows at once (`step="paper"`).

g_i = (f(x + h e_i) - f(x - h e_i)) / 2h with one h for all features; h is bisected between h_min, the
smallest non-zero distance between background rows, and h_max = 1 until the linear model is accepted along the
diagonal: (f(x) - f(x + h 1) + h sum g)² <= C h_left². It looks for a large h at which the linear model still
holds, not for the smallest error: the result is a secant, and no error bound is claimed.

Where the print leaves a choice, or the code differs from it:

- theta, "the Jacobian is singular", is for one output that no feature's response is above the rounding of f,
  max_i |g_i| h <= 4 u max(1, |f(x)|); it only keeps the search from stopping.
- The text asks that perturbations preserve the range the data was normalised to. The algorithm does so by
  h <= h_max = 1, the width of that range, and in no other way: x + h may leave it. Nothing is clamped here,
  whatever the `bounds`: a stencil cut short beside the edge would not fit the cost, which uses the full h.
  `step=Algorithm1(capped=True)` clamps both, to show what that changes.
- h is one number for all columns and lies in [h_min, 1], so columns are taken to have a scale near 1, as
  min-max normalised ones have; other tables are met with a `ScaleWarning`.
- The loop is left when the iterations exceed max_itr, after the update (line 23), that is after 51.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np

from texplainer.background.summary import constant_columns
from texplainer.errors import InputError, ScaleWarning
from texplainer.gradients.engine import Gradient, Settings
from texplainer.gradients.finite_difference.ladder import GradientFunction
from texplainer.gradients.finite_difference.stencil import differences
from texplainer.models.predictor import Predictor
from texplainer.types import Array

MAX_ITERATIONS = 50
MOST_DISTANCE_ROWS = 20_000
Bounds = tuple[Array, Array]  # lowest and highest of each column
UNIT_SCALE = (0.1, 20.0)  # ranges of a column that h in [h_min, 1] can do justice to


@dataclass(frozen=True)
class Algorithm1:
    """The constants of Algorithm 1; `step="paper"` takes these, and `step` may be another such set."""

    c: float = 0.5  # of the tolerance C h_min^2
    h_max: float = 1.0
    theta: bool = True  # whether a singular Jacobian keeps the search going
    capped: bool = False  # whether displacements stay inside the explainer's bounds, as the text has it


def paper(predictor: Predictor, background: Array, settings: Settings) -> tuple[GradientFunction, str]:
    """Algorithm 1 with h_min the smallest non-zero distance between background rows."""
    constants = settings.step if isinstance(settings.step, Algorithm1) else Algorithm1()
    _check_scale(predictor, background)
    h_min = smallest_distance(background)
    gradient = partial(_bisect, predictor, settings.bounds if constants.capped else None, h_min, constants)
    why = f"Algorithm 1 of the paper, h in [{h_min:.3g}, {constants.h_max:g}]"
    if predictor.schema.levels:
        why += "; the paper's method for categories is tx.Refitted(model, X, y)"
    return gradient, why


def _check_scale(predictor: Predictor, background: Array) -> None:
    """Warn where one h for all columns cannot be meant."""
    varying = predictor.schema.numeric & ~constant_columns(background) & np.isfinite(background).any(axis=0)
    columns = np.flatnonzero(varying)
    length = np.nanmax(background[:, columns], axis=0) - np.nanmin(background[:, columns], axis=0)
    far = np.flatnonzero((length < UNIT_SCALE[0]) | (length > UNIT_SCALE[1]))
    if len(far):
        first = predictor.schema.names[columns[far[0]]]
        warnings.warn(
            f"step='paper' uses one step h <= 1 for all columns and assumes ranges near 1; {len(far)} of "
            f"{len(columns)} columns have other ranges, such as {first!r} with {length[far[0]]:.3g}. Normalise the "
            "table itself (a scaler in the model's pipeline does not change it), or use step='auto'.",
            ScaleWarning,
            stacklevel=8,
        )


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


def _bisect(
    predictor: Predictor, bounds: Bounds | None, h_min: float, constants: Algorithm1, rows: Array
) -> Gradient:
    """All rows advance together; the comments give the lines of Algorithm 1."""
    count = len(rows)
    f0 = predictor(rows)  # line 5, the same in every iteration
    left, right = np.full(count, h_min), np.full(count, constants.h_max)  # line 1
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
        epsilon = constants.c * left[a] ** 2  # line 7
        steps = np.repeat(h[a][:, None], rows.shape[1], axis=1)
        values[a], step[a] = differences(predictor, rows[a], f0[a], steps, bounds)  # line 8
        cost[a] = _linear_cost(predictor, rows[a], f0[a], h[a], values[a], bounds)  # lines 9-10
        trace_h[a, iterations[a] - 1], trace_cost[a, iterations[a] - 1] = h[a], cost[a]
        rejected = ~(cost[a] <= epsilon)  # line 11; a NaN cost is not accepted
        singular = np.all(np.abs(values[a]).max(axis=1) * h[a][:, None] <= noise[a], axis=1)
        settled = (previous[a] != 0) & (np.abs(cost[a] - previous[a]) < epsilon)
        stop = ~rejected & ~(singular & constants.theta) & settled  # line 17
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
    predictor: Predictor, rows: Array, f0: Array, h: Array, gradient: Array, bounds: Bounds | None
) -> Array:
    """Mean squared error of the linear model along the diagonal, with the displacement really made."""
    moved = rows + np.where(predictor.schema.numeric, h[:, None], 0.0)
    if bounds is not None:
        moved = np.clip(moved, np.minimum(bounds[0], rows), np.maximum(bounds[1], rows))
    delta = np.nan_to_num(moved - rows)
    rest = predictor(moved) - np.einsum("rf,rfo->ro", delta, gradient) - f0
    return np.mean(rest**2, axis=1)
