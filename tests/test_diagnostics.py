"""The relative change, the stability and its reasons, on functions whose trouble is known."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from texplainer import TExplainer
from texplainer.attributions.attribution import MOVE, MOVES, directions
from texplainer.attributions.table import GENERAL
from texplainer.diagnostics import PROBE, UNSTABLE

X = np.random.default_rng(4).normal(size=(300, 3))


def explained(function, row, **options):
    return TExplainer(function, X, **options)(np.atleast_2d(row)).diagnostics


def stability(function, row, **options):
    found = explained(function, row, **options)
    return found.stability[0], found.reason[0]


@pytest.mark.parametrize("name", ["slope", "gradient"])
def test_a_plane_does_not_change(name):
    explanation = TExplainer(lambda r: r @ [1.0, 2.0, 3.0], X, attribution=name)(X[:20])
    assert set(explanation.diagnostics.stability) == {"stable"} and set(explanation.diagnostics.reason) == {
        ""
    }
    assert explanation.diagnostics.relative_change.max() < 1e-6
    np.testing.assert_allclose(explanation.diagnostics.taylor_residual, 0.0, atol=1e-9)
    assert np.isnan(explanation.diagnostics.boundary).all()  # a regression has no boundary


def test_the_residual_of_a_quadratic_is_half_its_curvature():
    explainer = TExplainer(lambda r: 3.0 * r[:, 0] ** 2, X, bounds=None, attribution="gradient")
    found = explainer(np.array([[1.0, 0.0, 0.0], [-2.0, 0.5, 0.0]])).diagnostics.taylor_residual
    np.testing.assert_allclose(found, 3.0 * (PROBE * explainer.background.sigma[0]) ** 2, rtol=1e-4)


@pytest.mark.parametrize("name", ["slope", "shapley", "variation"])
def test_the_relative_change_is_the_change_that_is_measured(name):
    """Under real moves of 5% of an SD, within a factor of two on nearly all rows."""

    def curved(rows):
        return np.sin(1.5 * rows[:, 0]) * rows[:, 1] + rows[:, 2] ** 2

    explainer = TExplainer(curved, X, attribution=name, smoothing=0.2)
    rows = X[:40]
    explanation = explainer(rows)
    changes = []
    for seed in range(16):
        z = np.random.default_rng(seed).normal(size=rows.shape)
        moved = explainer(rows + MOVE * explainer.background.sigma * z)
        changes.append(np.linalg.norm(moved.values - explanation.values, axis=1))
    measured = np.median(changes, axis=0) / np.linalg.norm(explanation.values, axis=1)
    ratio = explanation.diagnostics.relative_change / measured
    assert np.mean((ratio > 0.5) & (ratio < 2.0)) >= 0.8


@pytest.mark.parametrize("features", [1, 2, 7, 30])
def test_the_moves_spare_no_feature_and_are_at_right_angles(features):
    """Normal deviates left some features at rest in both moves, and ranked a Gaussian process at 0.88."""
    z = directions(features)
    assert z.shape == (MOVES, features)
    np.testing.assert_allclose(np.abs(z), np.sqrt(2 / np.pi))
    assert abs(z[0] @ z[1]) <= 1.0  # one feature is left over where their number is odd


def test_the_relative_change_ranks_the_rows_of_a_gaussian_process():
    """Its rows change by nearly the same: another 16 moves rank them no better than the relative change does."""
    random = np.random.default_rng(2)
    data = random.normal(size=(150, 12))
    process = GaussianProcessRegressor(RBF(12**0.5) + WhiteKernel(0.05), optimizer=None)
    process.fit(data, np.tanh(data[:, 0]) * data[:, 1] + data[:, 2])
    explainer = TExplainer(process, data, attribution="shapley")
    rows = random.normal(size=(60, 12))
    explanation = explainer(rows)
    changes = [
        np.linalg.norm(
            explainer(rows + MOVE * explainer.background.sigma * random.normal(size=rows.shape)).values
            - explanation.values,
            axis=1,
        )
        for _ in range(32)
    ]
    size = np.linalg.norm(explanation.values, axis=1)
    measured, again = (np.median(part, axis=0) / size for part in (changes[:16], changes[16:]))
    most = measured > np.median(measured)
    ceiling = roc_auc_score(most, again)
    assert roc_auc_score(most, explanation.diagnostics.relative_change) > ceiling - 0.05


def test_a_row_that_changes_is_unstable_and_says_by_how_much():
    word, reason = stability(lambda r: np.sin(30 * r[:, 0]), [0.05, 0.0, 0.0], attribution="gradient")
    assert word == "unstable" and "under moves of 5% of an SD" in reason
    found = explained(lambda r: np.sin(30 * r[:, 0]), [0.05, 0.0, 0.0], attribution="gradient")
    assert found.relative_change[0] > UNSTABLE


def test_kinks_and_jumps_of_a_derivative_are_named():
    kink = stability(
        lambda r: np.maximum(r[:, 1], 0) + 0.1 * r[:, 0], [0.3, 0.0, 0.0], attribution="gradient"
    )
    assert kink == ("unstable", "kink in 'x1'")
    jump = stability(lambda r: r[:, 0] + 2.0 * (r[:, 2] > 1e-7), [0.3, 0.0, 0.0], attribution="gradient")
    assert jump == ("unstable", "jump in 'x2'")
    weak = stability(lambda r: np.abs(r[:, 1]) * 1e-6 + r[:, 0], [0.3, 0.0, 0.0], attribution="gradient")
    assert weak[0] == "stable"


def test_a_flat_saturated_region_is_stable():
    """Its slopes are tiny, rounded and curved; none of it can be seen in the output."""
    assert stability(lambda r: np.tanh(40 * r[:, 0]), [1.5, 0.0, 0.0], smoothing=0) == ("stable", "")


@pytest.mark.parametrize("scale", ["probability", "log-odds"])
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


@pytest.mark.parametrize("name", GENERAL)
def test_undefined_wins_and_every_attribution_has_a_stability(name):
    with pytest.warns(UserWarning, match="undefined"):
        assert stability(lambda r: r[:, 0], [np.inf, 0.0, 0.0], attribution=name)[0] == "undefined"
    found = explained(lambda r: np.tanh(r[:, 0]) + r[:, 1], X[:5], attribution=name)
    assert set(found.stability) <= {"stable", "unstable"} and np.isfinite(found.relative_change).all()
