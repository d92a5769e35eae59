"""The model libraries: one file each, one line each in `LIBRARIES`.

A library is found by the name of the package a model's type comes from; a type's bases are looked up in
order, so that an XGBClassifier, which is also a scikit-learn estimator, meets XGBoost first. Any other
callable is taken as it is. No library is imported before a model of it is at hand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from texplainer.models.libraries.library import Library, ModelAdapter, ModelFile
from texplainer.tables.schema import Schema

#: the package of a type -> the module here that holds its `LIBRARY`
LIBRARIES = {
    "sklearn": "sklearn",
    "imblearn": "sklearn",
    "xgboost": "xgboost",
    "lightgbm": "lightgbm",
    "catboost": "catboost",
    "torch": "torch",
    "keras": "keras",
    "jax": "jax",
    "jaxlib": "jax",
    "onnxruntime": "onnx",
    "skorch": "skorch",
}
FUNCTION = "function"  # whatever comes from none of them
#: a model's method -> the scale it answers on
METHODS = {"predict_proba": "probability", "decision_function": "raw"}


def library_named(module: str) -> Library:
    """Give one library of the table by its module's name."""
    return import_module(f"texplainer.models.libraries.{module}").LIBRARY


def every() -> dict[str, Library]:
    """All libraries of the table, by the name a predictor calls them."""
    modules = dict.fromkeys((*LIBRARIES.values(), FUNCTION))
    return {library.name: library for library in map(library_named, modules)}


def library_called(kind: str) -> Library:
    """The library a predictor's kind means."""
    return every().get(kind) or library_named(FUNCTION)


def file_readers() -> dict[str, tuple[Library, ModelFile]]:
    """The files that libraries read by themselves, by their suffix."""
    return {suffix: (library, file) for library in every().values() for suffix, file in library.files.items()}


def library_of(model: Any) -> Library:
    """Find the library of a model by its type and its bases."""
    for base in type(model).__mro__:
        module = LIBRARIES.get(base.__module__.split(".")[0])
        if module is not None:
            return library_named(module)
    return library_named(FUNCTION)


def unwrapped(model: Any) -> tuple[Any, str | None]:
    """Give the model inside what only hands on its predictions, and the scale a method of it answers on."""
    scale = None
    while True:
        scale = scale or getattr(model, "__name__", None)
        inner = library_of(model).unwrapped(model)
        if inner is model:
            return model, METHODS.get(scale or "")
        model = inner


def outlet_of(model: Any, schema: Schema) -> ModelAdapter:
    """Find out how a model is called, and with which table."""
    if schema.inner is not None:  # the model eats the wide table
        adapter = outlet_of(model, schema.inner)
        return replace(adapter, schema=replace(schema, inner=adapter.schema or schema.inner))
    return library_of(model).adapter(model, schema)


def encoded_columns(model: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Give the names of the columns a model encodes or splits as categories, in table order.

    An integer column may be a number or a code; the model knows.
    """
    model = unwrapped(model)[0]
    found = set(library_of(model).categories(model, tuple(names)))
    return tuple(name for name in names if name in found)


def feature_names(model: Any) -> tuple[str, ...] | None:
    """Give the columns a model names as its own; names it made up itself do not count."""
    model = unwrapped(model)[0]
    try:
        found = library_of(model).feature_names(model)
    except Exception:  # it is not fitted, and says so when it is asked to predict
        return None
    if found is None or not len(found):
        return None
    names = tuple(str(name) for name in found)
    return None if all(re.fullmatch(r"(Column_|f)?\d+", name) for name in names) else names
