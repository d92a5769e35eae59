"""Decision: the path of every row from the base value to its end, feature by feature."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from texplainer.explanation.explanation import Explanation
from texplainer.explanation.views import evenly
from texplainer.plots import selection, style
from texplainer.plots.selection import checked

PATHS = 200


@checked
def decision(explanation: Explanation, *, ax: Axes | None = None, max_display: int = 12) -> Axes:
    """Draw one line per row, from E f(X) at the bottom, with one step per feature.

    The steps are Shapley values, which add up to f(x); for another attribution they are computed, and the
    heading reports it. The largest features are at the top. Log-odds have a second axis in probability.
    Colour is the prediction, from the lowest (blue) to the highest (vermilion); unstable rows are dashed.
    Above 200 rows, evenly spaced ones are shown.

    Parameters
    ----------
    explanation
        Of one output: `explanation[..., "benign"]`.
    ax
        Where to draw; fresh axes by default.
    max_display
        Maximal number of features; the smallest are combined in the lowest line.
    """
    explanation, note = selection.stacked(selection.one_output(explanation))
    rows = selection.explained(explanation)
    ax = style.canvas(ax, width=5.6, height=style.tall(min(len(explanation.feature_names), max_display), 1.3))
    if not len(rows):
        return style.empty(ax, "no row could be explained")
    values = explanation.arrays["values"][rows, :, 0]
    order = np.argsort(-np.abs(values).mean(axis=0), kind="stable")  # by all rows, not the shown ones
    rows = rows[evenly(len(rows), PATHS)]
    kept = order if len(order) <= max_display else order[: max_display - 1]
    names = [explanation.feature_names[j] for j in kept]
    steps = explanation.arrays["values"][rows][:, kept, 0]
    if len(kept) < len(order):
        names.append(f"the other {len(order) - len(kept):,}")
        rest = explanation.arrays["values"][rows][:, order[len(kept) :], 0].sum(axis=1)
        steps = np.column_stack([steps, rest])
    base = np.nan_to_num(np.broadcast_to(explanation.arrays["base_values"], (len(explanation), 1)))[rows]
    at = base + np.concatenate([np.zeros((len(rows), 1)), np.cumsum(steps[:, ::-1], axis=1)], axis=1)
    _paths(ax, at, explanation.arrays["predictions"][rows, 0], selection.doubted_rows(explanation)[rows])
    style.name_lines(ax, names)
    ax.set_ylim(-0.55, len(names) - 0.45)
    ax.hlines(np.arange(len(names)), *ax.get_xlim(), color=style.FAINT, lw=0.6, zorder=0)
    ax.axvline(float(base.mean()), color=style.GREY, lw=0.8, ls=":", zorder=0)
    style.label_axes(ax, selection.what(explanation))
    unstable = int(selection.doubted_rows(explanation)[rows].sum())
    words = [f"{len(rows):,} rows", f"{unstable:,} unstable (dashed)" if unstable else ""]
    style.heading(ax, ", ".join(filter(None, [note, *words])))
    if explanation.scale == "log-odds":
        style.probability_axis(ax)
    return ax


def _paths(ax: Axes, at: np.ndarray, predictions: np.ndarray, unstable: np.ndarray) -> None:
    span = float(np.ptp(predictions)) if np.all(np.isfinite(predictions)) else 0.0
    share = (predictions - predictions.min()) / span if span > 0 else np.full(len(at), 0.5)
    heights = np.arange(at.shape[1]) - 0.5
    lines = LineCollection(
        [np.column_stack([path, heights]) for path in at],
        colors=style.LOW_HIGH(share),
        linestyles=["--" if doubted else "-" for doubted in unstable],
        linewidths=1.6 if len(at) < 20 else 1.0,
        alpha=0.95 if len(at) < 20 else 0.6,
    )
    lines.set_gid("paths")
    ax.add_collection(lines)
    room = 0.05 * max(float(np.ptp(at)), 1e-12)
    ax.set_xlim(at.min() - room, at.max() + room)
