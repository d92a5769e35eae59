"""The paper's properties, determinism and what happens with bad input."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from functions import SMOOTH
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import Parallel, delayed
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

import texplainer as tx
from texplainer.errors import BackgroundWarning, InputError, ModelError, UndefinedRowsWarning

BACKGROUND = np.random.default_rng(0).uniform(size=(200, 4))
ROWS = np.random.default_rng([0, 2]).uniform(0.1, 0.9, size=(30, 4))
PLAIN = {"engine": "finite-difference", "smoothing": 0, "attribution": "gradient"}


def smooth(x):
    """Row-independent to the last bit: sums in a fixed order, no BLAS."""
    return expit(3 * x[:, 0] - 2 * x[:, 1] * x[:, 2] + 0.5)


# ---------------------------------------------------------------- the three properties


@pytest.mark.parametrize("known", SMOOTH[:16], ids=lambda k: k.name)
def test_local_accuracy_the_surrogates_residual_falls_with_the_square(known):
    background, rows = known.rows(200, 1), known.rows(20, 2)
    explanation = tx.TExplainer(known.f, background, **PLAIN)(rows)
    direction = np.random.default_rng(4).normal(size=rows.shape)
    residual = []
    for size in (1e-2, 1e-3):
        dx = size * direction
        residual.append(np.abs(known.f(rows + dx) - explanation.surrogate(dx)).max())
    assert (
        residual[1] <= residual[0] / 50 or residual[1] < 1e-9
    )  # O(|z|^2): a hundredth, with room for rounding


def test_missingness_is_exact():
    explanation = tx.TExplainer(smooth, BACKGROUND, **PLAIN)(ROWS)
    assert np.all(explanation.values[:, 3] == 0)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.1, 3), st.floats(0.05, 2))
def test_consistency_a_model_that_reacts_more_gets_a_larger_value(slope, more):
    def weak(x):
        return slope * x[:, 0] + np.sin(x[:, 1])

    def strong(x):
        return (slope + more) * x[:, 0] + np.sin(x[:, 1])

    a, b = (tx.TExplainer(f, BACKGROUND, **PLAIN)(ROWS[:3]).values for f in (weak, strong))
    assert np.all(b[:, 0] > a[:, 0])


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(4)))
def test_permuting_the_features_permutes_the_values(order):
    order = list(order)
    plain = tx.TExplainer(smooth, BACKGROUND, **PLAIN)(ROWS).values
    back = np.argsort(order)
    turned = tx.TExplainer(lambda x: smooth(x[:, back]), BACKGROUND[:, order], **PLAIN)(ROWS[:, order]).values
    np.testing.assert_allclose(turned, plain[:, order], rtol=1e-9, atol=1e-12)


def test_linear_models_are_explained_exactly_by_every_attribution():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    model = LinearRegression().fit(X, X @ [1.0, -2.0, 0.5])
    shares = tx.TExplainer(model, X, attribution="shapley", engine="finite-difference")(X[:20])
    assert np.abs(shares.diagnostics.completeness).max() < 1e-9
    np.testing.assert_allclose(shares.values, (X[:20] - X.mean(axis=0)) * [1.0, -2.0, 0.5], atol=1e-9)
    explanation = tx.TExplainer(model, X, **PLAIN)(X[:20])
    np.testing.assert_allclose(explanation.values, np.tile([1.0, -2.0, 0.5], (20, 1)), rtol=1e-8)
    assert explanation.base_values == pytest.approx(model.predict(X).mean())


# ---------------------------------------------------------------- determinism


@pytest.mark.parametrize("options", [{}, {"step": "paper"}, {"step": 0.01}, {"attribution": "shapley"}])
def test_bit_identical_for_any_batch_one_by_one_in_threads_and_in_processes(options):
    options = {**PLAIN, **options}
    whole = tx.TExplainer(smooth, BACKGROUND, **options)(ROWS).values
    for batch_rows in (1, 7, 100):
        again = tx.TExplainer(smooth, BACKGROUND, batch_rows=batch_rows, **options)(ROWS).values
        assert np.array_equal(whole, again)
    explainer = tx.TExplainer(smooth, BACKGROUND, **options)
    single = np.stack([explainer(row).values[0] for row in ROWS[:5]])
    assert np.array_equal(single, whole[:5])
    with ThreadPoolExecutor(4) as pool:
        threaded = list(pool.map(lambda row: explainer(row).values[0], ROWS[:8]))
    assert np.array_equal(threaded, whole[:8])


def test_bit_identical_in_processes_and_through_pickle():
    model = LogisticRegression().fit(BACKGROUND, BACKGROUND[:, 0] > 0.5)
    explainer = tx.TExplainer(model, BACKGROUND, **PLAIN)
    whole = [explainer(ROWS[i : i + 10]).values for i in (0, 10, 20)]
    sent = Parallel(n_jobs=2)(delayed(_explain)(explainer, ROWS[i : i + 10]) for i in (0, 10, 20))
    assert np.array_equal(whole, sent)
    for copied in (pickle.loads(pickle.dumps(explainer)), clone(explainer)):
        assert copied is not explainer
        assert np.array_equal(copied(ROWS).values, explainer(ROWS).values)


def _explain(explainer, rows):
    return explainer(rows).values


def test_global_random_state_is_neither_read_nor_touched():
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    first = tx.TExplainer(smooth, BACKGROUND, attribution="shapley", engine="finite-difference")(ROWS).values
    assert np.array_equal(before, np.random.get_state()[1])
    np.random.seed(2)
    again = tx.TExplainer(smooth, BACKGROUND, attribution="shapley", engine="finite-difference")(ROWS).values
    assert np.array_equal(first, again)


# ---------------------------------------------------------------- bad input


def test_rows_with_bad_cells_are_undefined_and_the_others_explained():
    model = LogisticRegression().fit(BACKGROUND, BACKGROUND[:, 0] > 0.5)
    rows = ROWS[:4].copy()
    rows[1, 2], rows[3, 0] = np.nan, np.inf
    with pytest.warns(
        UndefinedRowsWarning, match="2 of 4 rows are undefined; row 1: value 'x2' is nan .* Impute"
    ):
        explanation = tx.TExplainer(model, BACKGROUND, **PLAIN)(rows)
    assert explanation.diagnostics.stability.tolist() == ["stable", "undefined", "stable", "undefined"]
    assert "inf; expected a finite number" in explanation.diagnostics.reason[3]
    assert np.all(np.isnan(explanation.values[[1, 3]]))
    clean = tx.TExplainer(model, BACKGROUND, **PLAIN)(ROWS[:4])
    assert np.array_equal(explanation.values[[0, 2]], clean.values[[0, 2]])


def test_missing_cells_are_fine_where_the_model_takes_them():
    def tolerant(x):
        return np.nansum(x, axis=1)

    rows = ROWS[:2].copy()
    rows[0, 1] = np.nan
    explanation = tx.TExplainer(tolerant, BACKGROUND, **PLAIN)(rows)
    np.testing.assert_allclose(explanation.values[0, [0, 2, 3]], 1.0, rtol=1e-8)
    levels = (np.arange(16) + 0.5) / 16  # a missing cell is a level: against the mean of the column's values
    mean = np.quantile(BACKGROUND[:, 1], levels, method="inverted_cdf").mean()
    np.testing.assert_allclose(explanation.values[0, 1], -mean, rtol=1e-8)


def test_a_row_the_model_fails_on_is_left_out_alone():
    def moody(x):
        if np.any((x[:, 0] > 0.6) & (x[:, 0] < 0.61)):
            raise RuntimeError("not this one")
        return smooth(x)

    background = BACKGROUND[(BACKGROUND[:, 0] < 0.55) | (BACKGROUND[:, 0] > 0.65)]
    rows = ROWS.copy()
    rows[:, 0] = np.linspace(0.1, 0.5, 30)
    rows[11, 0] = 0.605
    with pytest.warns(UndefinedRowsWarning, match="row 11: .*RuntimeError: not this one"):
        explanation = tx.TExplainer(moody, background, **PLAIN)(rows)
    assert explanation.stability_counts() == {"stable": 29, "unstable": 0, "undefined": 1}


def test_a_model_that_fails_on_all_rows_raises_its_error():
    explainer = tx.TExplainer(smooth, BACKGROUND, **PLAIN)
    object.__setattr__(explainer.predictor, "call", lambda x: 1 / 0)
    with pytest.raises(ModelError, match="ZeroDivisionError"):
        explainer(ROWS)


def test_a_model_that_returns_nan():
    with pytest.raises(ModelError, match=r"returned \[nan\] for background row 0"):
        tx.TExplainer(lambda x: x[:, 0] * np.nan, BACKGROUND)

    def holes(x):
        return np.where(x[:, 0] > 0.95, np.nan, x[:, 0])

    background = BACKGROUND[BACKGROUND[:, 0] < 0.9]
    rows = ROWS[:3].copy()
    rows[1, 0] = 0.97
    explanation = tx.TExplainer(holes, background, **PLAIN)(rows)
    assert explanation.diagnostics.stability.tolist() == ["stable", "undefined", "stable"]


def test_poor_backgrounds_are_said_and_still_explained():
    constant = BACKGROUND.copy()
    constant[:, 1] = 3.0
    with pytest.warns(
        BackgroundWarning, match=r"columns \['x1'\] are constant \(first value 3.0\).*slope is 0"
    ):
        explanation = tx.TExplainer(smooth, constant, **PLAIN)(ROWS[:3])
    assert np.all(np.isfinite(explanation.values)) and np.all(
        explanation.values[:, 1] != 0
    )  # a plain derivative
    with pytest.warns(BackgroundWarning, match="one row"):
        tx.TExplainer(smooth, BACKGROUND[:1], **PLAIN)(ROWS[:3])
    with pytest.warns(BackgroundWarning, match="3 copies of one row"):
        tx.TExplainer(smooth, np.repeat(BACKGROUND[:1], 3, axis=0), **PLAIN)(ROWS[:3])
    with (
        pytest.warns(BackgroundWarning),
        pytest.raises(InputError, match="needs two different background rows"),
    ):
        tx.TExplainer(smooth, np.repeat(BACKGROUND[:1], 3, axis=0), step="paper")
    infinite = BACKGROUND.copy()
    infinite[7, 2] = -np.inf
    with pytest.raises(InputError, match="background row 7 holds -inf in column 'x2'"):
        tx.TExplainer(smooth, infinite)


BAD_ARGUMENTS = {
    "engine": ("steam", "engine='steam' is unknown; expected 'auto' or one of closed-form, autodiff"),
    "step": ("small", "step='small' is unknown"),
    "attribution": ("magic", "attribution='magic' is unknown"),
    "bounds": ("tight", "bounds='tight' is unknown"),
    "batch_rows": (0, "batch_rows=0 is invalid; expected a whole number of at least 1"),
    "output": ("nine", "output='nine' is unknown"),
}


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_bad_arguments_name_value_and_expectation(name):
    value, message = BAD_ARGUMENTS[name]
    with pytest.raises(InputError, match=message):
        tx.TExplainer(smooth, BACKGROUND, **{name: value})


def test_more_bad_arguments():
    for step in (-1, 0, float("nan")):
        with pytest.raises(InputError, match="is not a step"):
            tx.TExplainer(smooth, BACKGROUND, step=step)
    with pytest.raises(InputError, match="bounds of feature 2 are empty"):
        tx.TExplainer(smooth, BACKGROUND, bounds=([0, 0, 1, 0], [1, 1, 0, 1]))
    with pytest.raises(InputError, match="is not a pair"):
        tx.TExplainer(smooth, BACKGROUND, bounds=3)
    with pytest.raises(InputError, match="engine='tree' cannot explain this function"):
        tx.TExplainer(smooth, BACKGROUND, engine="tree")


# ---------------------------------------------------------------- outputs


def test_predicted_output_is_each_rows_own_class():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    y = np.argmax(X @ rng.normal(size=(3, 3)), axis=1)
    model = LogisticRegression().fit(X, y)
    every = tx.TExplainer(model, X, output="all", **PLAIN)(X[:30])
    own = tx.TExplainer(model, X, output="predicted", **PLAIN)(X[:30])
    assert every.values.shape == (30, 3, 3) and own.values.shape == (30, 3)
    for i, c in enumerate(model.predict(X[:30])):
        assert np.array_equal(own.values[i], every.values[i, :, c])
        assert own.predictions[i] == every.predictions[i, c]
        assert own.base_values[i] == every.base_values[c] == own[i].base_values
        assert own.diagnostics.predicted_class[i] == c


def test_frames_in_names_out():
    table = pd.DataFrame(BACKGROUND, columns=["age", "income", "debt", "years"])
    model = LogisticRegression().fit(table, table["age"] > 0.5)
    explanation = tx.TExplainer(model, table, **PLAIN)(table.iloc[:5][["debt", "years", "income", "age"]])
    assert explanation.feature_names == ("age", "income", "debt", "years")
    assert np.array_equal(explanation.data, BACKGROUND[:5])


def test_a_table_of_bad_rows_only_is_undefined_not_an_error():
    model = LogisticRegression().fit(BACKGROUND, BACKGROUND[:, 0] > 0.5)
    for output in (None, "predicted", "all"):
        with pytest.warns(UndefinedRowsWarning, match="2 of 2 rows"):
            explanation = tx.TExplainer(model, BACKGROUND, output=output, **PLAIN)(np.full((2, 4), np.nan))
        assert explanation.stability_counts()["undefined"] == 2
        assert np.all(np.isnan(explanation.values))


def test_traces_of_many_blocks_are_kept_whole():
    steep = lambda x: expit(60 * (x[:, 0] - 0.5) * (x[:, 1] - 0.5))  # noqa: E731
    whole = tx.TExplainer(steep, BACKGROUND, step="paper")(ROWS).diagnostics
    parts = tx.TExplainer(steep, BACKGROUND, step="paper", batch_rows=9)(ROWS).diagnostics
    assert len(set(whole.iterations)) > 1
    np.testing.assert_array_equal(whole.trace_cost, parts.trace_cost)


def test_seconds_are_told_and_not_saved(tmp_path):
    explanation = tx.TExplainer(smooth, BACKGROUND, **PLAIN)(ROWS)
    assert explanation.settings["seconds"] > 0
    explanation.save(tmp_path / "a.npz")
    assert "seconds" not in tx.Explanation.load(tmp_path / "a.npz").settings
