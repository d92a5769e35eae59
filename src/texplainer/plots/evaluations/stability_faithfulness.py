"""Plot stability against faithfulness: a constant explanation is stable but useless."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from texplainer.plots import style
from texplainer.plots.evaluations import scores
from texplainer.plots.selection import checked


@checked
def stability_faithfulness(
    subject: Any, stability: str = "ris", faithfulness: str = "pgi", *, ax: Axes | None = None
) -> Axes:
    """Draw every explainer at its median stability and its mean faithfulness.

    The lines are the interquartile range over rows. Stability is on a reversed log scale: explainers in the
    upper right corner are stable and faithful. A median of exactly 0 is drawn at the edge.

    Parameters
    ----------
    subject
        An Evaluation, or `{"T-Explainer": {"ris": array, "pgi": array}}`.
    stability, faithfulness
        The metrics; low is better for the first, high for the second.
    ax
        Where to draw; fresh axes by default.
    """
    stable, faithful = scores.per_row(subject, stability), scores.per_row(subject, faithfulness)
    ax = style.canvas(ax, width=5.6, height=4.2)
    names = [n for n in stable if n in faithful and np.isfinite(stable[n]).any()]
    boxes = {n: np.nanquantile(stable[n], [0.25, 0.5, 0.75]) for n in names}
    positive = [q for box in boxes.values() for q in box if q > 0]
    if not positive:
        return style.empty(ax, f"no explainer has a positive {stability}")
    floor = min(positive) / 3
    for name, colour, marker in zip(names, scores.colours(names), scores.markers(len(names)), strict=True):
        low, middle, high = np.maximum(boxes[name], floor)
        y = faithful[name][np.isfinite(faithful[name])]
        ax.plot([low, high], [y.mean()] * 2, color=colour, lw=1, alpha=0.6)
        ax.plot([middle] * 2, np.quantile(y, [0.25, 0.75]), color=colour, lw=1, alpha=0.6)
        ax.plot(
            middle, y.mean(), marker, color=colour, ms=8, mec="white", gid=name, label=style.shorten(name)
        )
    ax.set_xscale("log")
    ax.invert_xaxis()
    ax.grid(color=style.FAINT, lw=0.6)
    legend = ax.legend(fontsize=style.SIZE - 0.5, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    style.literal(legend.get_texts())
    stable_words, faithful_words = scores.label(subject, stability), scores.label(subject, faithfulness)
    style.label_axes(ax, f"{stable_words} (log; more stable →)", f"{faithful_words} (more faithful →)")
    return ax
