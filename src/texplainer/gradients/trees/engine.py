"""Tree ensembles: the exact gradient of the kernel-smoothed model.

A tree ensemble is constant on boxes; its gradient is 0 almost everywhere. Averaged
over a neighbourhood of half-width s_j in each feature (triangular weights) it becomes smooth, and its
value and gradient have a closed form that costs a few predictions, whatever the number of features
(`compiled`). Centred differences are the special case of a box-shaped neighbourhood along one axis.

`build` reads the model (`readers`) and compares the arrays with the model's own predictions. A tree ensemble
that cannot be read is explained as a black box, with a warning (without one where categories are
the reason).
"""

from __future__ import annotations

import warnings
from functools import cache, partial
from typing import Any

import numpy as np

from texplainer.errors import EngineWarning, Unsupported
from texplainer.gradients.engine import Engine, Settings
from texplainer.gradients.transformers import identity
from texplainer.gradients.trees.readers.table import find
from texplainer.models.predictor import Predictor
from texplainer.types import Array


def build(predictor: Predictor, background: Array, settings: Settings) -> Engine:
    """Read the trees and check them against the model."""
    final = last_step(predictor.model)
    if find(final) is None:
        raise Unsupported("the model is not a tree ensemble.")
    if not settings.bandwidth > 0:
        raise Unsupported("smoothing=0 asks for the point gradient, which is 0 almost everywhere for trees.")
    try:
        from texplainer.gradients.trees.model import read, smoothed_gradient

        explained = read(predictor, background, settings)
    except ModuleNotFoundError as error:
        missing = f"the tree engine needs the package {error.name!r}, which is not installed."
        raise _warn_unsupported(predictor, missing) from error
    except Unsupported as reason:
        raise _warn_unsupported(predictor, str(reason)) from None
    return Engine(
        "tree",
        f"the trees averaged over {settings.bandwidth:g} SD, differentiated exactly",
        partial(smoothed_gradient, explained.at(settings.bandwidth)),
        averages=True,
        width=settings.bandwidth,
        replaced=_replaced(explained),
    )


def _replaced(explained: Any) -> Any:
    """Other values in place of cells, prepared at the first asking.

    None where a last bit may take the other side of a threshold: behind transformers, and where the table is
    rounded and the model compares in float64; where the model has categories that the table calls numbers;
    and for log-odds of shares, which a last bit may move far.
    """
    predictor, ensemble = explained.predictor, explained.ensemble
    rounded = predictor.schema.narrow_floats and ensemble.dtype != np.float32
    coded = {feature for feature, _ in ensemble.categories} <= set(predictor.schema.levels)
    steep = predictor.scale == "log-odds" and ensemble.link in ("share", "shares")
    behind = explained.before is not identity or hasattr(predictor.model, "steps")
    if behind or rounded or steep or not coded:
        return None

    @cache
    def prepared() -> Any:
        from texplainer.gradients.trees.replacements import replacements_of

        return replacements_of(explained)

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
