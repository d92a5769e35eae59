"""Gradients by reverse mode: a `Map` of all outputs -> the engine's gradient function, checked first.

One forward and one reverse pass per explained output, whatever the number of features (at most a
small multiple of the cost of a prediction: Griewank & Walther 2008).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from texplainer.background.summary import robust_sd
from texplainer.errors import Unsupported
from texplainer.gradients.engine import BATCH, Engine, Gradient
from texplainer.gradients.transformers import Map, is_linear
from texplainer.models.predictor import Predictor
from texplainer.types import Array

# Rows at a time: their activations stay in cache, and a row's bits depend on no other row count. A multiple
# of the points of an average, and of the 12 or 16 rows after which float32 products repeat their order.
BLOCK = BATCH // 7
CHECK_ROWS = 64
FEW_ROWS = 8  # fewer say little: a kink under one of them would refuse a right derivative
ROUNDINGS = 64.0  # error bound in units of round-off, relative to the row's gradient
LEAST_BOUND = 1e-37  # of an error, in float32: a smaller one would be stored as 0
FLOOR = 0.125  # share of the steepest background slope that sets the error where a row is flat
SATURATED = 20.0  # beyond it log-odds taken from a probability have lost their digits
PROBE = {8: 1e-4, 4: 1e-2}  # length of the checking step in SDs, by float width
AGREE = 0.2  # relative difference to a coarse difference quotient that no right derivative has in most rows


def checked_engine(
    chosen: Map,
    name: str,
    why: str,
    predictor: Predictor,
    background: Array,
    gap: float,
    block: int = BLOCK,
    narrow: bool = True,
) -> Engine:
    """Check a map against the model, value (to a relative `gap`) and slope, and make it an engine.

    `narrow` says whether the map computes in the float width of the rows it is given.
    """
    sigma = robust_sd(background)
    sample = background[np.all(np.isfinite(background), axis=1)]
    sample = sample[:: max(1, len(sample) // CHECK_ROWS)][:CHECK_ROWS]
    if not len(sample):
        raise Unsupported("the background has no complete row to check the derivative with.")
    if len(sample) < FEW_ROWS:
        sample = _more_rows(sample, sigma)
    _check_values(chosen, predictor, sample, gap)
    values = differentiate(chosen, predictor, sigma, 0.0, block, sample).values
    _check_slopes(values, predictor, sample, sigma)
    steepest = float(np.abs(values * sigma[:, None]).max(initial=0.0))
    gradient = partial(differentiate, chosen, predictor, sigma, FLOOR * steepest, block)
    return Engine(name, why, gradient, narrow=narrow, linear=is_linear(chosen))


def differentiate(
    chosen: Map, predictor: Predictor, sigma: Array, floor: float, size: int, rows: Array
) -> Gradient:
    """Differentiate the explained outputs at rows, in blocks of `size`, in the map's float width.

    The error bound counts roundings relative to the row's whole gradient, or to `floor`: where a
    model saturates its slope is a difference of larger numbers.
    """
    (count, features), outputs = rows.shape, len(predictor.outputs)
    values = np.empty((0, features, outputs))
    error = np.empty((count, features, outputs), dtype=np.float32)  # a bound needs no more digits
    # padded to whole blocks, so that a row's bits do not depend on how many others come with it
    width = rows.dtype if rows.dtype == np.float32 else np.dtype(np.float64)
    seeds = np.zeros((outputs, size, len(predictor.all_names)), dtype=width)
    seeds[np.arange(outputs), :, predictor.outputs] = 1.0
    block = np.empty(
        (size, features), dtype=width
    )  # C order always: other layouts are summed in another order
    fixed = ~predictor.schema.numeric
    rounding = (ROUNDINGS * max(predictor.unit, float(np.finfo(width).eps) / 2) / sigma).astype(np.float32)
    floor = max(floor, LEAST_BOUND / max(float(rounding.min()), LEAST_BOUND))  # a vast SD rounds to 0
    spreads = (sigma**2).astype(width)
    for start in range(0, count, size):
        part = slice(start, min(start + size, count))
        used = part.stop - start
        block[:used], block[used:] = rows[part], rows[start]
        found = chosen(block)[1](seeds)[:, :used]  # (outputs, rows, features)
        if start == 0:
            values = np.empty(error.shape, dtype=found.dtype)
        values[part] = found.transpose(1, 2, 0)
        if fixed.any():
            values[part, fixed] = 0.0
        length = np.sqrt(np.matmul(found * found, spreads).T)
        bound = np.maximum(length, floor).astype(np.float32)[:, None, :]
        np.multiply(bound, rounding[:, None], out=error[part])
    cost = np.full(count, 1 + outputs, dtype=np.int64)
    no_step, no_flags = np.broadcast_to(np.nan, rows.shape), np.broadcast_to(np.uint8(0), rows.shape)
    return Gradient(values, error, no_step, no_flags, cost)


def _more_rows(sample: Array, sigma: Array) -> Array:
    """A few rows and others up to an SD above them, each feature a part of its own."""
    turns = np.sqrt(2) * np.arange(1, len(sigma) + 1) * np.arange(1, FEW_ROWS)[:, None]
    return np.concatenate([sample, *(sample + sigma * (turn % 1.0) for turn in turns)])


def _check_values(chosen: Map, predictor: Predictor, sample: Array, allowed: float) -> None:
    expected, found = predictor.everything(sample), chosen(sample)[0]
    if expected.shape != found.shape:
        raise Unsupported(f"its derivative has {found.shape[1]} outputs, the model {expected.shape[1]}.")
    known = np.abs(expected) < SATURATED if predictor.scale == "log-odds" else np.isfinite(expected)
    scale = max(1e-300, float(np.abs(expected).max()))
    gap = float(np.max(np.abs(expected - found)[known], initial=0.0)) / scale
    if not gap <= allowed:
        name = type(predictor.model).__name__
        raise Unsupported(f"the formula of a {name} misses the model's predictions by {gap:.1e}.")


def _check_slopes(values: Array, predictor: Predictor, sample: Array, sigma: Array) -> None:
    """Along one fixed direction, most rows must agree with a plain difference quotient.

    It catches what values cannot show: a rounding or a detached tensor inside the model, whose
    automatic derivative is 0 or a convention.
    """
    # irrational ratios, so that no two coordinates move in step; categories cannot move
    direction = np.where(predictor.schema.numeric, np.cos(np.sqrt(2) * np.arange(1, len(sigma) + 1)), 0.0)
    move = PROBE[predictor.dtype.itemsize] * sigma * direction / max(float(np.linalg.norm(direction)), 1e-300)
    ahead, behind = predictor(sample + move), predictor(sample - move)
    expected = (ahead - behind) / 2
    found = np.einsum("rfo,f->ro", values, move)
    noise = 32 * predictor.unit * np.maximum(np.abs(ahead), np.abs(behind))
    off = np.abs(found - expected) > AGREE * np.maximum(np.abs(expected), np.abs(found)) + noise
    if off.mean() > 0.5:
        raise Unsupported(
            f"its derivative contradicts the model's own differences in {off.mean():.0%} of background rows."
        )
