"""Categorical features: how they enter an explanation.

Text, category dtypes, columns the model encodes, and groups of one-hot columns are all one column of codes
inside texplainer (`frames`, `folds`). Their attributions come from what each level would do: by swapping it
in (`swaps`, the default, without retraining), or from the derivatives of a refitted model (`induction`, the
paper's way, and its target encoding).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from texplainer import gradients, induction, swaps
from texplainer.background import Background
from texplainer.category_columns import features_of
from texplainer.errors import InputError
from texplainer.explanation import CATEGORY, CategoryEffects
from texplainer.folds import Fold
from texplainer.frames import Schema
from texplainer.gradients import Engine, Gradient, Settings
from texplainer.prediction import Predictor
from texplainer.signatures import Array
from texplainer.spreads import data_bounds
from texplainer.swaps import SHARES, Feature, swap_of

METHODS = ("swaps", "induction", "target")
#: rows, f(rows) -> for every feature (rows, levels, outputs): f with the level - f
Effects = Callable[[Array, Array], list[Array]]


@dataclass(frozen=True)
class Plan:
    """What the user asked for: the method, the frequencies, and what a refit needs."""

    method: str = "swaps"
    neighbours: int = 0
    training: tuple[Any, Any] | None = None
    output: Any = None
    scale: str = "auto"
    seed: int = 0


@dataclass(frozen=True)
class Categories:
    """The categorical features of an explainer, and how the effects of their levels are found.

    `weigh` gives the weights of every feature's levels around some rows, each (rows, levels).
    """

    features: tuple[Feature, ...]
    effects: Effects
    weigh: Callable[[Array], list[Array]]
    evaluations: int  # a row, at most

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the effects among a block's arrays."""
        return tuple(CATEGORY + f.name for f in self.features)

    def fill(
        self, values: Array, rows: Array, f0: Array, attribution: str
    ) -> tuple[Array, dict[str, np.ndarray]]:
        """Give values with the categorical features' attributions in place, and every level's effects."""
        if not self.features:
            return values, {}
        values = values.copy()  # it may be the gradient itself
        deltas, weights = self.effects(rows, f0), self.weigh(rows)
        for feature, delta, weight in zip(self.features, deltas, weights, strict=True):
            values[:, feature.column] = SHARES[attribution](swap_of(feature, delta, weight, rows))
        return values, dict(zip(self.keys, deltas, strict=True))

    def results(self, effects: Mapping[str, np.ndarray]) -> dict[str, CategoryEffects]:
        """Put every level's effects beside its name and frequency."""
        return {
            f.name: CategoryEffects(f.levels, effects[CATEGORY + f.name], f.frequencies)
            for f in self.features
            if CATEGORY + f.name in effects
        }


def prepare(predictor: Predictor, schema: Schema, plan: Plan) -> tuple[Predictor, induction.Refit | None]:
    """Give the model whose derivatives are taken: the user's own, or a refitted clone and its report."""
    if plan.method not in METHODS:
        raise InputError(
            f"categorical_method={plan.method!r} is unknown; expected one of {', '.join(METHODS)}."
        )
    if plan.neighbours < 0:
        raise InputError(
            f"category_neighbours={plan.neighbours} is negative; expected 0 or a number of rows."
        )
    if plan.method == "swaps" or not schema.levels:
        return predictor, None
    return induction.refit(
        predictor,
        schema,
        plan.training,
        method=plan.method,
        output=plan.output,
        scale=plan.scale,
        seed=plan.seed,
    )


def build(
    predictor: Predictor,
    background: Background,
    names: Sequence[str],
    engine: str,
    settings: Settings,
    plan: Plan,
) -> tuple[Engine, Categories]:
    """Choose the engine for the numeric features and the way of the categorical ones.

    `names` are the user's; the model may have been fitted under others.
    """
    schema, rows = predictor.schema, background.rows
    features = features_of(schema, rows, names)
    weigh = partial(swaps.marginal, features)
    if plan.neighbours:
        weigh = partial(swaps.conditional, features, rows, background.sigma, plan.neighbours)
    if plan.method == "swaps" or not features or schema.inner is None or schema.layout is None:
        floor = 8 * predictor.unit * background.output_spread
        effects = partial(swaps.swap_effects, predictor, features, floor)
        cost = sum(len(f.codes) for f in features)
        chosen = choose_engine(predictor, rows, engine, settings)
        return chosen, Categories(features, effects, weigh, cost)
    bounds = None if settings.bounds is None else data_bounds(schema.wide(rows))
    settings = replace(settings, bounds=bounds, validation=None)
    wide = replace(predictor, schema=schema.inner)
    whole = gradients.choose(wide, schema.wide(rows), engine, settings)
    effects = partial(induction.linear_effects, whole, schema.layout, features)
    return folded_engine(whole, schema), Categories(features, effects, weigh, 2 * schema.inner.width)


def words(why: Mapping[str, str], method: str, refit: induction.Refit | None) -> str:
    """A line for the explainer's repr, "" without categorical features."""
    if not why:
        return ""
    by_reason = {reason: [n for n, r in why.items() if r == reason] for reason in dict.fromkeys(why.values())}
    found = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in by_reason.items())
    line = f"  categorical  {found}; by {method}\n"
    if refit is not None:
        line += (
            f"               the refitted model disagrees by {refit.disagreement:.1%} on the training rows, "
            f"score {refit.refitted:.3f} against {refit.original:.3f}\n"
        )
    return line


# ---------------------------------------------------------------- the gradient of a folded model


def choose_engine(predictor: Predictor, rows: Array, engine: str, settings: Settings) -> Engine:
    """Choose the engine that differentiates the numeric features.

    Engines see the wide table, as the model does, with its one-hot columns marked as not to be moved;
    their answer is folded to one column a feature. `settings.bounds` are those of the wide table.
    """
    schema = predictor.schema
    if schema.layout is None or schema.inner is None:
        return _still(gradients.choose(predictor, rows, engine, settings), schema)
    folds = schema.layout.folds.values()
    if not all(fold.indicator for fold in folds):  # other codes cannot be marked: nothing is unfolded
        name = "finite-difference" if engine == "auto" else engine
        return gradients.choose(
            predictor, rows, name, replace(settings, bounds=schema.narrow(settings.bounds))
        )
    wide = replace(predictor, schema=_hardened(schema.inner, folds))
    return folded_engine(gradients.choose(wide, schema.wide(rows), engine, settings), schema)


def folded_engine(engine: Engine, schema: Schema) -> Engine:
    """Take rows of codes to an engine of the wide table, and its gradient back."""
    layout = schema.layout
    if layout is None:
        return engine

    def gradient(rows: Array) -> Gradient:
        found = engine.gradient(layout.unfold(rows))
        extras = {  # those per feature are (rows, features, outputs)
            name: layout.narrow(array) if array.ndim == 3 and array.shape[1] == layout.width else array
            for name, array in found.extras.items()
        }
        return replace(
            found,
            extras=extras,
            values=layout.narrow(found.values),
            error=layout.narrow(found.error),
            step=layout.narrow(found.step, fill=np.nan),
            flags=layout.narrow(found.flags),
        )

    return _still(replace(engine, gradient=gradient), schema)


def _still(engine: Engine, schema: Schema) -> Engine:
    """Categories have no derivative, whatever an engine makes of their codes."""
    coded = list(schema.levels)
    if not coded:
        return engine

    def gradient(rows: Array) -> Gradient:
        found = engine.gradient(rows)
        found.values[:, coded], found.error[:, coded] = 0.0, 0.0
        flags = found.flags.copy()  # may be one zero seen from everywhere
        flags[:, coded] = 0
        return replace(found, flags=flags)

    return replace(engine, gradient=gradient)


def _hardened(inner: Schema, folds: Iterable[Fold]) -> Schema:
    """Mark one-hot columns as categories of their own, with the codes 0 and 1 they already hold."""
    cells = {c: (0.0, 1.0) for fold in folds for c in fold.columns}
    return replace(inner, levels={**cells, **inner.levels})
