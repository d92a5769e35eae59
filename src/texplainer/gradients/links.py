"""Maps at a model's end: from scores to probabilities and log-odds, with their pullbacks.

Binary classifiers have two outputs throughout, [1-p, p] and [-z, z].
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit
from scipy.special import softmax as soft

from texplainer.gradients.transformers import Map, Pullback, affine, elementwise
from texplainer.types import Array

EPS = float(np.finfo(np.float64).eps)

#: z (rows, 1) -> [-z, z]
two_sided: Map = affine(np.array([[-1.0, 1.0]]))
#: p (rows, 1) -> [1-p, p]
pair: Map = affine(np.array([[-1.0, 1.0]]), np.array([1.0, 0.0]))


def _sigmoid(z: Array) -> tuple[Array, Array]:
    p = expit(z)
    return p, p * expit(-z)  # p(1-p) would lose its digits where p rounds to 1


sigmoid: Map = elementwise(_sigmoid)


def _log_sigmoid(z: Array) -> tuple[Array, Array]:
    return log_expit(z), expit(-z)


log_sigmoid: Map = elementwise(_log_sigmoid)


def _exponential(z: Array) -> tuple[Array, Array]:
    return np.exp(z), np.exp(z)


exponential: Map = elementwise(_exponential)


def _log_odds(p: Array) -> tuple[Array, Array]:
    inside = np.clip(p, EPS, 1 - EPS)
    return np.log(inside / (1 - inside)), np.where(inside == p, 1 / (inside * (1 - inside)), 0.0)


log_odds: Map = elementwise(_log_odds)


def softmax(scores: Array) -> tuple[Array, Pullback]:
    """Scores to probabilities that sum to 1."""
    p = soft(scores, axis=1)
    return p, lambda d: p * (d - np.einsum("kro,ro->kr", d, p)[:, :, None])


def softmax_link(scores: Array) -> tuple[Array, Pullback]:
    """Scores to the log-odds of each class against the others, z_c - log(sum of the others' exp z).

    Taken directly, not through p, so that a nearly certain row keeps its digits.
    """
    classes = scores.shape[1]
    others = np.where(np.eye(classes, dtype=bool), -np.inf, scores[:, None, :])  # (rows, class, others)
    top = others.max(axis=2)
    against = top + np.log(np.exp(others - top[:, :, None]).sum(axis=2))
    share = np.exp(others - against[:, :, None])

    def pullback(d: Array) -> Array:
        return d - np.einsum("krc,rco->kro", d, share)

    return scores - against, pullback


def normalise(p: Array) -> tuple[Array, Pullback]:
    """Divide each row by its sum."""
    total = p.sum(axis=1, keepdims=True)
    share = p / total
    return share, lambda d: (d - np.einsum("kro,ro->kr", d, share)[:, :, None]) / total
