"""Stability: how much an explanation moves when its row hardly does.

The relative stabilities (Agarwal et al., 2022, arXiv 2203.06877; the paper, Eqs. 7 and 8) divide the change
of an explanation by the change of something the explanation should follow: the input (RIS), the output (ROS),
a network's hidden representation (RRS). Libraries disagree about what "relative change" means, so each
meaning is a `Convention` with a name. Run stability (RES, the paper, Eq. 9) asks what the same row gets when
it is explained again.

Shapes: values (rows, features); near_values (rows, neighbours, features); near_valid (rows, neighbours) marks
the neighbours that exist. Every function returns scores per row, NaN where they are undefined.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texplainer.types import Array

Scores = dict[str, Array]
#: (reference, other, eps) -> norm of the change along the last axis
Change = Callable[[Array, Array, float], Array]

EPS = 1e-5


def clip_from_zero(values: Array, eps: float = EPS) -> Array:
    """Lift |v| < eps to eps and keep the sign; a zero counts as +eps (the paper's double-sided clipping)."""
    return np.where(np.abs(values) < eps, np.where(values < 0, -eps, eps), values)


def _clipped(reference: Array, other: Array, eps: float) -> Array:
    return np.linalg.norm((reference - other) / clip_from_zero(reference, eps), axis=-1)


def _zeros_lifted(reference: Array, other: Array, eps: float) -> Array:
    return np.linalg.norm((reference - other) / np.where(reference == 0, eps, reference), axis=-1)


def _zeros_skipped(reference: Array, other: Array, eps: float) -> Array:
    change = (reference - other) / clip_from_zero(reference, eps)
    return np.linalg.norm(np.where(reference == 0, 0.0, change), axis=-1)


def _norm_ratio(reference: Array, other: Array, eps: float) -> Array:
    return _distance(reference, other, eps) / np.maximum(np.linalg.norm(reference, axis=-1), eps)


def _distance(reference: Array, other: Array, eps: float) -> Array:
    return np.linalg.norm(reference - other, axis=-1)


def _at_least(change: Array, eps: float) -> Array:
    return np.maximum(change, eps)


def _not_zero(change: Array, eps: float) -> Array:
    return np.where(change == 0, eps, change)


@dataclass(frozen=True)
class Convention:
    """What "relative change" means for explanations, inputs and outputs, and how a zero is avoided."""

    explanation: Change
    inputs: Change
    outputs: Change
    floor: Callable[[Array, float], Array]
    eps: float
    scale: str  # the outputs ROS looks at


CONVENTIONS = {
    "paper": Convention(_clipped, _clipped, _clipped, _at_least, EPS, "probability"),
    # As the paper's own code: the same clipping, but exact zeros take no part.
    "zeros-skipped": Convention(
        _zeros_skipped, _zeros_skipped, _zeros_skipped, _at_least, EPS, "probability"
    ),
    "openxai": Convention(_norm_ratio, _norm_ratio, _norm_ratio, _at_least, EPS, "log-odds"),
    # Quantus 0.6 divides by the plain distance of the logits, not by a relative one.
    "quantus": Convention(_zeros_lifted, _zeros_lifted, _distance, _not_zero, 1e-6, "log-odds"),
}


def relative_input_stability(
    values: Array,
    near_values: Array,
    rows: Array,
    near_rows: Array,
    near_valid: NDArray[np.bool_],
    *,
    convention: str = "paper",
    eps: float | None = None,
) -> Scores:
    """RIS: change of the explanation over change of the input, maximum and mean over the neighbours.

    With the units of the last hidden layer, (rows, units), in place of the rows it is RRS.
    """
    rule = CONVENTIONS[convention]
    return _relative(rule, rule.inputs, eps, values, near_values, rows, near_rows, near_valid)


def relative_output_stability(*evidence: Any, convention: str = "paper", eps: float | None = None) -> Scores:
    """ROS: as RIS, over the change of the outputs, on the convention's scale."""
    rule = CONVENTIONS[convention]
    return _relative(rule, rule.outputs, eps, *evidence)


def _relative(
    rule: Convention,
    follow: Change,
    eps: float | None,
    values: Array,
    near_values: Array,
    basis: Array,
    near_basis: Array,
    near_valid: NDArray[np.bool_],
) -> Scores:
    eps = rule.eps if eps is None else eps
    moved = rule.explanation(values[:, None, :], near_values, eps)  # (rows, neighbours)
    # Two explanations of nothing but zeros have no relative change: 0/0 is undefined, not perfect.
    silent = np.all(values == 0, axis=-1)[:, None]
    if rule.explanation is not _zeros_skipped:  # there a row of zeros would never change, whatever follows
        silent = silent & np.all(near_values == 0, axis=-1)
    ratio = np.where(silent, np.nan, moved / rule.floor(follow(basis[:, None, :], near_basis, eps), eps))
    return {
        "max": over_neighbours(np.nanmax, ratio, near_valid),
        "mean": over_neighbours(np.nanmean, ratio, near_valid),
    }


def normwise_stability(
    values: Array,
    near_values: Array,
    basis: Array,
    near_basis: Array,
    near_valid: NDArray[np.bool_],
    sd: Array,
    *,
    tau: float = 1e-3,
    tau_basis: float = 1e-3,
) -> Scores:
    """RIS*, ROS*: relative change of the whole vector over the root-mean-square change in units of `SD`.

    No single near-zero attribution can blow it up; a step below `tau_basis` SDs counts as that. A row's
    score is its worst neighbour's; the parts are the median, 95th percentile and maximum over rows.
    """
    size = np.linalg.norm(values, axis=-1)  # (rows,)
    floor = tau * np.nanmedian(size) if np.isfinite(size).any() else np.nan
    moved = (
        _distance(values[:, None, :], near_values, 0.0) / _undefined_at_zero(np.maximum(size, floor))[:, None]
    )
    step = (basis[:, None, :] - near_basis) / np.where(sd > 0, sd, 1.0)
    root_mean_square = np.sqrt(np.mean(step**2, axis=-1))
    worst = over_neighbours(np.nanmax, moved / np.maximum(root_mean_square, tau_basis), near_valid)
    return {"median": worst, "p95": worst, "max": worst}


def local_lipschitz(
    values: Array, near_values: Array, rows: Array, near_rows: Array, near_valid: NDArray[np.bool_]
) -> Array:
    """Largest ‖e - e'‖ / ‖x - x'‖ (Alvarez-Melis and Jaakkola, 2018, arXiv 1806.08049)."""
    away = _undefined_at_zero(_distance(rows[:, None, :], near_rows, 0.0))
    return over_neighbours(np.nanmax, _distance(values[:, None, :], near_values, 0.0) / away, near_valid)


def max_sensitivity(values: Array, near_values: Array, near_valid: NDArray[np.bool_]) -> Scores:
    """Maximum and average of ‖e - e'‖ / ‖e‖ (Yeh et al., 2019, normalised as Captum does)."""
    size = _undefined_at_zero(np.linalg.norm(values, axis=-1))[:, None]
    moved = _distance(values[:, None, :], near_values, 0.0) / size
    return {
        "max": over_neighbours(np.nanmax, moved, near_valid),
        "mean": over_neighbours(np.nanmean, moved, near_valid),
    }


def run_stability(repeats: Array) -> Scores:
    """RES: the largest distance of repeated explanations (runs, rows, features) from their mean, and their SD.

    Differences to the first run are averaged, not the runs: the rounded mean of equal numbers may differ from
    them in the last bit, and RES of a deterministic explainer must be exactly 0.
    """
    apart = repeats - repeats[:1]  # (runs, rows, features)
    apart = apart - apart.mean(axis=0)
    return {
        "max": np.linalg.norm(apart, axis=-1).max(axis=0),
        "deviation": np.sqrt((apart**2).mean(axis=0).sum(axis=-1)),
    }


def relative_change(first: Array, second: Array) -> Array:
    """‖a - b‖ over the mean of ‖a‖ and ‖b‖, per row: 0 = the same, at most 2; NaN where both are zeros."""
    size = (np.linalg.norm(first, axis=-1) + np.linalg.norm(second, axis=-1)) / 2
    return np.linalg.norm(first - second, axis=-1) / _undefined_at_zero(size)


def background_stability(sample: Array, other: Array, noisy: Array) -> Scores:
    """Change of explanations between backgrounds: two samples of the data, and one with a trace of noise."""
    return {"sample": relative_change(sample, other), "noise": relative_change(sample, noisy)}


def class_agreement(
    values: Array, rows: Array, labels: NDArray[np.int_], sd: Array, *, nearest: int = 5
) -> Array:
    """CAI: mean cosine between a row's explanation and those of its nearest rows of the same class.

    The row itself is excluded; distances are in units of `SD`. NaN where the class has no other row.
    """
    scaled = rows / np.where(sd > 0, sd, 1.0)
    unit = values / _undefined_at_zero(np.linalg.norm(values, axis=-1))[:, None]
    scores = np.full(len(rows), np.nan)
    for i in range(len(rows)):
        others = np.flatnonzero(labels == labels[i])
        others = others[others != i]
        distance = np.linalg.norm(scaled[others] - scaled[i], axis=-1)
        chosen = others[np.argsort(distance, kind="stable")[:nearest]]
        scores[i] = _quiet(np.nanmean, unit[chosen] @ unit[i]) if len(chosen) else np.nan
    return scores


def over_neighbours(fold: Callable[..., Array], scores: Array, near_valid: NDArray[np.bool_]) -> Array:
    """Fold (rows, neighbours) into (rows,), leaving out neighbours that do not exist; NaN where none does."""
    if scores.shape[1] == 0:
        return np.full(len(scores), np.nan)
    return _quiet(fold, np.where(near_valid, scores, np.nan), axis=1)


def _undefined_at_zero(size: Array) -> Array:
    return np.where(size > 0, size, np.nan)


def _quiet(fold: Callable[..., Array], scores: Array, axis: int = -1) -> Array:
    with warnings.catch_warnings():  # a row of NaN alone is an answer here, not an accident
        warnings.simplefilter("ignore", RuntimeWarning)
        return fold(scores, axis=axis)
