"""Bars of several groups: classes stacked on one another, cohorts of rows side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from texplainer.attributions import table
from texplainer.errors import InputError
from texplainer.explanation.explanation import Explanation
from texplainer.plots import selection, style

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
