"""LightGBM: boosters and their scikit-learn wrappers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from texplainer.errors import ModelWarning
from texplainer.models.libraries import Library, ModelAdapter, ModelFile, at, trial_rows
from texplainer.models.libraries.sklearn import check_fitted, estimator
from texplainer.models.scales import both_classes, softmax_log_odds, two_sided
from texplainer.support.messages import some
from texplainer.tables.schema import Schema


def _outlet(model: Any, schema: Schema) -> ModelAdapter:
    check_fitted(model)
    booster = getattr(model, "booster_", model)
    _compare_names(booster.feature_name(), schema)
    score = partial(model.predict, raw_score=True)
    objective, steepness = _link(booster)
    if booster is model:
        if objective not in LOG_ODDS:
            return ModelAdapter("lightgbm", "regression", {"raw": model.predict, "log-odds": score}, "raw")
        scales = _classes(objective, steepness, score, lambda t: both_classes(model.predict(t)))
        binary = objective in BINARY
        names, labels = (("0", "1"), {0: 0, 1: 1}) if binary else ((), {})
        return ModelAdapter("lightgbm", "classification", scales, "log-odds", names, labels)
    adapter = replace(estimator(model, schema), kind="lightgbm")
    if getattr(model, "feature_name_", None) and schema.kind != "array":  # it keeps names its own way
        adapter = replace(adapter, schema=None)
    if adapter.task == "regression":
        return replace(adapter, scales={"raw": model.predict, "log-odds": score})
    if objective not in LOG_ODDS:  # an objective of the user's: only its scores are known
        return replace(adapter, scales={"raw": lambda t: two_sided(score(t))}, default="raw")
    scales = _classes(objective, steepness, score, adapter.scales["probability"])
    return replace(adapter, scales=scales, default="log-odds")


def _compare_names(fitted: list[str], schema: Schema) -> None:
    """Warn of columns in another order: LightGBM takes them by position, whatever their names."""
    if schema.named and tuple(fitted) != schema.names and set(fitted) == set(schema.names):
        warnings.warn(
            f"the LightGBM model was fitted with the columns {some(fitted)} and the background has them in the "
            f"order {some(schema.names)}. LightGBM takes columns by position: its predictions are those of "
            "other columns. Reorder the background.",
            ModelWarning,
            stacklevel=5,
        )


def _link(booster: Any) -> tuple[str, float]:
    """Return a booster's objective, and the factor from its scores to its log-odds."""
    found = booster.dump_model(num_iteration=1)
    name, *options = found.get("objective", "").split(" ") or [""]
    steepness = next((float(option[8:]) for option in options if option.startswith("sigmoid:")), 1.0)
    if found.get("average_output"):  # a forest: its raw score is the sum, its prediction the mean
        used = booster.best_iteration if booster.best_iteration > 0 else booster.current_iteration()
        steepness /= used
    return name, steepness


def _classes(
    objective: str, steepness: float, score: Callable[[Any], Any], probability: Callable[[Any], Any]
) -> dict[str, Callable[[Any], Any]]:
    odds = LOG_ODDS[objective]
    return {
        "probability": probability,
        "log-odds": lambda t: odds(steepness * score(t)),
        "raw": lambda t: two_sided(score(t)),
    }


BINARY = ("binary", "cross_entropy")
#: objectives of classifiers -> their log-odds from their scores; one-against-all does not sum to 1
LOG_ODDS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(BINARY, two_sided),
    "multiclass": softmax_log_odds,
    "multiclassova": lambda z: z,
}


def _categories(model: Any, names: tuple[str, ...]) -> list[str]:
    booster = getattr(model, "booster_", model)
    columns = booster.params.get("categorical_column") or booster.params.get("categorical_feature")
    return at(columns, names) if isinstance(columns, (list, tuple)) else []


def _read(path: Path, threads: int) -> Any:
    from lightgbm import Booster

    return Booster({"num_threads": threads} if threads else None, model_file=path)


def _ask(model: Any) -> None:
    for rows in trial_rows(model.num_feature()):
        model.predict(rows, num_threads=1)


LIBRARY = Library(
    "lightgbm",
    _outlet,
    categories=_categories,
    known_levels=lambda model: getattr(model, "booster_", model).pandas_categorical or (),
    feature_names=lambda model: getattr(model, "booster_", model).feature_name(),
    trees=True,
    engines=lambda model: ("tree",),
    files={".txt": ModelFile("lightgbm", _read, openings=(b"tree\n", b"tree\r\n"), ask=_ask)},
)
