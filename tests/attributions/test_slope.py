"""The laws of `slope`: differences on discrete columns, two doors, linear models, what is flat stays 0."""

from functools import partial

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

import texplainer as tx


def table(count=600, seed=0):
    """0/1, a count, a wide integer column, two continuous ones, one that is never used."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 6))
    X[:, 0], X[:, 1], X[:, 2] = X[:, 0] > 0.4, rng.poisson(2, count), np.round(20 * X[:, 2])
    y = X[:, 3] * (1 + X[:, 0]) + 0.5 * X[:, 1] ** 2 + np.sin(X[:, 2] / 15) + X[:, 4] ** 2
    return X, y


def boosted(name, **options):
    library, kind = {
        "xgboost": ("xgboost", "XGBRegressor"),
        "lightgbm": ("lightgbm", "LGBMRegressor"),
        "catboost": ("catboost", "CatBoostRegressor"),
    }[name]
    return getattr(pytest.importorskip(library), kind)(**options)


MODELS = {
    "xgboost": lambda: boosted("xgboost", n_estimators=60, max_depth=4, n_jobs=1),
    "lightgbm": lambda: boosted("lightgbm", n_estimators=60, verbose=-1),
    "catboost": lambda: boosted("catboost", iterations=60, depth=4, verbose=0, allow_writing_files=False),
    "forest": lambda: RandomForestRegressor(30, min_samples_leaf=3, random_state=0),
    "extra trees": lambda: ExtraTreesRegressor(30, min_samples_leaf=3, random_state=0),
    "gradient boosting": lambda: GradientBoostingRegressor(random_state=0),
    "histogram boosting": lambda: HistGradientBoostingRegressor(random_state=0),
    "network": lambda: MLPRegressor(hidden_layer_sizes=(32, 32), max_iter=300, tol=1e-3, random_state=0),
    "Gaussian process": lambda: GaussianProcessRegressor(RBF(2.0) + WhiteKernel(0.1), optimizer=None),
}
SMOOTH = ("network", "Gaussian process")  # their wide integer column is scaled
KNOWN = {}


def fitted(name):
    if name not in KNOWN:
        X, y = table()
        KNOWN[name] = MODELS[name]().fit(X / ([1, 1, 20, 1, 1, 1] if name in SMOOTH else 1.0), y)
    X = table()[0] / ([1, 1, 20, 1, 1, 1] if name in SMOOTH else 1.0)
    return KNOWN[name], X


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("name", MODELS)
def test_discrete_columns_are_differences_of_predictions(name):
    model, X = fitted(name)
    explainer = tx.TExplainer(model, X[:300])
    assert explainer.background.discrete.columns == [0, 1]
    rows = X[300:340]
    found, sd = explainer(rows), explainer.background.sigma
    one, other = rows.copy(), rows.copy()
    one[:, 0], other[:, 0] = 1.0, 0.0
    expected = (model.predict(one).astype(float) - model.predict(other).astype(float)) * sd[0]
    np.testing.assert_allclose(found.values[:, 0], expected, atol=1e-6 * np.abs(expected).max())
    most = np.max(X[:300, 1])
    one, other = rows.copy(), rows.copy()
    one[:, 1], other[:, 1] = np.minimum(rows[:, 1] + 1, most), np.maximum(rows[:, 1] - 1, 0)
    inner = (rows[:, 1] < most) & np.isin(rows[:, 1] + 1, X[:300, 1])
    step = one[:, 1] - other[:, 1]
    expected = (model.predict(one).astype(float) - model.predict(other).astype(float)) / step * sd[1]
    np.testing.assert_allclose(found.values[inner, 1], expected[inner], atol=1e-6 * np.abs(expected).max())
    assert "discrete     x0, x1" in repr(explainer)


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "forest", *SMOOTH])
def test_two_doors_agree_within_their_bounds(name):
    model, X = fitted(name)
    own, function = (tx.TExplainer(f, X[:300])(X[300:400]) for f in (model, lambda Z: model.predict(Z)))
    assert own.engine != function.engine == "finite-difference"
    bound = own.diagnostics.error + function.diagnostics.error
    assert np.mean(np.abs(own.values - function.values) <= bound + 1e-6 * np.abs(own.values).max()) >= 0.99
    np.testing.assert_allclose(own.values[:, :2], function.values[:, :2], atol=1e-5)


@pytest.mark.parametrize("name", ["gradient boosting", "forest", "network"])
@pytest.mark.parametrize("door", ["model", "function"])
def test_at_the_limit_a_count_has_the_same_slope_as_differences_and_as_averages(name, door):
    """A count whose SD is near the limit may be discrete in one sample of the background, averaged in another."""
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.poisson(6, 400), rng.normal(size=400)])
    model = MODELS[name]().fit(X, np.sin(X[:, 0] / 2) * X[:, 1] + 0.1 * X[:, 0])
    limit = 1.5 / (6**0.5 * tx.TExplainer(model, X[:300]).background.sigma[0])
    both = [
        tx.TExplainer(model if door == "model" else lambda Z: model.predict(Z), X[:300], smoothing=width)
        for width in (0.999 * limit, 1.001 * limit)
    ]
    assert [explainer.background.discrete.columns for explainer in both] == [[0], []]
    differences, averages = (explainer(X[300:]).values[:, 0] for explainer in both)
    observed = [np.isin(X[300:, 0] + k, X[:300, 0]) for k in (-2, -1, 1, 2)]
    inner = np.all(observed, axis=0)  # at an edge the average leans to the longer side
    assert inner.sum() > 60
    np.testing.assert_allclose(averages[inner], differences[inner], atol=5e-3 * np.abs(differences).max())
    np.testing.assert_allclose(averages, differences, atol=0.25 * np.abs(differences).max())


@pytest.mark.parametrize("engine", ["auto", "finite-difference"])
def test_a_linear_model_has_sd_times_its_coefficients(engine):
    X, _ = table()
    weights = np.array([2.0, -1.0, 0.1, 3.0, 0.0, 1.0])
    model = LinearRegression().fit(X, X @ weights)
    explainer = tx.TExplainer(model, X[:200], engine=engine)
    expected = np.tile(explainer.background.sigma * weights, (50, 1))
    np.testing.assert_allclose(explainer(X[:50]).values, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("name", MODELS)
def test_an_unused_feature_is_exactly_0(name):
    model, X = fitted(name)

    class Without:
        """The model behind a table with one more column of each kind."""

        def __call__(self, Z):
            return model.predict(np.asarray(Z)[:, 2:])

    rng = np.random.default_rng(1)
    wide = np.column_stack([rng.integers(0, 2, len(X)), rng.normal(size=len(X)), X])
    values = tx.TExplainer(Without(), wide[:200])(wide[200:220]).values
    assert not values[:, :2].any() and values[:, 2:].any()


def test_declared_numeric_columns_are_averaged():
    X, _ = table()
    explainer = tx.TExplainer(lambda Z: Z[:, 0] ** 2 + Z[:, 3], X[:200], categorical={"x0": "numeric"})
    assert 0 not in explainer.background.discrete.columns


def test_a_function_costs_few_evaluations():
    seen = []

    def f(Z):
        seen.append(len(Z))
        return Z[:, 0] + Z[:, 3] ** 2

    X = np.random.default_rng(0).normal(size=(500, 28))
    explainer = tx.TExplainer(f, X)
    assert sum(seen) <= 2000
    before = sum(seen)
    explainer(X[:10])
    assert (sum(seen) - before) / 10 <= 4 * 28 + 64 + 60


def test_a_bandwidth_that_is_given_averages_the_gradient_too():
    X = np.random.default_rng(0).normal(size=(300, 2))

    def kinked(rows):
        return np.abs(rows[:, 0]) + rows[:, 1]

    row, options = np.array([[0.1, 0.0]]), {"attribution": "gradient"}
    assert tx.TExplainer(kinked, X, **options)(row).values[0, 0] == pytest.approx(1.0)
    explainer = tx.TExplainer(kinked, X, smoothing=0.25, **options)
    sd = explainer.background.sigma[0]
    averaged = explainer(row).values[0, 0]
    assert averaged == pytest.approx(tx.TExplainer(kinked, X)(row).values[0, 0] / sd) and averaged < 0.6


def ramp(rows):
    """Constant in column 0 beyond -1 and 1, so that rows at 2.5 and more do not feel it within 1 SD."""
    return np.clip(rows[:, 0], -1.0, 1.0) * 3.0 + rows[:, 1]


def ramp_network():
    """The same as a ReLU network: 3 relu(x + 1) - 3 relu(x - 1) - 3 + relu(y) - relu(-y)."""
    model = MLPRegressor(hidden_layer_sizes=(4,), max_iter=1)
    model.fit(np.random.default_rng(0).normal(size=(50, 3)), np.zeros(50))
    model.coefs_ = [
        np.array([[1.0, 1, 0, 0], [0, 0, 1, -1], [0, 0, 0, 0]]),
        np.array([[3.0], [-3], [1], [-1]]),
    ]
    model.intercepts_ = [np.array([1.0, -1, 0, 0]), np.array([-3.0])]
    return model


def ramp_trees(name):
    X = np.random.default_rng(1).normal(size=(2000, 3)) * [1.2, 1, 1]
    return MODELS[name]().fit(X, np.digitize(X[:, 0], [-0.5, 0.5]) * 3.0)


IGNORED = {
    "function": lambda: ramp,
    "closed form": ramp_network,
    **{name: partial(ramp_trees, name) for name in MODELS if name not in (*SMOOTH, "extra trees")},
}  # extra trees draw their thresholds at random: they react within 1 SD


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("name", IGNORED)
def test_a_feature_ignored_within_one_sd_gets_0_up_to_its_bar(name):
    X = np.random.default_rng(2).normal(size=(300, 3))
    X[:40, 0] = 2.5 * np.sign(X[:40, 0])
    found = tx.TExplainer(IGNORED[name](), X)(X[:40])
    largest = 0.1 if name not in ("function", "closed form") else 1e-9  # trees fit a little noise
    assert np.all(np.abs(found.values[:, 0]) <= found.diagnostics.error[:, 0] + largest)
    assert np.all(found.diagnostics.flat[:, 0] | (found.values[:, 0] != 0))  # never a silent zero


def test_a_known_plane_is_not_asked_about_its_discrete_columns():
    X, y = table()
    model = LinearRegression().fit(X, y)
    explainer = tx.TExplainer(model, X)
    assert explainer.background.discrete.columns == [0, 1]
    found = explainer(X[:20])
    assert found.diagnostics.evaluations.max() < 6  # two for each discrete column would be more
    assert not found.diagnostics.flat.any()
    expected = model.coef_ * explainer.background.sigma
    np.testing.assert_allclose(found.values, np.tile(expected, (20, 1)), rtol=1e-12)


@pytest.mark.parametrize("as_function", [False, True])
def test_rare_values_of_a_column_are_not_a_silent_zero(as_function):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 3))
    X[:, 1] = np.where(rng.random(600) < 0.02, rng.exponential(3000, 600), 0.0)  # a gain that few have
    X[:, 2] = 1.0
    X[300:, 2] = rng.normal(size=300)  # constant in the background
    model = GradientBoostingRegressor(n_estimators=60, random_state=0)
    model.fit(X, X[:, 0] + 4 * (X[:, 1] > 500) + 4 * (X[:, 2] > 0.5))
    rows = X[300:320][(X[300:320, 1] == 0) & (X[300:320, 2] < 0)]
    with pytest.warns(tx.errors.BackgroundWarning, match="constant"):
        explainer = tx.TExplainer(model.predict if as_function else model, X[:300])
    found = explainer(rows)
    zero = found.values[:, 1:] == 0
    assert zero.any(axis=0).all()
    assert (found.diagnostics.flat[:, 1:] == zero).all()


def test_a_zero_of_a_discrete_column_that_hides_round_off_has_a_bound():
    """An effect within the round-off of a float32 function around 1e5 is 0; only an unused column's is certain."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=100), rng.random((100, 2)) < 0.4])
    found = tx.TExplainer(lambda t: (1e5 + t @ [1.0, 0.03, 0.0]).astype(np.float32), X)(X[:20])
    assert np.all(np.abs(found.values[:, 1] - 0.03 * X[:, 1].std()) <= found.diagnostics.error[:, 1])
    assert not found.values[:, 2].any() and not found.diagnostics.error[:, 2].any()
