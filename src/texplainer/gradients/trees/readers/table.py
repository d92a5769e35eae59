"""Which loader reads which model: a table by the name of a type's library and class."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from texplainer.gradients import Unsupported
from texplainer.gradients.tree_ensemble import TreeEnsemble

#: library and class (of the model or one of its bases) -> module and function
LOADERS = {
    "xgboost.Booster": ("tree_xgboost", "load"),
    "xgboost.XGBModel": ("tree_xgboost", "load"),
    "lightgbm.Booster": ("tree_lightgbm", "load"),
    "lightgbm.LGBMModel": ("tree_lightgbm", "load"),
    "catboost.CatBoost": ("tree_catboost", "load"),
    "sklearn.BaseDecisionTree": ("tree_sklearn", "load_forest"),
    "sklearn.BaseForest": ("tree_sklearn", "load_forest"),
    "sklearn.BaseGradientBoosting": ("tree_sklearn", "load_boosting"),
    "sklearn.BaseHistGradientBoosting": ("tree_sklearn", "load_histogram"),
}


def load(model: Any) -> TreeEnsemble:
    """Read a fitted tree ensemble, or raise `Unsupported` with the reason."""
    entry = find(model)
    if entry is None:
        raise Unsupported(f"a {type(model).__name__} is no tree ensemble that can be read.")
    module, function = entry
    try:
        return getattr(import_module(f"texplainer.gradients.{module}"), function)(model)
    except Unsupported as reason:
        raise Unsupported(f"this {type(model).__name__} cannot be read as trees: {reason}") from None
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise Unsupported(
            f"this {type(model).__name__} cannot be read as trees ({type(error).__name__}: {error}); "
            "its library may have changed its format."
        ) from error


def find(model: Any) -> tuple[str, str] | None:
    """Look up the loader of a model by its own type and its bases."""
    for base in type(model).__mro__:
        entry = LOADERS.get(f"{base.__module__.split('.')[0]}.{base.__name__}")
        if entry is not None:
            return entry
    return None
