"""Where the ways of shares begin: background rows, weights and the linear part of the model there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.linear_part import linear_part
from texplainer.types import Array

GROUPS = 16  # of starts, whose scatter tells the error of a mean
ROUNDING = 1e-11  # of an SD: a scatter as small as this is none


@dataclass(frozen=True)
class BackgroundSample:
    """Background rows (starts, features) from which ways begin; their numbers, weights and groups (starts,).

    `predictions` is f there, (starts, outputs); `linear` the linear part of every feature there, less its
    mean over the background, (starts, features, outputs); `slack` (features, outputs) is what that
    part may be off, since slopes differ from row to row; `whole` says that no background row was left out.
    """

    rows: Array
    number: np.ndarray
    weights: Array
    groups: np.ndarray
    predictions: Array
    linear: Array
    slack: Array
    whole: bool

    @property
    def centre(self) -> Array:
        """The weighted mean of the linear part, (features, outputs): what a few starts miss of the means."""
        return np.einsum("s,sfo->fo", self.weights, self.linear)

    def some(self, groups: int) -> BackgroundSample:
        """The first groups only, with their own weights."""
        kept = self.groups < groups
        names = ("rows", "number", "weights", "groups", "predictions", "linear")
        return replace(self, **{name: getattr(self, name)[kept] for name in names})


@dataclass(frozen=True)
class PathContributions:
    """Contributions of the ways from starts to rows, weighted.

    `groups` (rows, groups, features, outputs) are summed over the ways of every group; `correction` is what
    remains to be added so that they sum to f(x) - f(starts); `exact` says that each way sums exactly and
    nothing about it was sampled.
    """

    groups: Array
    correction: Array | float = 0.0
    evaluations: int | np.ndarray = 0  # a row
    exact: bool = False


def starts_of(context: ExplainContext, count: int) -> BackgroundSample:
    """Rows spread evenly over the background; where there are fewer, each is taken several times."""
    background, predictor = context.background, context.predictor
    total = len(background.rows)
    rows = background.rows[(np.arange(count) * total) // count]
    predictions = predictor(rows)
    part = linear_part(context)
    linear = part.at(rows)
    weights = np.full(count, 1.0 / count)
    remainder = predictions - linear.sum(axis=1)
    weights = calibrated(weights, remainder, background.base, background.output_sd)
    number = np.arange(count)
    groups = number % min(GROUPS, count)
    slack = part.slack(rows, weights)
    return BackgroundSample(rows, number, weights, groups, predictions, linear, slack, total <= count)


def calibrated(weights: Array, values: Array, target: Array, sd: Array) -> Array:
    """Tilt weights, as little as it takes, so that the weighted values have the mean `target`.

    w_i (1 + (v_i - mean) · a), with a from the weighted covariance of the values (rows, outputs): the
    calibration estimator of survey sampling (Deville & Saerndal 1992). Leading axes of `values` are batches.
    What varies by less than the rounding of outputs of that `SD` does not count as varying.
    """
    size = np.abs(values).max(axis=-2, initial=0.0)  # (..., outputs)
    unit = np.where(sd > 0, sd, np.where(size > 0, size, 1.0))  # one background row has no SD
    values, target = values / unit[..., None, :], target / unit
    mean = weights @ values
    away = values - mean[..., None, :]
    covariance = (away * weights[:, None]).swapaxes(-1, -2) @ away
    variances, axes = np.linalg.eigh(covariance)  # (..., outputs), (..., outputs, outputs)
    least = np.maximum(ROUNDING**2, 1e-9 * variances[..., -1:])
    along = ((target - mean)[..., None, :] @ axes)[..., 0, :]
    along = np.divide(along, variances, out=np.zeros_like(along), where=variances > least)
    tilt = axes @ along[..., None]  # (..., outputs, 1)
    return weights * (1 + (away @ tilt)[..., 0])
