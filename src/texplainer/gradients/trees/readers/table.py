"""Which reader takes which model: a table by the name of a type's library and class."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.gradients.trees.ensemble import TreeEnsemble
from texplainer.tables.schema import Schema
from texplainer.types import Array

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
        ("sklearn.BaggingClassifier", "sklearn.BaggingRegressor", "sklearn.VotingClassifier"),
        ("averages", "load_average"),
    ),
    "sklearn.AdaBoostClassifier": ("averages", "load_votes"),
    "sksurv._BaseSurvivalForest": ("sklearn", "load_survival"),
    "sksurv.SurvivalTree": ("sklearn", "load_survival"),
    "sklearn.VotingRegressor": ("sums", "load_vote"),
    "sklearn.StackingRegressor": ("sums", "load_stack"),
    "sklearn.MultiOutputRegressor": ("sums", "load_targets"),
}
#: library and class of models that are not a sum of their trees -> the reason
NOT_A_SUM = {
    "sklearn.AdaBoostRegressor": "it predicts the weighted median of its trees, which is not a sum of them.",
    "sklearn.IsolationForest": "its score is a power of the mean depth of its trees, which is not a sum of them.",
    "sklearn.CalibratedClassifierCV": "a calibrated probability is a curve of the sum of trees, which is not a sum.",
    "sklearn.StackingClassifier": "its final estimator sees probabilities, and its own is not a sum of trees.",
    "sklearn.ClassifierChain": "each of its models sees the labels that the ones before it predict.",
    "sklearn.RegressorChain": "each of its models sees what the ones before it predict.",
    "sklearn.MultiOutputClassifier": "it has one classifier for each label; explain model.estimators_[0] and so on.",
    "sklearn.OneVsRestClassifier": "its probabilities are divided by their sum, which is not a sum of trees.",
    "quantile_forest.BaseForestQuantileRegressor": "it predicts quantiles of the leaves' rows, not a sum of trees.",
}
#: loaders of a model made of others -> the loaders its members may have
ANY = tuple({function for _, function in TREE_READERS.values()})
MADE_OF = {
    "load_average": ("load_forest", "load_average"),
    "load_votes": ("load_forest",),
    **dict.fromkeys(("load_vote", "load_stack", "load_targets"), ANY),
}


def split_pipeline(model: Any) -> tuple[list[Any], Any]:
    """The transformers before the last step of a Pipeline, and that step; other models are all last step."""
    if not (hasattr(model, "steps") and model.steps):
        return [], model
    after, last = split_pipeline(model.steps[-1][1])
    return [*([model[:-1]] if len(model.steps) > 1 else []), *after], last


def load(model: Any) -> TreeEnsemble:
    """Read a fitted tree ensemble, or raise `Unsupported` with the reason."""
    entry = find(model)
    if entry is None:
        raise Unsupported(f"a {type(model).__name__} is not a supported tree ensemble.")
    module, function = entry
    if function in NOT_A_SUM:
        raise Unsupported(f"this {type(model).__name__} cannot be read as trees: {NOT_A_SUM[function]}")
    try:
        return getattr(import_module(f"texplainer.gradients.trees.readers.{module}"), function)(model)
    except Unsupported as reason:
        raise Unsupported(f"this {type(model).__name__} cannot be read as trees: {reason}") from None
    except Exception as error:  # whatever a library raises: another engine will do
        raise Unsupported(
            f"this {type(model).__name__} cannot be read as trees ({type(error).__name__}: {error}); "
            "its library may have changed its format."
        ) from error


def not_a_sum(model: Any) -> str | None:
    """Why a model made of trees is not a sum of them; None for others."""
    entry = find(model)
    return None if entry is None else NOT_A_SUM.get(entry[1])


def find(model: Any) -> tuple[str, str] | None:
    """Look up the reader of a model by its own type and its bases.

    Of a model that is not a sum of its trees: the name in `NOT_A_SUM`, for which `load` raises the reason.
    """
    for base in type(model).__mro__:
        name = f"{base.__module__.split('.')[0]}.{base.__name__}"
        entry = ("", name) if name in NOT_A_SUM else TREE_READERS.get(name)
        if entry is not None:
            return entry if _readable_members(model, entry[1]) else None
    return None


def _readable_members(model: Any, loader: str) -> bool:
    if loader not in MADE_OF and loader not in NOT_A_SUM:
        return True
    members = getattr(model, "estimators_", None) or getattr(model, "calibrated_classifiers_", ())
    found = [
        find(getattr(member, "estimator", None) if loader.endswith("CV") else member) for member in members
    ]
    return bool(found) and all(
        entry is not None and entry[1] in MADE_OF.get(loader, (entry[1],)) for entry in found
    )


def cells_of(schema: Schema, rows: Array, codes: Sequence[tuple[int, dict[Any, float]]] = ()) -> Array:
    """Codes of numeric levels as their values; of a categorical dtype codes, as the libraries read them.

    Where the model makes its `codes` itself (`TreeEnsemble`) these; NaN for a category that it does not know.
    """
    numbers = [
        j
        for j, levels in schema.levels.items()
        if levels and schema.dtypes.get(j) is None and all(isinstance(v, (int, float)) for v in levels)
    ]
    own = [(j, known) for j, known in codes if j in schema.levels and j not in numbers]
    if not numbers and not own:
        return rows
    out, gaps = rows.copy(), np.isnan(rows)
    filled = np.where(gaps, 0.0, rows)
    for j in numbers:
        out[:, j] = np.where(gaps[:, j], np.nan, schema.column(filled, j).astype(float))
    for j, known in own:
        cells, which = np.unique(rows[:, j], return_inverse=True)
        one = np.zeros((len(cells), schema.width))
        one[:, j] = cells
        out[:, j] = np.array([known.get(name, np.nan) for name in schema.column(one, j)])[which.ravel()]
    return out
