"""Contributions in a black box: walks from a background row to x, one feature after the other.

A feature is credited with what its step changes; the steps of a walk sum to f(x) - f(b) exactly, those of
categories and missing cells among them. Every start has an order of its own, fixed once and for all, and the
next start the same order backwards (Shapley's value, sampled: Castro et al. 2009).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.replaced import noise_floor
from texplainer.attributions.starts import BackgroundSample, PathContributions
from texplainer.types import Array

WALKS = 64
GOLDEN = (5**0.5 - 1) / 2


def contributions(context: ExplainContext, starts: BackgroundSample) -> PathContributions:
    """One walk from every start to every row."""
    rows, width = context.rows, context.rows.shape[1]
    groups = int(starts.groups.max()) + 1
    sums = np.zeros((len(rows), groups, width, len(context.predictor.outputs)))
    floor = noise_floor(context.predictor, context.predictions, context.background.output_sd)
    for s, start in enumerate(starts.rows):
        place_of = walk_order(int(starts.number[s]), width)  # (features,): when each feature takes its step
        for part in _parts(len(rows), width, context.predictor.piece(width)):
            replacement_effects = _walk(context, start, rows[part], place_of)  # (rows, features, outputs)
            replacement_effects[np.abs(replacement_effects) <= floor[part, None, :]] = 0.0
            sums[part, starts.groups[s]] += starts.weights[s] * replacement_effects
    return PathContributions(sums, evaluations=len(starts.rows) * (width + 1))


def walk_order(index: int, width: int) -> np.ndarray:
    """The place of every feature in a walk: a fixed order for two starts, forwards and backwards."""
    order = _shuffled(index // 2, width)
    return order if index % 2 == 0 else width - 1 - order


@lru_cache(maxsize=256)
def _shuffled(stream: int, width: int) -> np.ndarray:
    """A fixed order of features, another for each stream: multiples of an irrational turn, sorted."""
    marks = np.arange(1, width + 1) ** 2 * ((stream + 1) * GOLDEN % 1.0)
    marks = np.round((marks + np.arange(width) * np.sqrt(2.0)) % 1.0, 9)
    places = np.empty(width, dtype=int)
    places[np.argsort(marks, kind="stable")] = np.arange(width)
    return places


def _walk(context: ExplainContext, start: Array, rows: Array, place_of: np.ndarray) -> Array:
    """What every feature's step changes, (rows, features, outputs)."""
    width = rows.shape[1]
    count, size = len(rows), context.predictor.piece(width)
    replacement_effects = np.empty((count, width, len(context.predictor.outputs)))
    last: Array | None = None
    span = max(1, size // count)  # steps in one call of the model
    for first in range(0, width + 1, span):
        steps = np.arange(first, min(first + span, width + 1))
        points = np.where(place_of < steps[:, None], rows[:, None, :], start)  # (rows, steps, features)
        f = context.predictor(points.reshape(-1, width)).reshape(count, len(steps), -1)
        if last is not None:
            f = np.concatenate([last, f], axis=1)
            steps = np.concatenate([[first - 1], steps])
        replacement_effects[:, steps[:-1]] = np.diff(f, axis=1)
        last = f[:, -1:]
    return replacement_effects[:, place_of]


def _parts(count: int, width: int, size: int) -> list[slice]:
    """Rows whose whole walks fit in one piece, at least one."""
    together = max(1, size // (width + 1))
    return [slice(i, i + together) for i in range(0, count, together)]
