"""Numbers, rows and tables as people read them: text and HTML of rows, reasons and recourse.

One row is a table of its features, each with its value, its contribution and its slope. The contribution
(attribution "shapley") says why the prediction is what it is: the contributions and the base value sum to it.
The slope says what a small change of the feature would do. Print, notebook and command line all show this table.
The report's `row.js` writes numbers by the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from texplainer.background.summary import HALF_WIDTH
from texplainer.errors import InputError, ModelError

if TYPE_CHECKING:
    from texplainer.explanation.explanation import Explanation

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


def base_text(value: float, scale: str) -> str:
    """A base value on the explained scale only: a mean of log-odds is not the log-odds of the mean probability."""
    return f"log-odds {number(value)}" if scale == "log-odds" else prediction_text(value, scale)


def percent(share: float) -> str:
    """A probability as a percentage; never rounded to 0% or 100%."""
    return "below 0.1%" if 0 < share < 0.001 else "above 99.9%" if 0.999 < share < 1 else f"{share:.1%}"


def output_text(name: Any) -> str:
    """The name of an output; a class that is a number is called one, a single nameless output the prediction."""
    if str(name) == "output":
        return "prediction"
    return f"class {name}" if str(name).isdigit() else str(name)


def others_text(count: int) -> str:
    """The name of the features that are not shown one by one."""
    return f"{count:,} other feature{'s'[: count != 1]}"


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


# ---------------------------------------------------------------- one row


SHOWN = 10  # features of a row
EXACT = 1e-3  # bounds below this share of the column's largest value are not shown
FLAT = "flat"  # instead of a slope of 0 of a feature that the model uses
CATEGORY_MARK = "*"  # beside the slope of a category: its effect against the other categories, not a slope


@dataclass(frozen=True)
class RowColumn:
    """The values of one attribution for the features of a row, with their bounds and their stability."""

    head: str  # of the column
    sums: bool  # whether the values are contributions, which may be added up
    signed: bool
    marks: bool  # whether the values of categories are marked: those of numbers are slopes
    values: np.ndarray  # (features,)
    bounds: np.ndarray  # (features,), NaN where unknown
    stability: str  # "stable, changes by 3% if features move by 5% of an SD"
    flat: np.ndarray  # (features,) bool: a slope of 0, though other values change the prediction
    width: float  # the bandwidth in SDs


@dataclass(frozen=True)
class RowTable:
    """A row of an Explanation: what was predicted, and the columns of its features, the largest first."""

    label: str
    prediction: str
    order: np.ndarray  # features by the size of the first column
    names: tuple[str, ...]
    cells: tuple[str, ...]
    category: np.ndarray  # (features,) bool
    columns: tuple[RowColumn, ...]
    missing: str  # how to get a column that is not here, "" if none is missing

    def lines(self, shown: int = SHOWN) -> list[list[str]]:
        """The head, a line per feature, and the sum of the others."""
        out = [["feature", "value", *(column.head for column in self.columns)]]
        for j in self.order[:shown]:
            out.append([self.names[j], self.cells[j], *(self._cell(column, j) for column in self.columns)])
        left = self.order[shown:]
        if len(left):
            rest = [signed(np.nansum(c.values[left])) if c.sums else "" for c in self.columns]
            out.append([others_text(len(left)), "", *rest])
        return out

    def notes(self) -> list[str]:
        """The stability of each column, what the mark means, and which column is missing."""
        out = [f"{column.head}: {column.stability}" for column in self.columns if column.stability]
        if self.category.any() and any(column.marks for column in self.columns):
            out.append(f"{CATEGORY_MARK} a category: the prediction compared with its other categories")
        out += [
            f"{FLAT}: no change for moves up to {HALF_WIDTH * column.width:.2g} SD; "
            "other values of the feature change the prediction"
            for column in self.columns
            if column.flat[self.order[:SHOWN]].any()
        ]
        return out + ([self.missing] if self.missing else [])

    def _cell(self, column: RowColumn, feature: int) -> str:
        if column.flat[feature]:
            return FLAT
        bound, largest = column.bounds[feature], np.nanmax(np.abs(column.values), initial=0.0)
        words = signed(column.values[feature], bound, EXACT * largest)
        words = words if column.signed else words.lstrip("+")
        return words + (CATEGORY_MARK if self.category[feature] and column.marks else "")


def row_tables(explanation: Explanation) -> list[RowTable]:
    """The tables of the first row of an Explanation, one per output."""
    parts, missing = _both(explanation)
    return [_table(explanation, parts, missing, o) for o in range(len(explanation.output_names))]


def _both(explanation: Explanation) -> tuple[list[Explanation], str]:
    """The row in each attribution that can be had: contributions first, then slopes, then its own."""
    from texplainer.attributions import table

    one = explanation[:1] if len(explanation) > 1 else explanation
    parts, failed = [], []
    own = explanation.attribution
    first = own if table.head(own) == table.CONTRIBUTION else "shapley"
    for name in dict.fromkeys([first, "slope", own]):
        try:
            parts.append(one.with_attribution(name))
        except (InputError, ModelError):  # loaded, or the model does not answer any more
            failed.append(name)
    remedy = ", ".join(f"explainer(X, attribution={name!r})" for name in failed)
    return parts, f"not in this explanation: {', '.join(failed)}; compute with {remedy}" if failed else ""


def _table(explanation: Explanation, parts: list[Explanation], missing: str, o: int) -> RowTable:
    arrays = explanation.arrays
    columns = tuple(_column(part, o) for part in parts)
    size = np.abs(np.nan_to_num(columns[0].values))
    category = np.array([name in explanation.categories for name in explanation.feature_names])
    return RowTable(
        label=_label(explanation),
        prediction=_prediction(explanation, o),
        order=np.argsort(-size, kind="stable"),
        names=explanation.feature_names,
        cells=tuple(cell_text(cell) for cell in arrays["data"][0]),
        category=category,
        columns=columns,
        missing=missing,
    )


def _label(explanation: Explanation) -> str:
    """The row's label in the user's table, or its position there."""
    if "index" not in explanation.arrays and explanation.live is not None:
        return str(explanation.live.rows[0])
    return str(explanation.index[0])


def _column(part: Explanation, o: int) -> RowColumn:
    from texplainer.attributions import table

    arrays, name = part.arrays, part.attribution
    values = arrays["values"][0, :, o]
    bounds = np.asarray(arrays.get("error", np.full(arrays["values"].shape, np.nan))[0, :, o], dtype=float)
    flat = arrays["flat"][0, :, o] if "flat" in arrays else np.zeros(len(values), bool)
    words = ""
    if "stability" in arrays:
        change = float(arrays["relative_change"][0, o]) if "relative_change" in arrays else np.nan
        words = str(arrays["stability"][0])
        words += f", changes by {change:.0%} if features move by 5% of an SD" if np.isfinite(change) else ""
        reason = str(arrays["reason"][0]) if "reason" in arrays else ""
        known = "the values change", *(["flat for"] if "flat" in arrays else [])  # above, and in their cells
        shown = not reason.startswith(known)
        words += f" ({reason})" if reason and shown else ""
    width = float(part.settings.get("width", 0.0))
    head = table.head(name)
    kind = head, head == table.CONTRIBUTION, table.signed(name), table.marks_categories(name)
    return RowColumn(*kind, values, bounds, words, flat, width)


def _prediction(explanation: Explanation, o: int) -> str:
    """The prediction, in log-odds also as a probability, and the base value as text."""
    value = float(explanation.arrays["predictions"][0, o])
    base = float(
        np.broadcast_to(explanation.arrays["base_values"], explanation.arrays["predictions"].shape)[0, o]
    )
    shown = f"{output_text(explanation.output_names[o])}: {prediction_text(value, explanation.scale)}"
    return f"{shown}; base value: {base_text(base, explanation.scale)}"
