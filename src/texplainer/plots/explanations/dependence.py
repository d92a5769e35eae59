"""Dependence: an attribution of one feature against the feature's value, coloured by a second feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import rankdata

from texplainer.explanation.explanation import Explanation
from texplainer.explanation.views import evenly
from texplainer.plots import selection, style
from texplainer.plots.explanations.beeswarm import key, ranks
from texplainer.plots.selection import checked

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
    j = selection.feature_position(explanation, feature)
    ax = style.canvas(ax, width=6.0, height=3.8)
    rows = selection.explained(explanation)
    all_rows = len(rows)
    rows = rows[evenly(len(rows), DOTS)]
    x, levels = style.along_x(explanation.arrays["data"][rows, j])
    rows, x = rows[np.isfinite(x)], x[np.isfinite(x)]
    if not len(rows):
        return style.empty(ax, "no row with a value of this feature could be explained")
    y = explanation.arrays["values"][rows, j, 0]
    style.frame(ax, x, y, levels, floor=0.0)
    if levels:
        ax.set_xlim(-0.6, len(levels) - 0.4)
        x = x + style.jitter(len(x))
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
        return selection.feature_position(explanation, colour)
    data, values = explanation.arrays["data"][rows], explanation.arrays["values"][rows, j, 0]
    others = {k: data[:, k] for k in range(data.shape[1]) if k != j}
    return strongest(values, data[:, j], others)


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


SLICES, LEAST = 10, 6  # slices of rows alike in the first feature; the fewest rows in one
SEEN = 0.1  # share of the scatter that must be explained to be seen in colours
ROUND_OFF = 1e-6
LEVELS = 12  # categories of more levels explain too much by chance


def strongest(values: np.ndarray, first: np.ndarray, others: dict[int, np.ndarray]) -> int | None:
    """The key of the column that best explains the scatter of values at equal first; None if none does.

    `values` and `first` are (rows,); `others` are columns of numbers or texts.
    """
    slices = _slices(first)
    left = [_left(values[rows], first[rows]) for rows in slices]
    total = sum(float(rest @ rest) for rest in left)
    if total <= ROUND_OFF * float(np.sum((values - values.mean()) ** 2)):
        return None
    found = {
        key: sum(_explained(rest, column[rows]) for rest, rows in zip(left, slices, strict=True))
        for key, column in others.items()
    }
    best = max(found, key=lambda key: found[key], default=None)
    return best if best is not None and found[best] > SEEN * total else None


def _left(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """What a straight line in the first feature leaves of the values of one slice."""
    numbers, rest = numeric(first), values - values.mean()
    if numbers is None or not np.ptp(numbers) > 0:
        return rest
    away = numbers - numbers.mean()
    return rest - away * float(rest @ away) / float(away @ away)


def _slices(first: np.ndarray) -> list[np.ndarray]:
    """Rows alike in a column: its levels, or slices of equal size in its order."""
    numbers = numeric(first)
    if numbers is None:
        groups = [np.flatnonzero(first == level) for level in np.unique(first.astype(str))]
    else:
        count = int(np.clip(len(first) // LEAST, 1, SLICES))
        groups = np.array_split(np.argsort(numbers, kind="stable"), count)
    return [rows for rows in groups if len(rows) >= LEAST]


def _explained(values: np.ndarray, column: np.ndarray) -> float:
    """Sum of squares of values that a column explains, less what chance would."""
    total = float(np.sum((values - values.mean()) ** 2))
    numbers = numeric(column)
    if numbers is None:
        levels, codes = np.unique(column.astype(str), return_inverse=True)
        freedom = len(levels) - 1
        counts = np.bincount(codes)
        means = np.bincount(codes, weights=values) / counts
        found = float(np.sum(counts * (means - values.mean()) ** 2))
    else:
        freedom, found = 1, _straight(values, rankdata(numbers))
    if not 0 < freedom < min(LEVELS, len(values) - 1):
        return 0.0
    return found - freedom * (total - found) / (len(values) - 1 - freedom)


def _straight(values: np.ndarray, ranks: np.ndarray) -> float:
    """Sum of squares of values along the ranks."""
    sd = float(np.sum((ranks - ranks.mean()) ** 2))
    return float((values - values.mean()) @ (ranks - ranks.mean())) ** 2 / sd if sd else 0.0


def numeric(column: np.ndarray) -> np.ndarray | None:
    """A column as numbers, the missing ones in the middle; None if it holds text."""
    try:
        numbers = np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        return None
    known = np.isfinite(numbers)
    return np.where(known, numbers, np.median(numbers[known]) if known.any() else 0.0)
