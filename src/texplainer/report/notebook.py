"""Small static tables for notebooks: no scripts, so that it shows wherever HTML is shown."""

from __future__ import annotations

from html import escape
from itertools import zip_longest
from typing import Any

import numpy as np

from texplainer.attributions import table
from texplainer.explanation import views
from texplainer.explanation.explanation import Explanation
from texplainer.explanation.row import RowTable, row_tables

MOST = 8
POSITIVE, NEGATIVE, AMOUNT = "#D55E00", "#0072B2", "#2A8C82"
HALF = 80  # pixels a bar may take on either side of its axis
_CELL = 'style="text-align:left;padding:1px 12px 1px 0"'


def explanation(subject: Explanation) -> str:
    """An Explanation as an HTML table: values of one row, or the strongest features of several."""
    return one_row(subject) if len(subject) == 1 else many_rows(subject)


def many_rows(subject: Explanation) -> str:
    """The repr, and the strongest features with bars."""
    found = views.importance(subject)
    rows = []
    with np.errstate(invalid="ignore"):
        top = float(np.nanmax(found["mean_abs"], initial=0.0)) or 1.0
    for name, size, share in zip(
        found["feature"][:MOST], found["mean_abs"][:MOST], found["positive_share"][:MOST], strict=True
    ):
        length = 0 if np.isnan(size) else round(120 * float(size) / top)
        signs = [f"{share:.0%}"] if table.signed(subject.attribution) else []
        rows.append([escape(str(name)), f"{size:.3g}", _bar(length, AMOUNT), *signs])
    heads = ("feature", "mean size", "", *(["positive"] if table.signed(subject.attribution) else []))
    if len(found["feature"]) > MOST:
        rows.append([f"the other {len(found['feature']) - MOST}", *[""] * (len(heads) - 1)])
    return captioned_table(repr(subject), heads, rows)


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
    caption = "\n".join([f"row {row.label}, {row.prediction}", *row.notes()])
    return captioned_table(caption, (*head[:2], "", *head[2:]), cells)


def _length(value: float, longest: float, most: int = 120) -> int:
    return 0 if np.isnan(value) else round(most * abs(float(value)) / longest)


def _bar(length: int, colour: str) -> str:
    return f'<div style="background:{colour};height:.7em;width:{length}px"></div>'


def _signed_bar(value: float, longest: float) -> str:
    """A bar to the right of the middle for a positive value, to the left for a negative one."""
    length = _length(value, longest, HALF)
    shift = HALF if value >= 0 else HALF - length
    colour = POSITIVE if value >= 0 else NEGATIVE
    bar = f"height:.7em;width:{length}px;margin-left:{shift}px;background:{colour}"
    return f'<div style="width:{2 * HALF}px"><div style="{bar}"></div></div>'


def captioned_table(caption: str, head: tuple[str, ...], rows: list[list[Any]]) -> str:
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
    return captioned_table(words, ("", *heads), rows)
