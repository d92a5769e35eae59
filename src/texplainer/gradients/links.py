"""Maps at a model's end: from scores to probabilities and log-odds, with their pullbacks.

Binary classifiers have two outputs throughout, [1-p, p] and [-z, z]. `LINKS` is the table for every exact engine.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit
from scipy.special import softmax as soft

from texplainer.gradients.transformers import Map, Pullback, affine, compose, elementwise, identity
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


#: (link of the raw scores, scale) -> the map to all outputs; "scores" is the raw scale of a classifier. Boosters,
#: linear classifiers and networks start at scores; forests, whose raw sums are shares of the classes, at probabilities
LINKS: dict[tuple[str, str], Map] = {
    ("identity", "raw"): identity,
    ("identity", "log-odds"): identity,
    ("exponential", "raw"): exponential,
    ("exponential", "log-odds"): identity,
    ("logistic", "probability"): compose(sigmoid, pair),
    ("logistic", "log-odds"): two_sided,
    ("logistic", "raw"): sigmoid,
    ("hinge", "log-odds"): two_sided,  # its labels are a step, its scores are not
    ("hinge", "scores"): two_sided,
    ("sigmoid", "raw"): sigmoid,
    ("sigmoid", "probability"): sigmoid,
    ("sigmoid", "log-odds"): identity,
    ("softmax", "probability"): softmax,
    ("softmax", "log-odds"): softmax_link,
    ("softmax", "scores"): identity,
    ("logistic", "scores"): two_sided,
    ("sigmoid", "scores"): identity,
    ("unknown", "scores"): identity,
    ("share", "probability"): pair,
    ("share", "log-odds"): compose(pair, log_odds),
    ("shares", "probability"): identity,
    ("shares", "log-odds"): log_odds,
    ("unknown", "log-odds"): identity,
}


def of_scores(scale: str, columns: int) -> Map:
    """The map of a classifier's scores, one of two classes or one of each, to all outputs on a scale."""
    return LINKS["logistic" if columns == 1 else "softmax", scale]


def jacobian(after: Map, raw: Array) -> Array:
    """The derivative of a link at some raw sums, (points, all outputs, raw)."""
    value, back = after(raw)
    seeds = np.broadcast_to(np.eye(value.shape[1])[:, None, :], (value.shape[1], len(raw), value.shape[1]))
    return back(np.ascontiguousarray(seeds)).transpose(1, 0, 2)


def constant_slope(after: Map, width: int) -> Array | None:
    """The derivative of a linear link of `width` raw sums, (all outputs, raw); None for others."""
    probe = np.array([[0.5], [0.25], [0.125]]) ** np.arange(1.0, width + 1)  # no two differ by a constant
    slopes = jacobian(after, probe)
    return slopes[0] if (slopes == slopes[0]).all() else None
