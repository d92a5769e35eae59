"""Exact gradients of scikit-learn models, by reverse-mode differentiation of their formulas.

One forward and one reverse pass whatever the number of features (`closed_form_models` holds the
formulas, `transformers` the chain rule). Before a formula is trusted its values are compared with the
model's own predictions; a mismatch means the model is not what its type promises, and another engine
takes over.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from texplainer.gradients import Engine, Gradient, Settings, Unsupported, spread
from texplainer.gradients.closed_form_models import formula
from texplainer.gradients.transformers import Map, chain
from texplainer.prediction import Predictor
from texplainer.signatures import Array

BLOCK = 512  # rows at a time: their activations stay in cache, and a row's bits depend on no other row count
CHECK_ROWS = 64
ROUNDINGS = 64.0  # error bound in units of round-off, relative to the row's gradient
TOLERANCE = 1e-6  # between the formula's values and the model's, relative to the largest
#: libsvm finds even two coupled probabilities by an iteration it stops early, on its way to Platt's sigmoid
PLATT, PLATT_TOLERANCE = ("SVC", "NuSVC"), 1e-2
SATURATED = 20.0  # beyond it log-odds taken from a probability have lost their digits


def build(predictor: Predictor, background: Array, settings: Settings) -> Engine:
    """Read the model's formula and check it against the model."""
    if predictor.kind != "sklearn":
        raise Unsupported("the model is not from scikit-learn.")
    if predictor.schema.encoded:
        raise Unsupported("categorical columns reach the model as something else than numbers.")
    scales = formula(predictor.model)
    if predictor.scale not in scales:
        raise Unsupported(
            f"the {type(predictor.model).__name__} has no closed form on the {predictor.scale} scale."
        )
    chosen = scales[predictor.scale]
    platt = predictor.scale == "probability" and type(chain(predictor.model)[1]).__name__ in PLATT
    _check(chosen, predictor, background, PLATT_TOLERANCE if platt else TOLERANCE)
    gradient = partial(_gradient, chosen, predictor, spread(background))
    what = "Platt's sigmoid, which libsvm reaches to 0.5%" if platt else "the model's own formula"
    return Engine("closed-form", f"{what}, differentiated exactly", gradient)


def _gradient(chosen: Map, predictor: Predictor, sigma: Array, rows: Array) -> Gradient:
    count, outputs = len(rows), len(predictor.outputs)
    values = np.empty((count, rows.shape[1], outputs))
    # padded to whole blocks, so that a row's bits do not depend on how many others come with it
    seeds = np.zeros((outputs, BLOCK, len(predictor.all_names)))
    seeds[np.arange(outputs), :, predictor.outputs] = 1.0
    for start in range(0, count, BLOCK):
        block = rows[start : start + BLOCK]
        size = len(block)
        if size < BLOCK:
            block = np.concatenate([block, np.broadcast_to(block[:1], (BLOCK - size, rows.shape[1]))])
        values[start : start + BLOCK] = chosen(block)[1](seeds)[:, :size].transpose(1, 2, 0)
    return exact(values, predictor, sigma, rows)


def exact(values: Array, predictor: Predictor, sigma: Array, rows: Array) -> Gradient:
    """Wrap an exact derivative: its error is rounding, relative to the row's whole gradient."""
    size = np.linalg.norm(values * sigma[:, None], axis=1, keepdims=True)  # (rows, 1, outputs)
    error = ROUNDINGS * predictor.unit * size / sigma[:, None]
    cost = np.full(len(rows), 1 + values.shape[2], dtype=np.int64)
    return Gradient(values, error, np.full(rows.shape, np.nan), np.zeros(rows.shape, np.uint8), cost)


def _check(chosen: Map, predictor: Predictor, background: Array, tolerance: float) -> None:
    """Compare the formula's values with the model's on some background rows."""
    sample = background[np.all(np.isfinite(background), axis=1)]
    sample = sample[:: max(1, len(sample) // CHECK_ROWS)][:CHECK_ROWS]
    if not len(sample):
        raise Unsupported("the background has no complete row to check the formula with.")
    expected, found = predictor.everything(sample), chosen(sample)[0]
    if expected.shape != found.shape:
        raise Unsupported(f"the formula gives {found.shape[1]} outputs, the model {expected.shape[1]}.")
    known = np.abs(expected) < SATURATED if predictor.scale == "margin" else np.isfinite(expected)
    scale = max(1e-300, float(np.abs(expected).max()))
    gap = float(np.max(np.abs(expected - found)[known], initial=0.0)) / scale
    if not gap <= tolerance:
        raise Unsupported(
            f"the formula of a {type(predictor.model).__name__} misses the model's predictions by {gap:.1e}."
        )
