"""The model libraries: one file each, one line each in `LIBRARIES`.

A library is found by the package name of the model's type. Base classes are looked up in order, so an
XGBClassifier, which is also a scikit-learn estimator, is matched to XGBoost. Any other callable is used as it
is. No library is imported before a model of it is passed. A `Library` describes one, a `ModelAdapter` one model.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.errors import InputError, ModelError, ModelWarning, Unsupported
from texplainer.support.messages import describe
from texplainer.tables.schema import Schema


@dataclass(frozen=True)
class ModelAdapter:
    """How a model is called, on each of its scales.

    `scales` maps a scale to a function that predicts all outputs on it; `names` are the outputs' names
    (empty: unknown until the first call); `labels` maps a class label to its output.
    """

    kind: str
    task: str
    scales: Mapping[str, Callable[[Any], Any]]
    default: str
    names: tuple[str, ...] = ()
    labels: Mapping[Any, int] = field(default_factory=dict)
    dtype: type = np.float64
    schema: Schema | None = None  # the table the model wants, where it differs from the user's
    ending: str = ""  # of a network that gives probabilities: "sigmoid" or "softmax"
    unit: float | None = None  # the model's relative rounding, where it computes in less than float32
    doubt: str = ""  # why its outputs can hardly be taken for the scores of classes


def _unknown(model: Any) -> Sequence[Any] | None:
    return None


def _no_categories(model: Any, names: tuple[str, ...]) -> list[str]:
    return []


def _no_engines(model: Any) -> tuple[str, ...]:
    return ()


def _no_levels(model: Any) -> Sequence[Sequence[Any]]:
    return ()


def _itself(model: Any) -> Any:
    return model


def _nothing(model: Any) -> None:
    pass


@dataclass(frozen=True)
class ModelFile:
    """A file type in which a library saves its models.

    `read` is (path, threads) -> model, where 0 threads means the library's default; `ask` predicts some rows,
    which reveals a damaged file that the reader accepted; `openings` are the bytes such a file may start with
    (empty: any); `package` is imported first.
    """

    package: str
    read: Callable[[Path, int], Any]
    openings: tuple[bytes, ...] = ()
    ask: Callable[[Any], object] = _nothing


def trial_rows(width: int) -> Iterator[np.ndarray]:
    """Rows to try a model on, so that many branches of its trees are taken: values, categories, missing."""
    values = np.random.default_rng(0)
    yield np.zeros((1, width))
    yield np.concatenate([values.normal(size=(64, width)) * 10.0**k for k in range(-2, 5)])
    yield values.integers(0, 100, (64, width)).astype(float)
    yield np.full((1, width), np.nan)
    yield np.concatenate([np.full((1, width), end) for end in (-1e30, 1e30)])


@dataclass(frozen=True)
class Library:
    """One library of models.

    Attributes
    ----------
    name
        The `kind` of its predictors.
    outlet
        (model, schema) -> how the model is called.
    categories
        (model, column names) -> the columns the model itself encodes or splits as categories.
    known_levels
        model -> the categories of the columns that it was fitted with as categories, in the columns' order.
    feature_names
        model -> the columns it was fitted with, None if unknown.
    unwrapped
        model -> the model inside a delegating wrapper, or the model itself.
    without_encoder
        model -> the model without the step that encodes categories.
    content
        model -> content that identifies it, the same in every process; None if only its predictions do.
    absent
        What its models take a value for that a scipy sparse table does not store.
    trees
        Whether its models are ensembles of trees.
    engines
        model -> the exact engines (`ENGINES` of `gradients/choose`) that may differentiate it; no other is tried.
    files
        Suffix -> the files its own reader takes.
    remedy
        What to do if a model cannot be sent to other processes.
    """

    name: str
    adapter: Callable[[Any, Schema], ModelAdapter]
    categories: Callable[[Any, tuple[str, ...]], list[str]] = _no_categories
    known_levels: Callable[[Any], Sequence[Sequence[Any]]] = _no_levels
    feature_names: Callable[[Any], Sequence[Any] | None] = _unknown
    unwrapped: Callable[[Any], Any] = _itself
    without_encoder: Callable[[Any], Any] = _itself
    content: Callable[[Any], Any] | None = _itself
    absent: float = 0.0
    trees: bool = False
    engines: Callable[[Any], tuple[str, ...]] = _no_engines
    files: Mapping[str, ModelFile] = field(default_factory=dict)
    remedy: str = (
        "Rebuild the model from parts that can be pickled (no lambdas, open files, sessions or locks)"
    )


#: estimators that predict only with certain settings -> the remedy
REMEDIES = {
    **dict.fromkeys(
        ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV"),
        "Search with refit=True, or pass the model that you refitted",
    ),
    "LocalOutlierFactor": "Make it with novelty=True",
}


def split(model: Any) -> tuple[list[Any], Any]:
    """Split a Pipeline into the steps before the last one, and the last step."""
    if type(model).__name__ != "Pipeline":
        return [], model
    after, last = split(model.steps[-1][1])
    return [*([model[:-1]] if len(model.steps) > 1 else []), *after], last


def transformed(before: list[Any], call: Callable[[Any], Any], table: Any) -> Any:
    """Call a Pipeline's last step with the table that it is given."""
    for transformer in before:
        table = transformer.transform(table)
    return call(table)


def no_model(model: Any) -> InputError:
    """Return the error for an object that is not a model, with the methods that might be passed instead."""
    name = type(model).__name__
    methods = [m for m in dir(type(model)) if m.startswith("predict_")]
    if methods:
        others = f" or {', '.join(methods[1:4])}" if methods[1:] else ""
        remedy = f"Pass one of its methods, as model.{methods[0]}{others}"
    else:
        remedy = "Pass a fitted model"
    return InputError(
        f"a {type(model).__module__}.{name} is not a model: it does not have a predict method and is not "
        "callable. "
        f"{REMEDIES.get(name, remedy)}, or a function from rows to predictions."
    )


def at(columns: Any, names: tuple[str, ...]) -> list[str]:
    """Return the names of columns given by name or by position."""
    return [
        c if isinstance(c, str) else names[int(c)] for c in columns if isinstance(c, str) or c < len(names)
    ]


# ---------------------------------------------------------------- the table


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
#: a model's method -> the scale it answers on
METHODS = {"predict_proba": "probability", "decision_function": "raw"}


def library_named(module: str) -> Library:
    """Return the library of the given module name."""
    return import_module(f"texplainer.models.libraries.{module}").LIBRARY


def every() -> dict[str, Library]:
    """Return all libraries, by the `kind` of their predictors."""
    named = map(library_named, dict.fromkeys(LIBRARIES.values()))
    return {library.name: library for library in (*named, FUNCTIONS)}


def library_called(kind: str) -> Library:
    """Return the library of a predictor's `kind`."""
    return every().get(kind) or FUNCTIONS


def file_readers() -> dict[str, tuple[Library, ModelFile]]:
    """Return the file types that libraries read, by suffix."""
    return {suffix: (library, file) for library in every().values() for suffix, file in library.files.items()}


def library_of(model: Any) -> Library:
    """Find the library of a model by its type and its bases."""
    for base in type(model).__mro__:
        module = LIBRARIES.get(base.__module__.split(".")[0])
        if module is not None:
            return library_named(module)
    return FUNCTIONS


def unwrapped(model: Any) -> tuple[Any, str | None]:
    """Return the model inside a delegating wrapper, and the scale of the method, if a method was passed."""
    scale = None
    with examining(model):
        while True:
            scale = scale or getattr(model, "__name__", None)
            inner = library_of(model).unwrapped(model)
            if inner is model:
                return model, METHODS.get(scale) if isinstance(scale, str) else None
            model = inner


@contextmanager
def examining(model: Any) -> Iterator[None]:
    """Name the model whose own attributes fail when they are read."""
    try:
        yield
    except (InputError, ModelError, Unsupported):
        raise
    except Exception as error:
        raise ModelError(
            f"{describe(model)} cannot be examined: reading its attributes raised {type(error).__name__}. Pass a "
            "function that calls its predict method."
        ) from error


def outlet_of(model: Any, schema: Schema) -> ModelAdapter:
    """Return the adapter of a model: how it is called, and with which table."""
    with examining(model):
        return _outlet_of(model, schema)


def _outlet_of(model: Any, schema: Schema) -> ModelAdapter:
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
        names = () if found is None else tuple(str(name) for name in found)
    except Exception:  # it is not fitted; predict will raise an error
        return None
    if not names:
        return None
    return None if all(re.fullmatch(r"(Column_|f)?\d+", name) for name in names) else names


# ---------------------------------------------------------------- models of other origin


def _any_model(model: Any, schema: Schema) -> ModelAdapter:
    if isinstance(model, type):
        raise InputError(
            f"the class {model.__name__} was passed; expected a fitted model. Create and fit an instance "
            "first, "
            f"{model.__name__}(...).fit(X, y)."
        )
    if callable(model):
        _doubt_labels(model)
        return ModelAdapter("callable", "regression", {"raw": model}, "raw")
    if hasattr(model, "predict_proba") or hasattr(model, "predict"):
        return library_named("sklearn").adapter(model, schema)
    raise no_model(model)


def detects_outliers(model: Any) -> bool:
    """Return whether an estimator's decision function is an outlier score, not a class score."""
    return hasattr(model, "decision_function") and not hasattr(model, "classes_")


def _doubt_labels(model: Any) -> None:
    """Warn if the function returns labels: near most rows the label is constant, so the values are 0."""
    owner = getattr(model, "__self__", None)
    if getattr(model, "__name__", "") == "predict" and hasattr(owner, "classes_"):
        name = type(owner).__name__
        warnings.warn(
            f"{name}.predict returns labels, which are piecewise constant: rows far from a decision "
            f"boundary get zeros. Pass the {name} itself, or its predict_proba.",
            ModelWarning,
            stacklevel=5,
        )


def _model_of_method(model: Any) -> Any:
    """Return the model of a bound method."""
    if isinstance(model, partial) and not model.args and not model.keywords:
        return model.func
    owner = getattr(model, "__self__", None)
    if owner is None or not hasattr(owner, "predict"):
        return model
    name = getattr(model, "__name__", "")
    if name == "predict_proba" and detects_outliers(owner):
        return model  # itself it is explained by its score
    regressor = not hasattr(owner, "classes_") and not hasattr(owner, "predict_proba")
    return (
        owner
        if name in ("predict_proba", "decision_function") or (name == "predict" and regressor)
        else model
    )


def uses_jax(function: Any) -> bool:
    """Whether a plain function names a module of JAX; only then is it traced, and never for a guess."""
    code = getattr(function, "__code__", None)
    if code is None or "jax" not in sys.modules:
        return False
    named = (function.__globals__.get(name) for name in code.co_names)
    return any(getattr(value, "__name__", "").split(".")[0] == "jax" for value in named)


def _engines_of(model: Any) -> tuple[str, ...]:
    if not hasattr(model, "__code__"):  # an object, which may have an entry in `TREE_READERS`
        return ("tree",)
    return ("autodiff",) if uses_jax(model) else ()


FUNCTIONS = Library(
    "callable",
    _any_model,
    feature_names=lambda model: getattr(model, "feature_names_in_", None),
    unwrapped=_model_of_method,
    content=None,
    engines=_engines_of,
    remedy="Define the function with `def` at the top level of a module the workers can import",
)
