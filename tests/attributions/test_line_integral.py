"""Line integrals: near the integral over very many places, linear in the model, right sums, unused features 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor

from texplainer import TExplainer
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


@pytest.mark.parametrize(("background", "near"), [(60, 0.02), (150, 0.03), (400, 0.06)])
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
