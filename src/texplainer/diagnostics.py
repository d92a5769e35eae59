"""How far an explanation can be trusted, row by row.

Along the direction the surrogate promises most from, one more prediction tells how much of the promise
the model keeps: the Taylor residual f(x+d) - f(x) - g·d, whose size is the curvature times |d|²/2. The
length of d is a tenth of a spread, or the width the gradient was averaged over. The distance to a
binary decision boundary follows from the same gradient: |margin| / |its slope|, in spreads.

The verdict is "undefined" where there is no finite prediction or gradient; "fragile" where the model
has a kink or a jump in a feature that matters, where the derivative's error bound is a large part of
it, where the surrogate misses most of what it promises, or where the class changes within a step that
nobody would notice; "stable" otherwise. The reason is always given in words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from texplainer.background import Background
from texplainer.gradients import JUMP, KINK, Gradient
from texplainer.prediction import Predictor
from texplainer.signatures import Array

PROBE = 0.1  # length of the probing step, in units of the features' spreads
MATERIAL = 0.01  # a change of f below this share of its own spread over the background is no change
MATTERS = 0.05  # share of the gradient below which a feature's kink is harmless
LOOSE = 0.25  # relative error bound above which a gradient is not to be trusted
CURVED = 0.5  # share of the predicted change the surrogate may miss
NEAR = 0.02  # distance to the decision boundary, in spreads, that nobody would notice


def assess(
    predictor: Predictor,
    rows: Array,
    f0: Array,
    gradient: Gradient,
    background: Background,
    names: Sequence[str],
    width: float = 0.0,
) -> dict[str, np.ndarray]:
    """Give the Taylor residual, the boundary's distance, the verdict and its reason, by name."""
    reach = max(PROBE, width)
    steepness = _length(gradient.values, background.sigma)
    residual, promised = taylor_residual(predictor, rows, f0, gradient.values, steepness, background, reach)
    boundary = boundary_distance(predictor, f0, steepness)
    verdict, reason = verdicts(gradient, steepness, residual, promised, background, names, reach, boundary)
    return {"taylor_residual": residual, "boundary": boundary, "verdict": verdict, "reason": reason}


def taylor_residual(
    predictor: Predictor,
    rows: Array,
    f0: Array,
    gradient: Array,
    steepness: Array,
    background: Background,
    reach: float = PROBE,
) -> tuple[Array, Array]:
    """f(x+d) - f(x) - g·d for the move d the surrogate promises most from; and g·d, both (rows, outputs)."""
    residual, promised = np.empty(f0.shape), np.empty(f0.shape)
    length = np.maximum(steepness, np.finfo(float).tiny)  # (rows, outputs)
    scale = np.where(predictor.schema.numeric, reach * background.sigma**2, 0.0)
    for o in range(f0.shape[1]):
        d = _known(scale * gradient[:, :, o] / length[:, o, None])
        moved = _inside(rows + d, rows, background.bounds)
        d = _known(moved - rows)
        promised[:, o] = np.einsum("rf,rf->r", d, gradient[:, :, o])
        residual[:, o] = predictor(moved)[:, o] - f0[:, o] - promised[:, o]
    return residual, promised


def boundary_distance(predictor: Predictor, f0: Array, steepness: Array) -> Array:
    """First-order distance to a binary decision boundary, (rows,) in spreads; NaN without one."""
    if predictor.scale not in MARGINS or predictor.task != "classification" or len(predictor.all_names) != 2:
        return np.full(len(f0), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.min(np.abs(MARGINS[predictor.scale](f0)) / steepness, axis=1)


def _log_odds_step(p: Array) -> Array:
    """Log-odds over their slope 1/(p(1-p)): a probability bends too much to be followed straight."""
    inside = np.clip(p, 1e-12, 1 - 1e-12)
    return np.log(inside / (1 - inside)) * inside * (1 - inside)


#: scale -> the distance from the threshold, in units of the output's own slope
MARGINS: dict[str, Callable[[Array], Array]] = {"probability": _log_odds_step, "margin": lambda z: z}


def verdicts(
    gradient: Gradient,
    steepness: Array,
    residual: Array,
    promised: Array,
    background: Background,
    names: Sequence[str],
    reach: float = PROBE,
    boundary: Array | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """("stable" | "fragile" | "undefined", the reason in words) for every row."""
    sigma, material = background.sigma, MATERIAL * background.output_spread
    count = len(gradient.values)
    # against the row's gradient as a whole: a bound larger than a derivative near zero is harmless
    loose = np.nan_to_num(_length(gradient.error, sigma))  # an unknown bound is no large one
    loose = (loose > LOOSE * steepness) & (loose > material)
    curved = np.abs(residual) > CURVED * np.abs(promised)
    curved &= np.maximum(np.abs(promised), np.abs(residual)) > material
    undefined = ~np.all(np.isfinite(gradient.values), axis=(1, 2))
    near = np.zeros(count, bool) if boundary is None else boundary < NEAR
    verdict = np.full(count, "stable", dtype="<U9")
    reason = np.full(count, "", dtype=object)
    _mark_breaks(gradient, sigma, names, verdict, reason)
    for mask, word in (
        (undefined, "the gradient is not finite"),
        (loose.any(axis=1), "the derivative's error bound is large"),
        (curved.any(axis=1), f"the model bends within {reach:g} spreads"),
        (near, f"the decision boundary lies within {NEAR:g} spreads"),
    ):
        fresh = mask & (reason == "")
        verdict[fresh], reason[fresh] = "fragile", word
    verdict[undefined] = "undefined"
    return verdict, reason


def _mark_breaks(
    gradient: Gradient, sigma: Array, names: Sequence[str], verdict: np.ndarray, reason: np.ndarray
) -> None:
    """Mark rows with a jump or a kink in a feature that carries a share of the gradient."""
    rows = np.nonzero(gradient.flags.any(axis=1))[0]
    if not len(rows):
        return
    size = np.abs(gradient.values[rows]) * sigma[:, None]  # (rows, features, outputs)
    total = np.maximum(size.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    share = (size / total).max(axis=2)
    for flag, word in ((JUMP, "jump"), (KINK, "kink")):
        # a jump matters whatever the slope beside it
        hit = ((gradient.flags[rows] & flag) > 0) & ((share > MATTERS) | (flag == JUMP))
        for i in np.nonzero(hit.any(axis=1) & (reason[rows] == ""))[0]:
            worst = int(np.argmax(np.where(hit[i], share[i], -1.0)))
            verdict[rows[i]], reason[rows[i]] = "fragile", f"{word} in {names[worst]!r}"


def _length(values: Array, sigma: Array) -> Array:
    """Norm over the features, in units of their spreads: (rows, features, outputs) -> (rows, outputs)."""
    return np.sqrt(np.einsum("rfo,rfo,f->ro", values, values, sigma**2))


def _known(values: Array) -> Array:
    """Zero where there is no number (`np.nan_to_num` is slow where there is nothing to do)."""
    return values if np.isfinite(values).all() else np.nan_to_num(values)


def _inside(moved: Array, rows: Array, bounds: tuple[Array, Array] | None) -> Array:
    """Keep moved rows in the range; a row outside it keeps its own value as the edge."""
    if bounds is None:
        return moved
    low, high = bounds
    if np.any(rows < low) or np.any(rows > high):
        low, high = np.minimum(low, rows), np.maximum(high, rows)
    return np.clip(moved, low, high, out=moved)
