"""The engine before averaging stays at hand, through folded tables too."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor

from texplainer import TExplainer

X = np.random.default_rng(3).normal(size=(120, 3))
NET = MLPRegressor(hidden_layer_sizes=(6,), activation="tanh", solver="lbfgs", tol=1e-2, random_state=0).fit(
    X, X[:, 0] ** 2
)


def test_an_averaged_engine_keeps_its_point_gradient():
    averaged = TExplainer(NET, X, smoothing=0.4, attribution="gradient").engine
    point = TExplainer(NET, X, smoothing=0, attribution="gradient").engine
    assert point.point is None and point.at_point is point
    assert averaged.at_point.width == 0.0 and averaged.width == 0.4
    np.testing.assert_array_equal(averaged.at_point.gradient(X[:9]).values, point.gradient(X[:9]).values)
    assert np.abs(averaged.gradient(X[:9]).values - point.gradient(X[:9]).values).max() > 1e-3


def test_the_point_gradient_of_a_folded_table_has_the_users_columns():
    codes = np.random.default_rng([3, 2]).integers(0, 3, len(X))
    wide = np.column_stack([X, np.eye(3)[codes]])
    fitted = LogisticRegression().fit(wide, X[:, 0] + (codes == 1) > 0)
    explainer = TExplainer(fitted, wide, categorical={"kind": [3, 4, 5]}, smoothing=0.3)
    found = explainer.engine.at_point.gradient(explainer.schema.read(wide[:4]))
    assert explainer.engine.point is not None
    assert found.values.shape[1] == 4 and np.all(found.values[:, 3] == 0)
