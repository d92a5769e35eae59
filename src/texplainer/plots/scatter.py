"""Scatter: one feature against the prediction or its attribution, with the slope drawn through each point."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from texplainer.errors import InputError
from texplainer.explanation import Explanation
from texplainer.plots import pick, style

DOTS = 2000
LENGTH = 0.03  # of half a slope line, as a share of the picture's width


def scatter(explanation: Explanation, feature: str | int, *, ax: Axes | None = None) -> Axes:
    """Draw the dependence on one feature; a Taylor explainer knows the slope at every point.

    Upwards goes the attribution if it is a share of the prediction ("contribution", "integrated",
    "additive"), otherwise the prediction itself. Rings are fragile rows: their slope holds only near by.
    Beyond 2,000 rows, evenly spaced ones are shown. A categorical feature has one column a level and
    no slopes.

    Parameters
    ----------
    explanation
        Of one output: `explanation[..., "benign"]`.
    feature
        Its name or its position.
    ax
        Where to draw; fresh axes by default.
    """
    pick.one_output(explanation)
    j = _position(explanation, feature)
    rows = pick.explained(explanation)
    ax = style.canvas(ax, width=5.6, height=3.8)
    if not len(rows):
        return style.empty(ax, "no row could be explained")
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), DOTS)).astype(int))]
    alone = not pick.shares(explanation.attribution)
    y = explanation.arrays["predictions"][rows, 0] if alone else explanation.arrays["values"][rows, j, 0]
    x, levels = _places(explanation.arrays["data"][rows, j])
    seen = np.isfinite(x) & np.isfinite(y)
    x, y, rows = x[seen], y[seen], rows[seen]
    if not len(x):
        return style.empty(ax, "every value of this feature is missing")
    _frame(ax, x, y, levels)
    fragile = pick.doubted_rows(explanation)[rows]
    if not levels:
        _slopes(ax, x, y, explanation.arrays["gradient"][rows, j, 0], fragile)
    for mask, colour, face in ((~fragile, style.NEGATIVE, None), (fragile, style.POSITIVE, "white")):
        ax.scatter(
            x[mask], y[mask], s=14, c=face or colour, edgecolors=colour, linewidths=1, alpha=0.9, zorder=3
        )
    words = pick.what(explanation) if alone else pick.meaning(explanation)
    style.label_axes(ax, explanation.feature_names[j], words)
    if fragile.any():
        style.heading(ax, f"{len(rows):,} rows, {int(fragile.sum()):,} fragile (rings)")
    return ax


def _position(explanation: Explanation, feature: Any) -> int:
    names = explanation.feature_names
    if isinstance(feature, (int, np.integer)) and -len(names) <= feature < len(names):
        return int(feature) % len(names)
    if feature not in names:
        raise InputError(f"feature={feature!r} is not in the explanation; it has {', '.join(names[:12])}.")
    return names.index(feature)


def _places(data: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Positions along x, and the levels they stand for if the column holds text."""
    try:
        return np.asarray(data, dtype=float), []
    except (TypeError, ValueError):
        levels, codes = np.unique([style.number(v) for v in data], return_inverse=True)
        return codes.astype(float), list(levels)


def _frame(ax: Axes, x: np.ndarray, y: np.ndarray, levels: list[str]) -> None:
    """Fixed limits, so that the slopes' angles are known before drawing."""
    for values, set_limits in ((x, ax.set_xlim), (y, ax.set_ylim)):
        span = float(np.ptp(values)) or max(1.0, abs(float(values[0])))
        set_limits(values.min() - 0.06 * span, values.max() + 0.06 * span)
    if levels:
        ax.set_xticks(range(len(levels)), [style.shorten(level, 14) for level in levels])
        style.literal(ax.get_xticklabels())
    ax.grid(axis="y", color=style.FAINT, lw=0.6)
    ax.spines["left"].set_visible(False)


def _slopes(ax: Axes, x: np.ndarray, y: np.ndarray, gradient: np.ndarray, fragile: np.ndarray) -> None:
    """Short lines of one length on the page, whatever their steepness."""
    (x0, x1), (y0, y1) = ax.get_xlim(), ax.get_ylim()
    steep = gradient * (x1 - x0) / (y1 - y0) * (ax.bbox.height / ax.bbox.width)  # rise over run on the page
    run = LENGTH / np.hypot(1.0, steep)
    dx = run * (x1 - x0)
    ends = np.stack(
        [np.stack([x - dx, y - gradient * dx], 1), np.stack([x + dx, y + gradient * dx], 1)], axis=1
    )
    colours = np.where(fragile, style.POSITIVE, style.NEGATIVE)
    lines = LineCollection(list(ends), colors=list(colours), linewidths=1, alpha=0.6, zorder=2)
    lines.set_gid("slopes")
    ax.add_collection(lines, autolim=False)
