"""Formulas of fitted scikit-learn models: for each scale, the map from rows to all outputs.

`MODELS` maps a type's name to the function that reads the fitted model into maps. A classifier is
its scores and a link; most regressors are one map. Only exact types are taken (a subclass may
compute anything), and `closed_form` compares every formula with the model before trusting it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from texplainer.gradients import Unsupported, links
from texplainer.gradients import closed_form_kernels as machines
from texplainer.gradients.closed_form_kernels import Scales
from texplainer.gradients.kernels import dense
from texplainer.gradients.layers import ACTIVATIONS, network
from texplainer.gradients.transformers import Map, Pullback, affine, chain, compose, elementwise, from_sklearn
from texplainer.signatures import Array


def formula(model: Any) -> Scales:
    """Give the maps of a fitted model, or of a Pipeline that ends in one."""
    before, last = chain(model)
    make = MODELS.get(type(last).__name__) if from_sklearn(last) else None
    if make is None:
        raise Unsupported(f"a {type(last).__name__} has no closed form in the table.")
    return {scale: compose(before, after) for scale, after in make(last).items()}


def _by_scores(scores: Map, columns: int, has_decision: bool) -> Scales:
    """Probabilities by the logistic link of one score, or the softmax of several."""
    if columns == 1:
        return {
            "margin": compose(scores, links.two_sided),
            "probability": compose(scores, links.sigmoid, links.pair),
        }
    margin = scores if has_decision else compose(scores, links.softmax_log_odds)
    return {"margin": margin, "probability": compose(scores, links.softmax)}


# ---------------------------------------------------------------- linear models


def _plane(model: Any) -> tuple[Map, int]:
    coefficients = np.atleast_2d(np.asarray(dense(model.coef_), dtype=float))  # (outputs, features)
    return affine(coefficients.T, np.asarray(model.intercept_, dtype=float)), len(coefficients)


def _linear_regressor(model: Any) -> Scales:
    return {"raw": _plane(model)[0]}


def _log_linear(model: Any) -> Scales:
    return {"raw": compose(_plane(model)[0], links.exponential)}


def _tweedie(model: Any) -> Scales:
    plain = model.link == "identity" or (model.link == "auto" and model.power <= 0)
    return _linear_regressor(model) if plain else _log_linear(model)


def _logistic(model: Any) -> Scales:
    return _by_scores(*_plane(model), has_decision=True)


def _linear_classifier(model: Any) -> Scales:
    scores, columns = _plane(model)
    return {"margin": compose(scores, links.two_sided) if columns == 1 else scores}


def _stochastic_classifier(model: Any) -> Scales:
    scores, columns = _plane(model)
    scales = _linear_classifier(model)
    if model.loss == "log_loss":
        rest = (links.pair,) if columns == 1 else (links.normalise,)
        scales["probability"] = compose(scores, links.sigmoid, *rest)
    return scales


# ---------------------------------------------------------------- networks


def _layers(model: Any) -> Map:
    """All layers up to the last one's scores."""
    if model.activation not in ACTIVATIONS:
        raise Unsupported(f"the activation {model.activation!r} has no derivative in the table.")
    return network(model.coefs_, model.intercepts_, ACTIVATIONS[model.activation])


def _network_classifier(model: Any) -> Scales:
    scores = _layers(model)
    if model.out_activation_ == "softmax":
        return _by_scores(scores, model.n_outputs_, has_decision=False)
    if model.n_outputs_ == 1:
        return _by_scores(scores, 1, has_decision=False)
    return {"margin": scores, "probability": compose(scores, links.sigmoid)}  # several labels


def _network_regressor(model: Any) -> Scales:
    scores = _layers(model)
    return {"raw": compose(scores, links.exponential) if model.out_activation_ == "exp" else scores}


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
        return _by_scores(ratio, 1, has_decision=True)
    return _by_scores(scores, len(model.classes_), hasattr(model, "decision_function"))


# ---------------------------------------------------------------- calibration


def _calibrated(model: Any) -> Scales:
    """Average over folds Platt's sigmoid of an inner model (scikit-learn's own way to Platt since 1.9)."""
    if model.method != "sigmoid":
        raise Unsupported(f"calibration by {model.method!r} has no derivative in the table; 'sigmoid' has.")
    folds = [_calibrated_fold(fold) for fold in model.calibrated_classifiers_]

    def probability(rows: Array) -> tuple[Array, Pullback]:
        values, backs = zip(*(fold(rows) for fold in folds), strict=True)
        return np.mean(values, axis=0), lambda d: np.mean([back(d) for back in backs], axis=0)

    return {"probability": probability, "margin": compose(probability, links.log_odds)}


def _calibrated_fold(fold: Any) -> Map:
    inner = formula(fold.estimator)
    scores = inner["margin" if hasattr(fold.estimator, "decision_function") else "probability"]
    slopes = np.array([c.a_ for c in fold.calibrators])
    offsets = np.array([c.b_ for c in fold.calibrators])
    last = links.normalise
    if len(slopes) == 1:  # two classes: the second output carries the score
        scores, last = compose(scores, affine(np.array([[0.0], [1.0]]))), links.pair

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
    "CalibratedClassifierCV": _calibrated,
}
