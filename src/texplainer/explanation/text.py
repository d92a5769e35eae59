"""Numbers, predictions and tables as people read them: text and HTML of rows, reasons and recourse.

The report's `row.js` writes numbers by the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from scipy.special import expit

_CELL = 'style="text-align:left;padding:1px 12px 1px 0;overflow-wrap:anywhere"'


def number(value: float, digits: int = 3) -> str:
    """A computed number: 594,900 and 0.0123, an exponent only where it is very small or large."""
    value = float(value)
    if not np.isfinite(value) or value == 0:
        return "nan" if np.isnan(value) else f"{value:.0f}"
    size = abs(value)
    if size >= 1e9 or size < 1e-4:
        return f"{value:.{digits - 1}e}"
    places = max(0, digits - 1 - int(np.floor(np.log10(size))))
    return f"{value:,.{places}f}"


def signed(value: float, bound: float = np.nan, smallest: float = np.inf) -> str:
    """A number with its sign, and with its error bound if that is known and above `smallest`."""
    shown = f"+{number(value)}" if value > 0 else number(value)
    return shown + (f" ± {number(bound, 1)}" if np.isfinite(bound) and bound > smallest else "")


def cell_text(value: Any) -> str:
    """A value of the user's table: 594,900, 2015, 0.1234, "missing"; text as it is, on one line."""
    if value is None or (np.ndim(value) == 0 and value != value):
        return "missing"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        return " ".join(str(value).split()) or "''"
    size = abs(float(value))
    if np.isinf(size) or size >= 1e12 or 0 < size < 1e-3:
        return f"{value:.3g}"
    if size >= 1000 or float(value).is_integer():
        return f"{value:,.0f}" if size >= 10_000 else f"{value:.0f}"
    return f"{value:.4g}"


def prediction_text(value: float, scale: str) -> str:
    """A prediction on the scale people know, and on the explained one: 94.2% (log-odds 2.80)."""
    if not np.isfinite(value):
        return "unknown"
    if scale == "log-odds":
        return f"{percent(float(expit(value)))} (log-odds {number(value)})"
    return percent(value) if scale == "probability" else number(value, 4)


def percent(share: float) -> str:
    """A probability as a percentage; never rounded to 0% or 100%."""
    return "below 0.1%" if 0 < share < 0.001 else "above 99.9%" if 0.999 < share < 1 else f"{share:.1%}"


def output_text(name: Any) -> str:
    """The name of an output; a class that is a number is called one."""
    return f"class {name}" if str(name).isdigit() else str(name)


def columns_text(rows: Sequence[Sequence[str]], indent: str = "  ", right: int = 99) -> list[str]:
    """Rows of texts as lines with aligned columns; those from `right` on are aligned to the right."""
    if not rows:
        return []
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    return [
        (
            indent
            + "  ".join(
                f"{text:{'>' if j >= right else '<'}{widths[j]}}"  # names to the left, numbers to the right
                for j, text in enumerate(row)
            )
        ).rstrip()
        for row in rows
    ]


def html_table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> str:
    """A table under its caption, notes below; every text is escaped."""
    return captioned(caption, head, [[escape(cell) for cell in row] for row in rows], notes)


def captioned(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> str:
    """A table under its caption, notes below; cells are HTML already, other texts are not."""
    words = f'<div style="font-weight:600">{escape(caption)}</div>' if caption else ""
    below = "".join(f'<div style="font-size:90%">{escape(note)}</div>' for note in notes)
    if not head and not rows:
        return words + below
    heads = "".join(f"<th {_CELL}>{escape(text)}</th>" for text in head)
    heads = f"<thead><tr>{heads}</tr></thead>" if heads else ""
    body = "".join("<tr>" + "".join(f"<td {_CELL}>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"{words}<table>{heads}<tbody>{body}</tbody></table>{below}"
