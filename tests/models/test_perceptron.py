"""The layers of scikit-learn's networks, block by block."""

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor

from texplainer.models.perceptron import BLOCK, Layers


@pytest.mark.parametrize("count", [0, 1, BLOCK, 2 * BLOCK, 2 * BLOCK + 5])
def test_scores_of_many_rows_are_those_of_the_model(count):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = MLPRegressor(hidden_layer_sizes=(5, 4), max_iter=5, random_state=0).fit(X, X[:, 0])
    rows = np.random.default_rng(1).normal(size=(count, 3))
    expected = model.predict(rows) if count else np.empty(0)
    np.testing.assert_allclose(Layers(model).scores(rows)[:, 0], expected, atol=1e-12)
