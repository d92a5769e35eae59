"""How far an explanation can be trusted, row by row.

The verdict is "undefined" where there is no finite prediction or gradient, "fragile" where the model
has a kink or a jump in a feature that matters, where the derivative's error bound is a large part of
it, or where the linear surrogate misses most of the change it predicts over a step of a tenth of a
spread along the gradient; "stable" otherwise. The reason is always given in words.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def taylor_residual(
    predictor: Predictor, rows: Array, f0: Array, gradient: Array, background: Background
) -> tuple[Array, Array]:
    """f(x+d) - f(x) - g·d where d is the move the surrogate promises most from; and g·d, both (rows, outputs)."""
    residual, promised = np.empty(f0.shape), np.empty(f0.shape)
    for o in range(f0.shape[1]):
        slope = np.nan_to_num(gradient[:, :, o]) * background.sigma
        length = np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), np.finfo(float).tiny)
        d = PROBE * background.sigma * slope / length
        d = np.where(predictor.schema.numeric & np.isfinite(rows), d, 0.0)
        moved = rows + d
        if background.bounds is not None:
            low, high = background.bounds
            moved = np.clip(moved, np.minimum(low, rows), np.maximum(high, rows))
        d = np.nan_to_num(moved - rows)
        promised[:, o] = np.einsum("rf,rf->r", d, gradient[:, :, o])
        residual[:, o] = predictor(moved)[:, o] - f0[:, o] - promised[:, o]
    return residual, promised


def verdicts(
    gradient: Gradient, residual: Array, promised: Array, background: Background, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """("stable" | "fragile" | "undefined", the reason in words) for every row."""
    sigma = background.sigma
    size = np.abs(gradient.values) * sigma[:, None]  # (rows, features, outputs)
    total = np.maximum(size.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    share = (size / total).max(axis=2)
    error = np.nan_to_num(gradient.error, nan=0.0) * sigma[:, None]
    # against the row's gradient as a whole: a bound larger than a derivative near zero is harmless
    loose = np.linalg.norm(error, axis=1) > LOOSE * np.maximum(np.linalg.norm(size, axis=1), 1e-300)
    loose &= np.linalg.norm(size, axis=1) > 0
    curved = np.abs(residual) > CURVED * np.abs(promised)
    curved &= np.maximum(np.abs(promised), np.abs(residual)) > MATERIAL * background.output_spread
    undefined = ~np.all(np.isfinite(gradient.values), axis=(1, 2))
    verdict = np.full(len(size), "stable", dtype="<U9")
    reason = np.full(len(size), "", dtype=object)
    for flag, word in ((JUMP, "jump"), (KINK, "kink")):
        # a jump matters whatever the slope beside it
        hit = ((gradient.flags & flag) > 0) & ((share > MATTERS) | (flag == JUMP))
        for i in np.nonzero(hit.any(axis=1) & (reason == ""))[0]:
            worst = int(np.argmax(np.where(hit[i], share[i], -1.0)))
            verdict[i], reason[i] = "fragile", f"{word} in {names[worst]!r}"
    for mask, word in (
        (loose.any(axis=1), "the derivative's error bound is large"),
        (curved.any(axis=1), f"the model bends within {PROBE:g} spreads"),
        (undefined, "the gradient is not finite"),
    ):
        fresh = mask & (reason == "")
        verdict[fresh], reason[fresh] = "fragile", word
    verdict[undefined] = "undefined"
    return verdict, reason
