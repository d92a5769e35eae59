"""Categorical features beside the numeric ones of a reading: their values, error bars and wobble."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from texplainer.categories.level_effects import Categories
from texplainer.categories.swaps import Swap
from texplainer.readings.reading import Found, Place
from texplainer.readings.replaced import noise_floor
from texplainer.readings.wobble import moved, relative
from texplainer.types import Array


def with_categories(
    found: Found,
    place: Place,
    categories: Categories,
    swaps: Sequence[Swap],
    formula: Callable[[Swap], Array],
    scale: Array,
) -> Found:
    """The answer with every categorical feature's own value in place.

    `scale` (features,) makes values comparable in size. How much the categories' values change under a small
    move of the numbers is seen at one moved row.
    """
    columns = [feature.column for feature in categories.features]
    values = categories.fill(found.values, swaps, formula)
    error = np.array(found.error, dtype=float)
    floor = noise_floor(place.predictor, place.predictions, place.background.output_spread)
    error[:, columns] = np.where(values[:, columns] == 0, 0.0, floor[:, None, :])
    spread = place.background.output_spread
    numeric = _size(found.values, scale)
    change = found.wobble * numeric
    cost = found.evaluations
    if place.predictor.schema.numeric.any():
        there = moved(place)[0]
        other = categories.fill(values, categories.swaps(there, place.predictor(there)), formula)
        change = np.sqrt(change**2 + ((other - values)[:, columns] ** 2).sum(axis=1))
        cost = cost + categories.evaluations + 1
    wobble = relative(change, _size(values, scale), spread)
    return replace(found, values=values, error=error, wobble=wobble, evaluations=cost)


def _size(values: Array, scale: Array) -> Array:
    return np.sqrt(((values * scale[:, None]) ** 2).sum(axis=1))
