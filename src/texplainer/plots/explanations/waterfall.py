"""Waterfall: one row's attributions, stacked from the base value to the prediction."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from texplainer.explanation import Explanation
from texplainer.plots import pick, style


def waterfall(explanation: Explanation, *, ax: Axes | None = None, most: int = 10) -> Axes:
    """Draw how one row's attributions lead from E f(X) towards f(x).

    An attribution that shares out f(x) - E f ends at f(x); what it leaves over is a grey bar of its
    own. One that measures each feature by itself (the paper's "sensitivity", "scaled", "effect") ends
    at E f + sum of phi (the paper's g, Eq. 4), and f(x) is a dotted line. Whiskers are error bounds,
    hatched bars stand on a kink or jump.

    Parameters
    ----------
    explanation
        Of one row and one output: `explanation[0]`.
    ax
        Where to draw; fresh axes by default.
    most
        The most bars; the smallest features share the last one.
    """
    bars = pick.row_bars(explanation, most)
    base, prediction = explanation.arrays["base_values"][0], explanation.arrays["predictions"][0, 0]
    shares = pick.shares(explanation.attribution)
    ax = style.canvas(ax, height=style.tall(len(bars.values) + 3))
    if pick.doubt(explanation):
        style.heading(ax, pick.doubt(explanation), warn=True)
    if not np.all(np.isfinite(bars.values)):
        return style.empty(ax, "no attributions to draw")
    bars = pick.with_left_over(explanation, bars)
    base = float(np.nan_to_num(base))
    # the bottom bar starts at the base value, so that one reads upwards as in SHAP's waterfall
    ends = base + np.cumsum(bars.values[::-1])[::-1]
    starts = ends - bars.values
    at = np.arange(len(ends))[::-1]
    drawn = ax.barh(at, bars.values, left=starts, height=0.62, color=bars.colours, zorder=2)
    style.dress(drawn, bars)
    style.whiskers(ax, ends, bars.errors, float(np.ptp([*starts, *ends])))
    style.lines_of(ax, bars.names, bars.details)
    _frame(ax, starts, ends)
    _labels(ax, ends, bars.values, bars.errors)
    _landmarks(ax, base, ends[0], prediction, shares)
    style.label_axes(ax, pick.what(explanation))
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


def _landmarks(ax: Axes, base: float, end: float, prediction: float, shares: bool) -> None:
    """The values the stack leads between; where that is not f(x), f(x) too, if only as a word at the edge."""
    top = ax.get_ylim()[1]
    _mark(ax, base, -1.0, f"E f(X) = {style.amount(base, signed=False)}", (-0.7, 0.0))
    name = "f(x)" if shares else "E f + Σφ"
    _mark(ax, end, top - 0.4, f"{name} = {style.amount(end, signed=False)}", (top - 1.4, top - 0.75))
    if not shares and np.isfinite(prediction):
        low, high = ax.get_xlim()
        ax.set_ylim(-2.2, top)
        words = f"f(x) = {style.amount(prediction, signed=False)}"
        if low < prediction < high:
            ax.plot([prediction] * 2, [-1.4, top], color=style.GREY, lw=1, ls=":", zorder=0)
        else:
            words = f"{words} →" if prediction >= high else f"← {words}"
        _mark(ax, float(np.clip(prediction, low, high)), -1.8, words, (-1.8, -1.8))


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
