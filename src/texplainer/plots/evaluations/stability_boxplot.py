"""Stability boxplots: how a metric varies over rows, explainer by explainer, on a log scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from texplainer.plots import style
from texplainer.plots.evaluations import scores
from texplainer.plots.selection import checked


@checked
def stability_boxplot(subject: Any, metric: str = "ris", *, ax: Axes | None = None) -> Axes:
    """Draw one box per explainer: median, quartiles, 5% and 95% quantiles, and the worst row as a dot.

    The paper's figure for RIS and ROS. Its ratios are element-wise, so that one value near 0 gives a very large
    score; "ris_norm" and "ros_norm" are ratios of norms. The axis names the convention. Rows with a score of exactly 0
    are counted after the explainer's name.

    Parameters
    ----------
    subject
        An Evaluation, or scores per row by explainer: `{"T-Explainer": array, "LIME": array}`.
    metric
        Which metric of the Evaluation; the axis label otherwise.
    ax
        Where to draw; fresh axes by default.
    """
    found = scores.per_row(subject, metric)
    ax = style.canvas(ax, height=style.tall(len(found), 1.0))
    positive = [np.sort(s[np.isfinite(s) & (s > 0)]) for s in found.values()]
    if not any(len(s) for s in positive):
        return style.empty(ax, f"no explainer has a positive {metric}")
    at = np.arange(len(found))[::-1]
    for y, some, colour in zip(at, positive, scores.colours(found), strict=True):
        if len(some):
            p5, p25, p50, p75, p95 = np.quantile(some, [0.05, 0.25, 0.5, 0.75, 0.95])
            ax.hlines(y, p5, p95, color=colour, lw=1.2)
            ax.barh(y, p75 - p25, left=p25, height=0.5, color=colour, alpha=0.35, edgecolor=colour)
            ax.plot([p50, p50], [y - 0.25, y + 0.25], color=colour, lw=2.2, gid=f"median|{p50:.17g}")
            ax.plot(some[-1], y, "o", color=colour, ms=4)
    style.name_lines(ax, list(found), [_detail(s) for s in found.values()])
    ax.set_xscale("log")
    ax.grid(axis="x", color=style.FAINT, lw=0.6)
    words = f"{scores.label(subject, metric)} per row ({scores.better_way(subject, metric)})"
    style.label_axes(ax, f"{words}\n{scores.convention(subject, metric)}".rstrip())
    return ax


def _detail(values: np.ndarray) -> str:
    """What the box cannot show."""
    zero = int(np.sum(values == 0))
    return f" ({zero:,} at 0)" if zero else "" if np.isfinite(values).any() else " (no score)"
