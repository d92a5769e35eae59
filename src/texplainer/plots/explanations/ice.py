"""ICE: the prediction of one row as one feature takes other values, with the row's slope as a tangent."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from texplainer.attributions import table
from texplainer.explanation.views import evenly
from texplainer.plots import style
from texplainer.plots.selection import checked
from texplainer.reasons.curve import Curve, ice_curve

RUG = 300  # values of the column, at most


@checked
def ice(explainer: Any, row: Any, feature: str | int, *, ax: Axes | None = None) -> Axes:
    """Draw the prediction of one row as one feature takes other values; the other features stay as they are.

    The large dot is the row itself. The straight line through it is the tangent that its slope stands for, drawn
    over one SD on either side: where curve and tangent part, the slope no longer holds. The strokes at the bottom
    are the column's values in the background; a curve where there are none is a guess of the model. Categories and
    columns of few values are dots, because between them there is nothing.

    Parameters
    ----------
    explainer
        A `TExplainer` of one output.
    row
        One row: a frame or an array of one row, a pandas Series or a mapping from names to values.
    feature
        Its name or its position.
    ax
        Where to draw; fresh axes by default.
    """
    curve = ice_curve(explainer, row, feature)
    ax = style.canvas(ax, width=6.0, height=3.8)
    tangent = _tangent(curve)  # (2, points)
    seen = np.concatenate([curve.y, [curve.prediction], tangent[1]])
    style.frame(ax, np.append(curve.x, np.nan_to_num(curve.at, nan=curve.x[0])), seen, list(curve.levels))
    if curve.levels:
        ax.set_xlim(-0.6, len(curve.levels) - 0.4)
    if tangent.size:
        ax.plot(*tangent, color=style.POSITIVE, lw=1.6, ls="--", zorder=3, gid="tangent")
    joined: dict[str, Any] = {"ls": ":", "lw": 0.8, "marker": "o", "ms": 5} if curve.steps else {"lw": 1.8}
    if curve.levels:
        joined["ls"] = ""
    ax.plot(curve.x, curve.y, color=style.NEGATIVE, zorder=2, gid="curve", **joined)
    if np.isfinite(curve.at):
        ax.plot(
            [curve.at],
            [curve.prediction],
            "o",
            ms=9,
            color=style.INK,
            mfc="white",
            mew=2,
            zorder=4,
            gid="row",
        )
    else:
        ax.axhline(curve.prediction, color=style.INK, lw=1, zorder=1)
    _rug(ax, curve)
    style.label_axes(ax, curve.feature, table.quantity(curve.scale, style.shorten(curve.output)))
    words = "○ the row" if np.isfinite(curve.at) else "line: the row, whose value is missing"
    style.heading(ax, f"{words}; dashed: its slope over ±1 SD" if tangent.size else words)
    return ax


def _tangent(curve: Curve) -> np.ndarray:
    """The line through the row with its slope, one SD to either side, (2, 2); empty without a slope."""
    if not np.isfinite([curve.slope, curve.at]).all():
        return np.empty((2, 0))
    ends = curve.at + curve.sd * np.array([-1.0, 1.0])
    return np.stack([ends, curve.prediction + curve.slope * (ends - curve.at)])


def _rug(ax: Axes, curve: Curve) -> None:
    """Short strokes at the bottom where the background has values."""
    column = np.sort(curve.column)
    column = column[evenly(len(column), RUG)]
    if curve.steps:
        column = column + 0.6 * style.jitter(len(column)) * _gap(curve.x)
    height = ax.get_xaxis_transform()
    ax.vlines(column, 0.0, 0.035, transform=height, color=style.GREY, lw=0.6, alpha=0.5, zorder=1)


def _gap(x: np.ndarray) -> float:
    """The smallest distance of two values."""
    return float(np.diff(x).min()) if len(x) > 1 else 1.0
