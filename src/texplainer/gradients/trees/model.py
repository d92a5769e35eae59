"""The smoothed trees of a model between its transformers and its link: values, gradients, bounds.

`read` checks the arrays against the model's own predictions on the explained scale, so whatever a loader may
have misread is found out before the first explanation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from texplainer.gradients import Gradient, Unsupported
from texplainer.gradients.transformers import Map, chain
from texplainer.gradients.tree_certificate import Certificate, certify
from texplainer.gradients.tree_ensemble import TreeEnsemble
from texplainer.gradients.tree_links import Bend, link
from texplainer.gradients.tree_loaders import load
from texplainer.gradients.tree_smoothing import Smoothed, smooth
from texplainer.gradients.tree_width import half_widths
from texplainer.prediction import Predictor
from texplainer.signatures import Array

CHECK_ROWS = 256
SATURATED = 20.0  # beyond it log-odds taken from a probability have lost their digits
ENLARGE = (2.0, 4.0, 8.0, 16.0)  # tried in turn where the gradient vanishes
ROUNDINGS = 8.0  # error bound in units of round-off, for each level of each tree


@dataclass(frozen=True)
class Explained:
    """A tree model with everything its gradient needs."""

    predictor: Predictor
    ensemble: TreeEnsemble
    before: Map  # cells -> the ensemble's inputs
    after: Map  # raw sums -> all outputs on the explained scale
    bend: Bend
    cells: Callable[[Array], Array]  # rows -> cells as the model sees them
    diagonal: bool  # each input depends on its own feature only, as after a scaler
    unit: Array  # (inputs,) half-widths for c = 1
    smoothed: Smoothed
    certificate: Certificate

    def at(self, c: float) -> Explained:
        """The same at another width."""
        widths = c * self.unit
        return replace(
            self, smoothed=smooth(self.ensemble, widths), certificate=certify(self.ensemble, widths)
        )


def read(predictor: Predictor, background: Array) -> Explained:
    """Read a model's trees and check that they predict what the model predicts."""
    before, final = chain(predictor.model)
    ensemble = load(final)
    after, bend = link(ensemble, predictor.scale)
    cells = partial(_cells, predictor)
    inputs = before(cells(background))[0]
    if inputs.shape[1] != ensemble.features:
        raise Unsupported(
            f"it was trained on {ensemble.features} features and the data has {inputs.shape[1]}."
        )
    diagonal = _is_diagonal(before, cells(background[:1]))
    unit = half_widths(inputs, list(predictor.schema.levels) if diagonal else [])
    none = np.zeros(ensemble.features)
    explained = Explained(
        predictor,
        ensemble,
        before,
        after,
        bend,
        cells,
        diagonal,
        unit,
        smooth(ensemble, none),
        certify(ensemble, none),
    )
    _check(explained, background)
    return explained


def _is_diagonal(before: Map, row: Array) -> bool:
    inputs, back = before(row)
    if inputs.shape != row.shape:
        return False
    jacobian = back(np.eye(inputs.shape[1])[:, None, :])[:, 0]
    return np.array_equal(jacobian, np.diag(np.diag(jacobian)))


def _cells(predictor: Predictor, rows: Array) -> Array:
    """Codes of numeric levels as their values; of a categorical dtype codes, as the libraries read them."""
    schema, out = predictor.schema, rows
    for j, levels in schema.levels.items():
        if schema.dtypes.get(j) is None and all(isinstance(level, (int, float)) for level in levels):
            out = rows.copy() if out is rows else out
            codes = np.where(np.isnan(rows[:, j]), 0, rows[:, j]).astype(int)
            out[:, j] = np.where(np.isnan(rows[:, j]), np.nan, np.asarray(levels, dtype=float)[codes])
    return out


def _check(explained: Explained, background: Array) -> None:
    """Compare the arrays' own (hard) predictions with the model's on the explained scale."""
    sample = background[:: max(1, len(background) // CHECK_ROWS)][:CHECK_ROWS]
    predictor = explained.predictor
    expected = predictor.everything(sample)
    inputs = explained.before(explained.cells(sample))[0]
    raw, _ = explained.smoothed(inputs, execution="scalar")
    found = explained.after(raw)[0]
    if found.shape != expected.shape:
        raise Unsupported(f"its trees give {found.shape[1]} outputs and the model {expected.shape[1]}.")
    known = np.isfinite(expected)
    if predictor.scale == "margin" and explained.ensemble.link in ("share", "shares"):
        known &= np.abs(expected) < SATURATED
    size = max(1.0, float(np.abs(expected[known]).max(initial=0.0)))
    gap = float(np.abs(found - expected)[known].max(initial=0.0)) / size
    if not gap <= explained.ensemble.tolerance:
        raise Unsupported(
            f"the trees as read miss the model's own predictions by {gap:.1e} on {len(sample)} rows."
        )


def differentiate(at: Callable[[float], Explained], c: float, rows: Array) -> Gradient:
    """Smoothed values and gradients; where the gradient vanishes, again over a wider neighbourhood."""
    found = _gradient(at(c), rows)
    width = np.full(len(rows), c)
    for factor in ENLARGE:
        flat = np.flatnonzero(~found.values.any(axis=(1, 2)))
        if not len(flat):
            break
        wider = _gradient(at(factor * c), rows[flat])
        width[flat] = factor * c
        for name in ("values", "error"):
            getattr(found, name)[flat] = getattr(wider, name)
        for name, array in wider.extras.items():
            found.extras[name][flat] = array
    flat = ~found.values.any(axis=(1, 2))
    width[flat] = c
    return replace(found, extras={**found.extras, "smoothing_width": width, "vanishing": (width != c) | flat})


def _gradient(explained: Explained, rows: Array) -> Gradient:
    outputs = list(explained.predictor.outputs)
    inputs, inputs_back = explained.before(explained.cells(rows))
    raw, slopes = explained.smoothed(inputs)  # (rows, raw), (rows, inputs, raw)
    value, value_back = explained.after(raw)
    seeds = np.zeros((len(outputs), len(rows), value.shape[1]))
    seeds[np.arange(len(outputs)), :, outputs] = 1.0
    weights = value_back(seeds)  # (outputs, rows, raw): d output / d raw

    by_input = np.einsum("ork,rjk->orj", weights, slopes)  # (outputs, rows, inputs)
    values = np.ascontiguousarray(inputs_back(by_input).transpose(1, 2, 0))
    steep, bent = _bounds(explained, inputs, weights, value[:, outputs])
    if explained.diagonal:
        steep, bent = np.abs(inputs_back(steep)), np.abs(inputs_back(inputs_back(bent)))
    else:  # through mixed features the bounds of the inputs say nothing of the features
        steep, bent = (np.full((len(outputs), *rows.shape), np.nan) for _ in range(2))
    steep, bent = steep.transpose(1, 2, 0), bent.transpose(1, 2, 0)
    unit = ROUNDINGS * 2.0**-53 * len(explained.ensemble.roots) * (explained.ensemble.depth + 1)
    return Gradient(
        values,
        unit * np.nan_to_num(steep),
        np.full(rows.shape, np.nan),
        np.zeros(rows.shape, np.uint8),
        np.zeros(len(rows), dtype=np.int64),
        {"smoothed": value[:, outputs], "slope_bound": steep, "curvature_bound": bent},
    )


def _bounds(explained: Explained, inputs: Array, weights: Array, value: Array) -> tuple[Array, Array]:
    """Bounds on the first and second derivatives by every input, both (outputs, rows, inputs)."""
    width = np.where(explained.smoothed.widths > 0, explained.smoothed.widths, 1.0)
    oscillation = explained.certificate(inputs)  # (rows, inputs, raw)
    first = oscillation / width[:, None]
    steep = np.einsum("ork,rjk->orj", np.abs(weights), first)
    bent = 2 * np.einsum("ork,rjk->orj", np.abs(weights), first / width[:, None])
    largest = first.max(axis=2)  # (rows, inputs)
    bent += explained.bend(value).T[:, :, None] * largest**2
    return steep, bent
