"""The designed experiment: its laws, its slow twin, its error bound and its cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor
from sklearn.neural_network import MLPRegressor

from texplainer import TExplainer
from texplainer.background.summary import robust_sd
from texplainer.errors import InputError
from texplainer.gradients.choose import choose
from texplainer.gradients.engine import Settings
from texplainer.gradients.finite_difference import design
from texplainer.gradients.points import Blocks
from texplainer.models import predictor as prediction
from texplainer.tables import schema as frames

X = np.random.default_rng(4).normal(size=(200, 6)) * [1.0, 3.0, 0.2, 1.0, 10.0, 1.0]
SIGMA = robust_sd(X)
BOUNDS = (X.min(axis=0), X.max(axis=0))


def model(function, rows=X):
    schema, read = frames.learn(rows)
    return prediction.adapt(function, schema, read[:8])


def black_box(function, width=0.4, bounds=BOUNDS, rows=X):
    predictor = model(function, rows)
    return choose(predictor, rows, "finite-difference", Settings(smoothing=width, bounds=bounds))


def slow_slopes(f, blocks: Blocks, move, bounds, x) -> np.ndarray:
    """Least squares over the displacements really made, pair by pair."""
    differences, halves = [], []
    low, high = np.minimum(bounds[0], x), np.maximum(bounds[1], x)
    for b in range(blocks.blocks):
        for s in blocks.signs(b, 0, blocks.order):
            ahead = np.clip(x + s * blocks.sizes[b] * move, low, high)
            behind = np.clip(x - s * blocks.sizes[b] * move, low, high)
            differences.append((ahead - behind) / 2)
            halves.append((f(ahead[None])[0] - f(behind[None])[0]) / 2)
    scale = np.where(move > 0, move, 1.0)  # columns of like size, for the solver's sake
    return np.linalg.lstsq(np.array(differences) / scale, np.array(halves), rcond=None)[0] / scale


def curved(r):
    return np.sin(r[:, 0]) * np.tanh(r[:, 1]) + np.exp(0.2 * r[:, 3]) + r[:, 2] * r[:, 5] + 0.1 * r[:, 4]


@pytest.mark.parametrize("magnitudes", [None, 8, 12])
def test_agrees_with_a_plain_least_squares_fit_also_beside_the_bounds(magnitudes):
    blocks, move = design.blocks(6, magnitudes), 0.4 * SIGMA
    rows = np.concatenate([X[:20], BOUNDS[0][None], BOUNDS[1][None], X[:2] * 5])  # the last ones outside
    experiment = design.DesignedExperiment(
        model(curved), move, 0.4, BOUNDS, 0.0, np.zeros(6, bool), magnitudes=magnitudes
    )
    found = experiment.gradient(rows).values[:, :, 0]
    twin = [slow_slopes(curved, blocks, move, BOUNDS, x) for x in rows]
    np.testing.assert_allclose(found * SIGMA, np.array(twin) * SIGMA, rtol=1e-9, atol=1e-11)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 1.1))
def test_a_linear_model_is_exact_everywhere(seed, width):
    weights = np.random.default_rng(seed).normal(size=6) / SIGMA
    found = black_box(lambda r: 3.0 + r @ weights, width).gradient(np.concatenate([X[:30], X[:3] * 9]))
    np.testing.assert_allclose(
        found.values[:, :, 0] * SIGMA, np.tile(weights * SIGMA, (33, 1)), rtol=1e-9, atol=1e-10
    )
    assert np.all(np.abs(found.values[:, :, 0] - weights) <= found.error[:, :, 0])
    assert np.all(found.change <= 1e-9)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_even_terms_leave_no_trace(seed):
    rng = np.random.default_rng(seed)
    a, centre = rng.normal(size=(6, 6)), X[0]

    def even(r):
        z = (r - centre) / SIGMA
        q = np.einsum("ri,ij,rj->r", z, a, z)
        return q + 0.1 * q**2

    found = black_box(even, bounds=None).gradient(centre[None])
    assert np.abs(found.values[0, :, 0] * SIGMA).max() < 1e-10 * np.abs(a).sum()


def test_a_sine_is_damped_as_the_gaussian_says_and_the_error_covers():
    found = black_box(lambda r: np.sin(r[:, 0]) + np.cos(r[:, 3]), bounds=None).gradient(X)
    damp = np.exp(-0.5 * (0.4 * SIGMA) ** 2)
    truth = np.zeros((len(X), 6))
    truth[:, 0], truth[:, 3] = np.cos(X[:, 0]) * damp[0], -np.sin(X[:, 3]) * damp[3]
    miss = np.abs(found.values[:, :, 0] - truth)
    assert np.median(miss[:, [0, 3]]) < 0.03
    assert np.mean(miss <= found.error[:, :, 0]) > 0.99


@settings(max_examples=6, deadline=None)
@given(st.sets(st.integers(0, 5), min_size=1, max_size=5))
def test_an_unused_feature_gets_exactly_zero(unused):
    keep = np.array([j not in unused for j in range(6)])
    found = black_box(lambda r: curved(np.where(keep, r, 0.3))).gradient(X[:20])
    assert np.all(found.values[:, ~keep] == 0)


def test_a_feature_used_in_few_rows_only_is_found_there():
    def gated(r):
        return r[:, 0] + np.where(r[:, 3] > 2.2, 5 * r[:, 5], 0.0)  # one row in a hundred

    gate = X[X[:, 3] < 0][:40].copy()
    engine = black_box(gated, bounds=None)
    assert engine.gradient.__self__.unused[5]  # the background did not show it
    gate[::2, 3] = 4.0
    found = engine.gradient(gate).values[:, 5, 0]
    assert np.all(np.abs(found[::2] - 5) < 1e-6) and np.all(found[1::2] == 0)


def test_an_unused_feature_stays_at_zero_where_a_rare_one_acts():
    def gated(r):
        return np.sin(r[:, 0]) + np.where(r[:, 3] > 2.2, np.exp(r[:, 5]), 0.0)

    rows = X[:20].copy()
    rows[:, 3] = 4.0
    engine = black_box(gated, bounds=None)
    assert engine.gradient.__self__.unused[[1, 2, 4, 5]].all()
    found = engine.gradient(rows).values[..., 0]
    assert np.all(found[:, [1, 2, 4]] == 0) and np.all(found[:, 5] > 0)


def test_a_local_dummy_gets_zero_up_to_its_error_bar():
    def gated(r):
        return np.where(r[:, 0] > 0, np.sin(r[:, 1]), np.tanh(r[:, 5])) + 0.5 * r[:, 3]

    rows = X[np.abs(X[:, 0]) > 1.2]
    found = black_box(gated, 0.3).gradient(rows)
    dummy = np.where(rows[:, 0] > 0, 5, 1)
    values = np.abs(found.values[np.arange(len(rows)), dummy, 0])
    assert np.mean(values <= found.error[np.arange(len(rows)), dummy, 0]) > 0.98
    size = np.abs(found.values[:, :, 0]) * SIGMA
    assert np.mean(values * SIGMA[dummy] / size.sum(axis=1)) < 0.03


def test_a_change_of_column_order_stays_within_the_error_bars():
    order = np.random.default_rng([4, 2]).permutation(6)
    back = np.argsort(order)
    plain = black_box(curved).gradient(X)
    turned = black_box(
        lambda r: curved(r[:, back]), bounds=(BOUNDS[0][order], BOUNDS[1][order]), rows=X[:, order]
    ).gradient(X[:, order])
    gap = np.abs(turned.values[:, back] - plain.values)
    assert np.mean(gap <= turned.error[:, back] + plain.error) > 0.99


def test_noise_in_background_or_row_changes_values_as_little():
    rows, noise = X[:20], 1 + 1e-12 * np.random.default_rng([4, 3]).normal(size=X.shape)
    shaken = X * noise
    plain = choose(model(curved), X, "auto", Settings()).gradient(rows)
    other = choose(model(curved, shaken), shaken, "auto", Settings()).gradient(rows * noise[:20])
    scale = np.abs(plain.values * SIGMA[:, None]).max()
    assert np.abs((other.values - plain.values) * SIGMA[:, None]).max() < 1e-9 * scale


@pytest.mark.parametrize("function", [curved, lambda r: np.stack([curved(r), r[:, 0] ** 3, r[:, 1]], axis=1)])
def test_a_row_has_the_same_bits_in_any_company(function):
    engine = black_box(function)
    among = engine.gradient(np.concatenate([X, X * 1.5]))
    for i in (0, 7, 150):
        alone = engine.gradient(X[i : i + 1])
        for name in ("values", "error", "change", "step"):
            np.testing.assert_array_equal(getattr(alone, name)[0], getattr(among, name)[i])
    assert engine.gradient(X[:0]).values.shape[:2] == (0, 6)


def test_values_do_not_hang_on_how_the_points_are_cut(monkeypatch):
    plain = black_box(curved).gradient(X[:9])
    monkeypatch.setattr(design, "CELLS", 64)
    cut = black_box(curved).gradient(X[:9])
    np.testing.assert_allclose(cut.values, plain.values, rtol=1e-11, atol=1e-13)


def test_missing_cells_and_categories_do_not_move():
    seen = []

    def f(r):
        seen.append(r.copy())
        return np.nan_to_num(r).sum(axis=1) ** 2

    rows = X[:4].copy()
    rows[1, 2] = np.nan
    schema, read = frames.learn(X, categorical=["x3"])
    predictor = prediction.adapt(f, schema, read[:8])
    coded = schema.read(X)
    move = np.where(schema.numeric, 0.3 * robust_sd(coded), 0.0)
    experiment = design.DesignedExperiment(predictor, move, 0.3, None, 0.0, np.zeros(6, bool))
    given_rows = coded[:4].copy()
    given_rows[1, 2] = np.nan
    seen.clear()
    found = experiment.gradient(given_rows)
    assert np.all(found.values[:, 3] == 0) and found.values[1, 2, 0] == 0 and found.values[0, 2, 0] != 0
    points = np.concatenate(seen)
    assert set(np.unique(points[:, 3])) <= set(X[:4, 3])
    assert np.isfinite(found.values).all()


def test_step_functions_are_known_and_their_slopes_covered():
    y = 2 * X[:, 0] + np.abs(X[:, 1]) + 5 * X[:, 2]
    forest = RandomForestRegressor(4, random_state=0).fit(X, y)
    engine = black_box(forest.predict, 0.25)
    assert (
        engine.gradient.__self__.roughness > design.ROUGH > 2 * black_box(curved).gradient.__self__.roughness
    )
    found = engine.gradient(X[:12])
    np.testing.assert_array_equal(found.evaluations, 2 * 6 * 8 + 1)  # 4n + 64 in whole blocks
    wide = np.random.default_rng(0).normal(size=(4000, 6))
    low, high = np.minimum(BOUNDS[0], X[:12]), np.maximum(BOUNDS[1], X[:12])
    for i, x in enumerate(X[:12]):
        ahead, behind = (np.clip(x + s * 0.25 * SIGMA * wide, low[i], high[i]) for s in (1, -1))
        halves = (forest.predict(ahead) - forest.predict(behind)) / 2
        truth = np.linalg.lstsq((ahead - behind) / 2 / SIGMA, halves, rcond=None)[0]
        assert np.abs(found.values[i, :, 0] * SIGMA - truth).max() < 0.5 * np.abs(truth).max()
        assert np.all(np.abs(found.values[i, :, 0] * SIGMA - truth) <= found.error[i, :, 0] * SIGMA)


def test_float32_models_have_their_rounding_in_the_bound():
    wide, shift = X + np.array([0, 0, 1e3, 0, 0, 0]), np.array([0, 0, 1e3, 0, 0, 0])
    weights = 1 / SIGMA

    def narrow(r):
        return ((r.astype(np.float32) - shift.astype(np.float32)) @ weights.astype(np.float32)).astype(
            np.float32
        )

    found = black_box(narrow, 0.3, None, wide).gradient(wide[:50])
    miss = np.abs(found.values[:, :, 0] * SIGMA - 1)
    assert np.median(miss) < 1e-3 and np.mean(miss <= found.error[:, :, 0] * SIGMA) > 0.95


def test_the_change_tells_how_much_slopes_move():
    net = MLPRegressor(hidden_layer_sizes=(20,), activation="tanh", solver="lbfgs", random_state=0, tol=1e-2)
    z = X / SIGMA
    net.fit(z, np.sin(2 * z[:, 0]) + z[:, 1] * z[:, 3])
    engine = black_box(lambda r: net.predict(r / SIGMA), 0.3, None)
    found = engine.gradient(X[:60])
    gaps = []
    for seed in range(16):
        moved = X[:60] + 0.05 * SIGMA * np.random.default_rng(seed).normal(size=(60, 6))
        gap = (engine.gradient(moved).values - found.values)[:, :, 0] * SIGMA
        gaps.append(np.linalg.norm(gap, axis=1))
    ratio = found.change[:, 0] / np.median(gaps, axis=0)
    assert np.mean((ratio > 0.5) & (ratio < 2)) > 0.8


def test_memory_grows_with_the_features_not_with_their_square():
    wide = np.random.default_rng(0).normal(size=(3, 3000))
    largest = []

    def f(r):
        largest.append(r.nbytes)
        return r[:, 0] * 2.0

    experiment = design.DesignedExperiment(
        model(f, wide), 0.2 * np.ones(3000), 0.2, None, 0.0, np.zeros(3000, bool)
    )
    found = experiment.gradient(wide[:1])
    assert max(largest) <= 2 * 8 * design.CELLS
    np.testing.assert_allclose(found.values[0, :3, 0], [2, 0, 0], atol=1e-9)


def test_max_evals_bounds_the_evaluations_of_a_row_and_buys_smaller_bounds():
    def f(rows):
        return np.sin(2 * rows[:, 0]) * rows[:, 1] + np.abs(rows[:, 2])

    bounds = []
    for budget in (60, 200, 1000):
        settings = Settings(smoothing=0.4, bounds=BOUNDS, max_evals=budget)
        found = choose(model(f), X, "finite-difference", settings).gradient(X[:20])
        assert budget / 2 < found.evaluations.max() <= budget
        bounds.append(np.median(found.error[:, :3]))
    assert bounds[0] > bounds[1] > bounds[2] > 0


@pytest.mark.parametrize("attribution", ["slope", "shapley"])
def test_too_small_a_budget_is_refused_with_the_least(attribution):
    least = design.least_evals(6)
    with pytest.raises(InputError, match=f"max_evals=10 .* at least {least}"):
        TExplainer(lambda rows: rows[:, 0] * rows[:, 1], X, attribution=attribution, max_evals=10)(X[:2])
    TExplainer(lambda rows: rows[:, 0] * rows[:, 1], X, attribution=attribution, max_evals=least)(X[:2])


def test_a_feature_that_few_rows_show_no_use_of_has_a_bound():
    """It acts far from the background rows only, so that the trial cannot see it: 0, but not for certain."""
    X = np.random.default_rng(11).normal(size=(300, 3))
    explainer = TExplainer(lambda rows: np.sin(rows[:, 0]) + np.maximum(rows[:, 2] - 6, 0), X)
    found = explainer(X[:20])
    assert not found.values[:, 1].any() and not found.values[:, 2].any()
    assert (found.diagnostics.error[:, 1:] > 0).all()
