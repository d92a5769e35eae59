"""Tree ensembles: exact slopes from their thresholds (`model`), and exact replacements of cells.

`build` reads the model (`readers`) and compares the arrays with the model's own predictions. A tree ensemble
that cannot be read is explained as a black box, with a warning (without one where categories or the transformers
before it are the reason). On a scale on which the model is not a sum of trees, slopes are taken from its
predictions, at more nodes than those of other models.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from texplainer.errors import EngineWarning, Unsupported
from texplainer.gradients.engine import Engine, Gradient, Settings
from texplainer.gradients.links import constant_slope
from texplainer.gradients.moves import averaged_engine, moves_of
from texplainer.gradients.trees.readers.table import find, not_a_sum
from texplainer.models.predictor import Predictor
from texplainer.types import Array

NODES = 16  # on a side, where the model is not a sum of trees


def build(predictor: Predictor, background: Array, settings: Settings) -> Engine:
    """Read the trees and check them against the model."""
    final = last_step(predictor.model)
    if find(final) is None:
        raise Unsupported("the model is not a tree ensemble.")
    reason = not_a_sum(final)
    if reason is not None:  # without a warning: there is nothing a user could change
        raise Unsupported(reason)
    if not settings.bandwidth > 0:
        raise Unsupported("smoothing=0 asks for the point gradient, which is 0 almost everywhere for trees.")
    try:
        from texplainer.gradients.trees.model import read, tree_slopes

        model = read(predictor, background)
    except ModuleNotFoundError as error:
        missing = f"the tree engine needs the package {error.name!r}, which is not installed."
        raise _warn_unsupported(predictor, missing) from error
    except Unsupported as reason:
        if final is not predictor.model:  # behind transformers: nothing a user could mend
            raise
        raise _warn_unsupported(predictor, str(reason)) from None
    link = constant_slope(model.after, len(model.ensemble.base))
    moves = moves_of(predictor, background, settings)
    engine = Engine("tree", "", _none, averages=True, width=settings.bandwidth, replaced=_replaced(model))
    if link is None:
        return averaged_engine(engine, predictor, background, settings, nodes=NODES)
    why = "exact means over moves of one feature at a time, from the trees"
    return replace(engine, why=why, gradient=tree_slopes(model, moves, link))


def _none(rows: Array) -> Gradient:
    raise NotImplementedError


def _replaced(model: Any) -> Any:
    """Other values in place of cells, prepared at the first asking.

    None where a last bit may take the other side of a threshold: behind transformers, and where the table is
    rounded and the model compares in float64; where the model has categories that the table calls numbers;
    and for log-odds of shares, which a last bit may move far.
    """
    predictor, ensemble = model.predictor, model.ensemble
    rounded = predictor.schema.narrow_floats and ensemble.dtype != np.float32
    coded = {feature for feature, _ in ensemble.categories} <= set(predictor.schema.levels)
    steep = predictor.scale == "log-odds" and ensemble.link in ("share", "shares")
    if model.folded or rounded or steep or not coded:
        return None

    @cache
    def prepared() -> Any:
        from texplainer.gradients.trees.replacements import replacements_of

        return replacements_of(model)

    return lambda *cells: prepared()(*cells)


def last_step(model: Any) -> Any:
    """Give the estimator at the end of a Pipeline, or the model itself."""
    return last_step(model.steps[-1][1]) if hasattr(model, "steps") and model.steps else model


def _warn_unsupported(predictor: Predictor, reason: str) -> Unsupported:
    """Say that trees are explained as a black box, for they would be a thousand times faster to explain."""
    if not predictor.schema.levels:  # encoded categories cannot be read as trees: nothing a user could mend
        words = f"{reason} The trees are explained as a black box, from their predictions alone."
        warnings.warn(words, EngineWarning, stacklevel=2)
    return Unsupported(reason)
