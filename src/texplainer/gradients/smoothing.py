"""The gradient averaged over a neighbourhood.

A derivative at a point changes sign at every kink. Its average over a neighbourhood,

    G(x) = E grad f(x + w sigma z),   z ~ N(0, 1) per feature,

is the gradient of the model smoothed with a Gaussian whose standard deviation is w SDs, the bandwidth: a
continuous function of x. Points are kept inside the data's range; discrete columns and categories do not
move. For exact engines the expectation is a mean over 64 fixed antithetic points (`points`); for black boxes
the slopes are read off a designed experiment (`design`); trees smooth themselves, with a triangular kernel of
the same standard deviation.

What the points' gradients tell beside their mean: their scatter bounds the error of the mean, and their odd
parts a_k = sigma (g(x + w sigma z_k) - g(x - w sigma z_k)) / 2 the smoothed Hessian, by Stein's identity:
w sigma H sigma = E a z^T. Of it only the norm is wanted, which tells how much G changes as x moves; it
follows from the points' inner products (a_k·a_l)(z_k·z_l), without any matrix of features by features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import gammaln

from texplainer.background.summary import robust_sd, varying_columns
from texplainer.errors import InputError
from texplainer.gradients.engine import BANDWIDTH, BATCH, MOVE, Engine, Gradient, Settings
from texplainer.gradients.finite_difference import design
from texplainer.gradients.points import points
from texplainer.models.predictor import Predictor
from texplainer.types import Array

LEAST, MOST = 1e-4, 100.0  # of the bandwidth: a smaller one does not move a point, a larger one overflows
POINTS = 64
TRIAL_ROWS = 64
CELLS = 2**21  # of the points' gradients at hand at a time
COARSE = 1e4  # |x| in widths up to which float32 coordinates still resolve the neighbourhood finely
AGREE = 1e-4  # of the steepest slope: what a float32 gradient may be off, far below the scatter of an average
# The error bound: standard errors of the mean over the pairs, times a factor that is seen on background rows
SHARED = 1.0  # part of the features' common standard error: one feature's points may all have missed a kink
CALIBRATION_ROWS, CALIBRATION_POINTS = 32, 256
COVERAGE = 0.99  # of the differences to an average over many points
SAFETY = 1.1  # these are few rows, and the many points are not all there are
LEAST_FACTOR, FACTOR = 0.7, 1.4  # the least, and that of a background without complete rows


def smooth(engine: Engine, predictor: Predictor, background: Array, settings: Settings) -> Engine:
    """Average an engine's gradient as `settings.smoothing` asks; trees smooth themselves."""
    width = checked_smoothing(settings.smoothing)
    if settings.step != "auto" and width not in (0.0, BANDWIDTH):
        raise InputError(
            f"step={settings.step!r} and smoothing={width:g} both set the scale of the derivative; "
            "leave one of them at its default."
        )
    asked = settings.average or width != BANDWIDTH
    varies = varying_columns(background)
    moves = predictor.schema.numeric & varies & ~settings.discrete.mask(background.shape[1])
    if engine.averages or width == 0.0 or settings.step != "auto" or not asked:
        return engine
    sigma = robust_sd(background)
    if not engine.exact:
        unit = np.where(moves, sigma, 0.0)
        return design.designed_engine(engine, predictor, background, unit, width, settings)
    engine = replace(engine, narrow=accepts_float32(engine, background))
    gradient = partial(average, engine, predictor, settings, sigma, width, moves=moves)
    factor = _calibrated(gradient, background, len(predictor.outputs)) if moves.any() else 1.0
    why = f"{engine.why}, averaged over {width:.3g} SD"
    return replace(engine, gradient=partial(gradient, factor=factor), width=width, why=why, point=engine)


def checked_smoothing(smoothing: Any) -> float:
    """Check the argument: the bandwidth in SDs."""
    number = isinstance(smoothing, (int, float, np.number)) and not isinstance(smoothing, bool)
    if number and (float(smoothing) == 0 or LEAST <= float(smoothing) <= MOST):
        return float(smoothing)
    raise InputError(
        f"smoothing={smoothing!r} is not a bandwidth; expected 0 (the derivative at the point) or a number "
        f"of SDs between {LEAST:g} and {MOST:g}, such as 0.25."
    )


def limits(rows: Array, bounds: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """The range of every row's points, both (rows, features); a row outside it is its own edge."""
    if bounds is None:
        return np.full(rows.shape, -np.inf), np.full(rows.shape, np.inf)
    return np.minimum(bounds[0], rows), np.maximum(bounds[1], rows)


def _calibrated(gradient: Callable[..., Gradient], background: Array, outputs: int) -> float:
    """The factor on standard errors that covers 99% of the differences to averages over many points.

    Kinks make points scatter as if they were drawn, a smooth model's are integrated almost exactly: how much
    a standard error overstates depends on the model.
    """
    sample = background[np.all(np.isfinite(background), axis=1)]
    cells = CALIBRATION_POINTS * background.shape[1] * outputs
    count = int(np.clip(2 * CELLS // cells, 4, CALIBRATION_ROWS))
    sample = sample[:: max(1, len(sample) // count)][:count]
    if not len(sample):
        return FACTOR
    few, many = gradient(sample), gradient(sample, count=CALIBRATION_POINTS)
    unsure = few.error > 0
    if not unsure.any():
        return LEAST_FACTOR
    ratio = np.abs(few.values - many.values)[unsure] / few.error[unsure]
    found = SAFETY * float(np.quantile(ratio, COVERAGE))
    return max(LEAST_FACTOR, found) if np.isfinite(found) else FACTOR


def average(
    engine: Engine,
    predictor: Predictor,
    settings: Settings,
    sigma: Array,
    width: float,
    rows: Array,
    moves: np.ndarray | bool = True,
    factor: float = 1.0,
    count: int | None = None,
) -> Gradient:
    """G(x), with its error bound and how much it changes as x moves a little; only `moves` are moved.

    The bound is `factor` times the standard error of the mean over `count` points.
    """
    count = count or POINTS
    move = np.where(predictor.schema.numeric & moves, width * sigma, 0.0)
    coarse = needs_float64(engine, rows, move)
    size = rows.shape[1] * len(predictor.outputs)
    together = int(np.clip(CELLS // (count * max(1, size)), 1, max(1, BATCH // count)))
    chunks = [
        (kind, chosen[i : i + together])
        for kind, chosen in ((np.float32, np.flatnonzero(~coarse)), (np.float64, np.flatnonzero(coarse)))
        for i in range(0, len(chosen), together)
    ] or [(np.float64, np.arange(0))]
    parts = [
        _average(engine, settings, sigma, move, width, rows[chosen], kind, factor, count)
        for kind, chosen in chunks
    ]
    back = np.argsort(np.concatenate([chosen for _, chosen in chunks]))
    values, error, change, cost = (np.concatenate(arrays)[back] for arrays in zip(*parts, strict=True))
    nothing = np.zeros(rows.shape, np.uint8)
    return Gradient(values, error, np.full(rows.shape, np.nan), nothing, cost, change=change)


def _average(
    engine: Engine,
    settings: Settings,
    sigma: Array,
    move: Array,
    width: float,
    rows: Array,
    kind: type,
    factor: float,
    count: int,
) -> tuple[Array, Array, Array, np.ndarray]:
    z = points(count, rows.shape[1])
    low, high = (limit.astype(kind) for limit in limits(rows[:, None, :], settings.bounds))
    start, moves = rows[:, None, :].astype(kind), (move * z).astype(kind)
    # a row's points side by side: at the same places of a block, whatever the other rows (`maps.BLOCK`)
    at = np.concatenate([start + moves, start - moves], axis=1)  # (rows, points, features)
    np.clip(at, low, high, out=at)
    found = engine.gradient(at.reshape(-1, rows.shape[1]))
    pairs, outputs = len(z), found.values.shape[2]
    slopes = found.values.reshape(len(rows), 2, pairs, rows.shape[1], outputs)
    ahead, behind = slopes[:, 0], slopes[:, 1]  # (rows, pairs, features, outputs)
    odd = np.empty((len(rows), outputs, pairs, rows.shape[1]), dtype=kind)
    np.subtract(ahead.transpose(0, 3, 1, 2), behind.transpose(0, 3, 1, 2), out=odd, casting="same_kind")
    odd *= (sigma / 2).astype(kind)
    mean = np.empty((pairs, len(rows), rows.shape[1], outputs))  # pairs first: long runs to add up
    np.add(ahead.swapaxes(0, 1), behind.swapaxes(0, 1), out=mean, dtype=float)
    mean /= 2
    values = _total(mean) / pairs
    error = factor * _scatter(np.subtract(mean, values, out=mean), sigma)
    error += found.error.reshape(len(rows), count, *values.shape[1:]).max(axis=1)
    change = _change(odd, np.where(move > 0, z, 0.0).astype(kind)) * MOVE / width
    return values, error, change, found.evaluations.reshape(len(rows), count).sum(axis=1)


def _total(pairs: Array) -> Array:
    """The sum over the pairs (pairs, ...), one by one: bit-identical for any number of rows."""
    out = pairs[0].copy()
    for one in pairs[1:]:
        out += one
    return out


def _scatter(apart: Array, sigma: Array) -> Array:
    """Standard errors of the mean from the distances of the pairs (pairs, rows, features, outputs) to it.

    Raised to a part of what the row's features have in common, and where single pairs stand out: the average
    then depends on few points, as that of a saturated probability does.
    """
    pairs = len(apart)
    squares = np.square(apart, out=apart)
    deviation = np.sqrt(_total(squares) / (pairs - 1))  # (rows, features, outputs)
    varies = deviation > 0
    largest = np.sqrt(squares.max(axis=0)) / np.where(varies, deviation, 1.0)
    count = np.maximum(1, varies.sum(axis=1))[:, None]
    outliers = np.sqrt(
        np.sum(np.where(varies, np.maximum(1.0, largest / 2), 0.0) ** 2, axis=1)[:, None] / count
    )
    scaled = deviation * sigma[:, None]
    common = np.sqrt(np.sum(scaled**2, axis=1)[:, None] / count) * varies / sigma[:, None]
    return np.hypot(deviation, SHARED * common) * outliers / np.sqrt(pairs)


def _change(odd: Array, z: Array) -> Array:
    """E |sigma H sigma w delta|, delta ~ N(0, 1), from the odd parts (rows, outputs, pairs, features).

    With M = mean a z^T: its norm, but no more than the root mean square of a, which is as large where all
    of a is linear in z (with more features than pairs, M is larger by chance). The expected norm of M delta
    is that of a normal vector in as many dimensions as M effectively has.
    """
    pairs = len(z)
    inner = (odd @ odd.swapaxes(2, 3)).astype(float)  # (rows, outputs, pairs, pairs)
    squares = np.einsum("rokk->ro", inner) / pairs
    products = (z @ z.T).astype(float) @ inner / pairs**2  # similar to M M^T
    norm = np.einsum("rokk->ro", products)
    dimensions = norm**2 / np.maximum(np.einsum("rokl,rolk->ro", products, products), np.finfo(float).tiny)
    return np.sqrt(np.minimum(norm, squares)) * _mean_length(np.maximum(1.0, dimensions))


def _mean_length(dimensions: Array) -> Array:
    """Expected over root mean square length of a normal vector: 0.80 in one dimension, 1 in very many."""
    return np.sqrt(2 / dimensions) * np.exp(gammaln((dimensions + 1) / 2) - gammaln(dimensions / 2))


def needs_float64(engine: Engine, rows: Array, move: Array) -> np.ndarray:
    """Rows that need float64: always, or where float32 coordinates are not fine beside the neighbourhood."""
    if not engine.narrow:
        return np.ones(len(rows), bool)
    least = np.min(move, initial=np.inf, where=move > 0)
    return np.max(np.abs(np.nan_to_num(rows)) * (move > 0), axis=1, initial=0.0) >= COARSE * least


def accepts_float32(engine: Engine, background: Array) -> bool:
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
