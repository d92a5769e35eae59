"""The engine of an explainer, whatever its columns are.

Engines differentiate numbers. Here columns of categories are kept still, and a table whose one-hot columns
are folded into one is shown to the engine as the model sees it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from texplainer.gradients.engine import Engine, Gradient, Settings, choose
from texplainer.models.predictor import Predictor
from texplainer.tables.onehot import ColumnGroup
from texplainer.tables.schema import Schema
from texplainer.types import Array


def choose_engine(predictor: Predictor, rows: Array, engine: str, settings: Settings) -> Engine:
    """Choose the engine that differentiates the numeric features.

    Engines see the wide table, as the model does, with its one-hot columns marked as not to be moved;
    their answer is folded to one column a feature. `settings.bounds` are those of the wide table.
    """
    schema = predictor.schema
    if schema.layout is None or schema.inner is None:
        return _zero_categorical_gradients(choose(predictor, rows, engine, settings), schema)
    groups = schema.layout.groups.values()
    if not all(group.indicator for group in groups):  # other codes cannot be marked: nothing is unfolded
        name = "finite-difference" if engine == "auto" else engine
        return choose(predictor, rows, name, replace(settings, bounds=schema.narrow(settings.bounds)))
    wide = replace(predictor, schema=_mark_onehot_categorical(schema.inner, groups))
    return folded_engine(choose(wide, schema.wide(rows), engine, settings), schema)


def folded_engine(engine: Engine, schema: Schema) -> Engine:
    """Take rows of codes to an engine of the wide table, and its gradient back."""
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

    def lines(starts: Array, weights: Array, groups: np.ndarray, rows: Array) -> Array:
        assert engine.lines is not None
        found = engine.lines(layout.to_cells(starts), weights, groups, layout.to_cells(rows))
        return layout.gathered(found, axis=2)

    def replaced(rows: Array, row: np.ndarray, column: np.ndarray, values: Array) -> Array:
        assert engine.replaced is not None
        places = np.take(layout.places, column)
        return engine.replaced(layout.to_cells(rows), row, places, layout.to_cells(values))

    point = engine.point and folded_engine(engine.point, schema)
    folded = replace(
        engine,
        gradient=gradient,
        point=point,
        lines=lines if engine.lines else None,
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
