"""Beeswarm: every row's attribution of every feature, as one dot each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from scipy.stats import rankdata

from texplainer.explanation.explanation import Explanation
from texplainer.explanation.views import evenly
from texplainer.plots import selection, style
from texplainer.plots.selection import checked

DOTS = 2000  # the most dots a line can hold before they hide each other
BINS = 120
RIMMED = 300  # the most dots a line can hold before their rims hide the colours
HALF = 0.38  # of a line's height


@checked
def beeswarm(
    explanation: Explanation,
    *,
    ax: Axes | None = None,
    max_display: int = 10,
    features: Sequence[str | int] | None = None,
    colours: Any = None,
) -> Axes:
    """Draw the attributions of many rows, one line per feature, coloured by the feature's value.

    Colour is the rank of the feature's value, from the lowest (blue) to the highest (vermilion); missing
    values and categories are grey. Dots of unstable rows have a dark rim, unless there are too many rows.
    Above 2,000 rows each line shows 2,000 evenly spaced quantiles, including the extremes; the choice is
    deterministic.

    Parameters
    ----------
    explanation
        Of one output: `explanation[..., "benign"]`.
    ax
        Where to draw; fresh axes by default.
    max_display
        Maximal number of features; the last line is then the sum of the others, if the attribution is
        additive.
    features
        Which features, in this order; by default the largest first.
    colours
        From low to high: a name or map of matplotlib's, or a list of colours; blue to vermilion by default.
    """
    selection.one_output(explanation)
    rows = selection.explained(explanation)
    values = explanation.arrays["values"][rows, :, 0]  # (rows, features)
    chosen, cmap = selection.positions(explanation, features), style.colormap(colours, style.LOW_HIGH)
    shown = min(values.shape[1], max_display) if chosen is None else len(chosen)
    ax = style.canvas(ax, height=style.tall(shown, 1.3) * 1.15)
    if not len(rows):
        return style.empty(ax, "no row could be explained")
    names, columns, kept = selection.lines(explanation, values, max_display, chosen)
    unstable, data = selection.doubted_rows(explanation)[rows], explanation.arrays["data"][rows]
    grey = np.append(selection.categorical(explanation), True)[kept]  # -1 is the sum of the others
    nothing = np.full(len(rows), np.nan)
    lines = [(names[i], columns[:, i], nothing if grey[i] else ranks(data[:, j])) for i, j in enumerate(kept)]
    span = max(float(np.ptp(np.append(columns, 0.0))), 1e-12)
    for line, (_, column, share) in enumerate(lines):
        _swarm(ax, len(lines) - 1 - line, column, cmap(np.nan_to_num(share)), np.isnan(share), unstable, span)
    ax.axvline(0, color=style.GREY, lw=0.8, zorder=1)
    style.name_lines(ax, [name for name, _, _ in lines])
    style.label_axes(ax, selection.meaning(explanation))
    hidden = 0 if -1 in kept else len(explanation.feature_names) - len(kept)
    words = [_words(len(rows), int(unstable.sum()), bool(grey[kept >= 0].any())), selection.left_out(hidden)]
    style.heading(ax, ", ".join(filter(None, words)))
    if not grey.all():
        key(ax, cmap=cmap)
    return ax


def thin(values: np.ndarray) -> np.ndarray:
    """Positions of at most `DOTS` values, evenly spaced in rank, extremes included."""
    order = np.argsort(values, kind="stable")
    return order[evenly(len(order), DOTS)]


def pile(values: np.ndarray, span: float) -> np.ndarray:
    """Heights in [-1/2, 1/2] that keep equal values apart: alternately above and below their bin's middle."""
    bins = np.round(values / span * BINS).astype(int)
    order = np.argsort(bins, kind="stable")
    starts = np.r_[0, np.nonzero(np.diff(bins[order]))[0] + 1]
    place = np.arange(len(values)) - np.repeat(starts, np.diff(np.r_[starts, len(values)]))
    side = np.where(place % 2, 1, -1) * np.ceil(place / 2)
    heights = np.empty(len(values))
    heights[order] = side / max(14.0, 2 * np.abs(side).max(initial=0))
    return heights


def ranks(data: np.ndarray) -> np.ndarray:
    """The rank of each number, 0 for the lowest and 1 for the highest; NaN where it is missing, (rows,)."""
    numbers = np.asarray(data, dtype=float)
    share = np.full(len(numbers), np.nan)
    seen = np.isfinite(numbers)
    if seen.any():
        share[seen] = (rankdata(numbers[seen]) - 1) / max(1, seen.sum() - 1)
    return share


def _swarm(
    ax: Axes,
    y: int,
    values: np.ndarray,
    colours: np.ndarray,
    grey: np.ndarray,
    unstable: np.ndarray,
    span: float,
) -> None:
    kept = thin(values)
    values, colours, unstable = values[kept], colours[kept], unstable[kept]
    colours[grey[kept]] = (0.55, 0.57, 0.6, 1.0)
    heights = y + 2 * HALF * pile(values, span)
    size = 14 if len(values) < 500 else 7
    rims = [0.7 if doubted else 0.0 for doubted in unstable & (len(values) <= RIMMED)]
    drawn = ax.scatter(values, heights, s=size, c=colours, edgecolors=style.INK, linewidths=rims, zorder=2)
    drawn.set_rasterized(len(values) > 500)


def _words(rows: int, unstable: int, grey: bool) -> str:
    rim = " (dark rim)" if rows <= RIMMED else ""
    words = [
        f"{rows:,} rows",
        f"{unstable:,} unstable{rim}" if unstable else "",
        "categories in grey" if grey else "",
    ]
    return ", ".join(filter(None, words))


def key(ax: Axes, words: str = "feature value", cmap: Colormap = style.LOW_HIGH) -> None:
    """A slim colour bar at the right edge."""
    bar = ax.inset_axes((1.03, 0.1, 0.02, 0.8))
    bar.imshow(np.linspace(1, 0, 64)[:, None], aspect="auto", cmap=cmap, extent=(0, 1, 0, 1))
    bar.set_xticks([])
    bar.set_yticks([0, 1], ["low", "high"])
    bar.yaxis.tick_right()
    bar.tick_params(labelsize=style.SIZE - 0.5, length=0, labelcolor=style.INK)
    bar.spines[:].set_visible(False)
    label = bar.set_ylabel(words, fontsize=style.SIZE - 0.5, color=style.INK, labelpad=-14)
    style.literal([label])
    bar.yaxis.set_label_position("right")
