"""XGBoost: boosters and their scikit-learn wrappers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from texplainer.errors import InputError
from texplainer.models.libraries import Library, ModelAdapter, ModelFile, trial_rows
from texplainer.models.libraries.sklearn import estimator
from texplainer.models.scales import both_classes, softmax_log_odds, two_sided
from texplainer.tables.schema import Schema


def _outlet(model: Any, schema: Schema) -> ModelAdapter:
    if type(model).__name__ == "Booster":
        _check_trained(model)
        return _booster(model, schema)
    adapter = estimator(model, schema)
    margin = partial(model.predict, output_margin=True)
    if adapter.task == "regression":
        scales = {"raw": model.predict, "log-odds": margin}
        return replace(adapter, kind="xgboost", scales=scales, dtype=np.float32)
    objective, targets = _objective(model.get_booster())
    scales, default = _classes(objective, targets, margin, adapter.scales["probability"])
    names, labels = adapter.names, adapter.labels
    if targets > 1:
        names, labels = tuple(f"y{i}" for i in range(targets)), {}
    task = "multilabel" if targets > 1 else "classification"
    return replace(
        adapter,
        kind="xgboost",
        task=task,
        scales=scales,
        default=default,
        names=names,
        labels=labels,
        dtype=np.float32,
    )


def _check_trained(booster: Any) -> None:
    from xgboost.core import XGBoostError

    try:
        booster.num_features()
    except XGBoostError:
        raise InputError(
            "the Booster is not fitted; expected a fitted one. Train it with xgboost.train first."
        ) from None


def _objective(booster: Any) -> tuple[str, int]:
    """Return a booster's objective and its number of targets."""
    learner = json.loads(booster.save_config())["learner"]
    return learner["objective"]["name"], int(learner["learner_model_param"].get("num_target", 1))


def _classes(
    objective: str, targets: int, margin: Callable[[Any], Any], returned: Callable[[Any], Any]
) -> tuple[dict[str, Callable[[Any], Any]], str]:
    """Return the scales of a classifier, by its objective."""
    if targets > 1:
        return {"probability": lambda t: expit(margin(t)), "log-odds": margin, "raw": margin}, "log-odds"
    scores: dict[str, Callable[[Any], Any]] = {"raw": lambda t: two_sided(margin(t))}
    if objective.startswith("multi:"):
        scores["probability"] = lambda t: softmax(margin(t), axis=1)
        scores["log-odds"] = lambda t: softmax_log_odds(margin(t))
        return scores, "log-odds"
    scores["log-odds"] = scores["raw"]
    logistic = objective in ("binary:logistic", "binary:logitraw")
    scores["probability"] = (lambda t: both_classes(expit(margin(t)))) if logistic else returned
    return scores, "log-odds"


def _booster(model: Any, schema: Schema) -> ModelAdapter:
    from xgboost import DMatrix

    objective, targets = _objective(model)

    def matrix(table: Any) -> Any:
        names = model.feature_names
        if not hasattr(table, "columns"):
            return DMatrix(table, feature_names=names)
        if type(table).__module__.startswith("pandas") and names == list(table.columns):
            kinds = {getattr(dtype, "str", "") for dtype in table.dtypes}
            if len(kinds) == 1 and kinds <= {"<f4", "<f8"}:  # of a frame it reads every column by itself
                return DMatrix(table.to_numpy(), feature_names=names)
        return DMatrix(table, enable_categorical=True)

    def raw(table: Any) -> np.ndarray:
        return model.predict(matrix(table))

    def margin(table: Any) -> np.ndarray:
        return model.predict(matrix(table), output_margin=True)

    if model.feature_names is None and schema.kind != "array" and not schema.levels:
        schema = replace(schema, kind="array")
    task, scales, default = "regression", {"raw": raw, "log-odds": margin}, "raw"
    names, labels = (), {}
    if objective.startswith(("binary:", "multi:")):
        task = "multilabel" if targets > 1 else "classification"
        scales, default = _classes(objective, targets, margin, lambda t: both_classes(raw(t)))
        if task == "classification" and objective.startswith("binary:"):
            names, labels = ("0", "1"), {0: 0, 1: 1}
    return ModelAdapter("xgboost", task, scales, default, names, labels, np.float32, schema)


def _categories(model: Any, names: tuple[str, ...]) -> list[str]:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    return [n for n, kind in zip(names, booster.feature_types or (), strict=False) if kind == "c"]


def _known_levels(model: Any) -> list[list[Any]]:
    """The categories in a booster of XGBoost 3.1 and later; earlier ones store codes only."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    if "c" not in (booster.feature_types or ()) or not hasattr(booster, "get_categories"):
        return []
    found = booster.get_categories(export_to_arrow=True).to_arrow()
    return [levels.to_pylist() for _, levels in found or () if levels is not None]


def _feature_names(model: Any) -> Any:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    return booster.feature_names


def _read(path: Path, threads: int) -> Any:
    from xgboost import Booster

    return Booster({"nthread": threads} if threads else None, model_file=path)


def _ask(model: Any) -> None:
    for rows in trial_rows(model.num_features()):
        model.inplace_predict(rows)


FILE = ModelFile("xgboost", _read, openings=(b"{",), ask=_ask)
LIBRARY = Library(
    "xgboost",
    _outlet,
    categories=_categories,
    known_levels=_known_levels,
    feature_names=_feature_names,
    absent=float("nan"),  # missing, not 0
    trees=True,
    engines=lambda model: ("tree",),
    files={".json": FILE, ".ubj": FILE},
)
