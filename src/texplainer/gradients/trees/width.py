"""How wide the neighbourhood is that a tree ensemble is averaged over: s_j = c std_j, one c for all rows.

A wider kernel gives a steadier gradient of a blurrier model. With held-out labels c is the largest
whose smoothed model predicts them no worse than the model itself does, but for 1% of the gap to a
constant; without labels it is 1. It is never chosen on training rows, where a model that has
memorised them always asks for no smoothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from texplainer.background.sd import robust_sd
from texplainer.errors import InputError
from texplainer.gradients.engine import Settings
from texplainer.gradients.trees.links import link
from texplainer.models.predictor import Predictor
from texplainer.types import Array

if TYPE_CHECKING:
    from texplainer.gradients.trees.model import SmoothedTreeModel

DEFAULT = 1.0  # chosen in benchmarks/trees_local.py
CANDIDATES = (1.0, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
ALLOWED = 0.01  # of the gap between the model's loss and a constant's


def half_widths(inputs: Array, hard: list[int]) -> Array:
    """(inputs,) the standard deviation of each column; 0 for hard ones."""
    finite = np.where(np.isfinite(inputs), inputs, np.nan)
    enough = (~np.isnan(finite)).sum(axis=0) > 1
    unit = robust_sd(inputs)
    deviation = np.nanstd(finite[:, enough], axis=0)
    unit[enough] = np.where(deviation > 0, deviation, unit[enough])
    unit[hard] = 0.0
    return unit


def choose_width(explained: SmoothedTreeModel | None, settings: Settings) -> tuple[float, str]:
    """C and the reason for it."""
    if settings.smoothing != "auto":
        return float(settings.smoothing), "as asked"
    if settings.validation is None or explained is None:
        return DEFAULT, "the default without held-out labels"
    losses = held_out_losses(explained, settings.validation)
    hard, null = losses(0.0), losses(np.inf)
    if null <= hard:  # then the gap gives no scale, and the rule would forbid any smoothing at all
        return DEFAULT, "the default: the model predicts held-out labels no better than a constant"
    limit = hard + ALLOWED * (null - hard)
    for c in CANDIDATES:
        if losses(c) <= limit:
            return c, f"the widest that predicts {len(settings.validation[1])} held-out labels as well"
    return CANDIDATES[-1], "the narrowest; all predict the held-out labels worse than the model"


def held_out_losses(explained: SmoothedTreeModel, validation: tuple[Any, Any]) -> Callable[[float], float]:
    """Give the loss of the model smoothed with c (0: the model itself, infinity: a constant)."""
    from texplainer.gradients.trees.soft import with_half_widths

    predictor, ensemble = explained.predictor, explained.ensemble
    inputs = explained.before(explained.cells(predictor.schema.read(validation[0])))[0]
    classes = predictor.task == "classification"
    truth = _indicators(predictor, validation[1]) if classes else np.asarray(validation[1], dtype=float)
    if len(truth) != len(inputs):
        raise InputError(f"validation has {len(inputs)} rows and {len(truth)} labels; expected as many.")
    scale = "probability" if classes else "raw"
    after, _ = link(ensemble, scale)
    measure = _log_loss if classes else _squared_error
    truth = truth.reshape(len(truth), -1)

    def loss(c: float) -> float:
        if np.isinf(c):
            return measure(np.broadcast_to(truth.mean(axis=0), truth.shape), truth)
        raw, _ = with_half_widths(ensemble, c * explained.unit)(inputs)
        return measure(after(raw)[0], truth)

    return loss


def _indicators(predictor: Predictor, labels: Any) -> Array:
    names = list(predictor.all_names)
    unknown = sorted({str(label) for label in np.asarray(labels)} - set(names))
    if unknown:
        raise InputError(
            f"validation holds the labels {unknown[:3]}; expected classes of the model, {names[:10]}."
        )
    return np.array([[str(label) == name for name in names] for label in np.asarray(labels)], dtype=float)


def _log_loss(p: Array, truth: Array) -> float:
    return float(-np.mean(np.log(np.clip((p * truth).sum(axis=1), 1e-12, 1.0))))


def _squared_error(y: Array, truth: Array) -> float:
    return float(np.mean((y - truth) ** 2))
