"""The verdict and its reasons, on functions whose trouble is known."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from texplainer import TExplainer
from texplainer.diagnostics import NEAR, PROBE

RNG = np.random.default_rng(4)
X = RNG.normal(size=(300, 3))


def verdict(function, row, **options):
    explanation = TExplainer(function, X, **options)(np.atleast_2d(row))
    return explanation.diagnostics.verdict[0], explanation.diagnostics.reason[0]


def test_a_plane_is_stable_and_keeps_its_promise():
    explanation = TExplainer(lambda r: r @ [1.0, 2.0, 3.0], X)(X[:20])
    assert set(explanation.diagnostics.verdict) == {"stable"} and set(explanation.diagnostics.reason) == {""}
    np.testing.assert_allclose(explanation.diagnostics.taylor_residual, 0.0, atol=1e-9)
    assert np.isnan(explanation.diagnostics.boundary).all()  # a regression has no boundary


def test_the_residual_of_a_quadratic_is_half_its_curvature():
    explainer = TExplainer(lambda r: 3.0 * r[:, 0] ** 2, X, bounds=None)
    found = explainer(np.array([[1.0, 0.0, 0.0], [-2.0, 0.5, 0.0]])).diagnostics.taylor_residual
    np.testing.assert_allclose(found, 3.0 * (PROBE * explainer.background.sigma[0]) ** 2, rtol=1e-4)


def test_curvature_kinks_and_jumps_are_fragile_and_named():
    assert verdict(lambda r: np.sin(30 * r[:, 0]), [0.05, 0.0, 0.0])[1].startswith("the model bends within")
    assert verdict(lambda r: np.maximum(r[:, 1], 0) + 0.1 * r[:, 0], [0.3, 0.0, 0.0]) == (
        "fragile",
        "kink in 'x1'",
    )
    said = verdict(lambda r: r[:, 0] + 2.0 * (r[:, 2] > 1e-7), [0.3, 0.0, 0.0])
    assert said == ("fragile", "jump in 'x2'")
    assert verdict(lambda r: np.abs(r[:, 1]) * 1e-6 + r[:, 0], [0.3, 0.0, 0.0])[0] == "stable"


def test_a_flat_saturated_region_is_stable():
    """Its gradient is tiny, rounded and curved; none of it can be seen in the output."""
    assert verdict(lambda r: np.tanh(40 * r[:, 0]), [1.5, 0.0, 0.0], smoothing=0) == ("stable", "")


@pytest.mark.parametrize("scale", ["probability", "margin"])
def test_distance_to_the_decision_boundary(scale):
    fitted = LogisticRegression(C=1.0).fit(X, X[:, 0] + X[:, 1] > 0)
    rows = X[:40].copy()
    weights, offset = fitted.coef_[0], fitted.intercept_[0]
    rows[0] -= weights * (rows[0] @ weights + offset) / (weights @ weights)  # onto the boundary
    explainer = TExplainer(fitted, X, scale=scale, smoothing=0)
    found = explainer(rows).diagnostics
    exact = np.abs(rows @ weights + offset) / np.linalg.norm(weights * explainer.background.sigma)
    near = exact < 0.2
    np.testing.assert_allclose(found.boundary[near], exact[near], rtol=0.1, atol=1e-9)
    assert found.verdict[0] == "fragile" and "decision boundary" in found.reason[0]
    assert np.all(found.verdict[exact > 2 * NEAR] == "stable")


def test_undefined_wins():
    said = verdict(lambda r: np.where(r[:, 0] == 0.25, 1.0, np.nan_to_num(r[:, 0])), [0.25, 0.0, 0.0])
    assert said[0] in ("fragile", "stable")
    with pytest.warns(UserWarning, match="undefined"):
        assert verdict(lambda r: r[:, 0], [np.inf, 0.0, 0.0])[0] == "undefined"
