"""The part of a model that is linear in each feature: a control variate for means over the background.

A few background rows miss the means of the columns; what they miss, times the mean slope of the model, is
known and can be added. Slopes are those of the engine over the background, or of single replacements where no
exact engine is at hand; a category's part is what its levels do on average. An unused feature has none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.replaced import noise_floor, replaced
from texplainer.categories.detect import features_of
from texplainer.categories.swaps import Feature
from texplainer.types import Array

TRIAL_ROWS = 32  # at which a black box's linear part is measured; exact slopes at four times as many


@dataclass(frozen=True)
class LinearPart:
    """Mean slopes and their deviations, (features, outputs); the same of every category's levels."""

    mean: Array  # (features,) of the background
    slopes: Array
    deviation: Array
    levels: tuple[tuple[Feature, Array, Array], ...]  # mean effects and their deviations, (levels, outputs)

    def at(self, rows: Array) -> Array:
        """The linear part of every feature at some rows, (rows, features, outputs); its mean is 0."""
        out = self._away(rows)[:, :, None] * self.slopes
        for feature, effects, _ in self.levels:
            centred = effects - feature.frequencies @ effects
            out[:, feature.column] = feature.own_level(rows).astype(float) @ centred
        return out

    def slack(self, rows: Array, weights: Array) -> Array:
        """The deviation of its weighted mean over the rows, for slopes differ, (features, outputs)."""
        out = np.abs(weights @ self._away(rows))[:, None] * self.deviation
        for feature, _, deviation in self.levels:
            missed = np.abs(weights @ feature.own_level(rows).astype(float) - feature.frequencies)
            out[feature.column] = missed @ deviation
        return out

    def _away(self, rows: Array) -> Array:
        return np.nan_to_num(rows - self.mean)  # a missing cell is no way from the mean


def linear_part(context: ExplainContext) -> LinearPart:
    """Measure the linear part of a place's model over its background."""
    background, schema = context.background, context.predictor.schema
    slopes = np.where(schema.numeric[:, None], _slopes(context), 0.0)  # (trials, features, outputs)
    levels = []
    for feature in features_of(schema, background.rows, schema.names):
        effects = _level_effects(context, feature)
        levels.append((feature, effects.mean(axis=0), effects.std(axis=0)))
    return LinearPart(background.mean, slopes.mean(axis=0), slopes.std(axis=0), tuple(levels))


def _sample(context: ExplainContext, count: int) -> Array:
    rows = context.background.rows
    count = min(count, len(rows))
    return rows[(np.arange(count) * len(rows)) // count]


def _slopes(context: ExplainContext) -> Array:
    """Slopes at some background rows, (trials, features, outputs)."""
    if context.engine.exact:
        return np.nan_to_num(context.engine.gradient(_sample(context, 4 * TRIAL_ROWS)).values)
    rows = _sample(context, TRIAL_ROWS)
    columns = np.flatnonzero(context.predictor.schema.numeric)
    others = np.roll(rows, len(rows) // 2, axis=0)[:, columns]  # each gets the cell of a row far from it
    move = np.nan_to_num(others - rows[:, columns])  # (trials, columns)
    delta = _replacements(context, rows, columns, np.where(move == 0, rows[:, columns], others))
    # weighed so that their mean is the least-squares slope: sum(delta move) / sum(move²)
    length = np.maximum((move**2).mean(axis=0), np.finfo(float).tiny)
    slopes = np.zeros((*rows.shape, delta.shape[-1]))
    slopes[:, columns] = delta * (move / length)[:, :, None]
    return slopes


def _level_effects(context: ExplainContext, feature: Feature) -> Array:
    """F with every level - f at some background rows, (trials, levels, outputs)."""
    rows = _sample(context, TRIAL_ROWS)
    cells = np.broadcast_to(feature.codes, (len(rows), len(feature.codes)))
    effects = _replacements(context, rows, np.full(len(feature.codes), feature.column), cells)
    return effects - np.einsum("tlo,l->to", effects, feature.frequencies)[:, None, :]


def _replacements(context: ExplainContext, rows: Array, columns: np.ndarray, cells: Array) -> Array:
    """f(row with a cell of a column) - f(row), (rows, columns, outputs)."""
    f0 = context.predictor(rows)
    count = len(columns)
    found = replaced(
        context.predictor,
        rows,
        np.repeat(np.arange(len(rows)), count),
        np.tile(columns, len(rows)),
        cells.reshape(-1),
    ).reshape(len(rows), count, -1)
    delta = found - f0[:, None, :]
    delta[np.abs(delta) <= noise_floor(context.predictor, f0, context.background.output_sd)[:, None, :]] = 0.0
    return delta
