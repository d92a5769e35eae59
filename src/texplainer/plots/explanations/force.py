"""Force: one row's Shapley values as arrows that push the value up from the left and down from the right."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

from texplainer.explanation.explanation import Explanation
from texplainer.plots import selection, style
from texplainer.plots.selection import checked

LABELS = 3  # named arrows on each side


@checked
def force(explanation: Explanation, *, ax: Axes | None = None, max_display: int = 20) -> Axes:
    """Draw one row's Shapley values as arrows along one line that meet at f(x).

    For another attribution the Shapley values are computed, and the heading reports it. Positive values point
    right, negative ones left; the largest are next to the meeting point and are labelled. Whiskers are error
    bounds. Hatched arrows mark a kink or jump of the model; grey is the remaining difference of the sum.
    Log-odds have a second axis in probability.

    Parameters
    ----------
    explanation
        Of one row and one output: `explanation[0]`.
    ax
        Where to draw; fresh axes by default.
    max_display
        Maximal number of arrows; the smallest features are combined in one.
    """
    explanation, note = selection.stacked(selection.one_row(explanation))
    bars = selection.row_bars(explanation, max_display)
    ax = style.canvas(ax, width=8.0, height=2.5)
    selection.say_doubt(ax, explanation, note)
    if not np.all(np.isfinite(bars.values)):
        return style.empty(ax, "no attributions to draw")
    bars = selection.with_left_over(explanation, bars)
    base = float(np.nan_to_num(explanation.arrays["base_values"].flat[0]))
    end = base + float(bars.values.sum())
    up, down = np.nonzero(bars.values > 0)[0], np.nonzero(bars.values < 0)[0]
    reach = max(bars.values[up].sum(), -bars.values[down].sum(), 1e-12)
    low, high = end - bars.values[up].sum(), end - bars.values[down].sum()
    room = max(0.02 * (high - low), 0.3 * reach)
    ax.set_xlim(min(low, base) - room, max(high, base) + room)
    ax.set_ylim(-2.7, 2.3)
    ax.set_yticks([])
    for chosen, side in ((up, -1), (down, 1)):
        _arrows(ax, bars, chosen, end, side)
    style.literal([_landmark(ax, end, f"f(x) = {style.amount(end, sign=False)}", True)])
    style.literal([_landmark(ax, base, f"E f(X) = {style.amount(base, sign=False)}", False)])
    style.label_axes(ax, selection.what(explanation))
    if explanation.scale == "log-odds":
        style.probability_axis(ax)
    return ax


def _arrows(ax: Axes, bars: selection.Bars, chosen: np.ndarray, end: float, side: int) -> None:
    """The arrows of one side, outwards from the meeting point, and the names of the first ones."""
    low, high = ax.get_xlim()
    tip = 0.008 * (high - low)
    at = inner = end
    for place, i in enumerate(chosen):
        far = at + side * abs(bars.values[i])
        head = min(tip, abs(far - at))
        corners = [(at + side * head, 1), (at, 0.5), (at + side * head, 0), (far, 0)]
        corners += [(far - side * head, 0.5), (far, 1)] if place < len(chosen) - 1 else [(far, 1)]
        colour = bars.colours[i]
        hatch = style.HATCH if bars.doubtful[i] else None
        arrow = Polygon(corners, closed=True, facecolor=colour, edgecolor="white", lw=0.8, hatch=hatch)
        arrow.set_gid(f"{bars.names[i]}|{bars.values[i]:.17g}")
        ax.add_patch(arrow)
        if place < LABELS:
            # the outermost name stands highest, so that no line crosses a name
            height = -0.55 - 0.72 * (min(LABELS, len(chosen)) - 1 - place)
            middle = float(at + far) / 2
            _name(ax, middle, inner, height, bars.names[i], bars.details[i], float(bars.values[i]), colour)
            inner = middle
        _whisker(ax, float(far), float(bars.errors[i]), high - low)
        at = far


def _whisker(ax: Axes, x: float, error: float, span: float) -> None:
    """The error bound at an arrow's foot, if it can be seen."""
    if np.isfinite(error) and error > 0.004 * span:
        ax.errorbar(x, 0.5, xerr=error, fmt="none", ecolor=style.INK, elinewidth=1, capsize=2, zorder=3)


def _name(
    ax: Axes, x: float, inner: float, y: float, name: str, detail: str, value: float, colour: str
) -> None:
    """A name hung below its arrow, outwards; where that is too narrow, from the edge up to the next line inwards."""
    low, high = ax.get_xlim()
    left = value > 0
    edge = low if left else high
    letter = 0.62 * style.SIZE * ax.figure.dpi / 72
    outwards, whole = (int(abs(to - edge) / (high - low) * ax.bbox.width / letter) for to in (x, inner))
    behind = f"{detail}  {style.amount(value)}"
    if whole - len(behind) < min(10, len(name)):  # rather the name than its value
        behind = f"  {style.amount(value)}"
    letters = whole - len(behind)
    if letters < min(4, len(name)):
        return
    ax.plot([x, x], [0, y + 0.12], color=colour, lw=0.8)
    words = f"{style.shorten(name, letters)}{behind}"
    hung = len(words) <= outwards
    side = "right" if left == hung else "left"
    at = x if hung else edge
    text = ax.text(at, y, words, ha=side, va="top", fontsize=style.SIZE - 0.5, color=colour)
    text.set_in_layout(False)
    style.literal([text])


def _landmark(ax: Axes, x: float, words: str, bold: bool) -> object:
    low, high = ax.get_xlim()
    place = (x - low) / (high - low)
    side = "left" if place < 0.15 else "right" if place > 0.85 else "center"
    ax.plot([x, x], [0, 1.12], color=style.INK if bold else style.GREY, lw=1.4 if bold else 0.8)
    weight = "bold" if bold else "normal"
    height = 1.18 if bold else 1.7
    return ax.text(
        x, height, words, ha=side, va="bottom", fontsize=style.SIZE, color=style.INK, weight=weight
    )
