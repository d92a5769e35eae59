"""Steps that a derivative does not see: `x > 0`, rounding, the embedding of a binned number.

Along a line between two background rows, cut into short segments, the mean value theorem puts the change of
f over a segment between the smallest and the largest slope in it, times its length. Where f changes by more
than the slopes at both ends allow, the segment is cut again: at a kink or a bend the excess vanishes, at a
step it stays. An engine that misses steps is refused, and finite differences take its place.
"""

from __future__ import annotations

import numpy as np

from texplainer.errors import Unsupported
from texplainer.gradients.engine import Engine
from texplainer.limits import CELLS
from texplainer.models.predictor import Predictor
from texplainer.types import Array

LINES, SEGMENTS = 64, 16
WORST, FEWER = 32, 8  # segments that are cut again, once and a second time
CUTS = (16, 256)
LEAST = 2e-3  # a step's share of the predictions' range
ROUNDINGS = 64  # of the predictions' size: rounding is not a step
MOST_NAMED = 256  # columns that are moved one by one to name the one with the step


def check_steps(engine: Engine, predictor: Predictor, background: Array) -> None:
    """Raise `Unsupported` if the model has steps that the engine's gradient does not contain."""
    start, end = _lines(predictor, background)
    if not len(start):
        return
    points = _between(start, end, SEGMENTS)
    predictions, excess = _excess(engine, predictor, points)
    if not np.isfinite(predictions).all():
        return
    size = np.abs(predictions).max(axis=(0, 1))  # (outputs,)
    least = np.maximum(LEAST * np.ptp(predictions, axis=(0, 1)), ROUNDINGS * predictor.unit * size)
    unit = np.where(least > 0, least, np.inf)
    over = (np.abs(excess) / unit).max(axis=2)  # (lines, segments)
    line, segment = np.unravel_index(_largest(over.ravel(), WORST), over.shape)
    low, high = points[line, segment], points[line, segment + 1]
    fine, rest, total = points, excess, over
    for pieces in CUTS:
        if not len(low):
            return
        fine = _between(low, high, pieces)
        _, rest = _excess(engine, predictor, fine)
        total = np.abs(rest.sum(axis=1)) / unit  # (segments, outputs); what is only rounded differs in sign
        kept = _largest(total.max(axis=1), FEWER)
        low, high, fine, rest, total = low[kept], high[kept], fine[kept], rest[kept], total[kept]
    if not len(low):
        return
    output = int(np.argmax(total[0]))
    where = int(np.argmax(np.abs(rest[0, :, output])))
    column = _column(predictor, fine[0, where], fine[0, where + 1], output)
    at = "" if column is None else f" at {predictor.schema.names[column]} = {fine[0, where, column]:.4g}"
    raise Unsupported(
        f"the model has steps that its derivative does not contain: the prediction changes by "
        f"{abs(rest[0, :, output].sum()):.3g}{at}."
    )


def _largest(over: Array, most: int) -> np.ndarray:
    """Where the largest of some numbers above 1 are, the largest one first."""
    found = np.argsort(-over, kind="stable")[:most]
    return found[over[found] > 1]


def _lines(predictor: Predictor, background: Array) -> tuple[Array, Array]:
    """Complete background rows, and for each another one with the same categories."""
    rows = background[np.all(np.isfinite(background), axis=1)]
    most = int(np.clip(CELLS // (SEGMENTS * rows.shape[1] * len(predictor.outputs)), 2, LINES))
    rows = rows[:: max(1, len(rows) // most)][:most]
    end = np.where(predictor.schema.numeric, np.roll(rows, max(1, len(rows) // 2), axis=0), rows)
    return (rows, end) if len(rows) > 1 else (rows[:0], end[:0])


def _between(start: Array, end: Array, segments: int) -> Array:
    """Equally spaced points, both ends too, (lines, segments + 1, features)."""
    places = np.linspace(0, 1, segments + 1)[:, None]
    return start[:, None] * (1 - places) + end[:, None] * places


def _excess(engine: Engine, predictor: Predictor, points: Array) -> tuple[Array, Array]:
    """Predictions, and the change of f over each segment beyond what the slopes at its ends allow."""
    lines, count, features = points.shape
    flat = points.reshape(-1, features)
    predictions = predictor(flat).reshape(lines, count, -1)
    slopes = engine.gradient(flat).values.reshape(lines, count, features, -1)
    steps = np.diff(points, axis=1)
    ends = [np.einsum("lsf,lsfo->lso", steps, part) for part in (slopes[:, :-1], slopes[:, 1:])]
    change = np.diff(predictions, axis=1)
    return predictions, change - np.clip(change, np.minimum(*ends), np.maximum(*ends))


def _column(predictor: Predictor, low: Array, high: Array, output: int) -> int | None:
    """The column that changes the prediction most between two neighbouring points."""
    if len(low) > MOST_NAMED:
        return None
    moved = np.where(np.eye(len(low), dtype=bool), high, low)
    change = np.abs(predictor(moved) - predictor(low[None]))[:, output]
    return int(np.argmax(change))
