"""Smoothed gradients against closed forms; the width rule; the black-box form at the same width."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor

from texplainer import TExplainer, frames, prediction
from texplainer.errors import InputError
from texplainer.gradients import Engine, Gradient, Settings, choose, smoothing
from texplainer.spreads import spread

RNG = np.random.default_rng(11)
X = RNG.normal(size=(200, 3)) * [1.0, 2.0, 0.5]
SIGMA = spread(X)


def _model(function):
    schema, rows = frames.learn(X)
    return prediction.adapt(function, schema, rows[:8])


def _exact(predictor, gradient):
    def engine(rows):
        values = gradient(rows)[:, :, None]
        zero = np.zeros(rows.shape)
        return Gradient(values, np.zeros(values.shape), zero, zero.astype(np.uint8), np.ones(len(rows), int))

    return Engine("given", "", engine)


def test_points_are_fixed_normal_and_balanced():
    z = smoothing.directions(64, 5)
    np.testing.assert_array_equal(z, smoothing.directions(64, 5))
    np.testing.assert_allclose(np.mean(z**2, axis=0), 1.0)
    assert np.abs(np.corrcoef(np.concatenate([z, -z]).T) - np.eye(5)).max() < 0.25
    with pytest.raises(ValueError, match="read-only"):
        z[0] = 0.0


@pytest.mark.parametrize("width", [0.1, 0.5])
def test_a_quadratic_keeps_its_gradient_and_shows_its_curvature(width):
    """Antithetic pairs cancel odd moments: the smoothed gradient of a quadratic is its gradient, exactly."""
    hessian = np.array([[2.0, 0.5, 0.0], [0.5, -1.0, 0.3], [0.0, 0.3, 4.0]])
    predictor = _model(lambda r: 0.5 * np.einsum("ri,ij,rj->r", r, hessian, r))
    engine = _exact(predictor, lambda rows: rows @ hessian)
    found = smoothing.average(engine, predictor, Settings(), width * SIGMA, X[:20])
    np.testing.assert_allclose(found.values[:, :, 0], X[:20] @ hessian, atol=1e-12)
    np.testing.assert_array_less(found.error, 1e-6)
    # the diagonal exactly but for what the 32 pairs leave of the off-diagonal products
    leftover = np.abs(np.corrcoef(smoothing.directions(64, 3).T) - np.eye(3)).max()
    allowed = leftover * np.abs(hessian).sum() * SIGMA.max() / SIGMA.min()
    np.testing.assert_allclose(
        found.extras["curvature"][:, :, 0], np.tile(np.diag(hessian), (20, 1)), atol=allowed
    )


def test_a_sine_is_damped_as_the_gaussian_says():
    width = 0.4
    predictor = _model(lambda r: np.sin(r[:, 0]))
    engine = _exact(predictor, lambda r: np.stack([np.cos(r[:, 0]), 0 * r[:, 0], 0 * r[:, 0]], axis=1))
    found = smoothing.average(engine, predictor, Settings(), width * SIGMA, X)
    truth = np.cos(X[:, 0]) * np.exp(-0.5 * (width * SIGMA[0]) ** 2)
    assert np.abs(found.values[:, 0, 0] - truth).max() < 5e-3
    assert np.mean(np.abs(found.values[:, 0, 0] - truth) <= found.error[:, 0, 0]) > 0.95


def test_a_kink_becomes_a_continuous_slope():
    predictor = _model(lambda r: np.abs(r[:, 0]))
    engine = _exact(predictor, lambda r: np.sign(r) * [1.0, 0.0, 0.0])
    x = np.linspace(-1, 1, 41)[:, None] * [1.0, 0.0, 0.0]
    found = smoothing.average(engine, predictor, Settings(), 0.3 * SIGMA, x).values[:, 0, 0]
    assert np.all(np.diff(found) >= 0) and np.diff(found).max() < 0.5  # the point gradient jumps by 2
    assert abs(found[20]) < 1e-12  # at the kink


def test_linear_models_do_not_care():
    fitted = LinearRegression().fit(X, X @ [1.0, -2.0, 3.0])
    for width in ("auto", 0, 0.5):
        explanation = TExplainer(fitted, X, smoothing=width, attribution="sensitivity", bounds=None)(X[:5])
        np.testing.assert_allclose(explanation.values, np.tile([1.0, -2.0, 3.0], (5, 1)), rtol=1e-9)
    auto = TExplainer(fitted, X, bounds=None, attribution="scaled")
    assert auto.engine.width == smoothing.WIDTHS[-1]


def test_the_width_shrinks_as_the_model_gets_rougher():
    rows = frames.learn(X)[1]
    found = []
    for wave in (0.5, 2.0, 6.0, 200.0):
        predictor = _model(lambda r, w=wave: np.sin(w * r[:, 0] / SIGMA[0]))
        found.append(smoothing.faithful_width(predictor, rows, SIGMA, Settings()))
    assert found == sorted(found, reverse=True) and found[0] > found[2] and found[-1] == 0.0


def test_the_width_keeps_its_promise():
    predictor = _model(lambda r: np.tanh(3 * r[:, 0] / SIGMA[0]) + r[:, 1] / SIGMA[1])
    width = smoothing.faithful_width(predictor, X, SIGMA, Settings())
    f = predictor(X)
    missed = np.var(f - smoothing.smoothed(predictor, X, width * SIGMA, Settings())) / np.var(f)
    assert 0.02 < missed < 0.15  # chosen on 64 of these rows, at 90%


def test_points_stay_in_range_and_categories_stay_put():
    seen = []

    def watched(rows):
        seen.append(rows)
        return rows[:, 0] * 1.0

    predictor = _model(watched)
    low, high = X.min(axis=0), X.max(axis=0)
    engine = Engine("given", "", lambda r: (seen.append(r), _exact(None, lambda q: q).gradient(r))[1])
    outside = X[:3].copy()
    outside[0, 0] = high[0] + 5
    smoothing.average(engine, predictor, Settings(bounds=(low, high)), 0.8 * SIGMA, outside)
    points = np.concatenate(seen[1:])
    assert np.all(points[:, 1:] >= low[1:]) and np.all(points[:, 1:] <= high[1:])
    assert points[:, 0].max() == outside[0, 0]  # a row outside keeps its own value as the edge


def test_black_box_at_the_same_width_is_the_mean_derivative_over_an_interval():
    predictor = _model(lambda r: np.sin(r[:, 0]) + r[:, 1] ** 2)
    engine = choose(predictor, X, "auto", Settings(smoothing=0.3))
    assert engine.name == "finite-difference" and engine.width == 0.3
    found = engine.gradient(X[:30])
    h = np.sqrt(3) * 0.3 * SIGMA[0]
    truth = (np.sin(X[:30, 0] + h) - np.sin(X[:30, 0] - h)) / (2 * h)
    assert np.all(np.abs(found.values[:, 0, 0] - truth) <= found.error[:, 0, 0] + 1e-14)
    np.testing.assert_array_equal(found.evaluations, 7)
    white = smoothing.average(
        _exact(predictor, lambda r: np.stack([np.cos(r[:, 0]), 2 * r[:, 1], 0 * r[:, 0]], axis=1)),
        predictor,
        Settings(),
        0.3 * SIGMA,
        X[:30],
    )  # the same variance: equal to second order
    assert np.abs(white.values - found.values).max() < 0.02


@pytest.mark.parametrize("wrong", ["wide", -0.1, np.inf, np.nan, True, None, [0.1]])
def test_wrong_widths_are_named(wrong):
    with pytest.raises(InputError, match=r"smoothing=.* is no width"):
        TExplainer(lambda r: r[:, 0], X, smoothing=wrong)


def test_a_step_and_a_width_contradict_each_other():
    with pytest.raises(InputError, match="both set the scale"):
        TExplainer(lambda r: r[:, 0], X, step="paper", smoothing=0.2)
    assert TExplainer(lambda r: r[:, 0], X, step="paper").engine.width == 0.0
    assert TExplainer(lambda r: r[:, 0], X, step=0.1, smoothing=0).attribution == "sensitivity"


@settings(max_examples=10, deadline=None)
@given(strategies.integers(1, 60))
def test_chunking_does_not_matter(size):
    fitted = _NETWORK
    whole = TExplainer(fitted, X, smoothing=0.2, attribution="sensitivity")(X[:60]).values
    parts = [
        TExplainer(fitted, X, smoothing=0.2, attribution="sensitivity", batch_rows=64)(
            X[i : min(60, i + size)]
        )
        for i in range(0, 60, size)
    ][:2]
    np.testing.assert_array_equal(np.concatenate([p.values for p in parts]), whole[: min(60, 2 * size)])


_NETWORK = MLPRegressor(hidden_layer_sizes=(8,), random_state=0, max_iter=500, solver="lbfgs", tol=1e-2).fit(
    X, np.sin(X[:, 0]) + X[:, 1]
)


def test_float32_averages_agree_with_float64_ones():
    explainer = TExplainer(_NETWORK, X, smoothing=0.2, attribution="sensitivity")
    point = TExplainer(_NETWORK, X, smoothing=0, attribution="sensitivity").engine
    limits = Settings(bounds=explainer.background.bounds)
    slow = replace(point, narrow=False)
    narrow, wide = (smoothing.average(e, explainer.predictor, limits, 0.2 * SIGMA, X) for e in (point, slow))
    assert 0 < np.abs(narrow.values - wide.values).max() < 1e-5
    far = X + np.array([0.0, 1e6, 0.0])  # where float32 has no digits left for the neighbourhood
    unbounded = Settings()
    narrow, wide = (
        smoothing.average(e, explainer.predictor, unbounded, 0.2 * SIGMA, far) for e in (point, slow)
    )
    np.testing.assert_array_equal(narrow.values, wide.values)


@pytest.mark.parametrize("attribution", ["sensitivity", "integrated"])
def test_a_row_has_the_same_bits_in_any_company(attribution):
    """Also beside a row that needs float64, and in a block too long for all points to be taken at once."""
    explainer = TExplainer(_NETWORK, X, smoothing=0.2, attribution=attribution, bounds=None)
    far = X[:1] + np.array([0.0, 1e6, 0.0])
    among = explainer(np.concatenate([X, far, X])).values
    np.testing.assert_array_equal(among[: len(X)], among[len(X) + 1 :])
    for i in (0, 1, 150):
        np.testing.assert_array_equal(explainer(X[i : i + 1]).values[0], among[i])


def test_only_attributions_that_are_the_gradient_average_it():
    fitted = LogisticRegression().fit(X, X[:, 0] > 0)
    assert TExplainer(fitted, X).engine.width == 0.0
    assert TExplainer(fitted, X, attribution="integrated").engine.width == 0.0
    assert TExplainer(fitted, X, attribution="integrated", smoothing=0.2).engine.width == 0.2
    assert TExplainer(fitted, X, attribution="sensitivity").engine.width > 0
