"""The scales of classifiers and networks: probabilities, and the log-odds of each class against the others.

A binary classifier has two outputs, [1-p, p] as probabilities and [-z, z] as log-odds, so that an output is
always chosen by its class. Softmax scores are defined only up to a constant. The log-odds log p/(1-p) are
unique, so two models with equal predictions have equal log-odds. The meaning of a network's outputs is inferred
from its last layer, where possible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, softmax

from texplainer.models.libraries import ModelAdapter
from texplainer.tables.schema import Schema

#: a probability of exactly 0, as forests have, is taken for this one
FLOOR = float(np.finfo(np.float64).eps)


def two_sided(margin: np.ndarray) -> np.ndarray:
    """Convert binary log-odds z to the two outputs [-z, z]; leave others unchanged."""
    if margin.ndim == 2 and margin.shape[1] == 1:
        margin = margin[:, 0]
    return np.column_stack([-margin, margin]) if margin.ndim == 1 else margin


def both_classes(p: np.ndarray) -> np.ndarray:
    """Convert a binary probability p to the two outputs [1-p, p]; leave others unchanged."""
    if p.ndim == 2 and p.shape[1] == 1:
        p = p[:, 0]
    return np.column_stack([1 - p, p]) if p.ndim == 1 else p


def softmax_log_odds(scores: np.ndarray) -> np.ndarray:
    """Compute log-odds from softmax scores, z_k - log(sum of the others' exp z); a single column is z itself.

    They are computed directly, not from p, so that confident predictions keep their precision.
    """
    scores = np.asarray(scores)
    if scores.ndim == 1 or scores.shape[1] == 1:
        return two_sided(scores)
    each, top = np.arange(len(scores)), scores.argmax(axis=1)
    rest = scores.copy()
    rest[each, top] = -np.inf
    second = rest.max(axis=1)
    highest = scores[each, top]
    share = np.exp(scores - highest[:, None])
    others = share.sum(axis=1, keepdims=True) - share  # of a class that is not on top at least 1
    others[each, top] = 1.0
    against = highest[:, None] + np.log(others)
    against[each, top] = second + np.log(np.exp(rest - second[:, None]).sum(axis=1))
    return scores - against


def sigmoid_log_odds(scores: np.ndarray) -> np.ndarray:
    """Compute log-odds if each class has its own sigmoid and rows are normalised to sum 1."""
    return softmax_log_odds(log_expit(scores) if np.ndim(scores) == 2 else scores)


def log_odds(p: np.ndarray) -> np.ndarray:
    """Compute log-odds from the probabilities of all classes, by their ratios, not from 1 - p."""
    p = np.asarray(p)
    return softmax_log_odds(np.log(np.maximum(p, FLOOR))) if p.shape[1] > 1 else label_log_odds(p)


def label_log_odds(p: np.ndarray) -> np.ndarray:
    """Compute the log-odds of a multi-label classifier."""
    return np.log(np.maximum(p, FLOOR)) - np.log(np.maximum(1 - np.asarray(p), FLOOR))


# ---------------------------------------------------------------- networks


PROBABILITIES = ("sigmoid", "softmax")
#: endings whose outputs may be scores: none that is known, or the logarithms of probabilities
SCORES = ("", "linear", "log_softmax")


def network_outlet(
    kind: str,
    raw: Callable[[Any], np.ndarray],
    schema: Schema,
    width: type,
    ending: str = "",
    scores: Callable[[Any], np.ndarray] | None = None,
    unit: float | None = None,
) -> ModelAdapter:
    """Adapt a network: its outputs as they are, and through a link function.

    A network that ends in a sigmoid or a softmax (`ending`) returns probabilities; `scores` are the inputs of
    that last layer, if available. One that ends in another activation, such as ReLU, returns neither
    probabilities nor class scores.
    """
    ending, doubt = (ending, "") if ending in PROBABILITIES else ("", _doubt(ending))
    before = raw if not ending else scores

    def probability(table: Any) -> np.ndarray:
        if ending:
            return both_classes(raw(table))
        z = raw(table)
        return both_classes(expit(z).reshape(-1)) if z.ndim == 1 or z.shape[1] == 1 else softmax(z, axis=1)

    def margin(table: Any) -> np.ndarray:
        if before is None:
            return log_odds(both_classes(raw(table)))
        return softmax_log_odds(before(table))

    scales = {"raw": raw, "probability": probability, "log-odds": margin}
    default = "raw" if not ending else "probability" if before is None else "log-odds"
    return ModelAdapter(
        kind, "network", scales, default, dtype=width, schema=schema, ending=ending, unit=unit, doubt=doubt
    )


def _doubt(ending: str) -> str:
    if ending in SCORES:
        return ""
    return (
        f"the network ends in {ending}: its outputs are neither probabilities nor class scores, so they "
        "cannot be converted to probabilities. Use scale='raw'."
    )
