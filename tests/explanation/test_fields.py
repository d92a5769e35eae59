"""The table of arrays: what explainers make has the shapes, dtypes and fills it says."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import texplainer as tx
from texplainer import Explanation
from texplainer.attributions.table import GENERAL
from texplainer.errors import ModelError, UndefinedRowsWarning
from texplainer.explanation.fields import (
    CATEGORY,
    FACTS,
    FIELDS,
    axes_of,
    blank_like,
    blanks,
    by_halves,
    held,
)


def table(rows: int = 60) -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(rows, 3))
    X[:, 2] = np.arange(rows) % 3
    return X


def two_outputs(X: np.ndarray) -> np.ndarray:
    return np.column_stack([X[:, 0] ** 2 + X[:, 1] * (X[:, 2] == 1), X[:, 1] - X[:, 0]])


def refuse_large(X: np.ndarray) -> np.ndarray:
    if (X[:, 0] > 50).any():
        raise ValueError("too large")
    return X[:, 0] * X[:, 1]


@pytest.mark.parametrize("name", GENERAL)
def test_arrays_have_the_axes_of_the_table(name: str) -> None:
    found = tx.TExplainer(two_outputs, table(), categorical=["x2"])(table()[:5], attribution=name)
    sizes = {"r": 5, "f": 3, "o": 2}
    for key, array in found.arrays.items():
        axes = axes_of(key, array)
        assert all(size == sizes.get(axis, size) for axis, size in zip(axes, array.shape, strict=True)), key
        if key in FIELDS and key != "base_values":
            assert axes == FIELDS[key].axes, key
    assert {field.name for field in FIELDS.values() if field.always} <= {*found.arrays}


def test_every_field_of_an_explanation_that_is_not_an_array_is_a_fact() -> None:
    names = {field.name for field in dataclasses.fields(Explanation)}
    assert {fact.name for fact in FACTS} == names - {"arrays", "categories", "others", "live", "positions"}


def test_rows_that_fail_have_the_fill_of_the_table() -> None:
    X = table()
    explainer = tx.TExplainer(refuse_large, X)
    rows = X[:4].copy()
    rows[1, 0] = 99
    with pytest.warns(UndefinedRowsWarning):
        found = explainer(rows)
    for key, array in found.arrays.items():
        if key not in ("data", "reason", "base_values") and key in FIELDS:
            fill = FIELDS[key].fill
            same = array[1] == fill if fill == fill else np.isnan(array[1])
            assert np.all(same), key
    assert "too large" in found.diagnostics.reason[1]


def test_a_table_without_one_good_row_has_the_arrays_every_explanation_has() -> None:
    X = table()
    explainer = tx.TExplainer(refuse_large, X)
    rows = X[:2].copy()
    rows[:, 1] = np.nan
    with pytest.warns(UndefinedRowsWarning):
        found = explainer(rows)
    assert {*blanks(0, 1, 1)} <= {*found.arrays}
    assert found.stability_counts()["undefined"] == 2 and np.isnan(found.values).all()
    assert "error bound" not in repr(found)
    rows[:, 1] = 0.0
    rows[:, 0] = 99.0
    with pytest.raises(ModelError):
        explainer(rows)


def test_narrow_arrays_are_float32_and_bounds_stay_wide() -> None:
    found = tx.TExplainer(lambda X: X[:, 0] ** 2, table())(table()[:3])
    assert found.arrays["taylor_residual"].dtype == np.float32 == found.arrays["boundary"].dtype
    assert found.arrays["error"].dtype == np.float64  # a bound must not underflow


def test_arrays_that_are_not_listed_have_rows_first() -> None:
    assert axes_of("trace_h", np.zeros((2, 7))) == "r."
    assert axes_of(CATEGORY + "a/b", np.zeros((2, 4, 1))) == "r.o"
    assert blank_like("trace_h", np.zeros((2, 7)), 3).shape == (3, 7)
    assert {*held({"trace_h": np.zeros(1), "values": np.zeros(1)}, "short")} == {"values"}


def outcome_by_halves(rows, failing, kind=Exception, error=ValueError):
    """What is called for `rows` if the work fails on `failing`: the blocks that worked, the rows that did not."""
    worked, failed = [], []

    def work(block):
        if failing & {int(row) for row in block}:
            raise error(f"{failing}")
        worked.append([int(row) for row in block])

    by_halves(rows, work, lambda row, error: failed.append((row, type(error))), kind)
    return worked, failed


@pytest.mark.parametrize("rows", [range(10, 17), np.arange(10, 17)], ids=["range", "array"])
@pytest.mark.parametrize("failing", [set(), {10}, {13}, {12, 13, 16}, set(range(10, 17))])
def test_only_the_failing_rows_are_left_out(rows, failing):
    worked, failed = outcome_by_halves(rows, failing)
    kept = [row for row in range(10, 17) if row not in failing]
    assert [row for block in worked for row in block] == kept
    assert failed == [(row, ValueError) for row in sorted(failing)]


def test_a_block_that_works_is_not_divided():
    assert outcome_by_halves(range(6), set()) == ([[0, 1, 2, 3, 4, 5]], [])


def test_errors_of_another_kind_are_raised():
    with pytest.raises(ValueError):
        outcome_by_halves(range(6), {3}, kind=KeyError)
