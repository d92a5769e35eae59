"""A small static table for notebooks: no scripts, so that it shows wherever HTML is shown."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from texplainer.explanation import Explanation

MOST = 8
_CELL = 'style="text-align:left;padding:1px 12px 1px 0"'


def explanation(subject: Explanation) -> str:
    """The repr of an Explanation, and its strongest features as a table with bars."""
    table = subject.importance()
    rows = []
    with np.errstate(invalid="ignore"):
        top = float(np.nanmax(table["mean_abs"], initial=0.0)) or 1.0
    for name, size, share in zip(
        table["feature"][:MOST], table["mean_abs"][:MOST], table["positive_share"][:MOST], strict=True
    ):
        length = 0 if np.isnan(size) else round(120 * float(size) / top)
        bar = f'<div style="background:#0072B2;height:.7em;width:{length}px"></div>'
        rows.append([escape(str(name)), f"{size:.3g}", bar, f"{share:.0%}"])
    rest = len(table["feature"]) - MOST
    if rest > 0:
        rows.append([f"the other {rest}", "", "", ""])
    return grid(repr(subject), ("feature", "mean |value|", "", "positive"), rows)


def grid(caption: str, head: tuple[str, ...], rows: list[list[Any]]) -> str:
    """A table under its caption; cells are HTML already, the caption is not."""
    heads = "".join(f"<th {_CELL}>{escape(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td {_CELL}>{c}</td>" for c in row) + "</tr>" for row in rows)
    return (
        f'<pre style="white-space:pre-wrap">{escape(caption)}</pre>'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    )


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
    return grid(words, ("", *heads), rows)
