"""Formulas of kernel machines: support vectors, kernel ridge, Gaussian processes.

Each is a kernel map (`kernels`) and what is linear, or nearly so, after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import erf

from texplainer.errors import Unsupported
from texplainer.gradients import maps
from texplainer.gradients.closed_form import kernels
from texplainer.gradients.closed_form.kernels import dense
from texplainer.gradients.maps import Map, Pullback, affine, beside, compose
from texplainer.types import Array

#: scale -> map of all outputs
Scales = dict[str, Map]


def _machine_kernel(model: Any) -> Map:
    return kernels.kernel_named(
        model.kernel, dense(model.support_vectors_), model._gamma, model.degree, model.coef0
    )


def vector_regressor(model: Any) -> Scales:
    """Support vector regression."""
    return {"raw": compose(_machine_kernel(model), affine(dense(model.dual_coef_).T, model.intercept_))}


def vector_classifier(model: Any) -> Scales:
    """One decision for two classes, one for each pair of more."""
    weights, classes = dense(model.dual_coef_), len(model.classes_)
    kernel = _machine_kernel(model)
    if classes == 2:
        scores = compose(kernel, affine(weights.T, model.intercept_))
        return _decisions(model, compose(scores, maps.two_sided))
    if model.decision_function_shape == "ovr":
        raise Unsupported(
            "with several classes its decisions count votes, which jump; "
            "decision_function_shape='ovo' has a formula."
        )
    return _decisions(model, compose(kernel, affine(_pairwise(weights, model.n_support_), model.intercept_)))


def _decisions(model: Any, scores: Map) -> Scales:
    """Decisions are the margin of a machine without probabilities.

    Platt's probabilities do not have a formula: libsvm finds even two of them by an iteration that it stops early.
    """
    return {"raw": scores} if model.probability is True else {"raw": scores, "log-odds": scores}


def _pairwise(weights: Array, sizes: Array) -> Array:
    """Turn libsvm's dual coefficients (classes - 1, points) into one column for each pair of classes."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    columns = []
    for i in range(len(sizes)):
        for j in range(i + 1, len(sizes)):
            column = np.zeros(weights.shape[1])
            column[ends[i] : ends[i + 1]] = weights[j - 1, ends[i] : ends[i + 1]]
            column[ends[j] : ends[j + 1]] = weights[i, ends[j] : ends[j + 1]]
            columns.append(column)
    return np.stack(columns, axis=1)


def kernel_ridge(model: Any) -> Scales:
    """Kernel ridge regression."""
    points = dense(model.X_fit_)
    kernel = kernels.kernel_named(model.kernel, points, model.gamma, model.degree, model.coef0)
    return {"raw": compose(kernel, affine(model.dual_coef_.reshape(len(points), -1)))}


def process_regressor(model: Any) -> Scales:
    """Gaussian process regression: the posterior mean."""
    alpha = model.alpha_.reshape(len(model.X_train_), -1)
    after = affine(alpha * model._y_train_std, model._y_train_mean)
    return {"raw": compose(kernels.process(model.kernel_, model.X_train_), after)}


def process_classifier(model: Any) -> Scales:
    """Gaussian process classification, one process for two classes, one a class for more."""
    base = model.base_estimator_
    if hasattr(base, "estimators_"):
        if model.multi_class != "one_vs_rest":
            raise Unsupported("a one-vs-one Gaussian process classifier has no probabilities.")
        probability = compose(beside([_laplace(part) for part in base.estimators_]), maps.normalise)
        return {"probability": probability, "log-odds": compose(probability, maps.log_odds)}
    probability = compose(_laplace(base), maps.pair)
    return {"probability": probability, "log-odds": compose(probability, maps.log_odds)}


def _laplace(model: Any) -> Map:
    """P(class 1) = sum_i c_i (1 + erf(l_i m / s_i))/2, s_i² = 1 + 2 l_i² v.

    m and v are the latent mean and variance; five error functions stand for the logistic one
    (Williams & Barber 1998).
    """
    from sklearn.gaussian_process import _gpc

    if not kernels.stationary(model.kernel_):
        raise Unsupported("a Gaussian process classifier with a kernel that is not stationary.")
    rates, weights = _gpc.LAMBDAS[:, 0], _gpc.COEFS[:, 0]
    kernel = kernels.process(model.kernel_, model.X_train_)
    pull = model.y_train_ - model.pi_
    root = solve_triangular(model.L_, np.diag(model.W_sr_), lower=True)  # v = root @ k

    def forward(rows: Array) -> tuple[Array, Pullback]:
        k, back = kernel(rows)
        v = k @ root.T
        mean, variance = k @ pull, model.kernel_.diag(rows) - (v**2).sum(axis=1)
        width = np.sqrt(1 + 2 * rates**2 * variance[:, None])  # (rows, 5)
        u = rates * mean[:, None] / width
        p = 0.5 * (erf(u) @ weights + weights.sum())
        bell = weights * np.exp(-(u**2)) / np.sqrt(np.pi)
        by_mean = (bell * rates / width).sum(axis=1)
        by_variance = -(bell * rates**3 * mean[:, None] / width**3).sum(axis=1)
        by_kernel = by_mean[:, None] * pull - 2 * by_variance[:, None] * (v @ root)  # (rows, points)
        return p[:, None], lambda d: back(d * by_kernel)

    return forward
