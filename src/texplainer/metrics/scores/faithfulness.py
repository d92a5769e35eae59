"""Faithfulness: whether the model reacts to the features the explanation names.

All functions take attributions `values` (rows, features) and, where the model must be asked, `predict`: rows
(rows, columns) -> the explained output (rows,), and `prediction` = predict(rows). Features are removed
through `fills` (see evidence/perturbations.py); `owner` maps columns to features; `ties` orders equal attributions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import trapezoid
from scipy.stats import rankdata

from texplainer.metrics.evidence import perturbations
from texplainer.metrics.scores.agreement import correlation, ranking
from texplainer.metrics.scores.stability import Scores
from texplainer.types import Array

Output = Callable[[Array], Array]
Owner = NDArray[np.int_]
STEPS = 20


def importance_places(values: Array, ties: Array) -> NDArray[np.int_]:
    """Rank of each feature, 0 = largest value."""
    return np.argsort(ranking(values, ties), axis=-1, kind="stable")


def without(rows: Array, predict: Output, fills: Array, owner: Owner, removed: NDArray[np.bool_]) -> Array:
    """Predict with features removed, (cases, rows, features) -> (draws, cases, rows); one call per case."""
    outputs = [
        predict(perturbations.apply(rows, fills, one, owner).reshape(-1, rows.shape[1])) for one in removed
    ]
    return np.stack(outputs).reshape(len(removed), len(fills), len(rows)).swapaxes(0, 1)


def prediction_gap_important(values: Array, *, k: Sequence[int], **evidence: Any) -> Scores:
    """PGI: |f(x) - f(x without its top k)| for each k (Dai et al., 2022; the paper, Eq. 10)."""
    return _by_count(k, _gap_curve(np.abs(values), k, **evidence))


def prediction_gap_unimportant(values: Array, *, k: Sequence[int], **evidence: Any) -> Scores:
    """PGU: the same without the bottom k."""
    return _by_count(k, _gap_curve(-np.abs(values), k, **evidence))


def prediction_gap_kept(values: Array, *, k: Sequence[int], **evidence: Any) -> Scores:
    """1 - |f(x) - f(only the top k by signed value)|: what the paper's printed PGI tables seem to hold."""
    return _by_count(k, 1 - _gap_curve(values, k, kept=True, **evidence))


def prediction_gap_area(values: Array, *, k: Sequence[int], **evidence: Any) -> Array:
    """Area under PGI over k = 1 ... max(k), divided by its width (OpenXAI)."""
    return _mean_height(_gap_curve(np.abs(values), range(1, max(k) + 1), **evidence))


def prediction_gap_complement(values: Array, *, k: Sequence[int], **evidence: Any) -> Array:
    """PGU as OpenXAI has it: all but the top k are perturbed; area over k = 1 ... max(k) by its width."""
    return _mean_height(_gap_curve(np.abs(values), range(1, max(k) + 1), kept=True, **evidence))


def _gap_curve(
    size: Array,
    k: Sequence[int],
    *,
    rows: Array,
    prediction: Array,
    predict: Output,
    fills: Array,
    owner: Owner,
    ties: Array,
    kept: bool = False,
) -> Array:
    """|f(x) - f(x without the k largest)|, or with them alone, for each k: (k, rows)."""
    place = importance_places(size, ties)
    removed = np.stack([(place >= one) if kept else (place < one) for one in k])
    return np.abs(prediction - without(rows, predict, fills, owner, removed)).mean(axis=0)


def _by_count(k: Sequence[int], curve: Array) -> Scores:
    return {str(one): gaps for one, gaps in zip(k, curve, strict=True)}


def _mean_height(curve: Array) -> Array:
    return trapezoid(curve, axis=0) / (len(curve) - 1) if len(curve) > 1 else curve[0]


def deletion(values: Array, *, direction: Array, **evidence: Any) -> Array:
    """Area under the predicted class's output as features go, most supportive first (Petsiuk et al., 2018).

    `direction` (rows,) is +1 where the explained output is the predicted class, else -1: the attributions and
    the output then change their sign (p becomes `top` - p).
    """
    return _removal_area(direction[:, None] * values, False, direction=direction, **evidence)


def insertion(values: Array, *, direction: Array, **evidence: Any) -> Array:
    """Area under the predicted class's output as features come back, most supportive first."""
    return _removal_area(direction[:, None] * values, True, direction=direction, **evidence)


def _removal_area(
    key: Array,
    inserted: bool,
    *,
    rows: Array,
    predict: Output,
    fills: Array,
    owner: Owner,
    ties: Array,
    direction: Array,
    top: float,
) -> Array:
    place = importance_places(key, ties)
    features = key.shape[1]
    counts = np.unique(np.linspace(0, features, min(features, STEPS) + 1).round().astype(int))
    removed = np.stack([(place >= count) if inserted else (place < count) for count in counts])
    curve = without(rows, predict, fills, owner, removed).mean(axis=0)  # (counts, rows)
    area = trapezoid(curve, counts / features, axis=0)
    return direction * area + np.where(direction < 0, top, 0.0)


def faithfulness_correlation(
    values: Array,
    rows: Array,
    prediction: Array,
    predict: Output,
    fills: Array,
    owner: Owner,
    subsets: NDArray[np.bool_],
) -> Array:
    """Correlation of a subset's summed attribution with the drop when it is removed (Bhatt et al., 2020).

    `subsets` (subsets, rows, features) are the same for all explainers. Attributions whose sums do not vary
    score 0: they predict nothing.
    """
    drops = prediction - without(rows, predict, fills, owner, subsets).mean(axis=0)  # (subsets, rows)
    return correlation((subsets * values).sum(axis=-1).T, drops.T)


def monotonicity(
    values: Array, rows: Array, prediction: Array, predict: Output, fills: Array, owner: Owner
) -> Array:
    """Rank correlation of |e_i| with the effect of removing feature i alone (Nguyen and Martinez, 2020)."""
    features = values.shape[1]
    alone = np.repeat(np.eye(features, dtype=bool)[:, None, :], len(rows), axis=1)
    effect = np.abs(prediction - without(rows, predict, fills, owner, alone)).mean(axis=0)  # (features, rows)
    return correlation(rankdata(np.abs(values), axis=-1), rankdata(effect.T, axis=-1))


def infidelity(expected: Array, response: Array, *, convention: str = "normalised") -> Array:
    """Mean of (I·e - (f(x) - f(x - I)))^2 over perturbations I (Yeh et al., 2019, arXiv 1901.09392).

    Parameters
    ----------
    expected : I·e, (rows, perturbations).
    response : f(x) - f(x - I), (rows, perturbations).
    convention : "normalised" divides by the mean of response^2 over all rows, so that explanations of zeros
        score 1 on average (a row's own mean may vanish where the model is flat); "plain" does not;
        "rescaled" first multiplies each row's e by its best factor, as Captum's normalize=True;
        "scale-free" does both, and so judges the direction of e alone.
    """
    if convention in ("rescaled", "scale-free"):
        power = np.mean(expected**2, axis=1)
        factor = np.mean(expected * response, axis=1) / np.where(power > 0, power, 1.0)
        expected = factor[:, None] * expected
    error = np.mean((expected - response) ** 2, axis=1)
    if convention in ("plain", "rescaled"):
        return error
    power = np.mean(response**2)
    return error / (power if power > 0 else np.nan)
