"""Tree ensembles explained by other libraries: the boosters' own values, Woodelf and treeig.

All explain the raw score of a booster (log-odds of two classes). `own_contributions` is what XGBoost and
LightGBM compute themselves (path-dependent Shapley values); Woodelf computes interventional Shapley values;
treeig integrates gradients exactly along straight lines from background rows.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.explainers.base import OtherExplainer, Task, evenly_spaced, needs, rebuildable, task_of
from texplainer.types import Array

#: rows (rows, features) -> values (rows, features), of the explained output
Values = Callable[[Array], Array]


@rebuildable
def own_contributions(model: Any, background: Any, **choice: Any) -> OtherExplainer:
    """Explain with the booster's own `pred_contribs` (XGBoost) or `pred_contrib` (LightGBM).

    Parameters
    ----------
    **choice : `output`, `scale`, `feature_names`, `categorical`, as for TExplainer.
    """
    return _explainer("own contributions", _own, model, background, 0, choice)


@rebuildable
def woodelf(model: Any, background: Any, *, references: int = 100, **choice: Any) -> OtherExplainer:
    """Explain with Woodelf: interventional Shapley values against at most `references` background rows."""
    return _explainer("Woodelf", _woodelf, model, background, references, choice)


@rebuildable
def treeig(model: Any, background: Any, *, references: int = 100, **choice: Any) -> OtherExplainer:
    """Explain with treeig: integrated gradients from at most `references` background rows."""
    return _explainer("treeig", _treeig, model, background, references, choice)


Builder = Callable[[Task, Array], Values]


def _explainer(
    name: str, build: Builder, model: Any, background: Any, references: int, choice: dict[str, Any]
) -> OtherExplainer:
    task = task_of(model, background, **{"scale": "log-odds"} | choice)
    if _library(task) not in ("xgboost", "lightgbm"):
        raise Unsupported(
            f"{name} explains XGBoost and LightGBM models, not a {type(task.predictor.model).__name__}."
        )
    several = len(task.predictor.all_names) > 2
    if task.predictor.scale == "probability" or (several and task.predictor.scale == "log-odds"):
        wanted = "raw" if several else "log-odds"
        raise Unsupported(f"{name} explains a booster's raw score; pass scale={wanted!r}.")
    rows = evenly_spaced(task.background.rows, references or len(task.background.rows))
    try:
        values = build(task, rows)
        values(rows[:1])
    except Unsupported:
        raise
    except Exception as error:
        raise Unsupported(f"{name} cannot explain this model: {error}") from error
    # class 0 of two is the mirror image of class 1, whose score the booster has
    sign = -1.0 if task.predictor.task == "classification" and not several and task.output == 0 else 1.0

    def attribute(table: Array) -> tuple[Array, Array]:
        return sign * values(table), np.full(len(table), np.nan)

    return OtherExplainer(name, task, attribute, settings={"references": len(rows)} if references else {})


def _library(task: Task) -> str:
    return type(task.predictor.model).__module__.split(".")[0]


def _own(task: Task, rows: Array) -> Values:
    library, model = needs(_library(task)), task.predictor.model
    classes = max(1, len(task.predictor.all_names) if len(task.predictor.all_names) > 2 else 1)

    def values(table: Array) -> Array:
        if library.__name__ == "xgboost":
            booster = getattr(model, "get_booster", lambda: model)()
            matrix = library.DMatrix(table, feature_names=booster.feature_names)
            found = booster.predict(matrix, pred_contribs=True)
        else:
            found = getattr(model, "booster_", model).predict(table, pred_contrib=True)
        own = np.asarray(found, dtype=float).reshape(len(table), classes, -1)[
            :, :, :-1
        ]  # the last is the base
        return own[:, task.output if classes > 1 else 0]

    return values


def _woodelf(task: Task, rows: Array) -> Values:
    library, pandas = needs("woodelf"), needs("pandas")
    if len(task.predictor.all_names) > 2:
        raise Unsupported("Woodelf explains one score; the model has several classes.")
    names = list(task.predictor.schema.names)
    explainer = library.WoodelfExplainer(task.predictor.model, pandas.DataFrame(rows, columns=names))

    def values(table: Array) -> Array:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            found = explainer.shap_values(pandas.DataFrame(table, columns=names), verbose=False)
        return np.asarray(found, dtype=float).reshape(table.shape)

    return values


def _treeig(task: Task, rows: Array) -> Values:
    several = len(task.predictor.all_names) > 2
    explainer = needs("treeig").TreeIG(task.predictor.model, target=task.output if several else None)

    def values(table: Array) -> Array:
        found = explainer.attribute(table, baseline=rows)
        return np.asarray(found, dtype=float).reshape(table.shape)

    return values
