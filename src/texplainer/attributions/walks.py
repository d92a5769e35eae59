"""Contributions in a black box: walks from a background row to x, one feature after the other.

A feature is credited with what its step changes; the steps of a walk sum to f(x) - f(b) exactly, those of
categories and missing values among them. Every walk has an order of its own, fixed once and for all, and the
next walk the same order backwards (Shapley values, sampled: Castro et al. 2009; antithetic: Mitchell 2022).
The walks of many rows are predicted together.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.background_sample import BackgroundSample, PathContributions, sample_background
from texplainer.attributions.replaced import noise_floor
from texplainer.gradients.finite_difference.design import affordable_blocks
from texplainer.types import Array

WALKS = 64  # where `max_evals` does not say
GOLDEN = (5**0.5 - 1) / 2


def sample_of(context: ExplainContext) -> BackgroundSample:
    """The background rows of as many walks as `max_evals` allows."""
    count = WALKS
    if context.max_evals is not None:
        affordable_blocks(context.rows.shape[1], context.max_evals)  # the least is the same for slopes
        count = context.max_evals // (context.rows.shape[1] + 1)
    return sample_background(context, count)


def contributions(context: ExplainContext, sample: BackgroundSample) -> PathContributions:
    """One walk from every background row of the sample to every row."""
    rows, width = context.rows, context.rows.shape[1]
    walks = len(sample.rows)
    sums = np.zeros((len(rows), sample.count, width, len(context.predictor.outputs)))
    floor = noise_floor(context.predictor, context.predictions, context.background.output_sd)
    place = np.stack([walk_order(int(number), width) for number in sample.number])  # (walks, features)
    together = max(1, context.predictor.piece(width) // (width + 1))  # walks in one call of the model
    for first in range(0, len(rows) * walks, together):
        pair = np.arange(first, min(first + together, len(rows) * walks))
        row, walk = pair // walks, pair % walks
        effects = _walk(context, sample.rows[walk], rows[row], place[walk])  # (pairs, features, outputs)
        effects[np.abs(effects) <= floor[row, None, :]] = 0.0
        np.add.at(sums, (row, sample.groups[walk]), sample.weight[walk, None, None] * effects)
    return PathContributions(sums, evaluations=walks * (width + 1))


def walk_order(index: int, width: int) -> np.ndarray:
    """The place of every feature in a walk: a fixed order for two walks, forwards and backwards."""
    order = _shuffled(index // 2, width)
    return order if index % 2 == 0 else width - 1 - order


@lru_cache(maxsize=4096)
def _shuffled(stream: int, width: int) -> np.ndarray:
    """A fixed order of features, another for each stream: multiples of an irrational turn, sorted."""
    marks = np.arange(1, width + 1) ** 2 * ((stream + 1) * GOLDEN % 1.0)
    marks = np.round((marks + np.arange(width) * np.sqrt(2.0)) % 1.0, 9)
    places = np.empty(width, dtype=int)
    places[np.argsort(marks, kind="stable")] = np.arange(width)
    return places


def _walk(context: ExplainContext, start: Array, rows: Array, place: np.ndarray) -> Array:
    """What every feature's step changes, (pairs, features, outputs); one background row and row a pair."""
    count, width = rows.shape
    taken = place[:, None, :] < np.arange(width + 1)[:, None]  # (pairs, steps, features)
    points = np.where(taken, rows[:, None, :], start[:, None, :])
    f = context.predictor(points.reshape(-1, width)).reshape(count, width + 1, -1)
    return np.take_along_axis(np.diff(f, axis=1), place[:, :, None], axis=1)
