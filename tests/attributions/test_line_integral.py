"""Line integrals: near the integral over very many places, linear in the model, right sums, unused features 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.neural_network import MLPRegressor

from texplainer import TExplainer
from texplainer.attributions import line_integral
from texplainer.gradients.engine import Gradient


def trained(seed: int = 0, background: int = 150):
    rng = np.random.default_rng([8, seed])
    X = rng.normal(size=(600, 6))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + np.abs(X[:, 2]) + X[:, 3]
    model = MLPRegressor(hidden_layer_sizes=(32, 32), max_iter=150, random_state=seed).fit(X, y)
    for weights in model.coefs_[:1]:
        weights[5] = 0.0  # unused
    return model, X[:background], X[-25:]


def integrated(gradient, x, background, places=48):
    """The slow twin: many equal parts of every line."""
    t = (np.arange(places) + 0.5) / places
    points = background[:, None] + t[:, None] * (x - background)[:, None]
    slopes = gradient(points.reshape(-1, len(x))).values[:, :, 0].reshape(points.shape).mean(axis=1)
    return np.mean((x - background) * slopes, axis=0)


@pytest.mark.parametrize(("background", "near"), [(60, 0.02), (150, 0.04), (500, 0.05)])
def test_the_integral_is_near_that_of_very_many_places_and_within_its_bounds(background, near):
    model, X, rows = trained(background=background)
    explainer = TExplainer(model, X, attribution="shapley")
    found = explainer(rows)
    truth = np.array([integrated(explainer.engine.at_point.gradient, x, X) for x in rows])
    miss = np.abs(found.values - truth)
    size = np.linalg.norm(truth, axis=1)
    assert np.median(np.linalg.norm(miss, axis=1) / size) < near
    assert np.mean(miss <= found.diagnostics.error + 1e-9) >= 0.98
    assert np.median(np.linalg.norm(found.diagnostics.error, axis=1) / size) < 6 * near
    assert not found.values[:, 5].any() and not found.diagnostics.error[:, 5].any()
    assert np.abs(found.diagnostics.completeness).max() < 1e-12


@pytest.mark.parametrize("background", [100, 400])
def test_the_integral_is_linear_in_the_model(background):
    """Of 2 f - g are the values of f, twice, minus those of g: to round-off, not only within the bounds."""
    (first, X, rows), (second, _, _) = trained(1, background), trained(2, background)
    explainers = [TExplainer(m, X, attribution="shapley") for m in (first, second)]
    whole = TExplainer(first, X, attribution="shapley")
    a, b = (e.engine.at_point.gradient for e in explainers)

    def gradient(points):
        one, other = a(points), b(points)
        values = 2 * one.values.astype(float) - other.values
        return Gradient(values, one.error, one.step, one.flags, one.evaluations)

    whole.predictor = replace(
        whole.predictor, call=lambda r: 2 * first.predict(r)[:, None] - second.predict(r)[:, None]
    )
    whole.background = replace(
        whole.background,
        base=2 * explainers[0].background.base - explainers[1].background.base,
        _derived={},
    )
    whole._parts = {
        False: (replace(whole.engine.at_point, gradient=gradient, narrow=False), whole.categories)
    }
    parts = [e(rows).values for e in explainers]
    gap = np.abs(whole(rows).values - 2 * parts[0] + parts[1])
    assert gap.max() < 1e-5 * np.abs(parts).max()  # the parts are computed in float32


@pytest.mark.parametrize("background", [40, 1000])
def test_the_integral_of_a_quadratic_model_is_exact_whatever_rows_have_places(background):
    """Its gradient is linear on every line; the mean over the background follows from the gradients there."""
    rng = np.random.default_rng(3)
    X = np.exp(rng.normal(size=(background, 4)))
    y = X[:, 0] * X[:, 1] + X[:, 2] ** 2 + X[:, 3]
    model = KernelRidge(alpha=1e-3, kernel="polynomial", degree=2, gamma=0.1).fit(X[:300], y[:300])
    explainer = TExplainer(model, X, attribution="shapley")
    truth = np.array([integrated(explainer.engine.at_point.gradient, x, X, places=2) for x in X[:10]])
    np.testing.assert_allclose(explainer(X[:10]).values, truth, atol=2e-6 * np.abs(truth).max())


def test_a_value_that_no_row_with_a_place_has_is_covered_by_the_bound():
    model, _, rows = trained(4)
    X = np.random.default_rng(5).normal(size=(1000, 6))
    X[:, 4] = rows[:, 4] = 0.0
    for row in range(20):
        X[:20, 4] = np.arange(20) == row
        explainer = TExplainer(model, X, attribution="shapley")
        found = explainer(rows)
        if not explainer.background.cached(("lines", line_integral.POINTS), list).rows[:, 4].any():
            break
    truth = np.array([integrated(explainer.engine.at_point.gradient, x, X) for x in rows])
    assert np.all(found.diagnostics.error[:, 4] > 0)
    assert np.all(np.abs(found.values - truth)[:, 4] <= found.diagnostics.error[:, 4])


@pytest.mark.parametrize("rows", [7, 100, 224, 1000])
def test_far_rows_have_more_places(rows):
    X = np.random.default_rng(rows).normal(size=(rows, 3))
    X[0] = 20.0
    expected = line_integral._expected_places(line_integral._standardised(X), 224)
    assert expected.sum() == pytest.approx(224)
    assert expected.min() >= (1.0 if rows <= 224 else 0.0)
    assert expected.argmax() == 0 or rows == 224
    assert expected.max() <= line_integral.FARTHEST * expected.min() + 1e-9 or rows < 224


def test_the_order_of_the_background_rows_does_not_matter():
    model, _, rows = trained(6)
    X = np.random.default_rng(7).normal(size=(600, 6))
    found, mixed = (TExplainer(model, b, attribution="shapley")(rows) for b in (X, X[::-1]))
    np.testing.assert_allclose(found.values, mixed.values, atol=1e-5 * np.abs(found.values).max())
