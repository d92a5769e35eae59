"""Derivatives of black boxes from differences of their predictions."""

from __future__ import annotations

from functools import partial
from numbers import Real

import numpy as np

from texplainer.errors import InputError
from texplainer.gradients.engine import Engine, Gradient, Settings
from texplainer.gradients.finite_difference import ladder, paper
from texplainer.gradients.finite_difference.stencil import differences
from texplainer.models.predictor import Predictor
from texplainer.types import Array


def fixed(predictor: Predictor, settings: Settings, h: float, rows: Array) -> Gradient:
    """Centred differences at one step h for all; its error is unknown, so infinite is not claimed: NaN."""
    f0 = predictor(rows)
    values, taken = differences(predictor, rows, f0, np.full(rows.shape, h), settings.bounds)
    evaluations = 1 + 2 * np.isfinite(taken).sum(axis=1)
    return Gradient(values, np.full(values.shape, np.nan), taken, np.zeros(rows.shape, np.uint8), evaluations)


def build(predictor: Predictor, background: Array, settings: Settings) -> Engine:
    """Finite differences fit every model."""
    searches = {"auto": ladder.ladder, "paper": paper.paper}
    step = "paper" if isinstance(settings.step, paper.Algorithm1) else settings.step
    if isinstance(step, str):
        if step not in searches:
            known = ", ".join(repr(s) for s in searches)
            raise InputError(f"step={step!r} is unknown; expected {known} or a positive number.")
        gradient, why = searches[step](predictor, background, settings)
        return Engine("finite-difference", why, gradient, exact=False)
    if not isinstance(step, Real) or not 0 < float(step) < np.inf:
        raise InputError(f"step={step!r} is not a step; expected 'auto', 'paper' or a positive number.")
    gradient = partial(fixed, predictor, settings, float(step))
    return Engine(
        "finite-difference", f"centred differences at the fixed step h = {step}", gradient, exact=False
    )
