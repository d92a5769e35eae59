"""From gradients to attributions: definitions, units, completeness, the default."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier

from texplainer import TExplainer
from texplainer.attribution import ADDITIVE, ATTRIBUTIONS
from texplainer.errors import InputError

RNG = np.random.default_rng(8)
X = RNG.normal(size=(200, 5)) * [1.0, 2.0, 0.5, 1.0, 3.0]
WEIGHTS = np.array([1.0, -1.0, 4.0, 0.0, 0.2])
LINEAR = LinearRegression().fit(X, X @ WEIGHTS)
NETWORK = MLPClassifier((16, 16), solver="lbfgs", max_iter=500, tol=1e-2, random_state=0, alpha=0.5).fit(
    X, X[:, 0] * X[:, 1] > 0.3 * X[:, 2]
)


def test_a_linear_model_gets_what_each_definition_says():
    found = {name: TExplainer(LINEAR, X, attribution=name)(X[:10]) for name in ATTRIBUTIONS}
    sigma, mean = (TExplainer(LINEAR, X).background.sigma, X.mean(axis=0))
    np.testing.assert_allclose(found["sensitivity"].values, np.tile(WEIGHTS, (10, 1)), atol=1e-9)
    np.testing.assert_allclose(found["scaled"].values, np.tile(WEIGHTS * sigma, (10, 1)), atol=1e-9)
    np.testing.assert_allclose(found["contribution"].values, WEIGHTS * (X[:10] - mean), atol=1e-9)
    for name, explanation in found.items():
        np.testing.assert_allclose(explanation.gradient, np.tile(WEIGHTS, (10, 1)), atol=1e-9)
        np.testing.assert_allclose(explanation.values[:, 3], 0.0, atol=1e-9)  # unused
        signs = np.sign(explanation.values) * (1 if name not in ADDITIVE else np.sign(X[:10] - mean))
        if name in ("sensitivity", "scaled", "effect", "contribution"):
            np.testing.assert_array_equal(signs[:, [0, 1, 2, 4]], np.tile([1, -1, 1, 1], (10, 1)))


def test_additive_attributions_add_up_better_and_better():
    """Median |f - base - sum|, in units of the predictions' spread, on a rough network."""
    missing = {}
    for name in ("sensitivity", "contribution", "integrated", "additive"):
        explanation = TExplainer(NETWORK, X, attribution=name, smoothing=0)(X[:30])
        residual = explanation.predictions - explanation.base_values - explanation.values.sum(axis=1)
        np.testing.assert_allclose(explanation.diagnostics.completeness, residual, atol=1e-12)
        missing[name] = np.median(np.abs(residual)) / np.std(explanation.predictions)
    assert missing["contribution"] < missing["sensitivity"]
    assert missing["integrated"] < 0.05 and missing["additive"] < 1e-12


def test_auto_is_the_effect_and_the_papers_derivative_where_a_step_is_asked_for():
    assert TExplainer(NETWORK, X).attribution == "effect"
    for step in ("paper", 0.1):
        explainer = TExplainer(NETWORK, X, step=step)
        assert explainer.attribution == "sensitivity" and explainer.engine.width == 0.0
        explanation = explainer(X[:3])
        np.testing.assert_array_equal(explanation.values, explanation.gradient)


def test_the_gradient_travels_with_every_attribution():
    point = TExplainer(NETWORK, X, attribution="sensitivity", smoothing=0)(X[:5]).values
    for name in ("effect", "additive", "integrated", "contribution"):
        np.testing.assert_array_equal(TExplainer(NETWORK, X, attribution=name)(X[:5]).gradient, point)


def test_an_unknown_attribution_is_named():
    with pytest.raises(InputError, match="attribution='magic' is unknown"):
        TExplainer(NETWORK, X, attribution="magic")
