"""Algorithm 1 for all rows at once against its row-by-row twin."""

from __future__ import annotations

import warnings

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import texplainer as tx
from texplainer.errors import InputError, ScaleWarning
from texplainer.gradients.finite_difference.paper import Algorithm1, smallest_distance

FUNCTIONS = {
    "logistic": lambda x: expit(4 * x[:, 0] - 3 * x[:, 1]),
    "steep": lambda x: expit(40 * (x[:, 0] - 0.5) * (x[:, 1] - 0.5)),
    "waves": lambda x: np.sin(9 * x[:, 0]) * np.cos(7 * x[:, 2]),
    "flat": lambda x: np.full(len(x), 0.25),
    "step": lambda x: (x[:, 0] > 0.5).astype(float),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_the_printed_lines(name):
    f = FUNCTIONS[name]
    rng = np.random.default_rng(5)
    background, rows = rng.uniform(size=(60, 3)), rng.uniform(size=(25, 3))
    explanation = tx.TExplainer(f, background, step="paper")(rows)
    assert explanation.attribution == "gradient"
    h_min = oracles.smallest_distance(background)
    for i, x in enumerate(rows):
        h, gradient, iterations, cost = oracles.algorithm_1(lambda v: float(f(v[None])[0]), x, h_min)
        assert explanation.diagnostics.iterations[i] == iterations
        assert explanation.diagnostics.h[i] == h
        np.testing.assert_allclose(explanation.values[i], gradient, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(explanation.diagnostics.cost[i], cost, rtol=1e-9, atol=1e-28)


def test_the_trace_ends_at_the_chosen_step():
    rng = np.random.default_rng(5)
    explanation = tx.TExplainer(FUNCTIONS["steep"], rng.uniform(size=(60, 3)), step="paper")(
        rng.uniform(size=(9, 3))
    )
    d = explanation.diagnostics
    for i in range(9):
        assert d.trace_h[i, d.iterations[i] - 1] == d.h[i]
        assert d.trace_cost[i, d.iterations[i] - 1] == d.cost[i]
        assert np.all(np.isnan(d.trace_h[i, d.iterations[i] :]))


def test_a_flat_model_runs_to_the_last_iteration():
    rng = np.random.default_rng(5)
    explanation = tx.TExplainer(FUNCTIONS["flat"], rng.uniform(size=(60, 3)), step="paper")(
        rng.uniform(size=(4, 3))
    )
    assert np.all(explanation.diagnostics.iterations == 51)  # line 23 stops after max_itr is exceeded
    assert np.all(explanation.values == 0)


@pytest.mark.parametrize("bounds", ["background", None, (0.2, 0.8)])
def test_bounds_neither_cut_the_stencil_nor_the_step(bounds):
    """The cost is that of the full h; a stencil cut short beside the edge would not fit it."""
    rng = np.random.default_rng(5)
    background, rows = rng.uniform(size=(60, 3)), rng.uniform(size=(10, 3))
    f = FUNCTIONS["waves"]
    explanation = tx.TExplainer(f, background, step="paper", bounds=bounds)(rows)
    np.testing.assert_allclose(explanation.diagnostics.step, explanation.diagnostics.h[:, None].repeat(3, 1))
    for i, x in enumerate(rows):
        twin = oracles.centred_differences(lambda v: float(f(v[None])[0]), x, explanation.diagnostics.h[i])
        np.testing.assert_allclose(explanation.values[i], twin, rtol=1e-9, atol=1e-12)


def test_columns_far_from_unit_scale_are_named():
    rng = np.random.default_rng(5)
    background = rng.uniform(size=(60, 3)) * [1.0, 5000.0, 1.0]
    with pytest.warns(ScaleWarning, match="1 of 3 columns have other ranges, such as 'x1' with 4.95e"):
        tx.TExplainer(FUNCTIONS["logistic"], background, step="paper")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tx.TExplainer(FUNCTIONS["logistic"], background, step="auto")
        tx.TExplainer(FUNCTIONS["logistic"], rng.normal(size=(200, 3)), step="paper")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=2), min_size=2, max_size=12))
def test_smallest_distance_is_that_of_the_full_matrix(rows):
    rows = np.array(rows, dtype=float)
    if len(np.unique(rows, axis=0)) < 2:
        with pytest.raises(InputError, match="two different background rows"):
            smallest_distance(rows)
    else:
        assert smallest_distance(rows) == pytest.approx(oracles.smallest_distance(rows))


def test_the_constants_of_algorithm_1_are_an_argument():
    """f = x² + y²: a larger tolerance accepts a larger h; h_max bounds h; capped keeps inside the data."""
    rows = np.random.default_rng(0).uniform(size=(40, 2))

    def square(table):
        return (np.asarray(table) ** 2).sum(axis=1)

    def steps(**constants):
        found = tx.TExplainer(square, rows, step=Algorithm1(**constants))(rows[:5])
        return found.diagnostics["h"]

    plain = tx.TExplainer(square, rows, step="paper")(rows[:5]).diagnostics["h"]
    assert np.array_equal(steps(), plain)
    assert (steps(c=50.0) > plain).all() and (steps(h_max=0.03) <= 0.03).all()
    asked = []

    def watched(table):
        asked.append(np.asarray(table))
        return square(table)

    explainer = tx.TExplainer(watched, rows, step=Algorithm1(capped=True, c=1e6))
    asked.clear()
    explainer(rows[:5])
    seen = np.concatenate(asked)
    assert (seen >= rows.min(axis=0)).all() and (seen <= rows.max(axis=0)).all()
