"""Which reader takes which model: a table by the name of a type's library and class."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from texplainer.errors import Unsupported
from texplainer.gradients.trees.ensemble import TreeEnsemble

#: library and class (of the model or one of its bases) -> module and function
TREE_READERS = {
    "xgboost.Booster": ("xgboost", "load"),
    "xgboost.XGBModel": ("xgboost", "load"),
    "lightgbm.Booster": ("lightgbm", "load"),
    "lightgbm.LGBMModel": ("lightgbm", "load"),
    "catboost.CatBoost": ("catboost", "load"),
    "sklearn.BaseDecisionTree": ("sklearn", "load_forest"),
    "sklearn.BaseForest": ("sklearn", "load_forest"),
    "sklearn.BaseGradientBoosting": ("sklearn", "load_boosting"),
    "sklearn.BaseHistGradientBoosting": ("sklearn", "load_histogram"),
    **dict.fromkeys(
        (f"sklearn.{kind}{task}" for kind in ("Bagging", "Voting") for task in ("Classifier", "Regressor")),
        ("averages", "load_average"),
    ),
    "sklearn.AdaBoostClassifier": ("averages", "load_votes"),
}
#: loaders of a model made of others -> the loaders its members may have
MADE_OF = {"load_average": ("load_forest", "load_average"), "load_votes": ("load_forest",)}


def load(model: Any) -> TreeEnsemble:
    """Read a fitted tree ensemble, or raise `Unsupported` with the reason."""
    entry = find(model)
    if entry is None:
        raise Unsupported(f"a {type(model).__name__} is not a supported tree ensemble.")
    module, function = entry
    try:
        return getattr(import_module(f"texplainer.gradients.trees.readers.{module}"), function)(model)
    except Unsupported as reason:
        raise Unsupported(f"this {type(model).__name__} cannot be read as trees: {reason}") from None
    except Exception as error:  # whatever a library raises: another engine will do
        raise Unsupported(
            f"this {type(model).__name__} cannot be read as trees ({type(error).__name__}: {error}); "
            "its library may have changed its format."
        ) from error


def find(model: Any) -> tuple[str, str] | None:
    """Look up the reader of a model by its own type and its bases."""
    for base in type(model).__mro__:
        entry = TREE_READERS.get(f"{base.__module__.split('.')[0]}.{base.__name__}")
        if entry is not None:
            return entry if _readable_members(model, entry[1]) else None
    return None


def _readable_members(model: Any, loader: str) -> bool:
    if loader not in MADE_OF:
        return True
    found = [find(member) for member in getattr(model, "estimators_", ())]
    return bool(found) and all(entry is not None and entry[1] in MADE_OF[loader] for entry in found)
