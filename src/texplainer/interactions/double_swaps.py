"""Interactions of categories: what a level does, compared with the average one, to slopes and to levels.

A category has no "more"; in the attribution "slope" its value is the difference D f = f(x) - sum_c pi_c f(x^c).
Its interaction with a number is that difference of the number's value, D_c(sigma_j slope_j); of two
categories it is the double swap

    D_c D_d f = f(x) - sum_c pi_c f(x^c) - sum_d pi_d f(x^d) + sum_cd pi_c pi_d f(x^cd).

Both are 0 where the model adds the two up. A category has no interaction with itself.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.differences import slopes_and_differences
from texplainer.attributions.replaced import noise_floor, predict_points
from texplainer.categories.detect import Categories
from texplainer.categories.swaps import Feature
from texplainer.interactions.second_order import SecondOrder
from texplainer.types import Array


def with_double_swaps(found: SecondOrder, context: ExplainContext, categories: Categories) -> SecondOrder:
    """The answer with the rows and columns of every categorical feature in place."""
    if not categories.features:
        return found
    values, error, cost = found.values.copy(), found.error.copy(), found.evaluations
    weights = [np.broadcast_to(f.frequencies, (len(context.rows), len(f.codes))) for f in categories.features]
    for feature, weight in zip(categories.features, weights, strict=True):
        value, bound = _against_numbers(context, feature, weight)
        for array, part in ((values, value), (error, bound)):
            array[:, feature.column] = array[:, :, feature.column] = part
        cost = cost + len(feature.codes) + 1
    floor = noise_floor(context.predictor, context.predictions, context.background.output_sd)
    for (one, first), (two, second) in combinations(zip(categories.features, weights, strict=True), 2):
        value = _against_levels(context, (one, two), (first, second))
        value[np.abs(value) <= 2 * floor] = 0.0
        for i, j in ((one.column, two.column), (two.column, one.column)):
            values[:, i, j], error[:, i, j] = value, np.where(value == 0, 0.0, 4 * floor)
        cost = cost + len(one.codes) * len(two.codes)
    return SecondOrder(values, error, cost)


def _against_numbers(context: ExplainContext, feature: Feature, weights: Array) -> tuple[Array, Array]:
    """D_c of sigma_j slope_j, (rows, features, outputs), and its bound; 0 for categories."""
    here, bound, _ = slopes_and_differences(context, context.rows)
    mean, error = np.zeros(here.shape), np.zeros(here.shape)
    for level, code in enumerate(feature.codes):
        moved = context.rows.copy()
        moved[:, feature.column] = code
        there, other, _ = slopes_and_differences(context, moved)
        share = weights[:, level, None, None]
        mean += share * (here - there)
        # both sides see the same points: of what they miss, little is left in the difference
        error += share * np.where(there == here, 0.0, np.hypot(bound, other))
    steepest = np.abs(here).max(axis=1, keepdims=True, initial=0.0)
    mean[np.abs(mean) <= 64 * context.predictor.unit * steepest] = 0.0
    numeric = context.predictor.schema.numeric
    unit = np.where(numeric, context.background.sigma, 0.0)[:, None]
    return mean * unit, error * unit


def _against_levels(
    context: ExplainContext, pair: tuple[Feature, Feature], weights: tuple[Array, Array]
) -> Array:
    """The double swap of two categories, (rows, outputs)."""
    one, two = pair
    at = np.repeat(context.rows[:, None], len(one.codes) * len(two.codes), axis=1)
    at = at.reshape(len(context.rows), len(one.codes), len(two.codes), -1)
    at[..., one.column], at[..., two.column] = one.codes[:, None], two.codes
    both = predict_points(context.predictor, at)  # (rows, levels, levels, outputs)
    own_one, own_two = one.own_level(context.rows).astype(float), two.own_level(context.rows).astype(float)
    return np.einsum("rc,rd,rcdo->ro", own_one - weights[0], own_two - weights[1], both)
