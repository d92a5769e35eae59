"""The description of a model library (`Library`) and of one model (`ModelAdapter`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.errors import InputError
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
