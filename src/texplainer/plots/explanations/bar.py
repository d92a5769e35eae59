"""Bars: one row's attributions, or the mean size of the attributions over many rows, classes or cohorts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from texplainer.attributions import table
from texplainer.errors import InputError
from texplainer.explanation.explanation import Explanation
from texplainer.plots import selection, style
from texplainer.plots.selection import checked


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
    chosen = None if first is None else selection.positions(first, features)
    if isinstance(explanation, Mapping):
        return cohort_bars(explanation, ax, max_display, chosen, style.palette(colours, style.SERIES))
    if len(explanation.output_names) > 1:
        return classes(explanation, ax, max_display, chosen, style.palette(colours, style.SERIES))
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


LEGEND = 26  # letters of a cohort's name


def classes(
    explanation: Explanation,
    ax: Axes | None,
    max_display: int,
    features: list[int] | None,
    series: Sequence[str],
) -> Axes:
    """Mean size of the values per feature, one piece of the bar for every output."""
    rows = selection.explained(explanation)
    ax = style.canvas(ax, width=7.0, height=style.tall(min(len(explanation.feature_names), max_display)))
    if not len(rows):
        return style.empty(ax, "no row could be explained")
    sizes = np.abs(explanation.arrays["values"][rows]).mean(axis=0).T  # (outputs, features)
    outputs = _fewer(sizes, [str(name) for name in explanation.output_names])
    names, sizes = _lines(
        selection.marked_names(explanation), np.stack(list(outputs.values())), max_display, features
    )
    colours = dict(zip(outputs, series, strict=False))
    at, left = np.arange(len(names))[::-1], np.zeros(len(names))
    for (output, colour), size in zip(colours.items(), sizes, strict=True):
        ax.barh(at, size, left=left, height=0.62, color=colour, zorder=2, gid=output)
        left = left + size
    style.name_lines(ax, names)
    style.legend(ax, [(style.shorten(output, 18), colour) for output, colour in colours.items()])
    what = {"probability": "probability", "log-odds": "log-odds"}.get(explanation.scale, "output")
    words = table.axis_words(explanation.attribution, what, explanation.scale)
    style.label_axes(ax, f"mean size of the {words}")
    hidden = selection.left_out(len(explanation.feature_names) - len(names))
    style.heading(ax, ", ".join(filter(None, [f"{len(rows):,} rows", hidden])))
    return ax


def cohort_bars(
    subject: Mapping[str, Explanation],
    ax: Axes | None,
    max_display: int,
    features: list[int] | None,
    series: Sequence[str],
) -> Axes:
    """Mean size of the values per feature, one bar for every cohort of rows."""
    if not subject:
        raise InputError(
            "bar has nothing to draw; expected explanations by cohort: explanation.cohorts('age')."
        )
    if len(subject) > len(style.SERIES):
        raise InputError(
            f"{len(subject)} cohorts are too many for distinct colours; expected at most "
            f"{len(style.SERIES)}. Merge some."
        )
    first = selection.one_output(next(iter(subject.values())))
    if any(one.feature_names != first.feature_names for one in subject.values()):
        raise InputError("the cohorts differ in their features; explain them with one explainer.")
    shown = min(len(first.feature_names), max_display)
    ax = style.canvas(ax, width=7.0, height=style.tall(shown) + 0.09 * shown * len(subject))
    kept = {str(name): selection.explained(selection.one_output(one)) for name, one in subject.items()}
    sizes = np.stack(
        [
            np.abs(one.arrays["values"][rows, :, 0]).mean(axis=0)
            if len(rows)
            else np.zeros(len(first.feature_names))
            for one, rows in zip(subject.values(), kept.values(), strict=True)
        ]
    )  # (cohorts, features)
    names, sizes = _lines(selection.marked_names(first), sizes, max_display, features)
    at, thick = np.arange(len(names))[::-1], 0.78 / len(kept)
    colours = dict(zip(kept, series, strict=False))
    for i, (name, size) in enumerate(zip(kept, sizes, strict=True)):
        shift = ((len(kept) - 1) / 2 - i) * thick  # the first cohort on top
        ax.barh(at + shift, size, height=0.9 * thick, color=colours[name], zorder=2, gid=name)
    style.name_lines(ax, names)
    short = dict(zip(kept, style.told_apart(list(kept), [LEGEND] * len(kept)), strict=True))
    words = [(f"{short[name]} ({len(rows):,})", colours[name]) for name, rows in kept.items()]
    style.legend(ax, words)
    style.label_axes(ax, "mean size of the " + selection.meaning(first))
    hidden = selection.left_out(len(first.feature_names) - len(names))
    counted = f"{sum(map(len, kept.values())):,} rows in {len(kept)} cohorts"
    style.heading(ax, ", ".join(filter(None, [counted, hidden])))
    return ax


def _lines(
    names: tuple[str, ...], sizes: np.ndarray, max_display: int, features: list[int] | None
) -> tuple[list[str], np.ndarray]:
    """The features to draw, the greatest first or as chosen; those beyond `max_display` are left out."""
    order = (
        np.argsort(-sizes.sum(axis=0), kind="stable") if features is None else np.array(features, dtype=int)
    )
    kept = order[:max_display]
    return [names[j] for j in kept], sizes[:, kept]


def _fewer(sizes: np.ndarray, names: list[str]) -> dict[str, np.ndarray]:
    """As many outputs as there are colours, the greatest first; the others share the last one."""
    order = np.argsort(-sizes.sum(axis=1), kind="stable")
    room = len(style.SERIES)
    if len(order) <= room:
        return {names[i]: sizes[i] for i in order}
    found = {names[i]: sizes[i] for i in order[: room - 1]}
    return {**found, f"the other {len(order) - room + 1}": sizes[order[room - 1 :]].sum(axis=0)}
