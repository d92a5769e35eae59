"""Beeswarm: every row's attribution of every feature, as one dot each."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import rankdata

from texplainer.explanation import Explanation
from texplainer.plots import pick, style

DOTS = 2000  # the most dots a line can hold before they hide each other
BINS = 120
HALF = 0.38  # of a line's height


def beeswarm(explanation: Explanation, *, ax: Axes | None = None, most: int = 10) -> Axes:
    """Draw the attributions of many rows, one line a feature, coloured by the feature's value.

    Dots pile up where they are dense. Colour goes by rank from the lowest (blue) to the highest
    (vermilion) value, grey where it is missing; dots of fragile rows have a dark rim. Beyond 2,000
    rows each line shows 2,000 evenly spaced quantiles, the extremes among them: the same ones every
    time.

    Parameters
    ----------
    explanation
        Of one output: `explanation[..., "benign"]`.
    ax
        Where to draw; fresh axes by default.
    most
        The most features; the last line then stands for the sum of the others.
    """
    pick.one_output(explanation)
    rows = pick.explained(explanation)
    values = explanation.arrays["values"][rows, :, 0]  # (rows, features)
    ax = style.canvas(ax, height=style.tall(min(values.shape[1], most), 1.3) * 1.15)
    if not len(rows):
        return style.empty(ax, "no row could be explained")
    order = np.argsort(-np.abs(values).mean(axis=0), kind="stable")
    kept = order if len(order) <= most else order[: most - 1]
    fragile = pick.doubted_rows(explanation)[rows]
    lines = [(explanation.feature_names[j], values[:, j], explanation.arrays["data"][rows, j]) for j in kept]
    if len(order) > len(kept):
        rest = order[len(kept) :]
        lines.append((f"the other {len(rest):,}", values[:, rest].sum(axis=1), np.full(len(rows), np.nan)))
    span = max(float(np.ptp([v for _, column, _ in lines for v in (column.min(), column.max(), 0.0)])), 1e-12)
    for line, (_, column, data) in enumerate(lines):
        _swarm(ax, len(lines) - 1 - line, column, ranks(data), fragile, span)
    ax.axvline(0, color=style.GREY, lw=0.8, zorder=1)
    style.lines_of(ax, [name for name, _, _ in lines])
    style.label_axes(ax, pick.meaning(explanation))
    style.heading(ax, _words(len(rows), int(fragile.sum())))
    _key(ax)
    return ax


def thin(values: np.ndarray, most: int = DOTS) -> np.ndarray:
    """Positions of at most `most` values, evenly spaced in rank, extremes included."""
    order = np.argsort(values, kind="stable")
    return order[np.unique(np.linspace(0, len(order) - 1, min(len(order), most)).astype(int))]


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
    """Share of the way from the lowest to the highest value, NaN where it is missing, (rows,)."""
    try:
        numbers = np.asarray(data, dtype=float)
    except (TypeError, ValueError):
        missing = np.array([v is None for v in data])
        numbers = np.unique([str(v) for v in data], return_inverse=True)[1].astype(float)
        numbers[missing] = np.nan
    share = np.full(len(numbers), np.nan)
    seen = np.isfinite(numbers)
    if seen.any():
        share[seen] = (rankdata(numbers[seen]) - 1) / max(1, seen.sum() - 1)
    return share


def _swarm(ax: Axes, y: int, values: np.ndarray, share: np.ndarray, fragile: np.ndarray, span: float) -> None:
    kept = thin(values)
    values, share, fragile = values[kept], share[kept], fragile[kept]
    colours = style.LOW_HIGH(np.nan_to_num(share))
    colours[np.isnan(share)] = (0.55, 0.57, 0.6, 1.0)
    heights = y + 2 * HALF * pile(values, span)
    size = 14 if len(values) < 500 else 7
    rims = [0.7 if doubted else 0.0 for doubted in fragile]
    drawn = ax.scatter(values, heights, s=size, c=colours, edgecolors=style.INK, linewidths=rims, zorder=2)
    drawn.set_rasterized(len(values) > 500)


def _words(rows: int, fragile: int) -> str:
    return f"{rows:,} rows" + (f", {fragile:,} fragile (dark rim)" if fragile else "")


def _key(ax: Axes) -> None:
    """A slim colour bar at the right edge."""
    bar = ax.inset_axes((1.03, 0.1, 0.02, 0.8))
    bar.imshow(np.linspace(1, 0, 64)[:, None], aspect="auto", cmap=style.LOW_HIGH, extent=(0, 1, 0, 1))
    bar.set_xticks([])
    bar.set_yticks([0, 1], ["low", "high"])
    bar.yaxis.tick_right()
    bar.tick_params(labelsize=style.SIZE - 0.5, length=0, labelcolor=style.INK)
    bar.spines[:].set_visible(False)
    bar.set_ylabel("feature value", fontsize=style.SIZE - 0.5, color=style.INK, labelpad=-14)
    bar.yaxis.set_label_position("right")
