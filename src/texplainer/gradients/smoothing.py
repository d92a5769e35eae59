"""The gradient averaged over a neighbourhood, and the width that the model itself allows.

A derivative at a point changes sign at every kink. Its average over a neighbourhood,

    G(x) = E grad f(x + c sigma z),   z ~ N(0, 1) per feature,

is the gradient of the model smoothed with a Gaussian of width c spreads: a continuous function of x,
the same width for all rows. The expectation is a mean over a fixed set of 64 antithetic Sobol points,
so nothing is random; its scatter gives the error bound, and the differences within the antithetic
pairs give the diagonal of the smoothed Hessian for nothing (Stein's identity).

The width is the largest at which the smoothed model is still the model: R² of smoothed against
original predictions on background rows at least 0.9. For black boxes the same width is one centred
difference with h = sqrt(3) c sigma: the mean derivative over an interval of the Gaussian's variance.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from texplainer.errors import InputError
from texplainer.gradients import BATCH, Engine, Gradient, Settings
from texplainer.prediction import Predictor
from texplainer.signatures import Array
from texplainer.spreads import spread

POINTS = 64
WIDTHS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.75, 1.1)
FAITHFUL = 0.9  # R² of the smoothed model
TRIAL_ROWS, TRIAL_POINTS = 64, 32
CHUNK = 1024  # rows averaged at a time
COARSE = 1e4  # |x| in widths up to which float32 coordinates still resolve the neighbourhood finely
AGREE = 1e-4  # of the steepest slope: what a float32 gradient may be off, far below the scatter of an average


def smooth(engine: Engine, predictor: Predictor, background: Array, settings: Settings) -> Engine:
    """Average an engine's gradient as `settings.smoothing` asks; trees smooth themselves."""
    width = checked(settings.smoothing)
    if settings.step != "auto" and width:
        raise InputError(
            f"step={settings.step!r} and smoothing={width:g} both set the scale of the derivative; "
            "leave one of them at 'auto'."
        )
    asked = width is not None or settings.average
    if engine.name == "tree" or width == 0.0 or settings.step != "auto" or not asked:
        return engine
    sigma = spread(background)
    if not engine.exact:
        if width is None:  # a black box is differentiated where it stands: averaging would cost 64 times
            return engine
        gradient = partial(box, predictor, settings, np.sqrt(3) * width * sigma)
        why = f"centred differences over the interval of a neighbourhood of {width:g} spreads"
        return replace(engine, gradient=gradient, why=why, width=width)
    if width is None:
        width = faithful_width(predictor, background, sigma, settings)
        if width == 0.0:
            return replace(engine, why=f"{engine.why}, at the point: no averaging width is faithful")
    engine = replace(engine, narrow=_narrow(engine, background))
    gradient = partial(average, engine, predictor, settings, width * sigma)
    return replace(
        engine, gradient=gradient, width=width, why=f"{engine.why}, averaged over {width:g} spreads"
    )


def checked(smoothing: Any) -> float | None:
    """Read the argument: None for "auto", else a width."""
    if isinstance(smoothing, str) and smoothing == "auto":
        return None
    number = isinstance(smoothing, (int, float, np.number)) and not isinstance(smoothing, bool)
    if number and 0 <= float(smoothing) < np.inf:
        return float(smoothing)
    raise InputError(f"smoothing={smoothing!r} is no width; expected 'auto', 0 or a positive number.")


def average(engine: Engine, predictor: Predictor, settings: Settings, width: Array, rows: Array) -> Gradient:
    """G(x), with the standard error of the mean as its error bound and the diagonal curvature as an extra."""
    movable = np.where(predictor.schema.numeric, width, 0.0)
    coarse = _coarse(engine, rows, movable)
    chunks = [
        (kind, chosen[i : i + CHUNK])
        for kind, chosen in ((np.float32, np.flatnonzero(~coarse)), (np.float64, np.flatnonzero(coarse)))
        for i in range(0, len(chosen), CHUNK)
    ]
    parts = [_average(engine, settings, movable, rows[chosen], kind) for kind, chosen in chunks]
    back = np.argsort(np.concatenate([chosen for _, chosen in chunks]))
    values, error, curvature, cost = (np.concatenate(arrays)[back] for arrays in zip(*parts, strict=True))
    nothing = np.zeros(rows.shape, np.uint8)
    return Gradient(values, error, np.full(rows.shape, np.nan), nothing, cost, {"curvature": curvature})


def _average(
    engine: Engine, settings: Settings, movable: Array, rows: Array, kind: type
) -> tuple[Array, Array, Array, np.ndarray]:
    low, high = (limit.astype(kind) for limit in _limits(rows, settings.bounds))
    z = directions(POINTS, rows.shape[1])
    pairs = len(z)
    start, moves = rows.astype(kind), (movable * z).astype(kind)[:, None, :]  # (pairs, 1, features)
    sums: dict[str, Any] = {"twice": 0.0, "squares": 0.0, "bend": 0.0}
    rounding, cost = 0.0, 0
    together = max(1, BATCH // (2 * len(rows)))  # pairs in one call of the engine
    for first in range(0, pairs, together):
        part = moves[first : first + together]
        points = np.concatenate([start + part, start - part])
        np.clip(points, low, high, out=points)
        found = engine.gradient(points.reshape(-1, rows.shape[1]))
        ahead, behind = found.values.reshape(2, len(part), *rows.shape, -1)
        for direction, one, other in zip(z[first : first + together], ahead, behind, strict=True):
            # pair by pair: the same bits however many pairs are in one call
            both, apart = one + other, one - other
            sums["twice"] += both
            sums["squares"] += np.multiply(both, both, out=both)
            sums["bend"] += np.multiply(apart, direction[:, None], out=apart)
        rounding = np.maximum(rounding, found.error.reshape(2 * len(part), *rows.shape, -1).max(axis=0))
        cost = cost + found.evaluations.reshape(-1, len(rows)).sum(axis=0)
    values = sums["twice"] / (2 * pairs)
    scatter = np.maximum(sums["squares"] / (4 * pairs) - values**2, 0.0) / (pairs - 1)
    safe = np.where(movable > 0, movable, np.inf)
    curvature = sums["bend"] / (2 * pairs * safe[:, None])
    return values, np.sqrt(scatter) + rounding, curvature, np.asarray(cost)


def _coarse(engine: Engine, rows: Array, movable: Array) -> np.ndarray:
    """Rows that need float64: always, or where float32 coordinates are not fine beside the neighbourhood."""
    if not engine.narrow:
        return np.ones(len(rows), bool)
    least = np.min(movable, initial=np.inf, where=movable > 0)
    return np.max(np.abs(np.nan_to_num(rows)) * (movable > 0), axis=1, initial=0.0) >= COARSE * least


def _narrow(engine: Engine, background: Array) -> bool:
    """Whether the engine's float32 form does what its float64 form does."""
    sample = background[np.all(np.isfinite(background), axis=1)][:TRIAL_ROWS]
    if not engine.narrow or not len(sample):
        return False
    try:
        short = engine.gradient(sample.astype(np.float32)).values
    except Exception:  # whatever a network says to another float width, float64 remains
        return False
    full = engine.gradient(sample.astype(np.float32).astype(np.float64)).values
    return bool(np.quantile(np.abs(short - full), 0.99) <= AGREE * np.abs(full).max(initial=0.0))


def box(predictor: Predictor, settings: Settings, half: Array, rows: Array) -> Gradient:
    """The mean derivative over [x - h, x + h]: one centred difference, exact up to the model's rounding."""
    from texplainer.gradients.finite_difference import differences

    f0 = predictor(rows)
    values, taken = differences(
        predictor, rows, f0, np.broadcast_to(half, rows.shape).copy(), settings.bounds
    )
    error = 4 * predictor.unit * np.abs(f0)[:, None, :] / np.nan_to_num(taken, nan=np.inf)[:, :, None]
    cost = 1 + 2 * np.isfinite(taken).sum(axis=1)
    return Gradient(values, error, taken, np.zeros(rows.shape, np.uint8), cost)


def faithful_width(predictor: Predictor, background: Array, sigma: Array, settings: Settings) -> float:
    """The largest width at which the smoothed model explains 90% of the model's variance; 0 if none does."""
    sample = background[np.all(np.isfinite(background), axis=1)]
    sample = sample[:: max(1, len(sample) // TRIAL_ROWS)][:TRIAL_ROWS]
    if len(sample) < 2:
        return WIDTHS[0]
    f = predictor(sample)
    variance = np.var(f, axis=0)
    if not np.any(variance > 0):
        return WIDTHS[-1]
    found = 0.0
    for width in WIDTHS:
        missed = np.mean((smoothed(predictor, sample, width * sigma, settings) - f) ** 2, axis=0)
        if not missed.sum() <= (1 - FAITHFUL) * variance.sum():
            break
        found = width
    return found


def smoothed(predictor: Predictor, rows: Array, width: Array, settings: Settings) -> Array:
    """The smoothed model's predictions, (rows, outputs)."""
    z = directions(TRIAL_POINTS, rows.shape[1])
    move = np.where(predictor.schema.numeric, width, 0.0) * np.concatenate([z, -z])
    low, high = _limits(rows, settings.bounds)
    points = np.clip(rows[:, None, :] + move, low[:, None], high[:, None])
    return predictor(points.reshape(-1, rows.shape[1])).reshape(len(rows), len(move), -1).mean(axis=1)


def _limits(rows: Array, bounds: tuple[Array, Array] | None) -> tuple[Array, Array]:
    if bounds is None:
        return np.full(rows.shape, -np.inf), np.full(rows.shape, np.inf)
    return np.minimum(bounds[0], rows), np.maximum(bounds[1], rows)


@lru_cache(maxsize=16)
def directions(points: int, features: int) -> Array:
    """One half of an antithetic normal point set, (points / 2, features); the other half is its mirror."""
    from scipy.stats import qmc

    sobol = qmc.Sobol(features, scramble=True, seed=20240101)  # pyright: ignore[reportCallIssue]
    z = ndtri(np.clip(sobol.random(points // 2), 1e-6, 1 - 1e-6))
    z /= np.sqrt(np.mean(z**2, axis=0))  # each feature's variance is 1 exactly
    z.setflags(write=False)
    return z
