"""From the gradient to an attribution.

The paper's attribution is the partial derivative itself, phi_i = df/dx_i (its Eq. 4), here
"sensitivity": output per unit of the feature. "scaled" multiplies by the feature's spread, so that
features compare; "contribution" by the distance to the background mean, Taylor's first-order share
of f(x) - E f; "integrated" averages the gradient along straight paths from representative background
rows to x (Gauss-Legendre nodes), so that the shares add up to f(x) - E f nearly exactly
(Sundararajan et al. 2017; Erion et al. 2021). "effect" and its additive sibling "additive" ask for no
derivative: they measure what replacing a feature by other values of its column does (`effects`). What
is missing from a sum is always reported, never spread silently over the features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from texplainer import effects
from texplainer.background import Background
from texplainer.gradients import BATCH, Engine
from texplainer.prediction import Predictor
from texplainer.representatives import calibrated, representatives
from texplainer.signatures import Array

PATH_NODES = {True: 16, False: 5}  # where the gradient is exact, and cheap; and where it is not
REPRESENTATIVES = 16


@dataclass(frozen=True)
class Local:
    """All an attribution may use: the rows, f there, the gradient there, and where they came from."""

    rows: Array  # (rows, features)
    predictions: Array  # (rows, outputs)
    gradient: Array  # (rows, features, outputs)
    background: Background
    predictor: Predictor
    engine: Engine


@dataclass(frozen=True)
class Attribution:
    """Values (rows, features, outputs), the unit they are in, and the further evaluations they cost a row."""

    values: Array
    evaluations: np.ndarray | int = 0


def sensitivity(local: Local) -> Attribution:
    """phi_i = df/dx_i, the paper's definition."""
    return Attribution(local.gradient)


def scaled(local: Local) -> Attribution:
    """phi_i = sigma_i df/dx_i: the change of f for a typical change of the feature."""
    return Attribution(local.gradient * local.background.sigma[:, None])


def contribution(local: Local) -> Attribution:
    """phi_i = (x_i - mean_i) df/dx_i: Taylor's first-order share of f(x) - E f."""
    away = np.nan_to_num(local.rows - local.background.mean)
    return Attribution(local.gradient * away[:, :, None])


def integrated(local: Local) -> Attribution:
    """phi_i = E_b[(x_i - b_i) * mean gradient between b and x], b over representative background rows."""
    background, rows, numeric = local.background, local.rows, local.predictor.schema.numeric
    centres, weights = background.once("anchors", lambda: _anchors(background, local.predictor))
    nodes, node_weights = np.polynomial.legendre.leggauss(PATH_NODES[local.engine.exact])
    starts = np.repeat(centres, len(nodes), axis=0)  # one line for every point of every path
    t = np.tile((nodes + 1) / 2, len(centres))
    shares = np.outer(weights, node_weights / 2).ravel()
    values = np.zeros_like(local.gradient)
    evaluations = np.zeros(len(rows), dtype=np.int64)
    together = max(1, BATCH // max(1, len(rows)))  # points in one call of the engine
    for first in range(0, len(t), together):
        part = slice(first, first + together)
        # categories stay the row's own along the path: there is nothing between two levels
        away = np.where(numeric, np.nan_to_num(rows - starts[part, None, :]), 0.0)  # (points, rows, features)
        along = local.engine.gradient((rows - (1 - t[part, None, None]) * away).reshape(-1, rows.shape[1]))
        for share, move, slope in zip(
            shares[part], away, along.values.reshape(len(away), *values.shape), strict=True
        ):
            values += share * move[:, :, None] * slope  # one by one: the same bits however many are together
        evaluations += along.evaluations.reshape(len(away), -1).sum(axis=0)
    return Attribution(values, evaluations)


def _anchors(background: Background, predictor: Predictor) -> tuple[Array, Array]:
    """Where the paths begin, and weights under which the model's mean there is its mean on the background."""
    centres, weights = representatives(
        background.rows, background.sigma, REPRESENTATIVES, predictor.schema.numeric
    )
    return centres, calibrated(weights, predictor(centres), background.base)


def effect(local: Local) -> Attribution:
    """phi_i = the root mean square change of f as feature i takes its column's values, signed by slope."""
    columns = np.nonzero(local.predictor.schema.numeric)[0]
    values = effects.finite_effects(local.rows, local.predictor, local.background, columns)
    return Attribution(values, effects.POINTS * (len(columns) + 1))


def additive(local: Local) -> Attribution:
    """phi_i = the mean change of f as feature i takes its own value, on walks from background rows to x."""
    columns = np.nonzero(local.predictor.schema.numeric)[0]
    values = effects.finite_shares(local.rows, local.predictor, local.background, columns)
    return Attribution(values, effects.POINTS * (len(columns) + 1))


def default(step: object) -> str:
    """Name what "auto" stands for: finite effects; the paper's derivative where a step is asked for."""
    return "effect" if isinstance(step, str) and step == "auto" else "sensitivity"


ATTRIBUTIONS: dict[str, Callable[[Local], Attribution]] = {
    "sensitivity": sensitivity,
    "scaled": scaled,
    "contribution": contribution,
    "integrated": integrated,
    "effect": effect,
    "additive": additive,
}
#: those that are the gradient itself, so that the width it is averaged over matters
SLOPES = ("sensitivity", "scaled")
#: those that share out f(x) - E f
ADDITIVE = ("contribution", "integrated", "additive")
