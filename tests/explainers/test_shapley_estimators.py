"""Estimators of other libraries against the Shapley value's own sum over all coalitions."""

from __future__ import annotations

import sys
from itertools import combinations
from math import factorial
from types import ModuleType

import numpy as np
import pytest

from texplainer import explainers
from texplainer.errors import Unsupported


def function(rows: np.ndarray) -> np.ndarray:
    return rows[:, 0] * rows[:, 1] + np.sin(rows[:, 2]) - 2 * rows[:, 3]


def shapley(row: np.ndarray, background: np.ndarray) -> np.ndarray:
    """By definition: every coalition's value, weighted."""
    n = len(row)

    def value(members: tuple[int, ...]) -> float:
        mixed = background.copy()
        mixed[:, list(members)] = row[list(members)]
        return float(function(mixed).mean())

    found = np.zeros(n)
    for j in range(n):
        others = [i for i in range(n) if i != j]
        for size in range(n):
            weight = factorial(size) * factorial(n - size - 1) / factorial(n)
            for members in combinations(others, size):
                found[j] += weight * (value((*members, j)) - value(members))
    return found


@pytest.mark.parametrize(
    ("name", "package", "within"),
    [("shapiq", "shapiq", 1e-5), ("shapiq_leverage", "shapiq", 1e-8), ("lightshap", "lightshap", 1e-8)],
)
def test_all_coalitions_give_the_shapley_value(name: str, package: str, within: float) -> None:
    """RegressionMSR fits an XGBoost model, in float32."""
    pytest.importorskip(package)
    rows = np.random.default_rng(0).normal(size=(34, 4))
    explain = explainers.EXPLAINERS[name](function, rows[4:], references=30)
    found = explain(rows[:4])
    expected = [shapley(row, rows[4:]) for row in rows[:4]]
    np.testing.assert_allclose(found.values, expected, atol=within)
    assert np.all(found.diagnostics["evaluations"] > 0)
    np.testing.assert_array_equal(found.values, explain(rows[:4]).values)  # seeded


def test_an_estimator_that_the_installed_shapiq_lacks_is_refused(monkeypatch) -> None:
    for name in ("shapiq", "shapiq.approximator"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    with pytest.raises(Unsupported, match="has no estimator 'RegressionMSR'"):
        explainers.shapiq(function, np.random.default_rng(0).normal(size=(30, 4)))
