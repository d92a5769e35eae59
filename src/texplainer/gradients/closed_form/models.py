"""Formulas of fitted scikit-learn models: for each scale, the map from rows to all outputs.

`MODELS` maps a type's name to the function that reads the fitted model into maps. A classifier is
its scores and a link; most regressors are one map. Only exact types are taken (a subclass may
compute anything), and `closed_form` compares every formula with the model before trusting it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from texplainer.errors import Unsupported
from texplainer.gradients import maps
from texplainer.gradients.closed_form import ensembles
from texplainer.gradients.closed_form import kernel_machines as machines
from texplainer.gradients.closed_form.kernel_machines import Scales
from texplainer.gradients.closed_form.kernels import dense
from texplainer.gradients.closed_form.networks import perceptron_map
from texplainer.gradients.maps import Map, Pullback, affine, compose, elementwise
from texplainer.gradients.transformers import OfTable, chain, from_sklearn
from texplainer.types import Array


def formula(model: Any, of_table: OfTable | None = None) -> Scales:
    """Give the maps of a fitted model, or of a Pipeline that ends in one.

    `of_table` reads a ColumnTransformer of the user's table.
    """
    before, last = chain(model, of_table)
    name = type(last).__name__ if from_sklearn(last) else ""
    if name in MADE_OF:  # a part behind transformers does not see the user's table
        found = MADE_OF[name](last, partial(formula, of_table=of_table if last is model else None))
    elif name in MODELS:
        found = MODELS[name](last)
    else:
        raise Unsupported(f"the closed form of a {type(last).__name__} is not known.")
    return {scale: compose(before, after) for scale, after in found.items()}


def _by_scores(scores: Map, columns: int) -> Scales:
    """Probabilities by the logistic link of one score, or the softmax of several."""
    names = {"log-odds": "log-odds", "raw": "scores", "probability": "probability"}
    return {scale: compose(scores, maps.of_scores(name, columns)) for scale, name in names.items()}


# ---------------------------------------------------------------- linear models


def _plane(model: Any) -> tuple[Map, int]:
    coefficients = np.atleast_2d(np.asarray(dense(model.coef_), dtype=float))  # (outputs, features)
    return affine(coefficients.T, np.asarray(model.intercept_, dtype=float)), len(coefficients)


def _linear_regressor(model: Any) -> Scales:
    return {"raw": _plane(model)[0]}


def _log_linear(model: Any) -> Scales:
    return {"raw": compose(_plane(model)[0], maps.exponential)}


def _tweedie(model: Any) -> Scales:
    plain = model.link == "identity" or (model.link == "auto" and model.power <= 0)
    return _linear_regressor(model) if plain else _log_linear(model)


def _logistic(model: Any) -> Scales:
    return _by_scores(*_plane(model))


def _linear_classifier(model: Any) -> Scales:
    scores, columns = _plane(model)
    margin = compose(scores, maps.two_sided) if columns == 1 else scores
    return {"log-odds": margin, "raw": margin}


def _stochastic_classifier(model: Any) -> Scales:
    scores, columns = _plane(model)
    scales = _linear_classifier(model)
    if model.loss != "log_loss":
        return scales
    if columns == 1:
        return _by_scores(scores, 1)
    return _by_scores(compose(scores, maps.log_sigmoid), columns) | {"raw": scores}


# ---------------------------------------------------------------- networks


def _network_classifier(model: Any) -> Scales:
    scores = perceptron_map(model)
    if model.out_activation_ == "softmax" or model.n_outputs_ == 1:
        return _by_scores(scores, model.n_outputs_)
    return {
        "log-odds": scores,
        "raw": scores,
        "probability": compose(scores, maps.sigmoid),
    }  # several labels


def _network_regressor(model: Any) -> Scales:
    scores = perceptron_map(model)
    return {"raw": compose(scores, maps.exponential) if model.out_activation_ == "exp" else scores}


# ---------------------------------------------------------------- Bayes


def _quadratic(means: Array, roots: Array, offsets: Array) -> Map:
    """score_c = offset_c - |(x - mean_c) root_c|²/2, roots (classes, features, any)."""

    def forward(rows: Array) -> tuple[Array, Pullback]:
        away = [(rows - mean) @ root for mean, root in zip(means, roots, strict=True)]
        scores = np.stack([-0.5 * (a**2).sum(axis=1) for a in away], axis=1) + offsets
        slopes = np.stack([-a @ root.T for a, root in zip(away, roots, strict=True)])
        return scores, lambda d: np.einsum("krc,crf->krf", d, slopes)

    return forward


def _gaussian_bayes(model: Any) -> Scales:
    roots = np.stack([np.diag(v**-0.5) for v in model.var_])
    offsets = np.log(model.class_prior_) - 0.5 * np.log(2 * np.pi * model.var_).sum(axis=1)
    return _of_likelihoods(_quadratic(model.theta_, roots, offsets), model)


def _quadratic_discriminant(model: Any) -> Scales:
    roots = np.stack([r * s**-0.5 for r, s in zip(model.rotations_, model.scalings_, strict=True)])
    offsets = np.log(model.priors_) - 0.5 * np.array([np.log(s).sum() for s in model.scalings_])
    return _of_likelihoods(_quadratic(model.means_, roots, offsets), model)


def _counting_bayes(model: Any) -> Scales:
    """Likelihoods linear in the counts; the complement variant has no prior."""
    prior = 0.0 if type(model).__name__ == "ComplementNB" else model.class_log_prior_
    return _of_likelihoods(affine(model.feature_log_prob_.T, prior), model)


def _of_likelihoods(scores: Map, model: Any) -> Scales:
    if len(model.classes_) == 2:
        ratio = compose(scores, affine(np.array([[-1.0], [1.0]])))
        raw = compose(ratio, maps.two_sided) if hasattr(model, "decision_function") else scores
        return _by_scores(ratio, 1) | {"raw": raw}
    return _by_scores(scores, len(model.classes_))


# ---------------------------------------------------------------- calibration


def _calibrated(model: Any, formula: ensembles.Formula) -> Scales:
    """Average over folds Platt's sigmoid of an inner model (scikit-learn's own way to Platt since 1.9)."""
    if model.method != "sigmoid":
        raise Unsupported(
            f"the derivative of calibration by {model.method!r} is not known; expected 'sigmoid'."
        )
    folds = [_calibrated_fold(fold, formula) for fold in model.calibrated_classifiers_]

    def probability(rows: Array) -> tuple[Array, Pullback]:
        values, backs = zip(*(fold(rows) for fold in folds), strict=True)
        return np.mean(values, axis=0), lambda d: np.mean([back(d) for back in backs], axis=0)

    return {"probability": probability, "log-odds": compose(probability, maps.log_odds)}


def _calibrated_fold(fold: Any, formula: ensembles.Formula) -> Map:
    inner = formula(fold.estimator)
    scores = inner["raw" if hasattr(fold.estimator, "decision_function") else "probability"]
    slopes = np.array([c.a_ for c in fold.calibrators])
    offsets = np.array([c.b_ for c in fold.calibrators])
    last = maps.normalise
    if len(slopes) == 1:  # two classes: the second output carries the score
        scores, last = compose(scores, affine(np.array([[0.0], [1.0]]))), maps.pair

    def platt(z: Array) -> tuple[Array, Array]:
        p = expit(-(slopes * z + offsets))
        return p, -slopes * p * (1 - p)

    return compose(scores, elementwise(platt), last)


_LINEAR_REGRESSORS = (
    "LinearRegression",
    "Ridge",
    "RidgeCV",
    "Lasso",
    "LassoCV",
    "ElasticNet",
    "ElasticNetCV",
    "Lars",
    "LarsCV",
    "LassoLars",
    "LassoLarsCV",
    "LassoLarsIC",
    "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV",
    "BayesianRidge",
    "ARDRegression",
    "HuberRegressor",
    "TheilSenRegressor",
    "QuantileRegressor",
    "SGDRegressor",
    "PassiveAggressiveRegressor",
    "LinearSVR",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
)

MODELS: dict[str, Callable[[Any], Scales]] = {
    **dict.fromkeys(_LINEAR_REGRESSORS, _linear_regressor),
    **dict.fromkeys(("PoissonRegressor", "GammaRegressor"), _log_linear),
    "TweedieRegressor": _tweedie,
    **dict.fromkeys(("LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis"), _logistic),
    **dict.fromkeys(
        ("RidgeClassifier", "RidgeClassifierCV", "LinearSVC", "Perceptron", "PassiveAggressiveClassifier"),
        _linear_classifier,
    ),
    "SGDClassifier": _stochastic_classifier,
    "MLPClassifier": _network_classifier,
    "MLPRegressor": _network_regressor,
    **dict.fromkeys(("SVC", "NuSVC"), machines.vector_classifier),
    **dict.fromkeys(("SVR", "NuSVR"), machines.vector_regressor),
    "KernelRidge": machines.kernel_ridge,
    "GaussianProcessRegressor": machines.process_regressor,
    "GaussianProcessClassifier": machines.process_classifier,
    "GaussianNB": _gaussian_bayes,
    **dict.fromkeys(("MultinomialNB", "ComplementNB"), _counting_bayes),
    "QuadraticDiscriminantAnalysis": _quadratic_discriminant,
}
#: models made of other models; the second argument gives the formula of a part
MADE_OF: dict[str, Callable[[Any, ensembles.Formula], Scales]] = {
    "CalibratedClassifierCV": _calibrated,
    **dict.fromkeys(("BaggingClassifier", "BaggingRegressor"), ensembles.bagging),
    **dict.fromkeys(("VotingClassifier", "VotingRegressor"), ensembles.voting),
    **dict.fromkeys(("StackingClassifier", "StackingRegressor"), ensembles.stacking),
    "OneVsRestClassifier": ensembles.one_against_rest,
    "TransformedTargetRegressor": ensembles.transformed_target,
}
