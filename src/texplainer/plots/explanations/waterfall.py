"""Waterfall: one row's Shapley values, stacked from the base value to the prediction."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from texplainer.explanation.explanation import Explanation
from texplainer.plots import selection, style
from texplainer.plots.selection import checked


@checked
def waterfall(explanation: Explanation, *, ax: Axes | None = None, max_display: int = 10) -> Axes:
    """Draw one row's Shapley values as steps from E f(X) to f(x).

    For another attribution the Shapley values are computed, and the heading reports it. A difference left by
    numerical integration is a separate grey bar, so that the bars end at f(x). Whiskers are error bounds;
    hatched bars mark a kink or jump of the model. Log-odds have a second axis in probability.

    Parameters
    ----------
    explanation
        Of one row and one output: `explanation[0]`.
    ax
        Where to draw; fresh axes by default.
    max_display
        Maximal number of bars; the smallest features are combined in the last one.
    """
    explanation, note = selection.stacked(selection.one_row(explanation))
    bars = selection.row_bars(explanation, max_display)
    base = float(np.nan_to_num(explanation.arrays["base_values"].flat[0]))
    ax = style.canvas(ax, height=style.tall(len(bars.values) + 3))
    selection.say_doubt(ax, explanation, note)
    if not np.all(np.isfinite(bars.values)):
        return style.empty(ax, "no attributions to draw")
    bars = selection.with_left_over(explanation, bars)
    # the bottom bar starts at the base value, so that one reads upwards as in SHAP's waterfall
    ends = base + np.cumsum(bars.values[::-1])[::-1]
    starts = ends - bars.values
    at = np.arange(len(ends))[::-1]
    drawn = ax.barh(at, bars.values, left=starts, height=0.62, color=bars.colours, zorder=2)
    style.dress(drawn, bars)
    style.whiskers(ax, ends, bars.errors, float(np.ptp([*starts, *ends])))
    style.name_lines(ax, bars.names, bars.details)
    _frame(ax, starts, ends)
    _labels(ax, ends, bars.values, bars.errors)
    _landmarks(ax, base, float(ends[0]))
    style.label_axes(ax, selection.what(explanation))
    if explanation.scale == "log-odds":
        style.probability_axis(ax)
    return ax


def _frame(ax: Axes, starts: np.ndarray, ends: np.ndarray) -> None:
    """Limits with room for the labels, and lines from the head of each bar to the foot of the next."""
    points = np.concatenate([starts, ends])
    room = style.room(ax, 2) * max(np.ptp(points), 1e-12 + 1e-6 * abs(points[0]))
    ax.set_xlim(points.min() - room, points.max() + room)
    ax.set_ylim(-1.5, len(ends) + 0.4)
    for line, start in enumerate(starts[:-1]):
        at = len(ends) - 1 - line
        ax.plot([start, start], [at - 0.69, at + 0.31], color=style.GREY, lw=0.7, zorder=1)


def _landmarks(ax: Axes, base: float, end: float) -> None:
    """Mark the base value and the prediction, between which the bars are stacked."""
    top = ax.get_ylim()[1]
    _mark(ax, base, -1.0, f"E f(X) = {style.amount(base, sign=False)}", (-0.7, 0.0))
    _mark(ax, end, top - 0.4, f"f(x) = {style.amount(end, sign=False)}", (top - 1.4, top - 0.75))


def _mark(ax: Axes, x: float, y: float, words: str, line: tuple[float, float]) -> None:
    low, high = ax.get_xlim()
    place = (x - low) / (high - low)
    side = "left" if place < 0.3 else "right" if place > 0.7 else "center"
    ax.plot([x, x], line, color=style.GREY, lw=0.7, zorder=1)
    ax.text(x, y, words, ha=side, va="center", fontsize=style.SIZE, color=style.INK)


def _labels(ax: Axes, ends: np.ndarray, values: np.ndarray, errors: np.ndarray) -> None:
    low, high = ax.get_xlim()
    gap = 0.012 * (high - low)
    for line, (end, value, error) in enumerate(zip(ends, values, np.nan_to_num(errors), strict=True)):
        right = value >= 0
        ax.text(
            min(end + error + gap, high) if right else max(end - error - gap, low),
            len(ends) - 1 - line,
            style.amount(value),
            ha="left" if right else "right",
            va="center",
            fontsize=style.SIZE - 0.5,
            color=style.INK,
        )
