"""The smoothed trees of a model between its transformers and its link: values, gradients, bounds.

`read` checks the arrays against the model's own predictions on the explained scale, so whatever a loader may
have misread is found out before the first explanation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import ndtri

from texplainer.background.sd import robust_sd
from texplainer.errors import Unsupported
from texplainer.gradients.engine import MOVE, Gradient
from texplainer.gradients.transformers import Map, Pullback, chain
from texplainer.gradients.trees.certificate import Certificate, certify
from texplainer.gradients.trees.ensemble import TreeEnsemble
from texplainer.gradients.trees.links import Bend, link
from texplainer.gradients.trees.readers.table import load
from texplainer.gradients.trees.soft import Smoothed, with_half_widths
from texplainer.gradients.trees.width import half_widths
from texplainer.models.predictor import Predictor
from texplainer.types import Array

CHECK_ROWS, TYPICAL_ROWS, FEW = 256, 64, 8
TRUST = 0.75  # exponent of a row's own change, of 1; the rest goes to the typical one
SATURATED = 20.0  # beyond it log-odds taken from a probability have lost their digits
ENLARGE = (2.0, 4.0, 8.0, 16.0)  # tried in turn where the gradient vanishes
ROUNDINGS = 8.0  # error bound in units of round-off, for each level of each tree


@dataclass(frozen=True)
class SmoothedTreeModel:
    """A tree model with everything its gradient needs."""

    predictor: Predictor
    ensemble: TreeEnsemble
    before: Map  # cells -> the ensemble's inputs
    after: Map  # raw sums -> all outputs on the explained scale
    bend: Bend
    cells: Callable[[Array], Array]  # rows -> cells as the model sees them
    diagonal: bool  # each input depends on its own feature only, as after a scaler
    unit: Array  # (inputs,) half-widths for c = 1
    sigma: Array  # (features,) SDs; 0 for categories
    sample: Array  # (few rows, features) of the background
    smoothed: Smoothed
    certificate: Certificate
    typical: tuple[Array, Array] | None = None  # see `_typical`

    def at(self, c: float) -> SmoothedTreeModel:
        """The same at another width."""
        widths = c * self.unit
        wide = replace(
            self, smoothed=with_half_widths(self.ensemble, widths), certificate=certify(self.ensemble, widths)
        )
        return replace(wide, typical=_typical(wide))


def read(predictor: Predictor, background: Array) -> SmoothedTreeModel:
    """Read a model's trees and check that they predict what the model predicts."""
    before, final = chain(predictor.model)
    ensemble = load(final)
    after, bend = link(ensemble, predictor.scale, predictor.task)
    cells = partial(_cells, predictor)
    inputs = before(cells(background))[0]
    if inputs.shape[1] != ensemble.features:
        raise Unsupported(
            f"it was trained on {ensemble.features} features and the data has {inputs.shape[1]}."
        )
    diagonal = _is_diagonal(before, cells(background[:: max(1, len(background) // FEW)][:FEW]))
    unit = half_widths(inputs, list(predictor.schema.levels) if diagonal else [])
    none = np.zeros(ensemble.features)
    explained = SmoothedTreeModel(
        predictor,
        ensemble,
        before,
        after,
        bend,
        cells,
        diagonal,
        unit,
        np.where(predictor.schema.numeric, robust_sd(background), 0.0),
        background[:: max(1, len(background) // TYPICAL_ROWS)][:TYPICAL_ROWS],
        with_half_widths(ensemble, none),
        certify(ensemble, none),
    )
    _check(explained, background)
    return explained


def _is_diagonal(before: Map, rows: Array) -> bool:
    """Whether each input is made of its own feature alone, by one direction without equal parts.

    An imputer would hide the others where a cell is missing.
    """
    inputs, back = before(np.nan_to_num(rows))
    if inputs.shape != rows.shape:
        return False
    direction = 2 + np.cos(np.sqrt(2) * np.arange(1, rows.shape[1] + 1))
    ones, found = back(np.stack([np.ones(rows.shape), np.tile(direction, (len(rows), 1))]))
    return np.allclose(found, ones * direction, rtol=1e-9, atol=1e-9 * np.abs(ones).max(initial=0.0))


def _cells(predictor: Predictor, rows: Array) -> Array:
    """Codes of numeric levels as their values; of a categorical dtype codes, as the libraries read them."""
    schema, out = predictor.schema, rows
    for j, levels in schema.levels.items():
        if schema.dtypes.get(j) is None and all(isinstance(level, (int, float)) for level in levels):
            out = rows.copy() if out is rows else out
            codes = np.where(np.isnan(rows[:, j]), 0, rows[:, j]).astype(int)
            out[:, j] = np.where(np.isnan(rows[:, j]), np.nan, np.asarray(levels, dtype=float)[codes])
    return out


def _check(explained: SmoothedTreeModel, background: Array) -> None:
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
    if predictor.scale == "log-odds" and explained.ensemble.link in ("share", "shares"):
        known &= np.abs(expected) < SATURATED
    size = max(1.0, float(np.abs(expected[known]).max(initial=0.0)))
    gap = float(np.abs(found - expected)[known].max(initial=0.0)) / size
    if not gap <= explained.ensemble.tolerance:
        raise Unsupported(
            f"the trees as read miss the model's own predictions by {gap:.1e} on {len(sample)} rows."
        )


def smoothed_gradient(at: Callable[[float], SmoothedTreeModel], c: float, rows: Array) -> Gradient:
    """Smoothed values and gradients; where the gradient vanishes, again over a wider neighbourhood."""
    found = _gradient(at(c), rows)
    width = np.full(len(rows), c)
    for factor in ENLARGE:
        flat = np.flatnonzero(~found.values.any(axis=(1, 2)))
        if not len(flat):
            break
        wider = _gradient(at(factor * c), rows[flat])
        width[flat] = factor * c
        for name in ("values", "error", "change"):
            getattr(found, name)[flat] = getattr(wider, name)
        for name, array in wider.extras.items():
            found.extras[name][flat] = array
    flat = ~found.values.any(axis=(1, 2))
    width[flat] = c
    return replace(found, extras={**found.extras, "smoothing_width": width, "vanishing": (width != c) | flat})


def _gradient(explained: SmoothedTreeModel, rows: Array) -> Gradient:
    here = _slopes(explained, rows)
    return Gradient(
        here.values,
        _rounding(explained, here).astype(np.float32),
        np.full(rows.shape, np.nan),
        np.zeros(rows.shape, np.uint8),
        np.zeros(len(rows), dtype=np.int64),
        {"smoothed": here.value},
        here.change if explained.typical is None else _calibrated(explained.typical, here.change),
    )


@dataclass(frozen=True)
class Slopes:
    """The smoothed model at rows."""

    values: Array  # (rows, features, outputs) slopes
    value: Array  # (rows, outputs)
    link: Array  # (outputs, rows, raw) slopes of the link
    back: Pullback  # from inputs to features
    change: Array  # (rows, outputs) of the scaled slopes under a small move, by features' own curvature


def _slopes(explained: SmoothedTreeModel, rows: Array) -> Slopes:
    """Slopes at rows, and how they change a little further on, by each feature's own curvature."""
    inputs, back = explained.before(explained.cells(rows))
    step = explained.before(explained.cells(rows + _move(explained)))[0] - inputs
    step = np.nan_to_num(step)  # a missing cell does not move
    raw, slopes, bends = explained.smoothed.value_gradient_curvature(
        inputs
    )  # (rows, raw), twice (rows, inputs, raw)
    value, link = _link_slopes(explained, raw)
    values = _by_feature(link, slopes, back)
    _, link_there = _link_slopes(explained, raw + np.einsum("rj,rjk->rk", step, slopes))
    there = _by_feature(link_there, slopes + bends * step[:, :, None], back)
    change = np.sqrt((((there - values) * explained.sigma[:, None]) ** 2).sum(axis=1))
    return Slopes(values, value, link, back, change)


def _link_slopes(explained: SmoothedTreeModel, raw: Array) -> tuple[Array, Array]:
    """Explained outputs (rows, outputs) and their slopes by the raw sums, (outputs, rows, raw)."""
    outputs = list(explained.predictor.outputs)
    value, back = explained.after(raw)
    seeds = np.zeros((len(outputs), len(raw), value.shape[1]))
    seeds[np.arange(len(outputs)), :, outputs] = 1.0
    return value[:, outputs], back(seeds)


def _by_feature(link: Array, slopes: Array, back: Pullback) -> Array:
    """Chain the slopes of link, trees and transformers, (rows, features, outputs)."""
    by_input = np.einsum("ork,rjk->orj", link, slopes)  # (outputs, rows, inputs)
    return np.ascontiguousarray(back(by_input).transpose(1, 2, 0))


def _move(explained: SmoothedTreeModel) -> Array:
    """Every number moves by as much, up or down, so that one move weighs all features alike."""
    up = (np.arange(1, len(explained.sigma) + 1) * (5**0.5 - 1) / 2) % 1.0 < 0.5
    return MOVE * explained.sigma * np.where(up, 1.0, -1.0)


def _typical(explained: SmoothedTreeModel) -> tuple[Array, Array]:
    """Medians over some background rows of the change as measured, and as extrapolated, (outputs,) each.

    Measured by real moves, fixed normal deviates for every feature.
    """
    rows, features = explained.sample, np.arange(1, len(explained.sigma) + 1)
    here = _slopes(explained, rows)
    found = []
    for prime in (2, 3, 5, 7):
        move = MOVE * explained.sigma * ndtri((0.5 + features * np.sqrt(prime)) % 1.0)
        away = _slopes(explained, rows + move).values - here.values
        found.append(np.sqrt(((away * explained.sigma[:, None]) ** 2).sum(axis=1)))
    return np.median(np.mean(found, axis=0), axis=0), np.median(here.change, axis=0)


def _calibrated(typical: tuple[Array, Array], change: Array) -> Array:
    """Estimate `Gradient.change`, (rows, outputs), from the features' own curvature.

    What features do to each other's slopes is missing in it: it is scaled to the changes measured on the
    background, and drawn a little towards the typical one.
    """
    measured, own = typical
    relative = change / np.where(own > 0, own, 1.0)
    return np.where(own > 0, measured * relative**TRUST, change)


def _rounding(explained: SmoothedTreeModel, here: Slopes) -> Array:
    """Bound on what round-off does to the slopes, (rows, features, outputs)."""
    unit = ROUNDINGS * 2.0**-53 * len(explained.ensemble.roots) * (explained.ensemble.depth + 1)
    steepest = explained.certificate.steepest()  # (inputs, raw)
    by_input = np.einsum("ork,jk->orj", np.abs(here.link), steepest)
    return unit * np.abs(here.back(by_input)).transpose(1, 2, 0)


def bounds(explained: SmoothedTreeModel, rows: Array) -> tuple[Array, Array]:
    """Bounds on the first and second derivatives that hold by construction, both (rows, features, outputs).

    NaN behind transformers that mix features: there the bounds of the inputs say nothing of the features.
    """
    if not explained.diagonal:
        nothing = np.full((*rows.shape, len(explained.predictor.outputs)), np.nan)
        return nothing, nothing
    inputs, back = explained.before(explained.cells(rows))
    here = _slopes(explained, rows)
    width = np.where(explained.smoothed.widths > 0, explained.smoothed.widths, 1.0)
    first = explained.certificate(inputs) / width[:, None]  # (rows, inputs, raw)
    steep = np.einsum("ork,rjk->orj", np.abs(here.link), first)
    bent = 2 * np.einsum("ork,rjk->orj", np.abs(here.link), first / width[:, None])
    largest = first.max(axis=2)  # (rows, inputs)
    bent += explained.bend(here.value).T[:, :, None] * largest**2
    return np.abs(back(steep)).transpose(1, 2, 0), np.abs(back(back(bent))).transpose(1, 2, 0)
