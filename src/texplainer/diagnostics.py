"""How far an explanation can be trusted, row by row.

Would this row's values be much the same if the row had been measured a little differently? The relative change is
the expected relative change of the values under moves of 5% of an SD. The stability is a label made from it:

    undefined   there is no finite prediction or value
    unstable    the values should sum to the prediction and do not; or the relative change is above 25%; or
                the error bounds are above 75% of the values; or the point derivative of a step function, a kink or
                a jump was asked for
    stable      otherwise

The reason is always given as text. It also names features without a slope here that the model does use: no
change over the moves of a slope, but other values of the column change the prediction.

Attributions with slopes also tell how well their local model holds: along the direction it promises most
from, one more prediction gives the Taylor residual f(x+d) - f(x) - g·d, and the distance to a binary decision
boundary follows from the same slopes, |margin| / |slope|, in SDs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from texplainer.attributions.attribution import Attribution, AttributionResult, ExplainContext
from texplainer.background.summary import HALF_WIDTH, Background
from texplainer.gradients.engine import JUMP, KINK, STEP
from texplainer.models.predictor import Predictor
from texplainer.types import Array

PROBE = 0.1  # length of the probing step, in units of the features' SDs
UNSTABLE = 0.25  # relative change above which the values would be others
LOOSE = 0.75  # error bounds above this share of the values: usual errors are less than a third of them
ROUNDED = 4  # roundings of a prediction that an output's SD over the background is below if it is constant
MATERIAL = 0.01  # values below this share of the output's SD are as good as none
NAMED = 3  # features that a reason names
MATTERS = 0.05  # share of the values below which a feature's kink is harmless


def assess(
    context: ExplainContext,
    found: AttributionResult,
    spec: Attribution,
    base: Array,
    names: Sequence[str],
) -> dict[str, np.ndarray]:
    """Give the completeness, the relative change, the stability and its reason, and what slopes tell besides, by name.

    The completeness (rows, outputs) is what the base value (outputs,) and the values lack to the prediction.
    """
    missing = context.predictions - base - found.values.sum(axis=1)
    stability, reason = stability_labels(
        context, found, spec.comparable(context), names, missing if spec.adds_up else None
    )
    out = {
        "completeness": missing,
        "relative_change": found.relative_change,
        "stability": stability,
        "reason": reason,
    }
    if found.gradient is None:
        return out
    background, predictor = context.background, context.predictor
    steepness = _length(found.gradient, background.unit)
    residual = taylor_residual(
        predictor,
        context.rows,
        context.predictions,
        found.gradient,
        steepness,
        background,
        max(PROBE, context.engine.width),
    )
    boundary = boundary_distance(predictor, context.predictions, steepness)
    return {**out, "taylor_residual": residual, "boundary": boundary}


def taylor_residual(
    predictor: Predictor,
    rows: Array,
    f0: Array,
    gradient: Array,
    steepness: Array,
    background: Background,
    reach: float = PROBE,
) -> Array:
    """f(x+d) - f(x) - g·d for the move d the surrogate promises most from, (rows, outputs)."""
    residual = np.empty(f0.shape)
    length = np.maximum(steepness, np.finfo(float).tiny)  # (rows, outputs)
    scale = np.where(predictor.schema.numeric, reach * background.sigma**2, 0.0)
    for o in range(f0.shape[1]):
        d = _known(scale * gradient[:, :, o] / length[:, o, None])
        moved = _inside(rows + d, rows, background.bounds)
        d = _known(moved - rows)
        residual[:, o] = predictor(moved)[:, o] - f0[:, o] - np.einsum("rf,rf->r", d, gradient[:, :, o])
    return residual


def boundary_distance(predictor: Predictor, f0: Array, steepness: Array) -> Array:
    """First-order distance to a binary decision boundary, (rows,) in SDs; NaN without one."""
    if (
        predictor.scale not in BOUNDARY_DISTANCES
        or predictor.task != "classification"
        or len(predictor.all_names) != 2
    ):
        return np.full(len(f0), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.min(np.abs(BOUNDARY_DISTANCES[predictor.scale](f0)) / steepness, axis=1)


def _log_odds_step(p: Array) -> Array:
    """Log-odds over their slope 1/(p(1-p)): a probability bends too much to be followed straight."""
    inside = np.clip(p, 1e-12, 1 - 1e-12)
    return np.log(inside / (1 - inside)) * inside * (1 - inside)


#: scale -> the distance from the threshold, in units of the output's own slope
BOUNDARY_DISTANCES: dict[str, Callable[[Array], Array]] = {
    "probability": _log_odds_step,
    "log-odds": lambda z: z,
}


def stability_labels(
    context: ExplainContext,
    found: AttributionResult,
    scale: Array,
    names: Sequence[str],
    missing: Array | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """("stable" | "unstable" | "undefined", the reason as text) for every row."""
    size, bars = _length(found.values, scale), np.nan_to_num(_length(found.error, scale))
    varies = context.background.output_sd
    least = MATERIAL * varies
    constant = (size == 0) & (varies <= ROUNDED * context.predictor.unit * np.abs(context.predictions))
    loose = (bars > LOOSE * size) & (bars > least) & ~constant
    lacking = np.zeros(size.shape) if missing is None else np.abs(np.nan_to_num(missing))
    short = lacking > np.maximum(MATERIAL * size, least)
    worst = np.nan_to_num(found.relative_change).max(axis=1, initial=0.0)
    undefined = ~np.all(np.isfinite(found.values), axis=(1, 2))
    count = len(found.values)
    stability, reason = np.full(count, "stable", dtype="<U9"), np.full(count, "", dtype=object)
    if "flags" in found.arrays:
        _mark_breaks(found, scale, names, stability, reason)
    for mask, words in (
        (undefined, lambda i: "the values are not finite"),
        (short.any(axis=1), lambda i: f"the values miss the prediction by {lacking[i].max():.3g}"),
        (loose.any(axis=1), lambda i: f"the error bounds are {_share(bars[i], size[i])} of the values"),
        (
            worst > UNSTABLE,
            lambda i: f"{_percent(worst[i])} under moves of 5% of an SD",
        ),
    ):
        for i in np.flatnonzero(mask & (reason == "")):
            stability[i], reason[i] = "unstable", words(i)
    stability[undefined] = "undefined"
    if "flat" in found.arrays:
        _name_flat(np.any(found.arrays["flat"], axis=2), context.engine.width, names, reason)
    return stability, reason


def _name_flat(flat: np.ndarray, width: float, names: Sequence[str], reason: np.ndarray) -> None:
    """Name the features (rows, features) whose slope is 0 though other values change the prediction."""
    for i in np.flatnonzero(flat.any(axis=1)):
        which = np.flatnonzero(flat[i])
        listed = ", ".join(repr(names[j]) for j in which[:NAMED])
        more = f" and {len(which) - NAMED} more" if len(which) > NAMED else ""
        words = f"flat for moves up to {HALF_WIDTH * width:.2g} SD, changes beyond: {listed}{more}"
        reason[i] = f"{reason[i]}; {words}" if reason[i] else words


def _share(bars: Array, size: Array) -> str:
    worst = np.max(bars / np.maximum(size, np.finfo(float).tiny))
    return f"{worst:.0%}" if worst < 10 else "many times the size"


def _percent(worst: float) -> str:
    return f"the values change by about {worst:.0%}" if worst < 10 else "the values change completely"


def _mark_breaks(
    found: AttributionResult, unit: Array, names: Sequence[str], stability: np.ndarray, reason: np.ndarray
) -> None:
    """Mark derivatives of step functions, and jumps and kinks in features that carry a share of values."""
    flags = found.arrays["flags"]
    rows = np.nonzero(flags.any(axis=1))[0]
    if not len(rows):
        return
    stepped = rows[np.any(flags[rows] & STEP, axis=1)]
    stability[stepped], reason[stepped] = (
        "unstable",
        "the derivative is 0 because the model is a step function",
    )
    size = np.abs(found.values[rows]) * unit[:, None]  # (rows, features, outputs)
    total = np.maximum(size.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    share = (size / total).max(axis=2)
    for flag, word in ((JUMP, "jump"), (KINK, "kink")):
        # a jump matters whatever the slope beside it
        hit = ((flags[rows] & flag) > 0) & ((share > MATTERS) | (flag == JUMP))
        for i in np.nonzero(hit.any(axis=1) & (reason[rows] == ""))[0]:
            worst = int(np.argmax(np.where(hit[i], share[i], -1.0)))
            stability[rows[i]], reason[rows[i]] = "unstable", f"{word} in {names[worst]!r}"


def _length(values: Array, sigma: Array) -> Array:
    """Norm over the features, in units of their SDs: (rows, features, outputs) -> (rows, outputs)."""
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
