"""The attributions of categorical features.

Text, category dtypes, columns that the model encodes, and groups of one-hot columns are each held as one
column of codes (`tables`). Their attributions follow from the effect of each category: of replacing the row's
category by it (`swaps`, the default, without retraining), or from the derivatives of a refitted model
(`refit`: the paper's continuity induction, and target encoding).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from texplainer.background.summary import Background, data_bounds
from texplainer.categories import refit as induction
from texplainer.categories import swaps
from texplainer.categories.detect import features_of
from texplainer.categories.swaps import Feature, Swap, swap_of
from texplainer.explanation.fields import CATEGORY, CategoryEffects
from texplainer.gradients.choose import choose, choose_engine, folded_engine
from texplainer.gradients.engine import Engine, Settings
from texplainer.models.predictor import Predictor
from texplainer.types import Array

#: rows, f(rows) -> for every feature (rows, levels, outputs): f with the level - f
Effects = Callable[[Array, Array], list[Array]]


@dataclass(frozen=True)
class Categories:
    """The categorical features of an explainer, and how the effects of their categories are computed.

    `weigh` returns the weights of every feature's categories for some rows, each (rows, categories).
    """

    features: tuple[Feature, ...]
    effects: Effects
    weigh: Callable[[Array], list[Array]]
    evaluations: int  # a row, at most

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the effects in a block's arrays."""
        return tuple(CATEGORY + f.name for f in self.features)

    def swaps(self, rows: Array, f0: Array) -> list[Swap]:
        """Return the effects of replacing each feature's category, for some rows."""
        if not self.features:
            return []
        deltas, weights = self.effects(rows, f0), self.weigh(rows)
        return [swap_of(*parts, rows) for parts in zip(self.features, deltas, weights, strict=True)]

    def fill(self, values: Array, found: Sequence[Swap], formula: Callable[[Swap], Array]) -> Array:
        """Return `values` with the columns of categorical features filled in."""
        values = values.copy()  # it may be the gradient itself
        for feature, swap in zip(self.features, found, strict=True):
            values[:, feature.column] = formula(swap)
        return values

    def results(self, effects: Mapping[str, np.ndarray]) -> dict[str, CategoryEffects]:
        """Combine the effects of all categories with their names and frequencies."""
        return {
            f.name: CategoryEffects(f.levels, effects[CATEGORY + f.name], f.frequencies)
            for f in self.features
            if CATEGORY + f.name in effects
        }


def build(
    predictor: Predictor,
    background: Background,
    names: Sequence[str],
    engine: str,
    settings: Settings,
    refitted: bool = False,
) -> tuple[Engine, Categories]:
    """Choose the engine for the numeric features and the method for the categorical ones.

    `names` are the user's names; the model may have been fitted with others. The categories of a `refitted`
    model are taken from its derivatives, those of any other model from its predictions.
    """
    schema, rows = predictor.schema, background.rows
    features = features_of(schema, rows, names)
    weigh = partial(swaps.marginal, features)
    if not refitted or not features or schema.inner is None or schema.layout is None:
        floor = 8 * predictor.unit * background.output_sd
        effects = partial(swaps.swap_effects, predictor, features, floor)
        cost = sum(len(f.codes) for f in features)
        chosen = choose_engine(predictor, rows, engine, settings)
        return chosen, Categories(features, effects, weigh, cost)
    bounds = None if settings.bounds is None else data_bounds(schema.wide(rows))
    discrete = settings.discrete.renumbered(schema.layout.places)
    settings = replace(settings, bounds=bounds, discrete=discrete)
    wide = replace(predictor, schema=schema.inner)
    whole = choose(wide, schema.wide(rows), engine, settings)
    effects = partial(induction.linear_effects, whole, schema.layout, features)
    return folded_engine(whole, schema), Categories(features, effects, weigh, 2 * schema.inner.width)


def category_words(why: Mapping[str, str], refit: induction.RefitReport | None) -> str:
    """Return a line for the explainer's repr, "" without categorical features."""
    if not why:
        return ""
    by_reason = {reason: [n for n, r in why.items() if r == reason] for reason in dict.fromkeys(why.values())}
    found = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in by_reason.items())
    line = f"  categorical  {found}{f'; by {refit.method}' if refit else ''}\n"
    if refit is not None:
        line += (
            f"               the refitted model disagrees by {refit.disagreement:.1%} on the training rows, "
            f"score {refit.refitted:.3f} against {refit.original:.3f}\n"
        )
    return line
