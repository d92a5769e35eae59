"""The trees of a model on the explained scale, read and checked.

`read` compares the arrays with the model's own predictions, so whatever a loader may have misread is found out
before the first explanation. Behind column-wise transformers the trees are folded onto the raw columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from texplainer.errors import Unsupported
from texplainer.gradients.links import LINKS
from texplainer.gradients.transformers import Map, affine, compose
from texplainer.gradients.trees.ensemble import TreeEnsemble, raw_sums
from texplainer.gradients.trees.fold import fold
from texplainer.gradients.trees.inputs import cells_of, split_pipeline
from texplainer.gradients.trees.readers.table import load
from texplainer.models.predictor import Predictor
from texplainer.types import Array

CHECK_ROWS = 256
SATURATED = 20.0  # beyond it log-odds taken from a probability have lost their digits
CLASSES = ("logistic", "sigmoid", "softmax")  # links whose log-odds are not the raw sums themselves


@dataclass(frozen=True)
class TreeModel:
    """Trees that take the table's own columns."""

    predictor: Predictor
    ensemble: TreeEnsemble
    after: Map  # raw sums -> all outputs on the explained scale
    inputs: Callable[[Array], Array]  # rows -> cells as the trees see them
    folded: bool  # whether transformers were folded into the thresholds


def read(predictor: Predictor, background: Array) -> TreeModel:
    """Read a model's trees and check that they predict what the model predicts."""
    transformers, final = split_pipeline(predictor.model)
    ensemble, inputs = load(final), partial(cells_of, predictor)
    if transformers:
        ensemble, inputs = fold(ensemble, predictor, background), _unchanged
    seen = ensemble.marked(inputs(background))
    if seen.shape[1] != ensemble.features:
        raise Unsupported(f"it was trained on {ensemble.features} features and the data has {seen.shape[1]}.")
    after = link(ensemble, predictor.scale, predictor.task)
    found = TreeModel(
        predictor, ensemble, after, lambda rows: ensemble.marked(inputs(rows)), bool(transformers)
    )
    _check(found, background)
    return found


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


def _unchanged(rows: Array) -> Array:
    return rows


def _check(model: TreeModel, background: Array) -> None:
    """Compare the trees' own predictions with the model's on the explained scale."""
    sample = background[:: max(1, len(background) // CHECK_ROWS)][:CHECK_ROWS]
    predictor, ensemble = model.predictor, model.ensemble
    expected = predictor.everything(sample)
    found = model.after(raw_sums(ensemble, model.inputs(sample)))[0]
    if found.shape != expected.shape:
        raise Unsupported(f"its trees give {found.shape[1]} outputs and the model {expected.shape[1]}.")
    known = np.isfinite(expected)
    if predictor.scale == "log-odds" and ensemble.link in ("share", "shares"):
        known &= np.abs(expected) < SATURATED
    size = max(1.0, float(np.abs(expected[known]).max(initial=0.0)))
    gap = float(np.abs(found - expected)[known].max(initial=0.0)) / size
    if not gap <= ensemble.tolerance:
        raise Unsupported(
            f"the trees as read miss the model's own predictions by {gap:.1e} on {len(sample)} rows."
        )
