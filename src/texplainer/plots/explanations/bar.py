"""Bars: one row's attributions, or the mean size of the attributions over many rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from texplainer.attributions import table
from texplainer.explanation.explanation import Explanation
from texplainer.plots import places, selection, style
from texplainer.plots.explanations import grouped_bar
from texplainer.plots.subjects import checked


@checked
def bar(
    explanation: Explanation | Mapping[str, Explanation],
    *,
    ax: Axes | None = None,
    max_display: int = 10,
    features: Sequence[str | int] | None = None,
    colours: str | Sequence[str] | None = None,
) -> Axes:
    """Draw the largest values of one row, or the mean absolute value per feature over many rows.

    For one row: its values, coloured by sign, with error bounds as whiskers; hatched at a kink or jump of the
    model. For many rows: the mean absolute value per feature, with the interquartile range as a thin line;
    hatched if most rows lie at a kink or jump. Undefined rows are excluded and counted in the heading. For
    several outputs the bars are stacked by class; cohorts of rows are drawn side by side.

    Parameters
    ----------
    explanation
        Of one output, `explanation[..., "benign"]`, or of several; or explanations by cohort,
        `explanation.cohorts("sex")`.
    ax
        Where to draw; fresh axes by default.
    max_display
        Maximal number of bars; the smallest features are combined in the last one.
    features
        Which features, in this order; by default the largest first.
    colours
        For one row: colours above and below 0; for many rows: of the bars; for classes and cohorts: one each.
    """
    first = next(iter(explanation.values()), None) if isinstance(explanation, Mapping) else explanation
    chosen = None if first is None else places.positions(first, features)
    if isinstance(explanation, Mapping):
        return grouped_bar.cohort_bars(
            explanation, ax, max_display, chosen, style.palette(colours, style.SERIES)
        )
    if len(explanation.output_names) > 1:
        return grouped_bar.classes(explanation, ax, max_display, chosen, style.palette(colours, style.SERIES))
    if chosen is not None:
        explanation, max_display = selection.with_features(explanation, chosen), max(max_display, len(chosen))
    draw = _local if len(explanation) == 1 else _global
    return draw(explanation, ax, max_display, features is None, colours)


def _local(
    explanation: Explanation,
    ax: Axes | None,
    max_display: int,
    sort: bool,
    colours: str | Sequence[str] | None,
) -> Axes:
    bars = selection.row_bars(explanation, max_display, sort=sort)
    ax = style.canvas(ax, height=style.tall(len(bars.values)))
    selection.say_doubt(ax, explanation, selection.left_out(bars.hidden))
    if not np.all(np.isfinite(bars.values)):
        return style.empty(ax, "no attributions to draw")
    asked: dict[str, str] = dict(
        zip((style.POSITIVE, style.NEGATIVE), style.palette(colours, ()), strict=False)
    )
    _draw(ax, bars, [asked.get(usual, usual) for usual in bars.colours])
    style.whiskers(ax, bars.values, bars.errors, float(np.ptp(np.append(bars.values, 0.0))))
    ax.axvline(0, color=style.GREY, lw=0.8)
    _labels(ax, bars.values, np.nan_to_num(bars.errors), signed=bars.signed)
    style.label_axes(ax, selection.meaning(explanation))
    return ax


def _global(
    explanation: Explanation,
    ax: Axes | None,
    max_display: int,
    sort: bool,
    colours: str | Sequence[str] | None,
) -> Axes:
    rows = selection.explained(explanation)
    size = np.abs(explanation.arrays["values"][rows, :, 0])  # (rows, features)
    ax = style.canvas(ax, height=style.tall(min(size.shape[1], max_display)))
    if not len(rows):
        return style.empty(ax, "no row could be explained")
    share = selection.doubtful(explanation)[rows].mean(axis=0)
    nothing = np.full(size.shape[1], np.nan)
    adds_up = table.adds_up(explanation.attribution)
    names = selection.marked_names(explanation)
    bars = selection.Bars(names, size.mean(axis=0), nothing, share > 0.5, adds_up=adds_up)
    bars = selection.fold(bars, max_display, sort=sort)
    _draw(ax, bars, style.palette(colours, (style.AMOUNT,))[:1] * len(bars.values))
    reach = _middle_half(ax, size, bars, sort)
    _labels(ax, bars.values, np.maximum(reach - bars.values, 0), signed=False)
    left_out, unstable = len(explanation) - len(rows), int(selection.doubted_rows(explanation).sum())
    words = [f"{len(rows):,} rows", f"{unstable:,} unstable" if unstable else ""]
    words += [f"{left_out:,} undefined left out" if left_out else "", selection.left_out(bars.hidden)]
    style.heading(ax, ", ".join(filter(None, words)))
    style.label_axes(ax, "mean size of the " + selection.meaning(explanation))
    return ax


def _middle_half(ax: Axes, size: np.ndarray, bars: selection.Bars, sort: bool) -> np.ndarray:
    """Thin lines from the first to the third quartile of |value|; how far each reaches, (bars,)."""
    order = np.argsort(-size.mean(axis=0), kind="stable") if sort else np.arange(size.shape[1])
    order = order[: len(bars.values) - (bars.folded > 0)]
    low, high = np.quantile(size[:, order], [0.25, 0.75], axis=0)
    at = np.arange(len(bars.values))[::-1][: len(order)]
    ax.hlines(at, low, high, color=style.INK, lw=1.2)
    return np.append(high, bars.values[len(order) :])


def _draw(ax: Axes, bars: selection.Bars, colours: list[str]) -> None:
    at = np.arange(len(bars.values))[::-1]
    drawn = ax.barh(at, bars.values, height=0.62, color=colours, zorder=2)
    style.dress(drawn, bars)
    style.name_lines(ax, bars.names, bars.details)


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
