"""What the explorer computes: a mapping in, a mapping out, without any code for the web.

A row is a mapping from feature to cell, as a person types it. Every explainer has a lock of its own, so that
tabs may ask at once while no model or other explainer is entered twice.
"""

from __future__ import annotations

import operator
import re
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.explainer import TExplainer
from texplainer.explanation.explanation import Explanation
from texplainer.explanation.text import cell_text
from texplainer.explanation.views import evenly
from texplainer.reasons.columns import typical_values
from texplainer.reasons.curve import ice_curve
from texplainer.report import payloads
from texplainer.support.messages import suggest
from texplainer.types import Array, Explain

OVERVIEW_ROWS = 500
NEIGHBOURS = 24
ANCHORS = 64  # explanations kept, of rows that are being moved
FOUND = 10_000  # rows that a search returns
FEW = 64  # rows that a single thread explains sooner than two that must meet
MAIN = "T-Explainer"


@dataclass(frozen=True)
class Workbench:
    """An explainer, the rows to explore, and other explainers to compare with.

    `others` are built by name on first use: a SHAP explainer may take a while.
    """

    explainer: TExplainer
    data: Any
    others: Mapping[str, Callable[[], Explain]] = field(default_factory=dict)
    title: str = ""
    _locks: dict[str, threading.Lock] = field(default_factory=dict)
    _built: dict[str, Explain] = field(default_factory=dict)
    _anchors: dict[int, list[Explanation]] = field(default_factory=dict)

    @cached_property
    def rows(self) -> Array:
        """The rows to explore, as the explainer's floats (rows, features)."""
        return self.explainer.schema.read(self.explainer.split_identifiers(self.data)[0])

    @cached_property
    def labels(self) -> Any:
        """The identifiers of the rows, if the table has any."""
        return self.explainer.split_identifiers(self.data)[1]

    @cached_property
    def _typical(self) -> list[Any]:
        """What is typical of each feature in the background: a mean or a category."""
        schema = self.explainer.schema
        found = typical_values(schema.shown(self.explainer.background.rows), schema.names)
        return [found[name] for name in schema.names]

    # -------------------------------------------------------------- questions

    def about(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """What there is to explore."""
        explainer = self.explainer
        predicted = explainer.predictor.predicted
        return {
            "title": self.title or f"{_model_name(explainer.predictor.model)}, explained",
            "words": repr(explainer),
            "rows": len(self.rows),
            "features": [self._feature(j) for j in range(explainer.schema.width)],
            "outputs": ["predicted"] if predicted else list(explainer.predictor.output_names),
            "classes": list(explainer.predictor.all_names)
            if explainer.predictor.task == "classification"
            else [],
            "typical": [_plain_cell(value) for value in self._typical],
            "attribution": explainer.attribution,
            "others": list(self.others),
        }

    def row(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The values of one row and their explanation."""
        index = self._index(question.get("row"))
        cells, labels = self._cells(index), self.labels
        label = str(index if labels is None else labels[index])
        return {"cells": cells, "label": label} | self.explain({"cells": cells, "row": index})

    def find(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The rows with an identifier, or those that meet a condition."""
        found = matching_rows(question.get("words"), self.explainer.schema, self.rows, self.labels)
        return {"rows": found[:FOUND].tolist(), "count": len(found)}

    def curve(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The prediction as one feature takes other values: the curve, the tangent and the column's values."""
        point, _ = self._point(question.get("cells"))
        output = question.get("output", 0)
        with self._locks.setdefault(MAIN, threading.Lock()), _threads(1):
            row = self.explainer.schema.write(point)
            curve = ice_curve(self.explainer, row, question.get("feature"), output=output)
        return payloads.curve_payload(curve)

    def recourse(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Changes of the values that move the prediction to a target, verified by the model."""
        point, _ = self._point(question.get("cells"))
        target = question.get("target")
        if isinstance(target, list) and len(target) == 2:
            target = (target[0], _number(target[1], "the target"))
        with self._locks.setdefault(MAIN, threading.Lock()), _threads(1):
            row = self.explainer.schema.write(point)
            found = self.explainer.recourse(row, target, fixed=question.get("fixed") or ())
        return {
            "found": found.found,
            "words": found.title,
            "proposals": [
                {
                    "heading": found.heading(i),
                    "changes": [
                        {
                            "feature": c.feature,
                            "before": cell_text(c.before),
                            "after": cell_text(c.after),
                            "size": c.size,
                            "value": float(c.after) if _is_number(c.after) else str(c.after),
                        }
                        for c in changes
                    ],
                }
                for i, changes in enumerate(found.changes)
            ],
        }

    def explain(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Prediction, attributions and stability of any values, and the prediction of the row's surrogate."""
        began = time.perf_counter()
        point, notes = self._point(question.get("cells"))
        if question.get("row") is None:
            answer = _plain(self._pair(point))
        else:
            index = self._index(question["row"])
            still = np.array_equal(point[0], self.rows[index], equal_nan=True)
            answer = _plain(self._anchor(index) if still else self._pair(point))
            answer["surrogate"] = self._surrogate(index, point)
        return answer | {"notes": notes, "milliseconds": round(1000 * (time.perf_counter() - began), 1)}

    def compare(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The same values explained by another explainer."""
        name = question.get("explainer")
        if not isinstance(name, str) or name not in self.others:
            known = ", ".join(self.others) or "none"
            raise InputError(f"explainer {name!r} is unknown; expected one of: {known}.")
        point, _ = self._point(question.get("cells"))
        return _plain([self._ask(str(name), point)])

    def stability(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """How much the attributions change if every number changes by a fraction of its SD."""
        point, _ = self._point(question.get("cells"))
        share = _number(question.get("share", 0.05), "the size of the changes")
        if not 0 < share <= 1:
            raise InputError(f"the size of the changes is {share:g}; expected more than 0 and at most 1 SD.")
        near = self._neighbours(point[0], share)
        values = self._ask(MAIN, np.concatenate([point, near])).arrays["values"]
        own, others = values[0], values[1:]
        size = max(float(np.linalg.norm(own)), 1e-300)
        moved = np.linalg.norm((others - own).reshape(len(others), -1), axis=1) / size
        return {
            "values": payloads.finite(own),
            "low": payloads.finite(others.min(axis=0)),
            "high": payloads.finite(others.max(axis=0)),
            "changes": len(others),
            "share": share,
            "median": float(np.median(moved)) if np.isfinite(moved).all() else None,
            "worst": float(moved.max()) if np.isfinite(moved).all() else None,
        }

    def overview(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The global view: evenly spaced rows, explained once."""
        return self._overview

    # -------------------------------------------------------------- how

    @cached_property
    def _overview(self) -> dict[str, Any]:
        kept = evenly(len(self.rows), OVERVIEW_ROWS)
        found = self._ask(MAIN, self.rows[kept])
        with self._locks[MAIN]:
            payload = payloads.explanation_payload(found, curves=False)
        if len(kept) < len(self.rows):
            payload |= {"kept": kept.tolist(), "rows": len(self.rows)}
        labels = None if self.labels is None else [str(self.labels[i]) for i in kept]
        return payload | {"name": "", "labels": labels, "typical": [_plain_cell(v) for v in self._typical]}

    def _ask(self, name: str, rows: Array) -> Explanation:
        """Explain rows given as floats, one question at a time per explainer."""
        with self._locks.setdefault(name, threading.Lock()):
            if name not in self._built:
                self._built[name] = self.explainer if name == MAIN else self.others[name]()
            with warnings.catch_warnings(), _threads(len(rows)):
                warnings.simplefilter("ignore")  # undefined rows are marked in their stability
                return self._built[name](self.explainer.schema.write(rows))

    def _pair(self, rows: Array) -> list[Explanation]:
        """The explainer's own attribution of some rows, and the one that is shown beside it."""
        found = self._ask(MAIN, rows)
        with self._locks[MAIN], _threads(len(rows)):
            return payloads.both_attributions(found)

    def _anchor(self, index: int) -> list[Explanation]:
        """The attributions of one of the rows, kept while it is being moved."""
        found = self._anchors.get(index)
        if found is None:
            if len(self._anchors) >= ANCHORS:
                self._anchors.clear()
            found = self._anchors[index] = self._pair(self.rows[index : index + 1])
        return found

    def _surrogate(self, index: int, point: Array) -> list[float | None] | None:
        """f(x) + sum of slopes times moves, from the row x to the point; categories by their swap effects.

        None where no attribution has slopes, and for a category that the background does not hold.
        """
        row = self.rows[index : index + 1]
        steep = [one for one in self._anchor(index) if np.isfinite(one.arrays["gradient"]).any()]
        if not steep:
            return None
        found = steep[0]
        out = np.atleast_1d(found.surrogate(np.where(self.explainer.schema.numeric, point - row, 0.0))[0])
        for name, category in found.categories.items():
            j = found.feature_names.index(name)
            if point[0, j] != row[0, j] and np.isfinite(point[0, j]):
                cell, levels = self._category(j, point[0, j]), [str(level) for level in category.levels]
                if cell not in levels:
                    return None
                out = out + category.effects[0, levels.index(cell)]
        return payloads.finite(out)

    def _neighbours(self, point: Array, share: float) -> Array:
        background = self.explainer.background
        random = np.random.default_rng(0)
        moves = share * background.sigma * random.standard_normal((NEIGHBOURS, len(point)))
        near = point + np.where(self.explainer.schema.numeric, moves, 0.0)
        if background.bounds is not None:
            low, high = background.bounds
            near = np.clip(near, np.minimum(low, point), np.maximum(high, point))
        return near

    def _feature(self, j: int) -> dict[str, Any]:
        """What the page needs to know to offer a control."""
        schema, column = self.explainer.schema, self.explainer.background.rows[:, j]
        if j in schema.levels:
            return {"name": schema.names[j], "levels": schema.categories(j)}
        seen = np.concatenate([column[np.isfinite(column)], self.rows[:, j][np.isfinite(self.rows[:, j])]])
        low, high = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
        whole = bool(len(seen)) and bool(np.all(seen == np.round(seen)))
        return {"name": schema.names[j], "low": low, "high": high, "whole": whole}

    def _cells(self, index: int) -> dict[str, Any]:
        schema = self.explainer.schema
        cells = {}
        for j, value in enumerate(self.rows[index]):
            if np.isnan(value):
                cells[schema.names[j]] = None
            else:
                cells[schema.names[j]] = self._category(j, value) if j in schema.levels else float(value)
        return cells

    def _category(self, j: int, code: float) -> str:
        return self.explainer.schema.categories(j)[int(code)]

    def _index(self, row: Any) -> int:
        if isinstance(row, bool) or not isinstance(row, int) or not 0 <= row < len(self.rows):
            raise InputError(f"row {row!r} does not exist; expected a number from 0 to {len(self.rows) - 1}.")
        return row

    def _point(self, cells: Any) -> tuple[Array, list[str]]:
        """Cells as typed -> floats (1, features), and what is odd about them."""
        schema = self.explainer.schema
        if not isinstance(cells, Mapping):
            raise InputError("the request does not contain values; expected one value per feature.")
        missing = [name for name in schema.names if name not in cells]
        if missing:
            raise InputError(f"the value of {missing[0]!r} is missing; expected a value for every feature.")
        point, notes = np.empty((1, schema.width)), []
        for j, name in enumerate(schema.names):
            cell = cells[name]
            if cell is None or cell == "":
                point[0, j] = np.nan
            elif j in schema.levels:
                point[0, j] = _code(cell, schema.categories(j), name)
            else:
                point[0, j] = _number(cell, name)
                notes += self._outside(j, point[0, j])
        return point, notes

    def _outside(self, j: int, value: float) -> list[str]:
        column = self.explainer.background.rows[:, j]
        low, high = np.nanmin(column), np.nanmax(column)
        if low <= value <= high:
            return []
        return [f"{self.explainer.schema.names[j]} is outside the data's range, {low:.6g} to {high:.6g}"]


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _threads(rows: int) -> AbstractContextManager[Any]:
    """One BLAS thread for a few rows."""
    return _controller().limit(limits=1) if rows <= FEW else nullcontext()


def _model_name(model: Any) -> str:
    """The type of a model, or of the last step of a Pipeline."""
    steps = getattr(model, "steps", None)
    return type(steps[-1][1] if steps else model).__name__


def _plain(found: list[Explanation]) -> dict[str, Any]:
    """The first row of one or more attributions of the same rows, as lists."""
    first = found[0]
    return {
        "features": list(first.feature_names),
        "categorical": [name in first.categories for name in first.feature_names],
        "predictions": payloads.finite(first.arrays["predictions"][0]),
        "attributions": [_attribution(one) for one in found],
        **payloads.quantities(first),
    }


def _attribution(explanation: Explanation) -> dict[str, Any]:
    """The first row of one attribution: its words, its numbers, its doubts."""
    arrays = explanation.arrays
    names = [
        name for name in ("values", "gradient", "error", "flags", "flat", "relative_change") if name in arrays
    ]
    base = np.broadcast_to(arrays["base_values"], arrays["predictions"].shape)[0]
    return payloads.attribution_words(explanation) | {
        **{name: payloads.finite(arrays[name][0]) for name in names},
        "base": payloads.finite(base),
        "stability": str(arrays["stability"][0]) if "stability" in arrays else "",
        "reason": str(arrays["reason"][0]) if "reason" in arrays else "",
    }


def _plain_cell(value: Any) -> Any:
    """A value of the table for the page: a number, or text."""
    return value if value is None or _is_number(value) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))


def _number(cell: Any, name: str) -> float:
    try:
        value = float(cell) if not isinstance(cell, bool) else np.nan
    except (TypeError, ValueError, OverflowError):
        value = np.nan
    if not np.isfinite(value):
        raise InputError(f"{repr(cell)[:80]} in {name!r} is not a number; type one such as 3.5.")
    return value


def _code(cell: Any, levels: list[str], name: str) -> float:
    if str(cell) not in levels:
        shown = ", ".join(levels[:8]) + (" ..." if len(levels) > 8 else "")
        raise InputError(f"{cell!r} is not a category of {name!r}; expected one of {shown}.")
    return float(levels.index(str(cell)))


TESTS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}


def matching_rows(words: Any, schema: Any, rows: Array, labels: Sequence[Any] | None) -> np.ndarray:
    """The positions of the rows that carry an identifier or meet a condition; at least one."""
    if not isinstance(words, str) or not words.strip():
        raise InputError("nothing to look for; type an identifier, or a condition such as age > 40.")
    wanted = re.sub(r"^row\s+", "", words.strip(), flags=re.IGNORECASE)
    known = [str(label) for label in (range(len(rows)) if labels is None else labels)]
    found = np.array([i for i, label in enumerate(known) if label == wanted], dtype=int)
    if len(found):
        return found
    match = re.fullmatch(r"(.+?)\s*(<=|>=|!=|==|=|<|>)\s*(.+)", words.strip())
    if match is None:
        raise InputError(
            f"no row has the identifier {wanted!r}; they go from {known[0]} to {known[-1]}. A condition looks like "
            f"{schema.names[0]} > 1.{suggest(wanted, known[:2000])}"
        )
    found = np.nonzero(_meets(match[1].strip(), match[2], match[3].strip(), schema, rows))[0]
    if not len(found):
        raise InputError(f"no row matches {words.strip()!r}.")
    return found


def _meets(name: str, sign: str, against: str, schema: Any, rows: Array) -> np.ndarray:
    lower = [one.lower() for one in schema.names]
    if name.lower() not in lower:
        raise InputError(f"{name!r} is not a feature.{suggest(name, schema.names)}")
    j = lower.index(name.lower())
    column = rows[:, j]
    if j not in schema.levels:
        try:
            return TESTS[sign](column, float(against))
        except ValueError:
            raise InputError(f"{name!r} is numeric and {against!r} is not a number.") from None
    levels = schema.categories(j)
    if sign not in ("=", "==", "!="):
        raise InputError(f"{name!r} holds categories; compare it with = or !=.")
    if against not in levels:
        raise InputError(
            f"{against!r} is not a category of {name!r}; it has {', '.join(levels[:8])}.{suggest(against, levels)}"
        )
    return TESTS[sign](column, float(levels.index(against)))
