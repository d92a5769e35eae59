"""Scatter: one feature against the prediction or its attribution, with the slope drawn through each point."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from texplainer.attributions import table
from texplainer.explanation.explanation import Explanation
from texplainer.explanation.views import evenly
from texplainer.plots import selection, style
from texplainer.plots.selection import checked

DOTS = 2000


@checked
def scatter(explanation: Explanation, feature: str | int | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the dependence on one feature, with the model's slope at every point.

    The vertical axis is the value; for slopes it is the prediction, and the slope is the line through the
    point. Rings mark unstable rows. Above 2,000 rows, evenly spaced ones are shown. A categorical feature has
    one column per category and does not have slopes.

    Parameters
    ----------
    explanation
        Of one output: `explanation[..., "benign"]`.
    feature
        Its name or its position; None for the only one, as of `explanation[:, "age"]`.
    ax
        Where to draw; fresh axes by default.
    """
    selection.one_output(explanation)
    if feature is None:
        feature = selection.only_feature(explanation, "scatter")
    j = selection.feature_position(explanation, feature)
    rows = selection.explained(explanation)
    ax = style.canvas(ax, width=5.6, height=3.8)
    if not len(rows):
        return style.empty(ax, "no row could be explained")
    rows = rows[evenly(len(rows), DOTS)]
    x, levels = style.along_x(explanation.arrays["data"][rows, j])
    gradient = explanation.arrays["gradient"][rows, j, 0]
    steep = not levels and bool(np.isfinite(gradient).any()) and not table.adds_up(explanation.attribution)
    y = explanation.arrays["predictions"][rows, 0] if steep else explanation.arrays["values"][rows, j, 0]
    seen = np.isfinite(x) & np.isfinite(y)
    x, y, rows, gradient = x[seen], y[seen], rows[seen], gradient[seen]
    if not len(x):
        return style.empty(ax, "every value of this feature is missing")
    style.frame(ax, x, y, levels)
    unstable = selection.doubted_rows(explanation)[rows]
    if not levels and np.isfinite(gradient).any():
        style.slope_strokes(ax, x, y, gradient, list(np.where(unstable, style.POSITIVE, style.NEGATIVE)))
    for mask, colour, face in ((~unstable, style.NEGATIVE, None), (unstable, style.POSITIVE, "white")):
        ax.scatter(
            x[mask], y[mask], s=14, c=face or colour, edgecolors=colour, linewidths=1, alpha=0.9, zorder=3
        )
    words = selection.what(explanation) if steep else selection.meaning_of(explanation, j)
    style.label_axes(ax, explanation.feature_names[j], words)
    if unstable.any():
        style.heading(ax, f"{len(rows):,} rows, {int(unstable.sum()):,} unstable (rings)")
    return ax
