"""Which columns a fitted model itself takes for categories.

An integer column may be a number or a code; the model knows. A scikit-learn pipeline tells by its
encoders, boosted trees by the columns they were told to split by level. Models are asked by the name of
their type's library, so that none is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

ENCODERS = {"OneHotEncoder", "OrdinalEncoder", "TargetEncoder"}


def encoded_columns(model: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Give the names of the columns a model encodes or splits as categories, in table order."""
    for base in type(model).__mro__:
        ask = ASK.get(base.__module__.split(".")[0])
        if ask is not None:
            found = set(ask(model, tuple(names)))
            return tuple(name for name in names if name in found)
    return ()


def _sklearn(model: Any, names: tuple[str, ...]) -> list[str]:
    if type(model).__name__ in ENCODERS:
        return list(names)
    if hasattr(model, "transformers_"):  # ColumnTransformer
        parts = [
            (transformer, _picked(columns, names))
            for _, transformer, columns in model.transformers_
            if not isinstance(transformer, str)
        ]
        return [name for transformer, own in parts for name in _sklearn(transformer, own)]
    if hasattr(model, "steps"):  # imputers before an encoder leave the columns as they are
        whole = any(type(step).__name__ in ENCODERS for _, step in model.steps)
        return list(names) if whole else _sklearn(model.steps[0][1], names)
    mask = getattr(model, "is_categorical_", None)  # histogram gradient boosting
    return _at(np.flatnonzero(mask), names) if mask is not None else []


def _picked(columns: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """Resolve a ColumnTransformer's choice of columns: names, positions, a slice or a mask."""
    if isinstance(columns, str):
        return (columns,)
    if not isinstance(columns, slice):
        columns = list(columns)
        if not columns or isinstance(columns[0], str):
            return tuple(columns)
    return tuple(str(n) for n in np.array(names, dtype=object)[columns])


def _xgboost(model: Any, names: tuple[str, ...]) -> list[str]:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    return [n for n, kind in zip(names, booster.feature_types or (), strict=False) if kind == "c"]


def _lightgbm(model: Any, names: tuple[str, ...]) -> list[str]:
    booster = getattr(model, "booster_", model)
    columns = booster.params.get("categorical_column") or booster.params.get("categorical_feature")
    return _at(columns, names) if isinstance(columns, (list, tuple)) else []


def _catboost(model: Any, names: tuple[str, ...]) -> list[str]:
    return _at(model.get_cat_feature_indices(), names)


def _at(columns: Any, names: tuple[str, ...]) -> list[str]:
    return [
        c if isinstance(c, str) else names[int(c)] for c in columns if isinstance(c, str) or c < len(names)
    ]


ASK: dict[str, Callable[[Any, tuple[str, ...]], list[str]]] = {
    "sklearn": _sklearn,
    "imblearn": _sklearn,
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "catboost": _catboost,
}
