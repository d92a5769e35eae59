"""Formulas of scikit-learn models that are made of other models: averages, stacks, one against the rest.

Every part must have a formula of its own; `formula` is the function that finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.gradients import maps
from texplainer.gradients.closed_form.kernel_machines import Scales
from texplainer.gradients.maps import Map, Pullback, affine, beside, compose, elementwise, identity
from texplainer.types import Array

Formula = Callable[[Any], Scales]


def bagging(model: Any, formula: Formula) -> Scales:
    """Average members that see some of the columns each."""
    maps = [
        compose(affine(np.eye(model.n_features_in_)[:, columns]), _answer(member, model, formula))
        for member, columns in zip(model.estimators_, model.estimators_features_, strict=True)
    ]
    return _scales(_average(maps), model)


def voting(model: Any, formula: Formula) -> Scales:
    """Average members by their weights; a hard vote has no slope."""
    if getattr(model, "voting", "soft") == "hard":
        raise Unsupported("a hard vote is a step function.")
    weights = model._weights_not_none
    maps = [_answer(member, model, formula) for member in model.estimators_]
    return _scales(_average(maps, None if weights is None else np.asarray(weights, dtype=float)), model)


def stacking(model: Any, formula: Formula) -> Scales:
    """Give the answers of the members to the final estimator."""
    members = zip(model.estimators_, model.stack_method_, strict=True)
    parts = [_stacked(member, how, formula) for member, how in members]
    inner = beside([*parts, identity] if model.passthrough else parts)
    return {scale: compose(inner, last) for scale, last in formula(model.final_estimator_).items()}


def one_against_rest(model: Any, formula: Formula) -> Scales:
    """Ask one binary model a class; their probabilities are divided by their sum."""
    last = affine(np.array([[0.0], [1.0]]))
    scores: Scales = {}
    if hasattr(model, "decision_function"):
        decisions = [_of(m, "raw", formula) for m in model.estimators_]
        several = len(decisions) > 1
        scores["raw"] = beside([compose(one, last) for one in decisions]) if several else decisions[0]
        if not hasattr(model, "predict_proba"):
            return {**scores, "log-odds": scores["raw"]}
    each = beside([compose(_of(m, "probability", formula), last) for m in model.estimators_])
    if model.multilabel_:
        return {**scores, "probability": each, "log-odds": compose(each, maps.log_odds)}
    probability = compose(each, maps.pair if len(model.estimators_) == 1 else maps.normalise)
    return {**scores, "probability": probability, "log-odds": compose(probability, maps.log_odds)}


def transformed_target(model: Any, formula: Formula) -> Scales:
    """Undo what was done to the target."""
    transformer = model.transformer_
    inner = _of(model.regressor_, "raw", formula)
    if type(transformer).__name__ == "StandardScaler":
        scale = np.ones(1) if transformer.scale_ is None else transformer.scale_
        mean = transformer.mean_ if transformer.with_mean else 0.0
        return {"raw": compose(inner, affine(np.diag(scale), mean))}
    undo = INVERSES.get(getattr(transformer, "inverse_func", None))
    if undo is None:
        raise Unsupported("the derivative of the inverse of its target transformer is not known.")
    return {"raw": compose(inner, undo)}


def _average(maps: Sequence[Map], weights: Array | None = None) -> Map:
    share = np.full(len(maps), 1 / len(maps)) if weights is None else weights / weights.sum()

    def forward(rows: Array) -> tuple[Array, Pullback]:
        values, backs = zip(*(one(rows) for one in maps), strict=True)
        mean = np.tensordot(share, np.stack(values), axes=1)
        return mean, lambda d: np.tensordot(share, np.stack([back(d) for back in backs]), axes=1)

    return forward


def _answer(member: Any, whole: Any, formula: Formula) -> Map:
    """What a member of an average gives: probabilities of all classes, or its prediction."""
    if not hasattr(whole, "classes_"):
        return _of(member, "raw", formula)
    if len(member.classes_) != len(whole.classes_):
        raise Unsupported("a member was fitted on some of the classes only.")
    return _of(member, "probability", formula)


def _stacked(member: Any, how: str, formula: Formula) -> Map:
    if how == "predict_proba":
        found = _of(member, "probability", formula)
        return compose(found, affine(np.array([[0.0], [1.0]]))) if len(member.classes_) == 2 else found
    if how == "decision_function":
        found = _of(member, "raw", formula)
        return compose(found, affine(np.array([[0.0], [1.0]]))) if len(member.classes_) == 2 else found
    return _of(member, "raw", formula)


def _of(member: Any, scale: str, formula: Formula) -> Map:
    scales = formula(member)
    if scale not in scales:
        raise Unsupported(f"its part, a {type(member).__name__}, has no closed form on the {scale} scale.")
    return scales[scale]


def _scales(answer: Map, model: Any) -> Scales:
    if not hasattr(model, "classes_"):
        return {"raw": answer}
    return {"probability": answer, "log-odds": compose(answer, maps.log_odds)}


#: functions that undo a transformed target, with their slopes
INVERSES: dict[Any, Map] = {
    np.exp: maps.exponential,
    np.expm1: elementwise(lambda z: (np.expm1(z), np.exp(z))),
    np.square: elementwise(lambda z: (z**2, 2 * z)),
    np.sinh: elementwise(lambda z: (np.sinh(z), np.cosh(z))),
}
