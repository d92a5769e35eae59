"""The scales of classifiers: probabilities, and the log-odds of each class against the others.

A binary classifier has two outputs, [1-p, p] as probabilities and [-z, z] as log-odds, so that an output is
always chosen by its class. Softmax scores are defined only up to a constant. The log-odds log p/(1-p) are
unique, so two models with equal predictions have equal log-odds.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit

#: a probability of exactly 0, as forests have, is taken for this one
FLOOR = float(np.finfo(np.float64).eps)


def numbered(count: int) -> tuple[str, ...]:
    """Return default output names."""
    return ("output",) if count == 1 else tuple(f"output {i}" for i in range(count))


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
