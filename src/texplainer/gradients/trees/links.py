"""From the raw sums of an ensemble to the explained scale.

Boosted classifiers sum log-odds, which their link turns into probabilities; the raw sums of forests are
probabilities already. Each entry of `LINKS` is the map to all outputs.
"""

from __future__ import annotations

import numpy as np

from texplainer.errors import Unsupported
from texplainer.gradients import links
from texplainer.gradients.transformers import Map, affine, compose, identity
from texplainer.gradients.trees.ensemble import TreeEnsemble
from texplainer.types import Array

#: (link, scale) -> the map to all outputs; "scores" is the raw scale of a classifier
LINKS: dict[tuple[str, str], Map] = {
    ("identity", "raw"): identity,
    ("identity", "log-odds"): identity,
    ("exponential", "raw"): links.exponential,
    ("exponential", "log-odds"): identity,
    ("logistic", "probability"): compose(links.sigmoid, links.pair),
    ("logistic", "log-odds"): links.two_sided,
    ("logistic", "raw"): links.sigmoid,
    ("hinge", "log-odds"): links.two_sided,  # its labels are a step, its scores are not
    ("hinge", "scores"): links.two_sided,
    ("sigmoid", "raw"): links.sigmoid,
    ("sigmoid", "probability"): links.sigmoid,
    ("sigmoid", "log-odds"): identity,
    ("softmax", "probability"): links.softmax,
    ("softmax", "log-odds"): links.softmax_link,
    ("softmax", "scores"): identity,
    ("logistic", "scores"): links.two_sided,
    ("sigmoid", "scores"): identity,
    ("unknown", "scores"): identity,
    ("share", "probability"): links.pair,
    ("share", "log-odds"): compose(links.pair, links.log_odds),
    ("shares", "probability"): identity,
    ("shares", "log-odds"): links.log_odds,
    ("unknown", "log-odds"): identity,
}


CLASSES = ("logistic", "sigmoid", "softmax")


def link(ensemble: TreeEnsemble, scale: str, task: str = "regression") -> Map:
    """Find the map from an ensemble's raw sums to all outputs on a scale."""
    if scale == "raw" and task != "regression":
        scale = "scores"
    if (ensemble.link, scale) not in LINKS:
        raise Unsupported(
            f"its objective's link is not known, so its {scale} cannot be differentiated (its raw scores can)."
        )
    chosen = LINKS[ensemble.link, scale]
    steepness = ensemble.steepness
    # the margin of a regression is its raw sums; a classifier's are its log-odds
    if steepness == 1.0 or scale == "scores" or (scale == "log-odds" and ensemble.link not in CLASSES):
        return chosen
    return compose(affine(steepness * np.eye(len(ensemble.base))), chosen)


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
