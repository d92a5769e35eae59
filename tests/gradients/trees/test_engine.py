"""The tree engine as a user meets it: through TExplainer."""

# ruff: noqa: E402  (the engine needs optional packages, asked for first)

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

pytest.importorskip("numba")
xgb = pytest.importorskip("xgboost")
lgb = pytest.importorskip("lightgbm")

from texplainer.background.summary import robust_sd
from texplainer.errors import EngineWarning, InputError
from texplainer.explainer import TExplainer
from texplainer.gradients.engine import BANDWIDTH


def _table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5)) * [1, 2, 0.5, 10, 1]
    return X, X[:, 0] * 2 + np.sin(X[:, 1]) + X[:, 2] * X[:, 0] + rng.normal(size=600) * 0.1


X, Y = _table()
TWO, THREE = (Y > 0).astype(int), np.digitize(Y, [-1, 1])


def boosted(y=TWO, **options):
    kind = xgb.XGBRegressor if y is Y else xgb.XGBClassifier
    return kind(n_estimators=30, max_depth=4, n_jobs=1, **options).fit(X, y)


def averaged_differences(explainer, rows, points=2000):
    """Slopes by the definition: predictions at many moves of one feature."""
    background, f = explainer.background, explainer.predictor
    width = 6**0.5 * explainer.engine.width * background.sigma
    low, high = background.bounds or (-np.inf, np.inf)
    t = (np.arange(points) + 0.5) / points
    found = np.zeros((len(rows), rows.shape[1], len(f.outputs)))
    for i, row in enumerate(rows):
        for j in range(len(row)):
            up, down = min(width[j], high[j] - row[j]), min(width[j], row[j] - low[j])
            at = np.repeat(row[None], 2 * points, axis=0)
            at[:, j] += np.concatenate([up * t, -down * t])
            above, below = f(at).reshape(2, points, -1).mean(axis=1)
            found[i, j] = (above - below) / ((up + down) / 2)
    return found


@pytest.mark.parametrize("scale", ["probability", "log-odds"])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["binary", "multiclass"])
@pytest.mark.parametrize("kind", ["boosting", "forest"])
def test_slopes_are_averages_over_moves_of_one_feature(kind, y, scale):
    model = (
        boosted(y)
        if kind == "boosting"
        else RandomForestClassifier(20, max_depth=5, min_samples_leaf=20, random_state=0).fit(X, y)
    )
    explainer = TExplainer(model, X, scale=scale, output="all")
    assert explainer.engine.name == "tree"
    rows = X[[*range(4), X[:, 1].argmax(), X[:, 3].argmin()]]  # two of them at an edge
    found, twin = explainer.engine.gradient(rows), averaged_differences(explainer, rows)
    unit, size = explainer.background.unit[:, None], np.abs(twin * explainer.background.unit[:, None]).max()
    gap = np.abs(found.values - twin) * unit / size
    summed = (scale == "log-odds" and kind == "boosting" and y is TWO) or (
        scale == "probability" and kind == "forest"
    )
    assert gap.max() < (2e-3 if summed else 0.15)  # of sums of trees they are exact
    if scale == "probability":
        np.testing.assert_allclose(found.values.sum(axis=2), 0, atol=1e-6)


def test_invariant_to_order_and_batch():
    engine = TExplainer(boosted(THREE), X, output="all").engine
    whole = engine.gradient(X[:300])
    shuffled = np.random.default_rng([0, 3]).permutation(300)
    again = engine.gradient(X[shuffled])
    parts = [engine.gradient(X[i : min(i + 7, 300)]) for i in range(0, 300, 7)]
    np.testing.assert_array_equal(again.values, whole.values[shuffled])
    np.testing.assert_array_equal(np.concatenate([p.values for p in parts]), whole.values)
    for name, array in whole.extras.items():
        np.testing.assert_array_equal(np.concatenate([p.extras[name] for p in parts]), array)


def test_scalers_in_front_change_nothing():
    scaled, plain = StandardScaler().fit_transform(X), RandomForestRegressor(10, max_depth=6, random_state=0)
    pipe = make_pipeline(StandardScaler(), RandomForestRegressor(10, max_depth=6, random_state=0)).fit(X, Y)
    plain.fit(scaled, Y)
    through = TExplainer(pipe, X).engine.gradient(X[:20])
    direct = TExplainer(plain, scaled).engine.gradient(scaled[:20])
    sigma = X.std(axis=0)[:, None]  # forests compare in float32
    np.testing.assert_allclose(through.values * sigma, direct.values, rtol=1e-4, atol=1e-6)


def test_a_single_leaf_has_no_slope():
    model = RandomForestRegressor(3, random_state=0).fit(X[:50], np.ones(50))
    found = TExplainer(model, X[:50]).engine.gradient(X[:3])
    assert not found.values.any()


def test_missing_cells_do_not_react():
    holes = np.where(np.random.default_rng([0, 5]).random(X.shape) < 0.1, np.nan, X)
    model = lgb.LGBMClassifier(n_estimators=20, verbose=-1).fit(holes, TWO)
    engine = TExplainer(model, holes, attribution="gradient").engine
    assert engine.name == "tree"
    values = engine.gradient(holes[:50]).values
    assert values.any() and not values[np.isnan(holes[:50])].any()


def number_for_missing(library, mark, table):
    y = (
        np.where(table[:, 0] == mark, 1.0, table[:, 0]) * 2
        + table[:, 1] * (table[:, 2] == mark)
        + table[:, 3]
    )
    if library == "lightgbm":
        options = {"zero_as_missing": True, "verbose": -1, "num_threads": 1, "num_leaves": 12}
        return lgb.train(options, lgb.Dataset(table, y), 12)
    return xgb.XGBRegressor(n_estimators=12, max_depth=4, n_jobs=1, missing=mark).fit(table, y)


def with_numbers_for_missing(mark):
    """A column with the mark inside its range, one at its edge, and two others."""
    table = X[:, :4].copy()
    table[::5, 0] = table[::7, 2] = mark
    table[:, 2] = np.where(table[:, 2] == mark, mark, mark + 0.1 + np.abs(table[:, 2]))
    return table


@pytest.mark.parametrize(("library", "mark"), [("lightgbm", 0.0), ("xgboost", 0.0), ("xgboost", -99.9)])
def test_a_number_that_stands_for_missing_values_moves_to_the_other_numbers(library, mark):
    table = with_numbers_for_missing(mark)
    model = number_for_missing(library, mark, table)
    explainer, rows = TExplainer(model, table[:100]), table[:36:5]
    found = explainer(rows)
    assert explainer.engine.name == "tree" and (found.diagnostics.evaluations <= 2).all()
    expected = averaged_differences(explainer, rows)[:, :, 0] * explainer.background.sigma
    assert np.median(np.abs(expected[:, 0])) > 0.1
    np.testing.assert_allclose(found.values, expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("library", "cell"), [("lightgbm", 1e-36), ("lightgbm", -5e-324), ("xgboost", 1e-50)]
)
def test_numbers_that_a_library_takes_for_0_are_missing_where_0_is(library, cell):
    table = with_numbers_for_missing(0.0)
    explainer = TExplainer(number_for_missing(library, 0.0, table), table[:100])
    near, zero = table[:5].copy(), table[:5].copy()
    near[:, [0, 2]], zero[:, [0, 2]] = cell, 0.0
    values = explainer(near, attribution="shapley").values
    np.testing.assert_array_equal(values, explainer(zero, attribution="shapley").values)
    total = explainer.background.base[0] + values.sum(axis=1)
    np.testing.assert_allclose(total, explainer.predictor(near)[:, 0], atol=1e-5)


def test_moves_to_whole_numbers_meet_the_one_that_stands_for_missing_values():
    count = np.random.default_rng(1).integers(0, 30, 600).astype(float)
    table = np.column_stack([count, X[:, 0]])
    options = {"zero_as_missing": True, "verbose": -1, "num_threads": 1}
    model = lgb.train(options, lgb.Dataset(table, np.where(count == 0, 9.0, count / 5) + X[:, 0]), 12)
    explainer, rows = TExplainer(model, table[:200]), table[count < 4][:8]
    assert list(explainer.background.discrete.integers) == [0]
    found = explainer(rows)
    width = 6**0.5 * BANDWIDTH * explainer.background.sigma[0]
    up, down = np.full(len(rows), width), np.minimum(width, rows[:, 0])
    t = (np.arange(8000) + 0.5) / 8000
    at = np.floor(rows[:, :1] + np.hstack([up[:, None] * t, -down[:, None] * t]) + 0.5)
    f = (
        model.predict(np.column_stack([at.ravel(), np.repeat(rows[:, 1], 16000)]))
        .reshape(-1, 2, 8000)
        .mean(axis=2)
    )
    move = at.reshape(-1, 2, 8000).mean(axis=2)
    expected = (f[:, 0] - f[:, 1]) / (move[:, 0] - move[:, 1]) * explainer.background.sigma[0]
    assert (np.abs(found.values[:, 0] - expected) <= found.diagnostics.error[:, 0] + 0.01).all()


def test_a_fraction_in_a_column_of_whole_numbers_is_on_its_own_side_of_thresholds():
    whole = np.random.default_rng(1).integers(0, 15, 600) * 2.0 + (np.arange(600) == 0)
    table = np.column_stack([whole, X[:, 0]])
    model = RandomForestRegressor(n_estimators=5, random_state=0).fit(table, (whole > 14) * X[:, 0] * 5 + Y)
    explainer, rows = TExplainer(model, table[:200]), np.column_stack([np.full(8, 15.3), X[:8, 0]])
    assert list(explainer.background.discrete.integers) == [0]
    found = explainer(rows)
    expected = averaged_differences(explainer, rows)[:, 1, 0] * explainer.background.sigma[1]
    assert (np.abs(found.values[:, 1] - expected) <= found.diagnostics.error[:, 1] + 0.01).all()


def test_the_width_asked_for_is_taken():
    assert TExplainer(boosted(), X, smoothing=0.1).engine.width == 0.1
    assert TExplainer(boosted(), X).engine.width == BANDWIDTH


def test_without_smoothing_the_point_is_differenced():
    assert TExplainer(boosted(), X, smoothing=0).engine.name == "finite-difference"


class Shifted(RandomForestRegressor):
    """Predicts something else than its trees."""

    def predict(self, X):
        return super().predict(X) + 1.0


def own_objective(y, p):
    return p - y, np.ones_like(p)


FALLING_BACK = {
    "differs from the model's predictions": lambda: Shifted(5, random_state=0).fit(X, Y),
    "linear models": lambda: lgb.LGBMRegressor(n_estimators=3, linear_tree=True, verbose=-1).fit(X, Y),
    "no trees": lambda: xgb.XGBRegressor(n_estimators=3, booster="gblinear", n_jobs=1).fit(X, Y),
    "objective is a function": lambda: xgb.XGBRegressor(n_estimators=3, objective=own_objective).fit(X, Y),
}


@pytest.mark.filterwarnings("ignore::UserWarning:lightgbm", "ignore::UserWarning:xgboost")
@pytest.mark.parametrize("word", FALLING_BACK)
def test_what_cannot_be_read_is_explained_as_a_black_box(word):
    model = FALLING_BACK[word]()
    with pytest.warns(EngineWarning, match=word):
        explainer = TExplainer(model, X)
    assert explainer.engine.name == "finite-difference" and word in explainer.engine.why
    found = explainer.engine.gradient(X[:10])
    assert found.values[:, 0].all()


def test_trees_behind_a_mixture_of_columns_are_explained_by_their_predictions():
    explainer = TExplainer(make_pipeline(Normalizer(), RandomForestRegressor(5)).fit(X, Y), X)
    assert explainer.engine.name == "finite-difference" and "several columns" in explainer.engine.why


def test_other_models_are_left_to_others():
    assert TExplainer(LinearRegression().fit(X, Y), X).engine.name == "closed-form"
    with pytest.raises(InputError, match="not a tree ensemble"):
        TExplainer(LinearRegression().fit(X, Y), X, engine="tree")


def test_scaled_forest_with_clipped_features():
    pipe = make_pipeline(MinMaxScaler(), boosted_pipeline()).fit(X, TWO)
    explainer = TExplainer(pipe, X)
    assert explainer.engine.name == "tree"
    found, twin = explainer.engine.gradient(X[:5]).values, averaged_differences(explainer, X[:5])
    np.testing.assert_allclose(found, twin, rtol=1e-2, atol=2e-3)


def boosted_pipeline():
    return xgb.XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1)


@pytest.mark.parametrize("scale", ["probability", "log-odds"])
def test_shares_sum(scale):
    explanation = TExplainer(boosted(), X, scale=scale, attribution="shapley")(X[:30])
    change = explanation.predictions - explanation.base_values
    np.testing.assert_allclose(explanation.values.sum(axis=1), np.ravel(change), atol=1e-5 * np.std(change))


@pytest.mark.parametrize("kind", ["boosting", "forest"])
def test_the_stated_change_is_near_the_measured_one(kind):
    model = (
        boosted()
        if kind == "boosting"
        else RandomForestClassifier(50, min_samples_leaf=5, random_state=0).fit(X, TWO)
    )
    explainer = TExplainer(model, X)
    found, sigma = explainer.engine.gradient(X[:100]), robust_sd(X)
    stated = explainer(X[:100]).diagnostics.relative_change
    rng = np.random.default_rng(1)

    def change(move):
        moved = explainer.engine.gradient(X[:100] + 0.05 * sigma * move).values
        return np.linalg.norm((moved - found.values)[:, :, 0] * sigma, axis=1)

    measured = np.mean([change(rng.normal(size=X[:100].shape)) for _ in range(16)], axis=0)  # it is expected
    measured /= np.linalg.norm(found.values[:, :, 0] * sigma, axis=1)
    ratio = stated / measured
    assert np.mean((ratio > 0.5) & (ratio < 2)) > 0.8
    above = stated[measured > np.median(measured)][:, None] > stated[measured <= np.median(measured)]
    assert above.mean() > 0.85  # the area under the curve


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_categories_of_a_frame_stay_whole(library):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "a": X[:, 0],
            "b": X[:, 1],
            "c": pd.Categorical(np.random.default_rng([0, 8]).choice(list("zyxw"), len(X))),
        }
    )
    y = (frame["c"].isin(["x", "z"]) ^ (frame["a"] > 0)).astype(int)
    if library == "xgboost":
        model = xgb.XGBClassifier(n_estimators=10, max_depth=3, enable_categorical=True, n_jobs=1).fit(
            frame, y
        )
    else:
        options = {"min_child_samples": 5, "cat_smooth": 1, "min_data_per_group": 5, "verbose": -1}
        model = lgb.LGBMClassifier(n_estimators=10, **options).fit(frame, y)
    explainer = TExplainer(model, frame)
    assert explainer.engine.name == "tree"
    rows = explainer.schema.read(frame[:20])
    gradient = explainer.engine.gradient(rows)
    assert not gradient.values[:, 2].any() and gradient.values[:, 0].any()
