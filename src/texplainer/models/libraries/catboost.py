"""CatBoost."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.models.libraries import Library, ModelAdapter, ModelFile, at
from texplainer.models.libraries.sklearn import classifier
from texplainer.models.scales import softmax_log_odds, two_sided
from texplainer.tables.schema import Schema

#: losses of several labels a row
LABELS = ("MultiLogloss", "MultiCrossEntropy")
#: losses with a sigmoid a class, whose probabilities do not sum to 1
APART = ("MultiClassOneVsAll", *LABELS)


def _outlet(model: Any, schema: Schema) -> ModelAdapter:
    if not model.is_fitted():
        raise InputError(
            f"the {type(model).__name__} is not fitted; expected a fitted one. Call its fit(X, y) first."
        )
    margin = partial(model.predict, prediction_type="RawFormulaVal")
    wanted = None
    if schema.kind == "array" and len(model.get_cat_feature_indices()):  # a float array holds no categories
        wanted = replace(schema, kind="pandas", names=tuple(model.feature_names_))
    if hasattr(model, "classes_") and len(model.classes_):
        loss = str(model.get_all_params().get("loss_function", "")).split(":")[0]
        odds = two_sided if loss in APART else softmax_log_odds
        scales = {
            "probability": partial(model.predict, prediction_type="Probability"),
            "log-odds": lambda t: odds(np.asarray(margin(t))),
            "raw": lambda t: two_sided(np.asarray(margin(t))),
        }
        adapter = classifier(model, "catboost", scales, "log-odds")
        if loss in LABELS:
            names = tuple(f"y{c}" for c in model.classes_)
            adapter = replace(adapter, task="multilabel", names=names, labels={})
        return replace(adapter, dtype=np.float32, schema=wanted)
    scales = {"raw": model.predict, "log-odds": margin}
    return ModelAdapter("catboost", "regression", scales, "raw", dtype=np.float32, schema=wanted)


def _without_encoder(model: Any) -> Any:
    return type(model)(**{k: v for k, v in model.get_params().items() if k != "cat_features"})


def _read(path: Path, threads: int) -> Any:
    from catboost import CatBoost

    return CatBoost().load_model(str(path), format="cbm")


LIBRARY = Library(
    "catboost",
    _outlet,
    categories=lambda model, names: at(model.get_cat_feature_indices(), names),
    feature_names=lambda model: model.feature_names_,
    without_encoder=_without_encoder,
    trees=True,
    engines=lambda model: ("tree",),
    files={".cbm": ModelFile("catboost", _read, openings=(b"CBM1",))},
)
