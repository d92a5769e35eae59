"""Step-search trace: the displacement h and its cost at every iteration of Algorithm 1."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from texplainer.errors import InputError
from texplainer.explanation.explanation import Explanation
from texplainer.explanation.views import evenly
from texplainer.plots import style
from texplainer.plots.selection import checked

PATHS = 50


@checked
def step_trace(explanation: Explanation, *, ax: Axes | None = None) -> Axes:
    """Draw how Algorithm 1 of the paper chose h: the cost above, h below, both on log scales.

    One line per row (at most 50 evenly spaced ones); a ring marks the chosen h. A cost of exactly 0 is drawn
    at the bottom of the log scale.

    Parameters
    ----------
    explanation
        Made with `step="paper"`; one row or many.
    ax
        Where to draw; it gets two panels. Fresh axes by default.
    """
    if "trace_h" not in explanation.arrays:
        raise InputError(
            "the explanation does not have a search trace; expected one computed by Algorithm 1. "
            "Explain with TExplainer(..., step='paper')."
        )
    rows = evenly(len(explanation), PATHS)
    h, cost = explanation.arrays["trace_h"][rows], explanation.arrays["trace_cost"][rows]
    ax = style.canvas(ax, width=5.6, height=4.0)
    ax.set_axis_off()
    above, below = (style.canvas(ax.inset_axes(box)) for box in ((0, 0.54, 1, 0.46), (0, 0.0, 1, 0.46)))
    _lines(above, cost)
    _lines(below, h)
    style.label_axes(above, y="cost")
    style.label_axes(below, "iteration", "h")
    above.tick_params(labelbottom=False)
    return ax


def _lines(ax: Axes, trace: np.ndarray) -> None:
    positive = trace[np.isfinite(trace) & (trace > 0)]
    floor = positive.min() / 10 if positive.size else 1e-12
    alpha = 1.0 if len(trace) == 1 else 0.35
    for line in np.where(trace == 0, floor, trace):
        seen = np.nonzero(np.isfinite(line))[0]
        if len(seen):
            ax.plot(seen + 1, line[seen], color=style.NEGATIVE, lw=1, marker="o", ms=2.5, alpha=alpha)
            ax.plot(
                seen[-1] + 1, line[seen[-1]], "o", mfc="white", mec=style.POSITIVE, ms=6, mew=1.4, zorder=3
            )
    ax.set_yscale("log")
    last = int(np.isfinite(trace).any(axis=0).sum())
    ax.set_xlim(0.5, max(4, last) + 0.5)
    plain = FuncFormatter(lambda value, _: style.number(value))
    ax.yaxis.set_major_formatter(plain)
    # within a single decade the minor ticks are the only ones
    within = positive.size > 0 and positive.max() / floor < 200
    ax.yaxis.set_minor_formatter(plain if within else NullFormatter())
    ax.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    ax.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[attr-defined]
    ax.grid(axis="y", color=style.FAINT, lw=0.6)
