"""Running time: seconds against the number of rows explained (the paper's figure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from texplainer.errors import InputError
from texplainer.plots import style
from texplainer.plots.evaluations import scores
from texplainer.plots.selection import checked


@checked
def timing(subject: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Draw one line per explainer on a log scale, named at its end.

    Parameters
    ----------
    subject
        Seconds by explainer and number of rows: `{"T-Explainer": {10: 0.02, 20: 0.03}}`. Several
        runs may be given, `{10: [0.02, 0.021]}`; their median is drawn, their range shaded.
    ax
        Where to draw; fresh axes by default.
    """
    if not subject or not all(subject.values()):
        raise InputError("timing has nothing to draw; expected {'explainer': {rows: seconds}}.")
    ax = style.canvas(ax, width=6.0, height=3.6)
    marked = scores.markers(len(subject))
    ends = []
    for (name, runs), colour, marker in zip(subject.items(), scores.colours(subject), marked, strict=True):
        sizes = sorted(runs)
        seconds = [np.atleast_1d(np.asarray(runs[size], dtype=float)) for size in sizes]
        middle = np.array([np.median(s) for s in seconds])
        ax.plot(sizes, middle, color=colour, marker=marker, ms=4, lw=1.5, gid=name)
        ax.fill_between(
            sizes, [s.min() for s in seconds], [s.max() for s in seconds], color=colour, alpha=0.15, lw=0
        )
        ends.append((name, sizes[-1], float(middle[-1]), colour))
    ax.set_yscale("log")
    ax.grid(axis="y", color=style.FAINT, lw=0.6)
    _name_lines(ax, ends)
    style.label_axes(ax, "rows explained", "seconds (log)")
    return ax


def _name_lines(ax: Axes, ends: list[tuple[str, float, float, str]]) -> None:
    """Names at the lines' ends, moved apart on the log scale where they would touch."""
    low, high = np.log10(ax.get_ylim())
    gap = 0.062 * (high - low)
    right = max(end[1] for end in ends)
    at = -np.inf
    for name, _, seconds, colour in sorted(ends, key=lambda end: end[2]):
        at = max(np.log10(seconds), at + gap)
        text = ax.annotate(
            style.shorten(name, 20),
            (right, 10**at),
            (8, 0),
            textcoords="offset points",
            va="center",
            fontsize=style.SIZE,
            color=colour,
            annotation_clip=False,
        )
        style.literal([text])
