"""What is stated of one model library, and what it finds out about one model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.tables.schema import Schema


@dataclass(frozen=True)
class ModelAdapter:
    """How one model is called, on every scale it can be explained on.

    `scales` maps a scale to the function that predicts all outputs on it; `names` are the outputs'
    names (empty: unknown until the first call); `labels` maps a class label to its output.
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


def _itself(model: Any) -> Any:
    return model


def _nothing(model: Any) -> None:
    pass


@dataclass(frozen=True)
class ModelFile:
    """A kind of file a library writes its models to, as its own reader takes it.

    `read` is (path, threads) -> model, where 0 threads are as many as the library takes by itself; `ask`
    has the model predict one row, which shows a damaged file whose reader was content; `openings` are the
    bytes such a file may begin with (none: any); `package` is imported before.
    """

    package: str
    read: Callable[[Path, int], Any]
    openings: tuple[bytes, ...] = ()
    ask: Callable[[Any], object] = _nothing


@dataclass(frozen=True)
class Library:
    """One library of models.

    Attributes
    ----------
    name
        What a predictor calls it.
    outlet
        (model, schema) -> how the model is called.
    categories
        (model, column names) -> the columns the model itself encodes or splits as categories.
    feature_names
        model -> the columns it was fitted with, None where it does not tell.
    unwrapped
        model -> the model inside one that only hands on its predictions, or the model itself.
    without_encoder
        model -> what remains of it when its columns of categories are already numbers.
    content
        model -> what tells it from another model of its type, the same in every process; None where only
        its predictions do.
    trees
        Whether its models are ensembles of trees.
    files
        Suffix -> the files its own reader takes.
    remedy
        What to do about a model that cannot be sent to other processes.
    """

    name: str
    adapter: Callable[[Any, Schema], ModelAdapter]
    categories: Callable[[Any, tuple[str, ...]], list[str]] = _no_categories
    feature_names: Callable[[Any], Sequence[Any] | None] = _unknown
    unwrapped: Callable[[Any], Any] = _itself
    without_encoder: Callable[[Any], Any] = _itself
    content: Callable[[Any], Any] | None = _itself
    trees: bool = False
    files: Mapping[str, ModelFile] = field(default_factory=dict)
    remedy: str = (
        "Rebuild the model from parts that can be pickled (no lambdas, open files, sessions or locks)"
    )


#: what to do with estimators that predict only when they are made so
REMEDIES = {
    **dict.fromkeys(
        ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV"),
        "Search with refit=True, or pass the model that you refitted",
    ),
    "LocalOutlierFactor": "Make it with novelty=True",
}


def no_model(model: Any) -> InputError:
    """Say that something predicts nothing, and by which of its methods it might."""
    name = type(model).__name__
    methods = [m for m in dir(type(model)) if m.startswith("predict_")]
    if methods:
        others = f" or {', '.join(methods[1:4])}" if methods[1:] else ""
        remedy = f"Pass one of its methods, as model.{methods[0]}{others}"
    else:
        remedy = "Pass a fitted model"
    return InputError(
        f"a {type(model).__module__}.{name} is no model: it has no predict method and is not callable. "
        f"{REMEDIES.get(name, remedy)}, or a function from rows to predictions."
    )


def at(columns: Any, names: tuple[str, ...]) -> list[str]:
    """Give the names of columns that are told by name or by position."""
    return [
        c if isinstance(c, str) else names[int(c)] for c in columns if isinstance(c, str) or c < len(names)
    ]
