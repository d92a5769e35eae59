"""A beeswarm as a small inline SVG, for notebooks: no script, no matplotlib, text in the page's own colour."""

from __future__ import annotations

from html import escape

import numpy as np

from texplainer.explanation.explanation import Explanation
from texplainer.explanation.text import number

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
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), ROWS)).astype(int))]
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
