"""The model libraries: one file each, one line each in `LIBRARIES`.

A library is found by the package name of the model's type. Base classes are looked up in order, so an
XGBClassifier, which is also a scikit-learn estimator, is matched to XGBoost. Any other callable is used as it
is. No library is imported before a model of it is passed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from texplainer.models.libraries.library import Library, ModelAdapter, ModelFile, split, transformed
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
FUNCTION = "function"  # models of any other origin
#: a model's method -> the scale it answers on
METHODS = {"predict_proba": "probability", "decision_function": "raw"}


def library_named(module: str) -> Library:
    """Return the library of the given module name."""
    return import_module(f"texplainer.models.libraries.{module}").LIBRARY


def every() -> dict[str, Library]:
    """Return all libraries, by the `kind` of their predictors."""
    modules = dict.fromkeys((*LIBRARIES.values(), FUNCTION))
    return {library.name: library for library in map(library_named, modules)}


def library_called(kind: str) -> Library:
    """Return the library of a predictor's `kind`."""
    return every().get(kind) or library_named(FUNCTION)


def file_readers() -> dict[str, tuple[Library, ModelFile]]:
    """Return the file types that libraries read, by suffix."""
    return {suffix: (library, file) for library in every().values() for suffix, file in library.files.items()}


def library_of(model: Any) -> Library:
    """Find the library of a model by its type and its bases."""
    for base in type(model).__mro__:
        module = LIBRARIES.get(base.__module__.split(".")[0])
        if module is not None:
            return library_named(module)
    return library_named(FUNCTION)


def unwrapped(model: Any) -> tuple[Any, str | None]:
    """Return the model inside a delegating wrapper, and the scale of the method, if a method was passed."""
    scale = None
    while True:
        scale = scale or getattr(model, "__name__", None)
        inner = library_of(model).unwrapped(model)
        if inner is model:
            return model, METHODS.get(scale or "")
        model = inner


def outlet_of(model: Any, schema: Schema) -> ModelAdapter:
    """Return the adapter of a model: how it is called, and with which table."""
    if schema.inner is not None:  # the model eats the wide table
        adapter = outlet_of(model, schema.inner)
        return replace(adapter, schema=replace(schema, inner=adapter.schema or schema.inner))
    adapter = library_of(model).adapter(model, schema)
    before, last = split(model)
    if not before or library_of(last).adapter is library_of(model).adapter:
        return adapter
    # the scales of a Pipeline are those of its last step
    own = library_of(last).adapter(last, schema)
    scales = {scale: partial(transformed, before, call) for scale, call in own.scales.items()}
    return replace(own, kind=adapter.kind, scales=scales, schema=adapter.schema)


def encoded_columns(model: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that a model encodes or splits as categories, in table order.

    An integer column may hold numbers or codes; the model's encoders decide.
    """
    model = unwrapped(model)[0]
    try:
        found = set(library_of(model).categories(model, tuple(names)))
    except Exception:  # it is not fitted; its adapter reports it
        return ()
    return tuple(name for name in names if name in found)


def known_levels(model: Any, names: Sequence[str], texts: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Return the categories that a model stores for its columns, by name.

    They are stored in the order of the columns, without their names: those that the model splits as categories,
    or the columns of text.
    """
    inner = unwrapped(model)[0]
    try:
        found = library_of(inner).known_levels(inner)
    except Exception:  # it is not fitted; its adapter reports it
        return {}
    for columns in (encoded_columns(model, names), [name for name in names if name in texts]):
        if found and len(columns) == len(found):
            return {name: list(levels) for name, levels in zip(columns, found, strict=True)}
    return {}


def absent_value(model: Any) -> float:
    """Return what a model, or the last step of a Pipeline, takes a value for that a sparse table does not store."""
    model = unwrapped(model)[0]
    return library_of(split(model)[1]).absent


def feature_names(model: Any) -> tuple[str, ...] | None:
    """Return the column names a model was fitted with; generated default names do not count."""
    model = unwrapped(model)[0]
    try:
        found = library_of(model).feature_names(model)
    except Exception:  # it is not fitted; predict will raise an error
        return None
    if found is None or not len(found):
        return None
    names = tuple(str(name) for name in found)
    return None if all(re.fullmatch(r"(Column_|f)?\d+", name) for name in names) else names
