"""Small static tables for notebooks: no scripts, so that it shows wherever HTML is shown."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from texplainer.attributions import table
from texplainer.explanation.explanation import Explanation

MOST = 8
POSITIVE, NEGATIVE, AMOUNT = "#D55E00", "#0072B2", "#2A8C82"
HALF = 80  # pixels a bar may take on either side of its axis
_CELL = 'style="text-align:left;padding:1px 12px 1px 0"'


def explanation(subject: Explanation) -> str:
    """An Explanation as a table: of one row its cells and values, of several the strongest features."""
    return row_tables(subject) if len(subject) == 1 else many_rows(subject)


def many_rows(subject: Explanation) -> str:
    """The repr, and the strongest features with bars."""
    found = subject.importance()
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


def row_tables(subject: Explanation) -> str:
    """The prediction, and per feature its cell and its value with error bar; one table per output."""
    return "".join(_one_output(subject, o) for o in range(len(subject.output_names)))


def _one_output(subject: Explanation, o: int) -> str:
    arrays = subject.arrays
    values, signed = arrays["values"][0, :, o], table.signed(subject.attribution)
    error = arrays["error"][0, :, o] if "error" in arrays else np.full(len(values), np.nan)
    order = np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")
    longest = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    rows = []
    for j in order[:MOST]:
        bound = f"± {error[j]:.1g}" if np.isfinite(error[j]) and error[j] else ""
        number = "–" if np.isnan(values[j]) else f"{values[j]:{'+' if signed else ''}.3g}"
        unit = subject.units[j] if subject.units else ""
        rows.append(
            [
                escape(subject.feature_names[j]),
                escape(_cell(arrays["data"][0, j])),
                number,
                bound,
                _signed_bar(float(values[j]), longest)
                if signed
                else _bar(_length(float(values[j]), longest), AMOUNT),
                escape(unit),
            ]
        )
    if len(order) > MOST:
        adds_up = table.adds_up(subject.attribution)  # what does not add up has no sum
        rest = f"{np.nansum(values[order[MOST:]]):+.3g}" if adds_up else ""
        rows.append([f"the other {len(order) - MOST}", "", rest, "", "", ""])
    return captioned_table(_headline(subject, o), ("feature", "cell", "value", "error", "", "unit"), rows)


def _headline(subject: Explanation, o: int) -> str:
    """What was predicted and asked, and how far to trust the answer."""
    arrays, name = subject.arrays, subject.attribution
    what = table.quantity(subject.scale, str(subject.output_names[o]))
    prediction = float(arrays["predictions"][0, o])
    lines = [f"{what} = {prediction:.4g}"]
    if subject.scale == "log-odds":
        lines[0] += f" (probability {1 / (1 + np.exp(-np.clip(prediction, -700, 700))):.3g})"
    question = table.ATTRIBUTIONS[name].question if name in table.ATTRIBUTIONS else ""
    lines.append(f"{question} {name}: {table.axis_words(name, what, subject.scale)}".strip())
    if "stability" in arrays:
        relative_change = float(arrays["relative_change"][0, o]) if "relative_change" in arrays else np.nan
        reason = str(arrays["reason"][0]) if "reason" in arrays else ""
        known = f", relative change {relative_change:.1%}" if np.isfinite(relative_change) else ""
        lines.append(f"{arrays['stability'][0]}{known}" + (f": {reason}" if reason else ""))
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


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
