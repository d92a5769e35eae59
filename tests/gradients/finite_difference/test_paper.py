"""Algorithm 1 for all rows at once against its row-by-row twin."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from functions import SMOOTH
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import texplainer as tx
from texplainer.errors import InputError
from texplainer.gradients.step_search import smallest_distance

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
    explanation = tx.TExplainer(f, background, step="paper", bounds=None)(rows)
    assert explanation.attribution == "sensitivity"
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


def test_the_stencil_stays_in_the_data_unless_told_otherwise():
    seen = []

    def f(x):
        seen.append(x.copy())
        return SMOOTH[10].f(x)

    rng = np.random.default_rng(5)
    background = rng.uniform(size=(60, 3))
    explainer = tx.TExplainer(f, background, step="paper")
    seen.clear()
    explainer(background[:10])
    everything = np.concatenate(seen)
    assert np.all(everything >= background.min(axis=0)) and np.all(everything <= background.max(axis=0))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=2), min_size=2, max_size=12))
def test_smallest_distance_is_that_of_the_full_matrix(rows):
    rows = np.array(rows, dtype=float)
    if len(np.unique(rows, axis=0)) < 2:
        with pytest.raises(InputError, match="two different background rows"):
            smallest_distance(rows)
    else:
        assert smallest_distance(rows) == pytest.approx(oracles.smallest_distance(rows))
