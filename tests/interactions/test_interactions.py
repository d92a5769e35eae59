"""Interactions: exact for quadratics, 0 for additive models, slopes of slopes of everything else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import texplainer as tx
from texplainer.errors import InputError, UndefinedRowsWarning
from texplainer.interactions import compute
from texplainer.interactions.differences import second_differences

N = 4
OFF = ~np.eye(N, dtype=bool)
X = np.random.default_rng(0).normal(size=(300, N)) * np.array([1.0, 2.0, 0.5, 30.0])
A = np.array([[1.0, 2.0, 0.0, 0.1], [2.0, -1.0, 3.0, 0.0], [0.0, 3.0, 0.0, 0.5], [0.1, 0.0, 0.5, 0.02]])


def quadratic(rows):
    return 0.5 * np.einsum("ri,ij,rj->r", rows, A, rows) + rows @ np.arange(N) + 3.0


def additive(rows):
    return np.sin(rows[:, 0]) + rows[:, 1] ** 3 + np.exp(rows[:, 2]) + np.abs(rows[:, 3])


def polynomial():
    """A model with exact slopes that is the quadratic."""
    return make_pipeline(PolynomialFeatures(2), LinearRegression()).fit(X, quadratic(X))


ENGINES = {
    "black box": (lambda: quadratic, {}),
    "black box at the point": (lambda: quadratic, {"smoothing": 0}),
    "closed form": (polynomial, {}),
    "closed form at the point": (polynomial, {"smoothing": 0}),
    "no bounds": (polynomial, {"bounds": None}),
}


@pytest.mark.parametrize("name", ENGINES)
def test_quadratics_are_exact(name):
    model, options = ENGINES[name]
    explainer = tx.TExplainer(model(), X, **options)
    found = explainer.interactions(X[:20])
    sigma = explainer.background.sigma
    expected = A * np.outer(sigma, sigma)
    apart = np.abs(found.values - expected)
    # second differences at a point lose half of the digits and a half of the rest
    least = 1e-3 if name == "black box at the point" else 1e-6 if "point" in name else 1e-9
    assert apart.max() <= least * np.abs(expected).max()
    assert np.all(apart <= found.error + 1e-9 * np.abs(expected).max())


def test_autodiff_gives_the_quadratic():
    torch = pytest.importorskip("torch")

    class Quadratic(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Parameter(torch.tensor(A))

        def forward(self, rows):
            return 0.5 * torch.einsum("ri,ij,rj->r", rows, self.a, rows)[:, None]

    explainer = tx.TExplainer(Quadratic().double(), X)
    assert explainer.engine.name == "autodiff"
    sigma = explainer.background.sigma
    expected = A * np.outer(sigma, sigma)
    np.testing.assert_allclose(explainer.interactions(X[:5]).values, np.stack([expected] * 5), atol=1e-7)


def test_additive_models_have_none():
    found = tx.TExplainer(additive, X).interactions(X[:20])
    np.testing.assert_array_equal(found.values[:, OFF], 0.0)
    assert np.all(np.einsum("rii->ri", found.values)[:, :3] != 0)  # but they bend


def test_additive_networks_have_none():
    torch = pytest.importorskip("torch")

    class Additive(torch.nn.Module):
        def forward(self, rows):
            return (torch.sin(rows) + rows**3 / 9 + torch.relu(rows)).sum(dim=1, keepdim=True)

    found = tx.TExplainer(Additive(), X / X.std(axis=0)).interactions(X[:20] / X.std(axis=0))
    np.testing.assert_array_equal(found.values[:, OFF], 0.0)
    assert np.all(np.einsum("rii->ri", found.values) != 0)


def test_additive_trees_have_none():
    xgboost = pytest.importorskip("xgboost")
    stumps = xgboost.XGBRegressor(n_estimators=40, max_depth=1).fit(X, additive(X))
    found = tx.TExplainer(stumps, X).interactions(X[:20])
    np.testing.assert_array_equal(found.values[:, OFF], 0.0)


@pytest.fixture(scope="module")
def network():
    inputs = X / X.std(axis=0)
    target = np.sin(inputs[:, 0]) * inputs[:, 1] + inputs[:, 2] * inputs[:, 3]
    model = MLPRegressor(hidden_layer_sizes=(20,), activation="tanh", max_iter=800, random_state=0)
    return model.fit(inputs, target), inputs


def slope_of_slope(predict, explainer, row, i, j, many=200):
    """The definition at very many midpoints: mean moves of both, in double differences."""
    sigma, (low, high) = explainer.background.sigma, explainer.background.bounds
    part, sides = (np.arange(many) + 0.5) / many, []
    for k in (i, j):
        width = 6**0.5 * 0.25 * sigma[k]
        up = row[k] + min(width, high[k] - row[k]) * part
        down = row[k] - min(width, row[k] - low[k]) * part
        sides.append((up, down))

    def mean(one, two):
        rows = np.tile(row, (many * many, 1))
        rows[:, i], rows[:, j] = np.repeat(one, many), np.tile(two, many)
        return predict(rows).astype(float).mean()

    (iu, id_), (ju, jd) = sides
    double = mean(iu, ju) - mean(iu, jd) - mean(id_, ju) + mean(id_, jd)
    return sigma[i] * sigma[j] * double / ((iu.mean() - id_.mean()) * (ju.mean() - jd.mean()))


def boosted():
    xgboost = pytest.importorskip("xgboost")
    inputs = X / X.std(axis=0)
    return xgboost.XGBRegressor(n_estimators=60, max_depth=3).fit(inputs, quadratic(inputs))


@pytest.mark.parametrize(("name", "close"), [("network", 0.03), ("trees", 0.5)])
def test_the_definition_at_very_many_moves(name, close, network):
    model, inputs = network
    model = model if name == "network" else boosted()
    explainer = tx.TExplainer(model.predict, inputs)
    rows = np.concatenate([inputs[:8], inputs[[inputs[:, 0].argmax()]]])  # the last is at an edge
    found = explainer.interactions(rows)
    first, second = np.triu_indices(N, 1)
    true = np.array(
        [
            [slope_of_slope(model.predict, explainer, row, i, j) for i, j in zip(first, second, strict=True)]
            for row in rows
        ]
    )
    apart = np.abs(found.values[:, first, second] - true)
    assert np.linalg.norm(apart) <= close * np.linalg.norm(true)
    assert np.mean(apart <= found.error[:, first, second]) >= 0.99 if name == "network" else 0.95


def test_one_move_to_a_side_where_the_budget_is_small(network):
    model, inputs = network
    few = tx.TExplainer(model.predict, inputs, max_evals=40).interactions(inputs[:10])
    more = tx.TExplainer(model.predict, inputs).interactions(inputs[:10])
    pairs, own = N * (N - 1) // 2, 5 * N
    assert set(few.arrays["evaluations"]) == {4 * pairs + own + 1}
    assert set(more.arrays["evaluations"]) == {16 * pairs + own + 1}
    apart = np.abs(few.values - more.values)
    assert apart.max() > 0
    assert np.all(apart <= few.error + more.error)


def test_bounds_of_a_smooth_model_are_not_those_of_steps():
    """Both cover; what the model needs of a bound is seen on background rows."""
    inputs = X / X.std(axis=0)

    def smooth(rows):
        return np.sin(rows[:, 0] + rows[:, 1]) + np.exp(rows[:, 2] * rows[:, 3] / 3)

    steps, rough = boosted().predict, {}
    for name, f in (("smooth", smooth), ("steps", steps)):
        found = tx.TExplainer(f, inputs).interactions(inputs[:20])
        rough[name] = np.median(found.error[:, 0, 1] / np.abs(found.values[:, 0, 1]).mean())
    assert rough["smooth"] < 0.005 < 0.05 < rough["steps"]


def test_interactions_of_thousands_of_columns_are_refused_with_an_estimate():
    with pytest.raises(InputError, match=r"500 rows and 4498500 pairs take 9.0e\+09 predictions"):
        compute._check_work(500, 3000 * 2999 // 2, 1)


@pytest.mark.parametrize("seed", range(5))
def test_laws(seed):
    """Symmetry, an unused feature, linearity in f."""
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(2, N))
    a[2] = b[2] = 0.0

    def one(rows):
        return np.sin(rows @ (a / X.std(axis=0)))

    def two(rows):
        return np.exp(rows @ (b / X.std(axis=0)) / 4)

    def both(rows):
        return 2 * one(rows) - 3 * two(rows)

    first, second, sum_ = (tx.TExplainer(f, X).interactions(X[:10]).values for f in (one, two, both))
    np.testing.assert_array_equal(sum_, sum_.swapaxes(1, 2))
    np.testing.assert_array_equal(sum_[:, 2], 0.0)
    np.testing.assert_allclose(sum_, 2 * first - 3 * second, atol=1e-10)


def test_a_booster_as_a_model_and_as_a_function():
    model, inputs = boosted(), X / X.std(axis=0)
    itself = tx.TExplainer(model, inputs).interactions(inputs[:20])
    function = tx.TExplainer(lambda rows: model.predict(rows), inputs).interactions(inputs[:20])
    assert itself.engine == "tree"
    np.testing.assert_allclose(itself.values, function.values, atol=1e-6 * np.abs(itself.values).max())


def test_pairs_that_share_no_tree_cost_nothing():
    xgboost = pytest.importorskip("xgboost")
    inputs = X / X.std(axis=0)
    model = xgboost.XGBRegressor(
        n_estimators=40, max_depth=3, interaction_constraints="[[0, 1], [2, 3]]"
    ).fit(inputs, quadratic(inputs))
    found = tx.TExplainer(model, inputs).interactions(inputs[:20])
    function = tx.TExplainer(lambda rows: model.predict(rows), inputs).interactions(inputs[:20])
    assert set(found.arrays["evaluations"]) == {2 * 16 + 5 * N + 1}
    between = np.ix_(range(20), [0, 1], [2, 3])
    for one in (found, function):
        np.testing.assert_array_equal(one.values[between], 0.0)
        assert np.all(np.abs(one.values[:, 0, 1]).max() > 0)
    np.testing.assert_array_equal(found.error[between], 0.0)
    np.testing.assert_allclose(found.values, function.values, atol=1e-6 * np.abs(found.values).max())


@pytest.mark.parametrize("own", [0.0, 0.9, 1.0])
def test_a_parabola_has_its_curvature_up_to_the_edge(own):
    """With the whole range above it, a part of it, and none."""
    rows = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
    rows[0] = [1.0, -1.0]
    seen = []

    def model(rows):
        seen.append(np.abs(rows).max())
        return 1.5 * rows[:, 0] ** 2 + rows[:, 1]

    explainer = tx.TExplainer(model, rows)
    found = explainer.interactions(np.array([[own, 0.0]]))
    assert max(seen) <= 1.0 + 1e-12
    assert found.values[0, 0, 0] == pytest.approx(3 * explainer.background.sigma[0] ** 2, rel=1e-12)
    assert found.values[0, 1, 1] == 0


def test_whole_numbers_are_asked_for_whole_numbers():
    random, seen = np.random.default_rng(0), []
    rows = np.column_stack([random.integers(18, 80, 400), random.normal(size=400)]).astype(float)

    def model(table):
        seen.append(table[:, 0].copy())
        return table[:, 0] * table[:, 1]

    explainer = tx.TExplainer(model, rows)
    seen.clear()
    found, sigma = explainer.interactions(rows[:30]), explainer.background.sigma
    assert all(np.array_equal(part, np.round(part)) for part in seen)
    np.testing.assert_allclose(found.values[:, 0, 1], sigma[0] * sigma[1], rtol=1e-9)


def test_the_same_points_give_autodiffs_hessian():
    """At the point itself, against torch's own second derivatives."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(N, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    inputs = X / X.std(axis=0)
    explainer = tx.TExplainer(net, inputs, smoothing=0)
    sigma = explainer.background.sigma
    found = explainer.interactions(inputs[:5])
    for row, values in zip(inputs[:5], found.values, strict=True):
        hessian = torch.autograd.functional.hessian(lambda x: net(x[None])[0, 0], torch.tensor(row))
        np.testing.assert_allclose(values, hessian.numpy() * np.outer(sigma, sigma), atol=1e-8)


def test_the_strongest_pairs_are_shaps_too():
    shap = pytest.importorskip("shap")
    xgboost = pytest.importorskip("xgboost")
    inputs = np.random.default_rng(3).normal(size=(1000, 6))
    target = 2 * inputs[:, 0] * inputs[:, 1] + inputs[:, 2] * inputs[:, 3] + inputs[:, 4]
    model = xgboost.XGBRegressor(n_estimators=80, max_depth=4).fit(inputs, target)
    theirs = np.abs(shap.TreeExplainer(model).shap_interaction_values(inputs[:100])).mean(axis=0)
    ours = tx.TExplainer(model, inputs[:300]).interactions(inputs[:100])
    order = np.argsort(-np.where(np.triu(np.ones((6, 6)), 1), theirs, 0.0), axis=None)[:2]
    expected = [tuple(f"x{k}" for k in np.unravel_index(at, (6, 6))) for at in order]
    assert [pair[:2] for pair in ours.strongest(2)] == expected == [("x0", "x1"), ("x2", "x3")]


# ---------------------------------------------------------------- categories and the frame around


@pytest.fixture(scope="module")
def mixed():
    random = np.random.default_rng(4)
    table = pd.DataFrame(random.normal(size=(200, 2)), columns=["a", "b"])
    table["k"], table["l"] = random.choice(["u", "v", "w"], 200), random.choice(["p", "q"], 200)

    def model(rows):
        both = (rows["k"] == "v") & (rows["l"] == "q")
        return (rows["a"] ** 2 + 2 * rows["b"] * (rows["k"] == "u") + 3 * both).to_numpy()

    return tx.TExplainer(model, table), table


def test_categories_interact_by_double_swaps(mixed):
    explainer, table = mixed
    found = explainer.interactions(table[:20])
    u, v, q = (np.mean(table[c] == level) for c, level in (("k", "u"), ("k", "v"), ("l", "q")))
    sigma = explainer.background.sigma
    k, level = table["k"][:20].to_numpy(), table["l"][:20].to_numpy()
    np.testing.assert_allclose(found.values[:, 1, 2], 2 * sigma[1] * ((k == "u") - u), atol=1e-9)
    np.testing.assert_allclose(found.values[:, 2, 3], 3 * ((k == "v") - v) * ((level == "q") - q), atol=1e-9)
    np.testing.assert_allclose(found.values[:, 0, 2:], 0.0, atol=1e-12)  # a is added
    np.testing.assert_array_equal(found.values, found.values.swapaxes(1, 2))


def test_shapes_and_slices():
    def two(rows):
        return np.column_stack([quadratic(rows), additive(rows)])

    found = tx.TExplainer(two, X, output="all").interactions(X[:6])
    assert found.values.shape == found.error.shape == (6, N, N, 2)
    first = found.output_names[0]
    assert found[..., first].values.shape == (6, N, N)
    assert found[2, first].values.shape == (N, N)
    np.testing.assert_array_equal(found[2:4].values, found.values[2:4])
    assert found[2].strongest(3)[0][:2]


@pytest.mark.parametrize("engine", ["auto", "finite-difference"])
def test_rows_do_not_depend_on_the_other_rows(engine):
    explainer = tx.TExplainer(polynomial(), X, engine=engine)
    together = explainer.interactions(X[:9]).values
    np.testing.assert_allclose(explainer.interactions(X[4:5]).values[0], together[4], rtol=1e-12, atol=1e-12)


def test_memory_is_bounded_by_blocks_of_rows(monkeypatch):
    """Small blocks give the same numbers, and no more rows than a block are at hand at a time."""
    explainer = tx.TExplainer(polynomial(), X)
    whole, seen = explainer.interactions(X[:10]), []

    def counted(context, *others):
        seen.append(len(context.rows))
        return second_differences(context, *others)

    monkeypatch.setattr(compute, "CELLS", 3 * 16 * N * (N - 1) // 2)
    monkeypatch.setattr(compute, "second_differences", counted)
    again = explainer.interactions(X[:10])
    np.testing.assert_allclose(again.values, whole.values, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(again.error, whole.error, rtol=1e-6, atol=1e-12)
    assert seen == [3, 3, 3, 1]


def test_a_row_that_cannot_be_explained_stays_nan():
    rows = X[:3].copy()
    rows[1, 2] = np.inf
    with pytest.warns(UndefinedRowsWarning, match="row 1"):
        found = tx.TExplainer(quadratic, X).interactions(rows)
    assert np.isnan(found.values[1]).all()
    assert np.isfinite(found.values[[0, 2]]).all()


@pytest.mark.filterwarnings("ignore:background columns")
@pytest.mark.parametrize("engine", ["auto", "finite-difference"])
def test_a_constant_column_and_an_unused_one_have_none(engine):
    still = X.copy()
    still[:, 3] = 2.0
    model = make_pipeline(PolynomialFeatures(2), LinearRegression()).fit(still, X[:, 0] * X[:, 1])
    explainer = tx.TExplainer(model, still, engine=engine)
    found = explainer.interactions(still[:5])
    sigma = explainer.background.sigma
    np.testing.assert_allclose(found.values[:, 0, 1], sigma[0] * sigma[1], rtol=1e-6)
    assert np.abs(found.values[:, 2:]).max() < 1e-6
    assert np.isfinite(found.hessian()).all()


def test_each_row_has_its_own_class():
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(X, np.digitize(X[:, 0] + X[:, 2], [-0.5, 0.5]))
    every = tx.TExplainer(model, X, output="all", scale="probability").interactions(X[:9])
    own = tx.TExplainer(model, X, output="predicted", scale="probability").interactions(X[:9])
    pick = model.predict(X[:9])
    np.testing.assert_allclose(own.values, every.values[np.arange(9), :, :, pick], atol=1e-12)


# ---------------------------------------------------------------- the second-order surrogate


def test_a_quadratic_is_its_second_order_surrogate():
    explainer = tx.TExplainer(polynomial(), X, bounds=None)
    explanation = explainer(X[:20]).with_interactions(explainer.interactions(X[:20]))
    dx = np.array([0.3, -0.5, 0.2, 9.0])
    np.testing.assert_allclose(
        explanation.surrogate(dx, order=2), quadratic(X[:20] + dx), rtol=1e-6, atol=1e-5
    )
    np.testing.assert_allclose(
        explanation[3].surrogate(dx, order=2), quadratic(X[3:4] + dx)[0], rtol=1e-6, atol=1e-5
    )
    assert np.abs(explanation.surrogate(dx) - quadratic(X[:20] + dx)).max() > 0.1
    still = np.where(np.arange(N) == 1, 0.0, dx)  # the same as leaving a feature out
    fewer = explanation[:, ["x0", "x2", "x3"]].surrogate(dx[[0, 2, 3]], order=2)
    np.testing.assert_allclose(fewer, explanation.surrogate(still, order=2))


def test_a_surrogate_without_interactions_says_how_to_get_them():
    explainer = tx.TExplainer(quadratic, X)
    explanation = explainer(X[:5])
    with pytest.raises(InputError, match=r"does not hold interactions.*with_interactions"):
        explanation.surrogate(np.zeros(N), order=2)
    with pytest.raises(InputError, match="order=3"):
        explanation.surrogate(np.zeros(N), order=3)
    with pytest.raises(InputError, match="other rows"):
        explanation.with_interactions(explainer.interactions(X[5:10]))


def test_the_second_order_is_kept_in_a_file(tmp_path):
    explainer = tx.TExplainer(quadratic, X)
    explanation = explainer(X[:5]).with_interactions(explainer.interactions(X[:5]))
    explanation.save(tmp_path / "kept.npz")
    again = tx.Explanation.load(tmp_path / "kept.npz")
    np.testing.assert_array_equal(
        again.surrogate(np.ones(N), order=2), explanation.surrogate(np.ones(N), order=2)
    )


def test_shapley_interactions_of_trees_sum_to_the_shapley_values_of_raw_columns() -> None:
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=200), "b": rng.normal(size=200), "c": rng.choice(list("xyz"), 200)}
    )
    codes = OneHotEncoder(sparse_output=False)
    model = make_pipeline(
        ColumnTransformer([("codes", codes, ["c"])], remainder="passthrough"),
        HistGradientBoostingClassifier(max_iter=20),
    ).fit(frame, frame.a * (frame.c == "x") + frame.b > 0)
    explainer = tx.TExplainer(model, frame[:60])
    for attribution in ("shapley", "shapley_path"):
        found = explainer.interactions(frame[60:70], attribution=attribution)
        shapley = explainer(frame[60:70], attribution=attribution)
        np.testing.assert_allclose(found.values.sum(axis=2), shapley.values, atol=1e-12)
        np.testing.assert_array_equal(found.values, found.values.swapaxes(1, 2))
        assert found.strongest(1)[0][:2] == ("a", "c")
        assert f"exact interaction values of {attribution}" in repr(found)
        with pytest.raises(InputError, match="not second derivatives"):
            explainer(frame[60:70]).with_interactions(found)


def test_shapley_interactions_need_trees() -> None:
    X = np.random.default_rng(0).normal(size=(80, 3))
    explainer = tx.TExplainer(lambda rows: rows[:, 0] * rows[:, 1], X)
    with pytest.raises(InputError, match="for sums of trees only: the model is not a tree ensemble"):
        explainer.interactions(X[:2], attribution="shapley")
    with pytest.raises(InputError, match="'variation' has no interactions; expected 'slope', 'shapley'"):
        explainer.interactions(X[:2], attribution="variation")


def test_interactions_that_do_not_fit_into_memory_are_refused_before_any_is_computed():
    X = np.random.default_rng(0).normal(size=(20, 300))
    calls = []

    def model(rows):
        calls.append(len(rows))
        return rows[:, :200]

    explainer = tx.TExplainer(model, X, max_evals=1410)
    calls.clear()
    with pytest.raises(
        tx.errors.InputError, match=r"20000 rows, 300 x 300 pairs and 200 outputs take 5\d+ GB"
    ):
        explainer.interactions(np.broadcast_to(X[:1], (20000, 300)))
    assert sum(calls) <= 20000
