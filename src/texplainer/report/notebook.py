"""Small static tables for notebooks: no scripts, so that it shows wherever HTML is shown."""

from __future__ import annotations

from html import escape
from itertools import zip_longest
from typing import Any

import numpy as np

from texplainer.attributions import table
from texplainer.explanation import views
from texplainer.explanation.explanation import Explanation
from texplainer.explanation.text import (
    CATEGORY_MARK,
    RowTable,
    captioned,
    number,
    others_text,
    row_tables,
    signed,
)

MOST = 8
POSITIVE, NEGATIVE = "#D55E00", "#0072B2"
HALF = 80  # pixels a bar may take on either side of its axis


def explanation(subject: Explanation) -> str:
    """An Explanation as an HTML table: values of one row, or the strongest features of several."""
    return one_row(subject) if len(subject) == 1 else many_rows(subject)


def many_rows(subject: Explanation) -> str:
    """What was explained; a picture of the strongest features, one dot per row; and their table."""
    title, facts = views.summary(subject)
    found = views.importance(subject)
    order = [subject.feature_names.index(name) for name in found["feature"][:MOST]]
    names = marked_names(subject)
    signs = table.signed(subject.attribution)
    rows = []
    for i, j in enumerate(order):
        cells = [
            names[j],
            signed(found["mean_abs"][i], found["bound"][i], 1e-3 * found["mean_abs"][i]).lstrip("+"),
        ]
        rows.append(
            [escape(cell) for cell in (*cells, *([f"{found['positive_share'][i]:.0%}"] if signs else []))]
        )
    heads = ("feature", "mean |value|", *(["positive"] if signs else []))
    if len(found["feature"]) > MOST:
        rows.append([others_text(len(found["feature"]) - MOST), *[""] * (len(heads) - 1)])
    of = f", output {subject.output_names[0]!r}" if len(subject.output_names) > 1 else ""
    picture = beeswarm(subject, order, names)
    note = f"one dot per row{of}; colour: the feature's own value, from low (blue) to high (orange)"
    marked = [f"{CATEGORY_MARK} a category: the prediction compared with its other categories"]
    return (
        captioned(title, (), [[escape(name), escape(words)] for name, words in facts])
        + (picture + captioned("", (), (), [note]) if picture else "")
        + captioned("", heads, rows, marked if names != subject.feature_names else [])
    )


def marked_names(subject: Explanation) -> tuple[str, ...]:
    """The features' names, with a mark behind the categories of an attribution that is a slope for numbers."""
    slopes = table.marks_categories(subject.attribution)
    return tuple(
        f"{name}{CATEGORY_MARK}" if slopes and name in subject.categories else name
        for name in subject.feature_names
    )


def one_row(subject: Explanation) -> str:
    """The prediction, and per feature its value, contribution and slope; one table per output."""
    return "".join(_one_output(table) for table in row_tables(subject))


def _one_output(row: RowTable) -> str:
    head, *lines = row.lines(MOST)
    first = row.columns[0].values
    longest = float(np.nanmax(np.abs(first), initial=0.0)) or 1.0
    cells = []
    for line, j in zip_longest(lines, row.order[:MOST]):  # the last line may be the sum of the others
        bar = "" if j is None else _signed_bar(float(np.nan_to_num(first[j])), longest)
        cells.append([*(escape(cell) for cell in line[:2]), bar, *(escape(cell) for cell in line[2:])])
    caption = f"row {row.label}, {row.prediction}"
    return captioned(caption, (*head[:2], "", *head[2:]), cells, row.notes())


def _length(value: float, longest: float, most: int = 120) -> int:
    return 0 if np.isnan(value) else round(most * abs(float(value)) / longest)


def _signed_bar(value: float, longest: float) -> str:
    """A bar to the right of the middle for a positive value, to the left for a negative one."""
    length = _length(value, longest, HALF)
    shift = HALF if value >= 0 else HALF - length
    colour = POSITIVE if value >= 0 else NEGATIVE
    bar = f"height:.7em;width:{length}px;margin-left:{shift}px;background:{colour}"
    return f'<div style="width:{2 * HALF}px"><div style="{bar}"></div></div>'


def evaluation(subject: Any) -> str:
    """An Evaluation's summary, the best of each column in bold."""
    summary, best = subject.summary(), subject.best()
    rows = []
    for i, name in enumerate(subject.explainers):
        cells = [f"<b>{v:.4g}</b>" if b else f"{v:.4g}" for v, b in zip(summary[i], best[i], strict=True)]
        control = " (control)" if name in subject.controls else ""
        rows.append([escape(str(name)) + control, *cells])
    heads = [f"{c.label} {c.part}".strip() + (" ↓" if c.better == "low" else " ↑") for c in subject.columns]
    words = f"Evaluation of {len(subject.explainers)} explainers on {subject.scores.shape[2]} rows"
    return captioned(words, ("", *heads), rows)


ROWS = 200  # dots of a feature, evenly spaced among the rows
COLOURS = ("#0072B2", "#5A81B0", "#A58FB0", "#BD7758", "#D55E00")  # from a low to a high value of the feature
GREY = "#8A919B"  # categories
LINE, LABEL, WIDTH = 26, 170, 640  # pixels: height of a feature, room for names, width of the picture
LETTERS = 24


def beeswarm(explanation: Explanation, features: list[int], names: tuple[str, ...], output: int = 0) -> str:
    """One line per feature, one dot per row at its value; colour is the rank of the feature's own value."""
    values = explanation.arrays["values"][:, :, output]
    rows = np.nonzero(np.isfinite(values).all(axis=1))[0]
    if not len(rows) or not features:
        return ""
    rows = rows[views.evenly(len(rows), ROWS)]
    shown = values[rows][:, features]  # (rows, features)
    low, high = min(0.0, float(shown.min())), max(0.0, float(shown.max()))
    span = (high - low) or 1.0
    at = LABEL + 10 + (shown - low) / span * (WIDTH - LABEL - 20)
    zero = LABEL + 10 - low / span * (WIDTH - LABEL - 20)
    height = LINE * len(features) + 18
    parts = [f'<path d="M{zero:.1f} 0V{height - 18}" stroke="{GREY}" stroke-width="1"/>']
    for line, j in enumerate(features):
        middle = LINE * line + LINE / 2
        parts.append(_text(LABEL, middle + 4, _short(names[j]), "end"))
        heights = middle + _piles(at[:, line])
        codes = _colours(explanation, j, rows)
        for code in np.unique(codes):
            dots = "".join(
                f"M{x:.0f} {y:.0f}h0"
                for x, y in zip(at[codes == code, line], heights[codes == code], strict=True)
            )
            colour = COLOURS[code] if code >= 0 else GREY
            parts.append(f'<path d="{dots}" stroke="{colour}" stroke-width="4.4" stroke-linecap="round"/>')
    for value in dict.fromkeys((low, 0.0, high)):
        x = LABEL + 10 + (value - low) / span * (WIDTH - LABEL - 20)
        if value == 0.0 or abs(x - zero) > 50:
            parts.append(_text(min(x, WIDTH - 16), height - 4, number(value), "middle"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" '
        f'style="max-width:100%" fill="none">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, words: str, anchor: str) -> str:
    style = 'font-family="sans-serif" font-size="12" fill="currentColor"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style} text-anchor="{anchor}">{escape(words)}</text>'


def _short(name: str) -> str:
    """A long name, cut in the middle."""
    name = " ".join(str(name).split())
    return name if len(name) <= LETTERS else f"{name[: LETTERS - 8].rstrip()}…{name[-7:].lstrip()}"


def _piles(x: np.ndarray) -> np.ndarray:
    """Heights around the middle line, (rows,): dots that would cover each other are piled up."""
    count: dict[int, int] = {}
    out = np.empty(len(x))
    for i, place in enumerate(np.round(x / 4).astype(int)):
        n = count[place] = count.get(place, -1) + 1
        out[i] = (-1) ** n * (n + 1) // 2
    tallest = max(np.abs(out).max(initial=1.0), 1.0)
    return out * min(3.0, (LINE / 2 - 3) / tallest)


def _colours(explanation: Explanation, j: int, rows: np.ndarray) -> np.ndarray:
    """A colour's position per row by the rank of the feature's value; -1 for categories and missing values."""
    column = explanation.arrays["data"][rows, j]
    try:
        numbers = np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        numbers = np.full(len(rows), np.nan)
    known = np.isfinite(numbers) & (explanation.feature_names[j] not in explanation.categories)
    out = np.full(len(rows), -1)
    levels = np.unique(numbers[known])
    share = np.searchsorted(levels, numbers[known]) / max(len(levels) - 1, 1)
    out[known] = np.minimum((share * len(COLOURS)).astype(int), len(COLOURS) - 1)
    return out
