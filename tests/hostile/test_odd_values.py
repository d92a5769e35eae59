"""Odd values of arguments: taken for what they are, or refused with a sentence that names the argument."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import texplainer as tx
from texplainer.errors import InputError, ModelError

pytestmark = pytest.mark.filterwarnings("ignore")
X = np.round(np.random.default_rng(5).normal(size=(40, 3)) * 4) / 2
FRAME = pd.DataFrame(X, columns=list("abc"))
INF, VAST = float("inf"), 10**400


def model(table: Any) -> np.ndarray:
    rows = np.asarray(table, dtype=float)
    return 2 * rows[:, 0] - rows[:, 1] * rows[:, 2]


EXPLAINER = tx.TExplainer(model, FRAME)
FOUND = EXPLAINER(FRAME[:6])


class Text(str):
    """A text in all but its type."""


#: argument -> values that stand for the default, or for nothing that changes the values
SAME: dict[str, list[Any]] = {
    "output": [None, 0, np.int64(0), np.array(0), [[0]], "output", ["all"], -1],
    "scale": [Text("raw"), np.str_("raw")],
    "engine": [np.str_("auto"), Text("finite-difference")],
    "smoothing": [np.float32(0.25), np.float64(0.25), None],
    "attribution": [Text("slope"), ["slope", "slope"], ("slope",)],
    "categorical": [[], {}, {"a": "numeric"}],
    "bounds": [(-INF, INF), (-9, 9), (FRAME.min() - 9, FRAME.max() + 9), (decimal.Decimal(-9), decimal.Decimal(9))],
    "id_column": ["zz", None],
    "batch_rows": [1, np.int32(7), 10**30],
    "max_evals": [np.int64(500), 10**30],
    "retries": [np.int8(1), 10**9],
    "cache": [True, False, {}, None],
}  # fmt: skip
#: argument -> values that are refused
REFUSED: dict[str, list[Any]] = {
    "output": [0.0, True, -2, (), {}, b"output", slice(None), dt.date(2020, 1, 1), "OUTPUT", " output", ["predicted"], ...],
    "scale": [b"raw", ["raw"], {"raw"}, True, 0, "RAW", pd.Series(["raw"])],
    "engine": [b"auto", "Tree", ["auto"], 0, len, True],
    "step": [decimal.Decimal(".01"), "0.01", True, [0.01], np.array(0.01), 1j, INF, np.nan, VAST, -VAST, -0.0, dt.timedelta(1), pd.NA],
    "smoothing": [decimal.Decimal(".25"), "0.25", True, [0.25], np.array(0.25), np.array([0.25] * 3), VAST, 1j, pd.NA],
    "attribution": [b"slope", [], {"slope"}, {"slope": 1}, np.array(["slope"]), iter(["slope"]), ["slope", ["shapley"]], "Slope", "slope,shapley", 3, True],
    "categorical": [b"a", [0.0], [True], {"a": "ORDINAL"}, {"a": None}, {"g": []}, {"a": ["b", "c"]}, {"g": ["a", "b"], "h": ["b", "c"]}, {"g": "ab"}, [["a"]], [("a", "b")], np.array(["a"]), pd.Index(["a"]), iter(["a"]), {"a"}, FRAME, len, slice(0, 2)],
    "bounds": [(0,), (None, None), (INF, -INF), ([0] * 2, [1] * 2), {"a": (0, 1)}, "none", True, ((0, 1),) * 3, (0, 0), (np.nan, 1), (1j, 2)],
    "feature_names": ["abc", b"abc", ["x", "x", "y"], [None] * 3, [("a", "b"), "c", "d"], ["x", "y"], iter("xyz"), [["x"], ["y"], ["z"]], {"x": 0, "y": 1, "z": 2}.keys() | set(), "", True, ["b", "a", "c"]],
    "id_column": [["a"], ["a", "b"], {}, {"a"}, np.array("a")],
    "batch_rows": [True, 1.0, 2.5, "8", INF, np.nan, None, [1], 0, -1],
    "max_evals": [0, 1, -1, True, 2.5, "9", INF, np.nan, [5]],
    "retries": [True, -1, 1.5, "2", INF, None, [1]],
    "cache": [[], set(), 0, "cache", np.array(0), dict, object()],
}  # fmt: skip


def explained(argument: str, value: Any) -> None:
    found = tx.TExplainer(model, FRAME, **{argument: value})(FRAME[:6])
    np.testing.assert_allclose(found.values, FOUND.values, rtol=1e-12, atol=1e-12)


VALUES = {
    f"{kind}: {argument}, a {type(value).__name__} ({i})": (argument, value)
    for kind, table in (("same", SAME), ("refused", REFUSED))
    for argument, values in table.items()
    for i, value in enumerate(values)
}
#: what else is asked of an explainer or a result -> words of the error
ASKED: dict[str, tuple[Callable[[], Any], str]] = {
    "two-dimensional index": (lambda: FOUND[np.array([[0, 1]])], "expected one dimension"),
    "row out of range": (lambda: FOUND[[0, 9]], "out of range"),
    "a mask too short": (lambda: FOUND[[True] * 5], "expected .6,., one value each"),
    "a name as row": (lambda: FOUND["a"], "rows have numbers"),
    "None as row": (lambda: FOUND[None], "is not an index"),
    "too many indices": (lambda: FOUND[0, 0, 0], "3 indices"),
    "identifier that is not there": (lambda: EXPLAINER(FRAME[:2], id_column="zz"), "id_column='zz' is not in the table"),
    "identifier of an array": (lambda: EXPLAINER(X[:2], id_column="a"), "columns without names"),
    "no attribution": (lambda: EXPLAINER(FRAME[:2], attribution=""), "attribution='' is unknown"),
    "no interactions": (lambda: EXPLAINER.interactions(FRAME[:1], attribution="gradient"), "has no interactions"),
    "target in words": (lambda: EXPLAINER.recourse(FRAME[:1], ("=>", 1)), "expected an operator"),
    "target NaN": (lambda: EXPLAINER.recourse(FRAME[:1], (">=", np.nan)), "cannot be reached"),
    "two rows": (lambda: EXPLAINER.recourse(FRAME[:2], 1.0), "row holds 2 rows"),
    "a missing row": (lambda: EXPLAINER.recourse(FRAME[:1] * np.nan, 1.0), "nothing is actionable"),
    "displacement too short": (lambda: FOUND.surrogate(np.zeros(2)), "expected 3 features"),
    "displacement in words": (lambda: FOUND.surrogate("abc"), "is not a displacement"),
}  # fmt: skip
CASES: dict[str, Callable[[], Any]] = {
    **{name: (lambda given=given: explained(*given)) for name, given in VALUES.items()},
    **{f"refused: {name}": ask for name, (ask, _) in ASKED.items()},
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_taken_for_what_it_is_or_refused(name: str) -> None:
    if name.startswith("same"):
        CASES[name]()
    else:
        argument = VALUES[name][0]
        words = {"categorical": "categorical|group", "feature_names": "feature_names|column names", "max_evals": "max_evals|evaluations"}  # fmt: skip
        with pytest.raises((InputError, ModelError), match=words.get(argument, argument)):
            CASES[name]()


@pytest.mark.parametrize("name", ASKED)
def test_what_cannot_be_answered_is_said(name: str) -> None:
    with pytest.raises((InputError, IndexError, KeyError), match=ASKED[name][1]):
        ASKED[name][0]()


def test_more_changes_than_features_are_all_of_them() -> None:
    few, many = (EXPLAINER.recourse(FRAME[:1], 1.0, max_changes=most) for most in (3, 10**9))
    assert few.changes == many.changes
