"""Differentiable maps: their chain rule, the maps at a model's end, and the engine of a whole one.

A `Map` sends rows (rows, in) to (rows, out) and returns, beside them, its *pullback*: the function
that carries derivatives with respect to the output back to the input. Derivatives are kept outputs
first, (outputs, rows, width), so that each output is one contiguous matrix. Chaining two maps chains
their pullbacks in reverse; that is all of reverse-mode differentiation: one forward and one reverse pass per
output, whatever the number of features (Griewank & Walther 2008).

Binary classifiers have two outputs throughout, [1-p, p] and [-z, z]. `LINKS` is the table for every exact engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, log_expit
from scipy.special import softmax as soft

from texplainer.background.summary import robust_sd
from texplainer.errors import Unsupported
from texplainer.gradients.engine import BATCH, Engine, Gradient
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
EPS = float(np.finfo(np.float64).eps)

#: (outputs, rows, out) -> (outputs, rows, in)
Pullback = Callable[[Array], Array]
#: (rows, in) -> (rows, out) and its pullback
Map = Callable[[Array], tuple[Array, Pullback]]


def compose(*maps: Map) -> Map:
    """One map after the other."""
    maps = tuple(m for m in maps if m is not identity)
    if not maps:
        return identity
    if len(maps) == 1:
        return maps[0]

    def forward(rows: Array) -> tuple[Array, Pullback]:
        pullbacks = []
        for one in maps:
            rows, back = one(rows)
            pullbacks.append(back)

        def pullback(d: Array) -> Array:
            for back in reversed(pullbacks):
                d = back(d)
            return d

        return rows, pullback

    return as_linear(forward) if all(is_linear(one) for one in maps) else forward


def is_linear(one: Map) -> bool:
    """Whether a map is known to have the same derivative everywhere."""
    return one is identity or getattr(one, "linear", False)


def as_linear(one: Map) -> Map:
    """Mark a map as one with the same derivative everywhere."""
    setattr(one, "linear", True)  # noqa: B010 - functions have no such field by type
    return one


def identity(rows: Array) -> tuple[Array, Pullback]:
    """No change."""
    return rows, lambda d: d


def elementwise(function: Callable[[Array], tuple[Array, Any]]) -> Map:
    """Map each cell by itself; the function returns (values, derivatives), both (rows, width)."""

    def forward(rows: Array) -> tuple[Array, Pullback]:
        values, slopes = function(rows)
        return values, lambda d: d * slopes

    return forward


def affine(matrix: Array, offset: Array | float = 0.0) -> Map:
    """Rows @ matrix + offset, matrix (in, out)."""
    transposed = np.ascontiguousarray(matrix.T)

    def forward(rows: Array) -> tuple[Array, Pullback]:
        return rows @ matrix + offset, lambda d: d @ transposed

    return as_linear(forward)


def beside(parts: Sequence[Map]) -> Map:
    """Several maps of the same rows, their columns side by side."""

    def forward(rows: Array) -> tuple[Array, Pullback]:
        values, backs = zip(*(one(rows) for one in parts), strict=True)
        ends = np.cumsum([0, *(v.shape[1] for v in values)])

        def pullback(d: Array) -> Array:
            found = [back(d[:, :, ends[i] : ends[i + 1]]) for i, back in enumerate(backs)]
            return np.sum(found, axis=0)

        return np.hstack(values), pullback

    return forward


# ---------------------------------------------------------------- from scores to probabilities and log-odds


#: z (rows, 1) -> [-z, z]
two_sided: Map = affine(np.array([[-1.0, 1.0]]))
#: p (rows, 1) -> [1-p, p]
pair: Map = affine(np.array([[-1.0, 1.0]]), np.array([1.0, 0.0]))


def _sigmoid(z: Array) -> tuple[Array, Array]:
    p = expit(z)
    return p, p * expit(-z)  # p(1-p) would lose its digits where p rounds to 1


sigmoid: Map = elementwise(_sigmoid)


def _log_sigmoid(z: Array) -> tuple[Array, Array]:
    return log_expit(z), expit(-z)


log_sigmoid: Map = elementwise(_log_sigmoid)


def _exponential(z: Array) -> tuple[Array, Array]:
    return np.exp(z), np.exp(z)


exponential: Map = elementwise(_exponential)


def _log_odds(p: Array) -> tuple[Array, Array]:
    inside = np.clip(p, EPS, 1 - EPS)
    return np.log(inside / (1 - inside)), np.where(inside == p, 1 / (inside * (1 - inside)), 0.0)


log_odds: Map = elementwise(_log_odds)


def softmax(scores: Array) -> tuple[Array, Pullback]:
    """Scores to probabilities that sum to 1."""
    p = soft(scores, axis=1)
    return p, lambda d: p * (d - np.einsum("kro,ro->kr", d, p)[:, :, None])


def softmax_link(scores: Array) -> tuple[Array, Pullback]:
    """Scores to the log-odds of each class against the others, z_c - log(sum of the others' exp z).

    Taken directly, not through p, so that a nearly certain row keeps its digits.
    """
    classes = scores.shape[1]
    others = np.where(np.eye(classes, dtype=bool), -np.inf, scores[:, None, :])  # (rows, class, others)
    top = others.max(axis=2)
    against = top + np.log(np.exp(others - top[:, :, None]).sum(axis=2))
    share = np.exp(others - against[:, :, None])

    def pullback(d: Array) -> Array:
        return d - np.einsum("krc,rco->kro", d, share)

    return scores - against, pullback


def normalise(p: Array) -> tuple[Array, Pullback]:
    """Divide each row by its sum."""
    total = p.sum(axis=1, keepdims=True)
    share = p / total
    return share, lambda d: (d - np.einsum("kro,ro->kr", d, share)[:, :, None]) / total


#: (link of the raw scores, scale) -> the map to all outputs; "scores" is the raw scale of a classifier. Boosters,
#: linear classifiers and networks start at scores; forests, whose raw sums are shares of the classes, at probabilities
LINKS: dict[tuple[str, str], Map] = {
    ("identity", "raw"): identity,
    ("identity", "log-odds"): identity,
    ("exponential", "raw"): exponential,
    ("exponential", "log-odds"): identity,
    ("logistic", "probability"): compose(sigmoid, pair),
    ("logistic", "log-odds"): two_sided,
    ("logistic", "raw"): sigmoid,
    ("hinge", "log-odds"): two_sided,  # its labels are a step, its scores are not
    ("hinge", "scores"): two_sided,
    ("sigmoid", "raw"): sigmoid,
    ("sigmoid", "probability"): sigmoid,
    ("sigmoid", "log-odds"): identity,
    ("softmax", "probability"): softmax,
    ("softmax", "log-odds"): softmax_link,
    ("softmax", "scores"): identity,
    ("logistic", "scores"): two_sided,
    ("sigmoid", "scores"): identity,
    ("unknown", "scores"): identity,
    ("share", "probability"): pair,
    ("share", "log-odds"): compose(pair, log_odds),
    ("shares", "probability"): identity,
    ("shares", "log-odds"): log_odds,
    ("unknown", "log-odds"): identity,
}


def of_scores(scale: str, columns: int) -> Map:
    """The map of a classifier's scores, one of two classes or one of each, to all outputs on a scale."""
    return LINKS["logistic" if columns == 1 else "softmax", scale]


def jacobian(after: Map, raw: Array) -> Array:
    """The derivative of a link at some raw sums, (points, all outputs, raw)."""
    value, back = after(raw)
    seeds = np.broadcast_to(np.eye(value.shape[1])[:, None, :], (value.shape[1], len(raw), value.shape[1]))
    return back(np.ascontiguousarray(seeds)).transpose(1, 0, 2)


def constant_slope(after: Map, width: int) -> Array | None:
    """The derivative of a linear link of `width` raw sums, (all outputs, raw); None for others."""
    probe = np.array([[0.5], [0.25], [0.125]]) ** np.arange(1.0, width + 1)  # no two differ by a constant
    slopes = jacobian(after, probe)
    return slopes[0] if (slopes == slopes[0]).all() else None


# ---------------------------------------------------------------- an engine


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
        raise Unsupported(f"the formula of a {name} differs from the model's predictions by {gap:.1e}.")


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
