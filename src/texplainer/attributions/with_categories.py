"""Categorical features beside the numeric ones of an attribution: their values, error bars and relative change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from texplainer.attributions.attribution import Attribution, AttributionResult, ExplainContext
from texplainer.attributions.replaced import noise_floor
from texplainer.attributions.stability import moved, relative
from texplainer.categories.detect import Categories
from texplainer.categories.swaps import Swap
from texplainer.types import Array


def with_categories(
    found: AttributionResult,
    context: ExplainContext,
    categories: Categories,
    swaps: Sequence[Swap],
    spec: Attribution,
) -> AttributionResult:
    """The answer with every categorical feature's own value in place, by the attribution's formula for categories.

    How much the categories' values change under a small move of the numbers is seen at one moved row.
    """
    formula, scale = spec.category, spec.comparable(context)
    if formula is None:
        return found
    columns = [feature.column for feature in categories.features]
    values = categories.fill(found.values, swaps, formula)
    error = np.array(found.error, dtype=float)
    floor = noise_floor(context.predictor, context.predictions, context.background.output_sd)
    error[:, columns] = np.where(values[:, columns] == 0, 0.0, floor[:, None, :])
    sd = context.background.output_sd
    numeric = _size(found.values, scale)
    change = found.relative_change * numeric
    cost = found.evaluations
    if context.predictor.schema.numeric.any():
        there = moved(context)[0]
        other = categories.fill(values, categories.swaps(there, context.predictor(there)), formula)
        change = np.sqrt(change**2 + ((other - values)[:, columns] ** 2).sum(axis=1))
        cost = cost + categories.evaluations + 1
    relative_change = relative(change, _size(values, scale), sd)
    return replace(found, values=values, error=error, relative_change=relative_change, evaluations=cost)


def _size(values: Array, scale: Array) -> Array:
    return np.sqrt(((values * scale[:, None]) ** 2).sum(axis=1))
