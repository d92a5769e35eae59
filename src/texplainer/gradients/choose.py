"""The one place where an engine is chosen.

Engines are tried in the order of `ENGINES`, exact ones first; finite differences fit every model. Those of `NEEDS`
are tried only on models whose library names them (`Library.engines`). An engine
differentiates numeric columns; the gradient of categorical columns is 0. One-hot columns that were combined into
one column of codes are expanded for the engine, as for the model.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from importlib import import_module

import numpy as np

from texplainer.errors import EngineWarning, InputError, Unsupported
from texplainer.gradients.engine import Engine, ExactShapley, Gradient, Settings
from texplainer.gradients.moves import smooth
from texplainer.models.libraries import library_called
from texplainer.models.predictor import Predictor
from texplainer.tables.onehot import ColumnGroup
from texplainer.tables.schema import Schema
from texplainer.types import Array

#: engine name -> its module, cheapest exact one first
ENGINES = {
    "closed-form": "closed_form.engine",
    "autodiff": "autodiff",
    "tree": "trees.engine",
    "finite-difference": "finite_difference",
}
#: engines of some libraries' models alone -> why a model of another library does not have them
NEEDS = {
    "closed-form": "the model is not from scikit-learn.",
    "autodiff": "the model is not a torch, JAX or Keras model.",
    "tree": "the model is not a tree ensemble.",
}


def choose_engine(predictor: Predictor, rows: Array, engine: str, settings: Settings) -> Engine:
    """Choose the engine that differentiates the numeric features.

    Engines see the wide table, as the model does, with its one-hot columns marked as not to be moved;
    their answer is folded to one column a feature. `settings.bounds` are those of the wide table,
    `settings.discrete` those of `rows`.
    """
    chosen = _differentiating(predictor, rows, engine, settings)
    if engine not in ("auto", "tree"):
        return chosen
    return replace(chosen, shapley=_shapley(predictor, rows, chosen.owner))


def _shapley(
    predictor: Predictor, rows: Array, owner: np.ndarray | None
) -> Callable[[], ExactShapley] | None:
    """The exact Shapley values of trees, whatever engine differentiates them; None for other models."""
    if not _possible("tree", predictor):
        return None

    @cache
    def prepared() -> ExactShapley | Unsupported:
        try:
            from texplainer.gradients.trees.shapley import tree_shapley

            return tree_shapley(predictor, rows, owner)
        except ModuleNotFoundError as error:
            return Unsupported(f"it needs the package {error.name!r}, which is not installed.")
        except Unsupported as reason:
            return reason

    def ask() -> ExactShapley:
        found = prepared()
        if isinstance(found, Unsupported):
            raise found
        return found

    return ask


def _differentiating(predictor: Predictor, rows: Array, engine: str, settings: Settings) -> Engine:
    """The engine for gradients with respect to the columns of the user's table."""
    schema = predictor.schema
    if schema.layout is None or schema.inner is None:
        return _zero_categorical_gradients(choose(predictor, rows, engine, settings), schema)
    groups = schema.layout.groups.values()
    if not all(group.indicator for group in groups):  # other codes cannot be marked: nothing is unfolded
        name = "finite-difference" if engine == "auto" else engine
        return choose(predictor, rows, name, replace(settings, bounds=schema.narrow(settings.bounds)))
    wide = replace(predictor, schema=_mark_onehot_categorical(schema.inner, groups))
    settings = replace(settings, discrete=settings.discrete.renumbered(schema.layout.places))
    return folded_engine(choose(wide, schema.wide(rows), engine, settings), schema)


def folded_engine(engine: Engine, schema: Schema) -> Engine:
    """Wrap an engine of the one-hot columns: it takes rows of codes and returns one value per feature."""
    layout = schema.layout
    if layout is None:
        return engine

    def gradient(rows: Array) -> Gradient:
        found = engine.gradient(layout.to_cells(rows))
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

    def replaced(rows: Array, row: np.ndarray, column: np.ndarray, values: Array) -> Array:
        assert engine.replaced is not None
        places = np.take(layout.places, column)
        return engine.replaced(layout.to_cells(rows), row, places, layout.to_cells(values))

    point = engine.point and folded_engine(engine.point, schema)
    folded = replace(
        engine,
        gradient=gradient,
        point=point,
        owner=None,  # it is that of the one-hot columns
        replaced=replaced if engine.replaced else None,
    )
    return _zero_categorical_gradients(folded, schema)


def _zero_categorical_gradients(engine: Engine, schema: Schema) -> Engine:
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

    return replace(
        engine, gradient=gradient, point=engine.point and _zero_categorical_gradients(engine.point, schema)
    )


def _mark_onehot_categorical(inner: Schema, groups: Iterable[ColumnGroup]) -> Schema:
    """Mark one-hot columns as categories of their own, with the codes 0 and 1 they already hold."""
    cells = {c: (0.0, 1.0) for group in groups for c in group.columns}
    return replace(inner, levels={**cells, **inner.levels})


def choose(predictor: Predictor, background: Array, engine: str, settings: Settings) -> Engine:
    """Build the engine asked for, or the first one that fits."""
    if engine != "auto" and engine not in ENGINES:
        raise InputError(f"engine={engine!r} is unknown; expected 'auto' or one of {', '.join(ENGINES)}.")
    if engine != "auto":
        try:
            built = _build(engine, predictor, background, settings)
        except Unsupported as reason:
            raise InputError(
                f"engine={engine!r} cannot explain this {type(predictor.model).__name__}: {reason} "
                "Use engine='auto' to take one that can."
            ) from None
        return replace(built, why="asked for")
    if settings.step != "auto":
        return _build(
            "finite-difference", predictor, background, settings
        )  # a step is a wish for differences
    refusals = []
    for name in ENGINES:
        try:
            built = _build(name, predictor, background, settings)
        except Unsupported as reason:
            refusals.append(f"{name}: {str(reason).removesuffix('.')}")
        else:
            # the reasons are reported only if no exact engine fits
            return built if built.exact else replace(built, why="; ".join(refusals))
    raise InputError(f"no engine can explain this {type(predictor.model).__name__}: {'; '.join(refusals)}")


def _possible(engine: str, predictor: Predictor) -> bool:
    """Whether the models of the predictor's library may have an engine; asked before its packages are imported."""
    possible = engine not in NEEDS or engine in library_called(predictor.kind).engines(predictor.model)
    if engine != "tree" or not possible:
        return possible
    from texplainer.gradients.trees.readers.table import find, split_pipeline

    return find(split_pipeline(predictor.model)[1]) is not None


def _build(name: str, predictor: Predictor, background: Array, settings: Settings) -> Engine:
    if not _possible(name, predictor):
        raise Unsupported(NEEDS[name])
    try:
        module = import_module(f"texplainer.gradients.{ENGINES[name]}")
    except ModuleNotFoundError as error:  # an extra is not installed
        missing = f"the {name} engine needs the package {error.name!r}, which is not installed."
        warnings.warn(f"{missing} The model may be explained as a black box.", EngineWarning, stacklevel=2)
        raise Unsupported(missing) from error
    return smooth(module.build(predictor, background, settings), predictor, background, settings)
