"""Dependence: an attribution of one feature against the feature's value, coloured by a second feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from texplainer.explanation.explanation import Explanation
from texplainer.plots import interaction, places, selection, style
from texplainer.plots.explanations.beeswarm import key, ranks
from texplainer.plots.subjects import checked

DOTS = 2000


@checked
def dependence(
    explanation: Explanation, feature: str | int, *, colour: Any = "auto", ax: Axes | None = None
) -> Axes:
    """Draw one feature's attribution against the feature's values.

    Colour is a second feature: the rank of its value, from the lowest (blue) to the highest (vermilion), or
    one colour per category. "auto" chooses the feature that best explains the remaining scatter: an
    interaction shows as separated colours. Each category of a categorical feature is a strip.

    Parameters
    ----------
    explanation
        Of one output: `explanation[..., "benign"]`.
    feature
        Its name or its position.
    colour
        The second feature's name or position; "auto" chooses it, None leaves it out.
    ax
        Where to draw; fresh axes by default.
    """
    selection.one_output(explanation)
    j = places.feature_position(explanation, feature)
    ax = style.canvas(ax, width=6.0, height=3.8)
    rows = selection.explained(explanation)
    all_rows = len(rows)
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), DOTS)).astype(int))]
    x, levels = places.along_x(explanation.arrays["data"][rows, j])
    rows, x = rows[np.isfinite(x)], x[np.isfinite(x)]
    if not len(rows):
        return style.empty(ax, "no row with a value of this feature could be explained")
    y = explanation.arrays["values"][rows, j, 0]
    places.frame(ax, x, y, levels, floor=0.0)
    if levels:
        ax.set_xlim(-0.6, len(levels) - 0.4)
        x = x + places.jitter(len(x))
    second = _second(explanation, j, rows, colour)
    colours = _colours(ax, explanation, second, rows)
    ax.axhline(0, color=style.GREY, lw=0.8, zorder=1)
    drawn = ax.scatter(x, y, s=14 if len(x) < 500 else 7, c=colours, linewidths=0, zorder=3, gid="points")
    drawn.set_rasterized(len(x) > 500)
    style.label_axes(ax, explanation.feature_names[j], selection.meaning_of(explanation, j))
    unstable = int(selection.doubted_rows(explanation)[rows].sum())
    of = f" of {all_rows:,}" if all_rows > DOTS else ""
    words = [f"{len(rows):,}{of} rows", f"{unstable:,} unstable" if unstable else ""]
    style.heading(ax, ", ".join(filter(None, words)))
    return ax


def _second(explanation: Explanation, j: int, rows: np.ndarray, colour: Any) -> int | None:
    """The position of the feature to colour by."""
    if colour is None:
        return None
    if not (isinstance(colour, str) and colour == "auto"):
        return places.feature_position(explanation, colour)
    data, values = explanation.arrays["data"][rows], explanation.arrays["values"][rows, j, 0]
    others = {k: data[:, k] for k in range(data.shape[1]) if k != j}
    return interaction.strongest(values, data[:, j], others)


def _colours(ax: Axes, explanation: Explanation, second: int | None, rows: np.ndarray) -> np.ndarray:
    """One colour per point, (rows, 4), and the key to them."""
    if second is None:
        return style.rgba([style.NEGATIVE] * len(rows))
    name, data = explanation.feature_names[second], explanation.arrays["data"][rows, second]
    if not selection.categorical(explanation)[second]:
        share = ranks(data)
        colours = style.LOW_HIGH(np.nan_to_num(share))
        colours[np.isnan(share)] = style.rgba([style.GREY])[0]
        key(ax, style.shorten(name))
        return colours
    words = np.array([style.number(value) for value in data])
    levels, counts = np.unique(words, return_counts=True)
    known = levels[np.argsort(-counts, kind="stable")][: len(style.SERIES) - 1]
    series = {level: style.SERIES[i] for i, level in enumerate(known)}
    named = [(style.shorten(str(level), 16), series[level]) for level in known]
    style.legend(ax, named, style.shorten(name, 20))
    return style.rgba([series.get(word, style.GREY) for word in words])
