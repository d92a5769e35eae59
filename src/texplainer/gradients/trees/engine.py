"""Tree ensembles: the exact gradient of the kernel-smoothed model.

A tree ensemble is constant on boxes; its gradient is 0 almost everywhere and says nothing. Averaged
over a neighbourhood of half-width s_j in each feature (triangular weights) it becomes smooth, and its
value and gradient have a closed form that costs about two predictions, whatever the number of features
(`tree_kernel`). Centred differences are the special case of a box-shaped neighbourhood along one axis.

`build` reads the model (`tree_loaders`), compares the arrays with the model's own predictions, and
chooses the width (`tree_width`). A tree ensemble that cannot be read is explained by centred
differences over the same widths, with a warning that says so (without one where categories are the reason).
"""

from __future__ import annotations

import warnings
from functools import cache, partial
from typing import Any

import numpy as np

from texplainer.errors import EngineWarning
from texplainer.gradients import Engine, Gradient, Settings, Unsupported, finite_difference
from texplainer.gradients.tree_loaders import find
from texplainer.gradients.tree_width import choose_width, half_widths
from texplainer.prediction import Predictor
from texplainer.signatures import Array


def build(predictor: Predictor, background: Array, settings: Settings) -> Engine:
    """Read the trees, check them against the model, choose the width."""
    final = last_step(predictor.model)
    if find(final) is None:
        raise Unsupported("the model is no tree ensemble.")
    if settings.smoothing != "auto" and not settings.smoothing > 0:
        raise Unsupported("smoothing=0 asks for the point gradient, which is 0 almost everywhere for trees.")
    try:
        from texplainer.gradients.tree_engine import differentiate, read

        explained = read(predictor, background)
    except ModuleNotFoundError as error:
        missing = f"the tree engine needs the package {error.name!r}, which is not installed."
        return _fall_back(predictor, background, settings, missing)
    except Unsupported as reason:
        return _fall_back(predictor, background, settings, str(reason))
    c, why = choose_width(explained, settings)
    return Engine(
        "tree",
        f"the trees averaged over {c:g} standard deviations ({why}), differentiated exactly",
        partial(differentiate, cache(explained.at), c),
        width=c,
    )


def last_step(model: Any) -> Any:
    """Give the estimator at the end of a Pipeline, or the model itself."""
    return last_step(model.steps[-1][1]) if hasattr(model, "steps") and model.steps else model


def _fall_back(predictor: Predictor, background: Array, settings: Settings, reason: str) -> Engine:
    """Centred differences over the half-widths the trees would have been averaged over."""
    c = choose_width(None, settings)[0]
    widths = c * half_widths(background, list(predictor.schema.levels))
    why = f"{reason} So centred differences over {c:g} standard deviations are used."
    if not predictor.schema.levels:  # encoded categories cannot be read as trees: nothing a user could mend
        warnings.warn(why, EngineWarning, stacklevel=2)
    gradient = partial(_differences, predictor, settings, widths)
    return Engine("finite-difference", why, gradient, exact=False, width=c)


def _differences(predictor: Predictor, settings: Settings, widths: Array, rows: Array) -> Gradient:
    step = np.broadcast_to(widths, rows.shape)
    values, taken = finite_difference.differences(predictor, rows, predictor(rows), step, settings.bounds)
    evaluations = 1 + 2 * np.isfinite(taken).sum(axis=1)
    return Gradient(values, np.full(values.shape, np.nan), taken, np.zeros(rows.shape, np.uint8), evaluations)
