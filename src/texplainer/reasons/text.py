"""Numbers, predictions and tables as text and HTML, for reasons and recourse."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from scipy.special import expit

_CELL = 'style="text-align:left;padding:1px 12px 1px 0"'


def cell_text(value: Any) -> str:
    """A value of the table for people: 594,900, 0.123, "missing"; text as it is."""
    if value is None or (np.ndim(value) == 0 and value != value):
        return "missing"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        return " ".join(str(value).split()) or "''"
    size = abs(float(value))
    if np.isinf(size) or size >= 1e12 or 0 < size < 1e-3:
        return f"{value:.3g}"
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"


def signed_text(value: float, bound: float = np.nan) -> str:
    """A contribution with its sign, and its bound where it is known and not 0."""
    if not np.isfinite(value):
        return "unknown"
    shown = f"{value:+,.0f}" if abs(value) >= 1000 else f"{value:+#.3g}".rstrip(".")
    return shown + (f" ± {bound:.1g}" if np.isfinite(bound) and bound > 1e-4 * abs(value) else "")


def prediction_text(value: float, scale: str) -> str:
    """A prediction on the scale people know, and on the explained one: 94% (log-odds 2.80)."""
    if not np.isfinite(value):
        return "unknown"
    if scale == "log-odds":
        return f"{percent(float(expit(value)))} (log-odds {value:.2f})"
    return percent(value) if scale == "probability" else cell_text(float(f"{value:.4g}"))


def percent(share: float) -> str:
    """A probability as a percentage; never rounded to 0% or 100%."""
    if share > 0.999:
        return f"{100 * share:.6g}%" if share > 0.99999 else "above 99.9%"
    return "below 0.1%" if 0 < share < 0.001 else f"{100 * share:.{0 if 0.1 <= share <= 0.9 else 1}f}%"


def columns_text(rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    """Rows of texts as lines with aligned columns."""
    if not rows:
        return []
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    return [
        (indent + "  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]


def html_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table under its caption; every text is escaped."""
    heads = "".join(f"<th {_CELL}>{escape(text)}</th>" for text in head)
    body = "".join("<tr>" + "".join(f"<td {_CELL}>{escape(t)}</td>" for t in row) + "</tr>" for row in rows)
    return (
        f'<pre style="white-space:pre-wrap">{escape(caption)}</pre>'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    )
