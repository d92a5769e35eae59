"""Models of other origin: objects with the methods of estimators, and functions from rows to predictions."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

from texplainer.errors import InputError, ModelWarning
from texplainer.models.libraries import Library, ModelAdapter, no_model
from texplainer.models.libraries.sklearn import detects_outliers, estimator
from texplainer.tables.schema import Schema


def _outlet(model: Any, schema: Schema) -> ModelAdapter:
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
        return estimator(model, schema)
    raise no_model(model)


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


def _unwrapped(model: Any) -> Any:
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


LIBRARY = Library(
    "callable",
    _outlet,
    feature_names=lambda model: getattr(model, "feature_names_in_", None),
    unwrapped=_unwrapped,
    content=None,
    remedy="Define the function with `def` at the top level of a module the workers can import",
)
