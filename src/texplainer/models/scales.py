"""The scales of classifiers: probabilities, and the log-odds of each class against the others.

A binary classifier has two outputs, [1-p, p] as probabilities and [-z, z] as log-odds, so that an output
is always chosen by its class. Scores of a softmax are known only up to a constant; the log-odds
log p/(1-p) are not, and two models with equal predictions get equal ones.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit

#: a probability of exactly 0, as forests have, is taken for this one
FLOOR = float(np.finfo(np.float64).eps)


def numbered(count: int) -> tuple[str, ...]:
    """Names for outputs that have none."""
    return ("output",) if count == 1 else tuple(f"output {i}" for i in range(count))


def two_sided(margin: np.ndarray) -> np.ndarray:
    """A binary margin z as the two outputs [-z, z]; other margins unchanged."""
    if margin.ndim == 2 and margin.shape[1] == 1:
        margin = margin[:, 0]
    return np.column_stack([-margin, margin]) if margin.ndim == 1 else margin


def both_classes(p: np.ndarray) -> np.ndarray:
    """A binary probability p as the two outputs [1-p, p]; other probabilities unchanged."""
    if p.ndim == 2 and p.shape[1] == 1:
        p = p[:, 0]
    return np.column_stack([1 - p, p]) if p.ndim == 1 else p


def softmax_log_odds(scores: np.ndarray) -> np.ndarray:
    """Log-odds from the scores of a softmax, z_k - log(sum of the others' exp z); one column is z itself.

    Taken directly, not through p, so that a nearly certain row keeps its digits.
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
    """Log-odds where each class has its own sigmoid and the row is divided by its sum."""
    return softmax_log_odds(log_expit(scores) if np.ndim(scores) == 2 else scores)


def log_odds(p: np.ndarray) -> np.ndarray:
    """Log-odds from probabilities of all classes, each row of sum 1; from their ratios, not from 1 - p."""
    p = np.asarray(p)
    return softmax_log_odds(np.log(np.maximum(p, FLOOR))) if p.shape[1] > 1 else label_log_odds(p)


def label_log_odds(p: np.ndarray) -> np.ndarray:
    """Log-odds of labels that do not exclude each other."""
    return np.log(np.maximum(p, FLOOR)) - np.log(np.maximum(1 - np.asarray(p), FLOOR))
