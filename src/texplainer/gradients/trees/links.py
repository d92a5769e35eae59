"""From the raw sums of an ensemble to the explained scale.

Boosted classifiers are smoothed on the margin and carried through their link; forests, whose raw sums
are class shares, are smoothed as probabilities. Each entry of `LINKS` is the map of all outputs and,
for the certificate, the size of its second derivative at the row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from texplainer.errors import Unsupported
from texplainer.gradients import links
from texplainer.gradients.transformers import Map, affine, compose, identity
from texplainer.gradients.trees.ensemble import TreeEnsemble
from texplainer.types import Array

#: outputs (rows, outputs) -> bound on their second derivative by the raw sums, same shape
Bend = Callable[[Array], Array]


def _bend_sigmoid(p: Array) -> Array:
    return np.abs(p * (1 - p) * (1 - 2 * p))


def _bend_softmax(p: Array) -> Array:
    return 5 * p  # p_c [(z_c' - mean z')^2 + Var z'] with every |z'| at most 1


def _bend_log_odds(z: Array) -> Array:
    return np.abs(np.exp(z) - np.exp(-z)) * (2 + np.exp(z) + np.exp(-z))  # |1/(1-p)^2 - 1/p^2|


def _bend_softmax_log_odds(z: Array) -> Array:
    return np.ones_like(z)  # the variance of the others' slopes, each at most 1


#: (link, scale) -> the map to all outputs and its bend; "scores" is the raw scale of a classifier
LINKS: dict[tuple[str, str], tuple[Map, Bend]] = {
    ("identity", "raw"): (identity, np.zeros_like),
    ("identity", "log-odds"): (identity, np.zeros_like),
    ("exponential", "raw"): (links.exponential, np.abs),
    ("exponential", "log-odds"): (identity, np.zeros_like),
    ("logistic", "probability"): (compose(links.sigmoid, links.pair), _bend_sigmoid),
    ("logistic", "log-odds"): (links.two_sided, np.zeros_like),
    ("logistic", "raw"): (links.sigmoid, _bend_sigmoid),
    ("hinge", "log-odds"): (links.two_sided, np.zeros_like),  # its labels are a step, its scores are not
    ("hinge", "scores"): (links.two_sided, np.zeros_like),
    ("sigmoid", "raw"): (links.sigmoid, _bend_sigmoid),
    ("sigmoid", "probability"): (links.sigmoid, _bend_sigmoid),
    ("sigmoid", "log-odds"): (identity, np.zeros_like),
    ("softmax", "probability"): (links.softmax, _bend_softmax),
    ("softmax", "log-odds"): (links.softmax_link, _bend_softmax_log_odds),
    ("softmax", "scores"): (identity, np.zeros_like),
    ("logistic", "scores"): (links.two_sided, np.zeros_like),
    ("sigmoid", "scores"): (identity, np.zeros_like),
    ("unknown", "scores"): (identity, np.zeros_like),
    ("share", "probability"): (links.pair, np.zeros_like),
    ("share", "log-odds"): (compose(links.pair, links.log_odds), _bend_log_odds),
    ("shares", "probability"): (identity, np.zeros_like),
    ("shares", "log-odds"): (links.log_odds, _bend_log_odds),
    ("unknown", "log-odds"): (identity, np.zeros_like),
}


CLASSES = ("logistic", "sigmoid", "softmax")


def link(ensemble: TreeEnsemble, scale: str, task: str = "regression") -> tuple[Map, Bend]:
    """Find the map from an ensemble's raw sums to all outputs on a scale, and its bend."""
    if scale == "raw" and task != "regression":
        scale = "scores"
    if (ensemble.link, scale) not in LINKS:
        raise Unsupported(
            f"its objective's link is not known, so its {scale} cannot be differentiated (its margin can)."
        )
    chosen, bend = LINKS[ensemble.link, scale]
    steepness = ensemble.steepness
    # the margin of a regression is its raw sums; a classifier's are its log-odds
    if steepness == 1.0 or scale == "scores" or (scale == "log-odds" and ensemble.link not in CLASSES):
        return chosen, bend
    return compose(affine(steepness * np.eye(len(ensemble.base))), chosen), lambda y: steepness**2 * bend(y)


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
