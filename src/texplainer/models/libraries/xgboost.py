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

from texplainer.models.libraries.library import Library, ModelFile, Outlet
from texplainer.models.libraries.sklearn import estimator
from texplainer.models.scales import both_classes, softmax_log_odds, two_sided
from texplainer.tables.schema import Schema


def _outlet(model: Any, schema: Schema) -> Outlet:
    if type(model).__name__ == "Booster":
        return _booster(model, schema)
    outlet = estimator(model, schema)
    margin = partial(model.predict, output_margin=True)
    if outlet.task == "regression":
        scales = {"raw": model.predict, "margin": margin}
        return replace(outlet, kind="xgboost", scales=scales, dtype=np.float32)
    objective, targets = _objective(model.get_booster())
    scales, default = _classes(objective, targets, margin, outlet.scales["probability"])
    names, labels = outlet.names, outlet.labels
    if targets > 1:
        names, labels = tuple(f"y{i}" for i in range(targets)), {}
    task = "multilabel" if targets > 1 else "classification"
    return replace(
        outlet,
        kind="xgboost",
        task=task,
        scales=scales,
        default=default,
        names=names,
        labels=labels,
        dtype=np.float32,
    )


def _objective(booster: Any) -> tuple[str, int]:
    """The name of a booster's objective, and its number of targets."""
    learner = json.loads(booster.save_config())["learner"]
    return learner["objective"]["name"], int(learner["learner_model_param"].get("num_target", 1))


def _classes(
    objective: str, targets: int, margin: Callable[[Any], Any], returned: Callable[[Any], Any]
) -> tuple[dict[str, Callable[[Any], Any]], str]:
    """The scales of a classifier, by its objective."""
    if targets > 1:
        return {"probability": lambda t: expit(margin(t)), "margin": margin, "raw": margin}, "margin"
    scores: dict[str, Callable[[Any], Any]] = {"raw": lambda t: two_sided(margin(t))}
    if objective.startswith("multi:"):
        scores["probability"] = lambda t: softmax(margin(t), axis=1)
        scores["margin"] = lambda t: softmax_log_odds(margin(t))
        return scores, "margin"
    scores["margin"] = scores["raw"]
    logistic = objective in ("binary:logistic", "binary:logitraw")
    scores["probability"] = (lambda t: both_classes(expit(margin(t)))) if logistic else returned
    return scores, "margin"


def _booster(model: Any, schema: Schema) -> Outlet:
    from xgboost import DMatrix

    objective, targets = _objective(model)

    def matrix(table: Any) -> Any:
        names = model.feature_names
        if hasattr(table, "columns"):
            return DMatrix(table, enable_categorical=True)
        return DMatrix(table, feature_names=names)

    def raw(table: Any) -> np.ndarray:
        return model.predict(matrix(table))

    def margin(table: Any) -> np.ndarray:
        return model.predict(matrix(table), output_margin=True)

    if model.feature_names is None and schema.kind != "array" and not schema.levels:
        schema = replace(schema, kind="array")
    task, scales, default = "regression", {"raw": raw, "margin": margin}, "raw"
    names, labels = (), {}
    if objective.startswith(("binary:", "multi:")):
        task = "multilabel" if targets > 1 else "classification"
        scales, default = _classes(objective, targets, margin, lambda t: both_classes(raw(t)))
        if task == "classification" and objective.startswith("binary:"):
            names, labels = ("0", "1"), {0: 0, 1: 1}
    return Outlet("xgboost", task, scales, default, names, labels, np.float32, schema)


def _categories(model: Any, names: tuple[str, ...]) -> list[str]:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    return [n for n, kind in zip(names, booster.feature_types or (), strict=False) if kind == "c"]


def _feature_names(model: Any) -> Any:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    return booster.feature_names


def _read(path: Path, threads: int) -> Any:
    from xgboost import Booster

    return Booster({"nthread": threads} if threads else None, model_file=path)


def _ask(model: Any) -> None:
    model.inplace_predict(np.zeros((1, model.num_features())))


FILE = ModelFile("xgboost", _read, openings=(b"{",), ask=_ask)
LIBRARY = Library(
    "xgboost",
    _outlet,
    categories=_categories,
    feature_names=_feature_names,
    trees=True,
    files={".json": FILE, ".ubj": FILE},
)
