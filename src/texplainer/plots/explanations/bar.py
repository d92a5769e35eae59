"""Bars: one row's attributions, or the mean size of the attributions over many rows."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from texplainer.explanation import Explanation
from texplainer.plots import pick, style


def bar(explanation: Explanation, *, ax: Axes | None = None, most: int = 10) -> Axes:
    """Draw the greatest attributions of one row, or the features that matter most over many.

    For one row: its values, by sign, with error bounds as whiskers; hatched on a kink or jump. For
    many: mean |value| per feature, with the middle half of the rows as a thin line; hatched where
    most rows stand on a kink or jump. Undefined rows are left out and counted in the heading.

    Parameters
    ----------
    explanation
        Of one output: `explanation[..., "benign"]`.
    ax
        Where to draw; fresh axes by default.
    most
        The most bars; the smallest features share the last one.
    """
    pick.one_output(explanation)
    return _local(explanation, ax, most) if len(explanation) == 1 else _global(explanation, ax, most)


def _local(explanation: Explanation, ax: Axes | None, most: int) -> Axes:
    bars = pick.row_bars(explanation, most)
    ax = style.canvas(ax, height=style.tall(len(bars.values)))
    if pick.doubt(explanation):
        style.heading(ax, pick.doubt(explanation), warn=True)
    if not np.all(np.isfinite(bars.values)):
        return style.empty(ax, "no attributions to draw")
    _draw(ax, bars, bars.colours)
    style.whiskers(ax, bars.values, bars.errors, float(np.ptp(np.append(bars.values, 0.0))))
    ax.axvline(0, color=style.GREY, lw=0.8)
    _labels(ax, bars.values, np.nan_to_num(bars.errors), signed=True)
    style.label_axes(ax, pick.meaning(explanation))
    return ax


def _global(explanation: Explanation, ax: Axes | None, most: int) -> Axes:
    rows = pick.explained(explanation)
    size = np.abs(explanation.arrays["values"][rows, :, 0])  # (rows, features)
    ax = style.canvas(ax, height=style.tall(min(size.shape[1], most)))
    if not len(rows):
        return style.empty(ax, "no row could be explained")
    share = pick.doubtful(explanation)[rows].mean(axis=0)
    nothing = np.full(size.shape[1], np.nan)
    bars = pick.fold(pick.Bars(explanation.feature_names, size.mean(axis=0), nothing, share > 0.5), most)
    _draw(ax, bars, [style.NEGATIVE] * len(bars.values))
    reach = _middle_half(ax, size, bars, most)
    _labels(ax, bars.values, np.maximum(reach - bars.values, 0), signed=False)
    left_out, fragile = len(explanation) - len(rows), int(pick.doubted_rows(explanation).sum())
    words = [f"{len(rows):,} rows", f"{fragile:,} fragile" if fragile else ""]
    words += [f"{left_out:,} undefined left out" if left_out else ""]
    style.heading(ax, ", ".join(filter(None, words)))
    style.label_axes(ax, "mean |" + pick.meaning(explanation) + "|")
    return ax


def _middle_half(ax: Axes, size: np.ndarray, bars: pick.Bars, most: int) -> np.ndarray:
    """Thin lines from the first to the third quartile of |value|; how far each reaches, (bars,)."""
    order = np.argsort(-size.mean(axis=0), kind="stable")[: len(bars.values) - (bars.folded > 0)]
    low, high = np.quantile(size[:, order], [0.25, 0.75], axis=0)
    at = np.arange(len(bars.values))[::-1][: len(order)]
    ax.hlines(at, low, high, color=style.INK, lw=1.2)
    return np.append(high, bars.values[len(order) :])


def _draw(ax: Axes, bars: pick.Bars, colours: list[str]) -> None:
    at = np.arange(len(bars.values))[::-1]
    drawn = ax.barh(at, bars.values, height=0.62, color=colours, zorder=2)
    style.dress(drawn, bars)
    style.lines_of(ax, bars.names, bars.details)


def _labels(ax: Axes, values: np.ndarray, reach: np.ndarray, *, signed: bool) -> None:
    far = np.abs(values) + reach
    low = -far[values < 0].max(initial=0.0)
    high = far[values >= 0].max(initial=0.0)
    room = style.room(ax, (low < 0) + (high > 0)) * max(high - low, 1e-12)
    ax.set_xlim(low - room * (low < 0), high + room * (high > 0 or low == 0))
    gap = 0.012 * (high - low)
    for line, value in enumerate(values):
        right = value >= 0
        ax.text(
            far[line] + gap if right else -far[line] - gap,
            len(values) - 1 - line,
            style.amount(value, signed),
            ha="left" if right else "right",
            va="center",
            fontsize=style.SIZE - 0.5,
            color=style.INK,
        )
