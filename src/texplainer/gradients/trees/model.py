"""The smoothed trees of a model between its transformers and its link: values, gradients, bounds.

`read` checks the arrays against the model's own predictions on the explained scale, so whatever a loader may
have misread is found out before the first explanation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from texplainer.background.discrete import find_discrete
from texplainer.background.summary import constant_columns, robust_sd
from texplainer.errors import Unsupported
from texplainer.gradients.engine import Gradient, Settings
from texplainer.gradients.transformers import Map, Pullback, chain, compose, elementwise, identity
from texplainer.gradients.trees.ensemble import TreeEnsemble
from texplainer.gradients.trees.fold import fold
from texplainer.gradients.trees.inputs import cells_of, split_pipeline
from texplainer.gradients.trees.links import link
from texplainer.gradients.trees.readers.table import load
from texplainer.gradients.trees.soft import (
    LEAST_MASS,
    Smoothed,
    largest_slopes,
    mass_inside,
    with_half_widths,
)
from texplainer.models.predictor import Predictor
from texplainer.types import Array

CHECK_ROWS, FEW = 256, 8
HALF_WIDTH = 6**0.5  # of the triangular kernel, in units of its standard deviation
SATURATED = 20.0  # beyond it log-odds taken from a probability have lost their digits
ROUNDINGS = 8.0  # error bound in units of round-off, for each level of each tree


@dataclass(frozen=True)
class SmoothedTreeModel:
    """A tree model with everything its gradient needs."""

    predictor: Predictor
    ensemble: TreeEnsemble
    before: Map  # cells -> the ensemble's inputs
    after: Map  # raw sums -> all outputs on the explained scale
    cells: Callable[[Array], Array]  # rows -> cells as the model sees them
    diagonal: bool  # each input depends on its own feature only, as after a scaler
    unit: Array  # (inputs,) half-widths of a kernel with a standard deviation of one SD; 0: never moved
    limits: tuple[Array, Array] | None  # (inputs,) each: the range the neighbourhood is kept in
    integers: tuple[int, ...]  # inputs that hold whole numbers
    smoothed: Smoothed
    steepest: Array  # (inputs, raw) bound on the smoothed slopes anywhere

    def at(self, bandwidth: float) -> SmoothedTreeModel:
        """The same averaged over a bandwidth, in SDs."""
        widths = bandwidth * self.unit
        smoothed = with_half_widths(self.ensemble, widths, self.limits, self.integers)
        return replace(self, smoothed=smoothed, steepest=largest_slopes(self.ensemble, widths))


def read(predictor: Predictor, background: Array, settings: Settings | None = None) -> SmoothedTreeModel:
    """Read a model's trees and check that they predict what the model predicts."""
    settings = settings or Settings()
    ensemble, before, cells = _as_seen(predictor, background)
    after = link(ensemble, predictor.scale, predictor.task)
    inputs = before(cells(background))[0]
    if inputs.shape[1] != ensemble.features:
        raise Unsupported(
            f"it was trained on {ensemble.features} features and the data has {inputs.shape[1]}."
        )
    diagonal = _is_diagonal(before, cells(background[:: max(1, len(background) // FEW)][:FEW]))
    none = np.zeros(ensemble.features)
    explained = SmoothedTreeModel(
        predictor,
        ensemble,
        before,
        after,
        cells,
        diagonal,
        _unit(predictor, inputs, settings, diagonal),
        _limits(before, cells, background, settings) if diagonal else None,
        settings.discrete.integers if before is identity else (),
        with_half_widths(ensemble, none),
        largest_slopes(ensemble, none),
    )
    _check(explained, background)
    return explained


def _as_seen(predictor: Predictor, background: Array) -> tuple[TreeEnsemble, Map, Callable[[Array], Array]]:
    """The trees, what stands before them, and the cells that it takes.

    Behind column-wise transformers the trees are folded onto the raw columns; behind others, such as PCA,
    the transformers' derivatives are chained.
    """
    transformers, final = split_pipeline(predictor.model)
    ensemble = load(final)
    reason = None
    if transformers:
        try:
            return fold(ensemble, predictor, background), identity, lambda rows: rows
        except Unsupported as found:
            reason = found
    try:
        before, _ = chain(predictor.model)
    except Unsupported as other:
        raise Unsupported(f"{reason or other}") from None
    if not np.isnan(ensemble.missing):
        before = compose(before, elementwise(lambda x: (ensemble.marked(x), np.ones(x.shape))))
    return ensemble, before, partial(cells_of, predictor)


def _unit(predictor: Predictor, inputs: Array, settings: Settings, diagonal: bool) -> Array:
    """(inputs,) half-widths for a bandwidth of one SD; 0 for what is never moved.

    Behind transformers that mix features, inputs that are discrete by themselves stay.
    """
    unit = HALF_WIDTH * robust_sd(inputs)
    if diagonal:
        unit[[*predictor.schema.levels, *settings.discrete.columns]] = 0.0
    else:
        unit[find_discrete(inputs, robust_sd(inputs), settings.bandwidth, range(len(unit))).columns] = 0.0
    if len(inputs) > 1 and not constant_columns(inputs).all():
        unit[constant_columns(inputs)] = 0.0
    return unit


def _limits(
    before: Map, cells: Callable[[Array], Array], background: Array, settings: Settings
) -> tuple[Array, Array] | None:
    """The data's range as the ensemble sees it, (inputs,) each."""
    if settings.bounds is None:
        return None
    ends = np.stack(settings.bounds)
    known = np.isfinite(ends)
    seen = before(cells(np.where(known, ends, np.nan_to_num(background[:1]))))[0]
    low, high = np.min(seen, axis=0), np.max(seen, axis=0)
    both = known.all(axis=0)
    return np.where(both, low, -np.inf), np.where(both, high, np.inf)


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


def smoothed_gradient(explained: SmoothedTreeModel, rows: Array) -> Gradient:
    """Averaged slopes, exact up to round-off."""
    here = _slopes(explained, rows)
    rounding = _rounding(explained, here)
    return Gradient(
        np.where(np.abs(here.values) <= rounding, 0.0, here.values),
        rounding.astype(np.float32),
        np.full(rows.shape, np.nan),
        np.zeros(rows.shape, np.uint8),
        np.zeros(len(rows), dtype=np.int64),
        {"smoothed": here.value},
    )


@dataclass(frozen=True)
class Slopes:
    """Values and slopes of the smoothed model at some rows."""

    values: Array  # (rows, features, outputs) slopes
    value: Array  # (rows, outputs)
    link: Array  # (outputs, rows, raw) slopes of the link
    back: Pullback  # from inputs to features


def _slopes(explained: SmoothedTreeModel, rows: Array) -> Slopes:
    """Slopes at rows; near the edge of the data's range, averaged over the part of the kernel inside it."""
    inputs, back = explained.before(explained.cells(rows))
    raw, slopes = explained.smoothed(inputs)  # (rows, raw), (rows, inputs, raw)
    if explained.limits is not None:
        slopes /= mass_inside(inputs, explained.smoothed.widths, explained.limits)[:, :, None]
    value, link = _link_slopes(explained, raw)
    return Slopes(_by_feature(link, slopes, back), value, link, back)


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


def _rounding(explained: SmoothedTreeModel, here: Slopes) -> Array:
    """Bound on what round-off does to the slopes, (rows, features, outputs)."""
    roundoff = ROUNDINGS * 2.0**-53 * len(explained.ensemble.roots) * (explained.ensemble.depth + 1)
    steepest = explained.steepest  # (inputs, raw)
    by_input = np.einsum("ork,jk->orj", np.abs(here.link), steepest)
    return roundoff / LEAST_MASS * np.abs(here.back(by_input)).transpose(1, 2, 0)
