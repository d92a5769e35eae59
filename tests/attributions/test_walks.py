"""Walks: orders without a preference, a control variate, and bounds that cover features which rarely act."""

from __future__ import annotations

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.neighbors import KNeighborsClassifier

from texplainer import TExplainer
from texplainer.attributions import control, walks
from texplainer.attributions.walks import walk_order
from texplainer.errors import BackgroundWarning


def rare_columns() -> tuple[np.ndarray, np.ndarray]:
    """Forty columns, most of them 0/1 and rarely 1, which act on their own and together."""
    rng = np.random.default_rng(0)
    often = rng.uniform(0.01, 0.3, size=34)
    X = np.hstack([rng.normal(size=(1500, 6)), rng.uniform(size=(1500, 34)) < often])
    y = X[:, 0] * X[:, 1] + X[:, 2] + X[:, 6:] @ rng.normal(size=34) + 3 * X[:, 6] * (X[:, 3] > 1)
    return X, y + X[:, 7] * X[:, 4] + 0.3 * rng.normal(size=1500)


@pytest.mark.parametrize("width", [8, 20, 73])
def test_orders_prefer_no_feature(width):
    places = np.stack([walk_order(number, width) for number in range(1024)])
    before = (places[:, :, None] < places[:, None, :]).astype(float)
    first = np.einsum("njk,njl->jkl", before, before) / len(places)  # j before both k and l
    j, k, l = np.indices(first.shape)  # noqa: E741
    apart = (j != k) & (k != l) & (j != l)
    assert np.abs(first[apart] - 1 / 3).max() < 0.07  # 5 standard errors of 1,024 independent orders


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingRegressor(max_iter=60),
        RandomForestRegressor(20, min_samples_leaf=3, random_state=0),
    ],
    ids=["boosting", "forest"],
)
def test_bounds_cover_features_that_rarely_act(model):
    X, y = rare_columns()
    model.fit(X[:1000], y[:1000])
    background, rows = X[1000:1200], X[1200:1225]
    exact = TExplainer(model, background, attribution="shapley")(rows)
    walked = TExplainer(lambda rows: model.predict(rows), background, attribution="shapley", max_evals=3750)(
        rows
    )
    gap = np.abs(exact.values - walked.values)
    bounds = exact.diagnostics.error + walked.diagnostics.error
    assert np.mean(gap <= bounds) >= 0.99
    assert np.median(bounds) <= 10 * np.median(gap)  # half of the columns hardly act
    assert np.linalg.norm(bounds) <= 4 * np.linalg.norm(gap)


def test_features_that_cannot_act_have_no_bound():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 6))
    X[:, 4] = 2.0  # one value
    with pytest.warns(BackgroundWarning, match="constant"):
        explainer = TExplainer(lambda t: t[:, 0] * t[:, 1] + t[:, 2] ** 2, X, attribution="shapley")
    found = explainer(X[:9])
    assert np.all(found.values[:, 3:] == 0)
    assert np.all(found.diagnostics.error[:, 4] == 0)
    unseen = found.diagnostics.error[:, [3, 5]]  # not used, but walks cannot prove it
    assert np.all(unseen > 0)
    assert np.all(unseen < found.diagnostics.error[:, :3].max(axis=1, keepdims=True))


def test_a_missing_value_is_one_value_to_the_bounds():
    """Of two tables, one with gaps and one with a number in their place, that a function takes alike."""
    X = np.random.default_rng(14).normal(size=(200, 5))
    gaps = np.arange(200) % 4 != 1
    bounds = []
    for mark in (np.nan, -9.0):
        table = X.copy()
        table[gaps, 3] = mark
        explainer = TExplainer(lambda t: smooth(np.nan_to_num(t, nan=-9.0)), table, attribution="shapley")
        found = explainer(table[:9])
        assert (found.values[:, 3] == 0).all()
        bounds.append(found.diagnostics.error[:, 3])
    np.testing.assert_allclose(*bounds)
    assert (bounds[0] > 0).all()


def smooth(table: np.ndarray) -> np.ndarray:
    return np.sin(table[:, 0]) * table[:, 1] + table[:, 2] ** 2 - np.tanh(table[:, 0] * table[:, 4])


def test_a_control_variate_leaves_less_error(monkeypatch):
    X = np.random.default_rng(2).normal(size=(300, 5))
    rows, background = X[:10], X[100:]
    exact = TExplainer(smooth, background, attribution="shapley", max_evals=60_000)(rows).values
    closer = TExplainer(smooth, background, attribution="shapley", max_evals=400)(rows)
    monkeypatch.setattr(walks, "control_variate", lambda *_: None)
    plain = TExplainer(smooth, background, attribution="shapley", max_evals=400)(rows)
    assert np.linalg.norm(closer.values - exact) <= 0.6 * np.linalg.norm(plain.values - exact)
    assert np.linalg.norm(closer.diagnostics.error) <= 0.6 * np.linalg.norm(plain.diagnostics.error)


def walked(f, row: np.ndarray, sample: walks.BackgroundSample) -> np.ndarray:
    """The mean change of f by each feature's step, one step after the other, (features, outputs)."""
    total = np.zeros((len(row), f(row[None]).shape[1]))
    for start, number in zip(sample.rows, sample.number, strict=True):
        point = start.copy()
        for feature in np.argsort(walk_order(int(number), len(row))):
            before = f(point[None])[0]
            point[feature] = row[feature]
            total[feature] += f(point[None])[0] - before
    return total / len(sample.rows)


def test_values_are_exact_ones_of_the_model_and_walks_on_the_rest(monkeypatch):
    X = np.random.default_rng(3).normal(size=(80, 5))
    met: dict[str, list] = {}

    def kept(name):
        original = getattr(walks, name)

        def watched(*arguments):
            met.setdefault(name, []).append((arguments, original(*arguments)))
            return met[name][-1][1]

        monkeypatch.setattr(walks, name, watched)

    kept("with_control_variate")
    kept("control_variate")
    TExplainer(smooth, X, attribution="shapley", max_evals=290)(X[:3])
    ((context, sample, _), groups), model = met["with_control_variate"][0], met["control_variate"][0][1]
    function, values = context.predictor, groups.sum(axis=1)
    assert model is not None
    for row, found in zip(X[:3], values, strict=True):
        expected = model.shapley(row[None])[0] + walked(lambda t: function(t) - model(t), row, sample)
        expected[3] = 0.0  # the function does not use it, whatever the model does
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_classes_cancel():
    X = np.random.default_rng(4).normal(size=(400, 5))
    model = KNeighborsClassifier(25).fit(X, np.digitize(smooth(X), [0.0, 1.5]))
    found = TExplainer(model, X[:150], attribution="shapley", output="all")(X[:6])
    np.testing.assert_allclose(found.values.sum(axis=-1), 0.0, atol=1e-12)


def rarely_third(table: np.ndarray) -> np.ndarray:
    """Three classes in float32; one feature matters to the rare third one, and to the others less than their digits."""
    third = 1e-4 * (1 + 1e-3 * table[:, 3])
    first = (1 - third) / (1 + np.exp(-smooth(table)))
    return np.column_stack([first, 1 - third - first, third]).astype(np.float32)


def test_classes_cancel_where_a_feature_is_seen_to_act_on_some_only():
    X = np.random.default_rng(4).normal(size=(400, 5))
    found = TExplainer(rarely_third, X[:150], attribution="shapley")(X[:20])
    np.testing.assert_allclose(found.values.sum(axis=-1), 0.0, atol=1e-6)


def test_rows_do_not_depend_on_the_other_rows():
    X = np.random.default_rng(5).normal(size=(150, 5))
    together = TExplainer(smooth, X, attribution="shapley")(X[:40])
    alone = TExplainer(smooth, X, attribution="shapley")(X[7:8])
    np.testing.assert_array_equal(together.values[7], alone.values[0])


def test_the_model_is_fitted_once_to_as_many_predictions_as_a_row_costs(monkeypatch):
    X, asked = np.random.default_rng(6).normal(size=(150, 5)), []

    def counted(table: np.ndarray) -> np.ndarray:
        asked.append(len(table))
        return smooth(table)

    def two_calls() -> list[int]:
        explainer, spent = TExplainer(counted, X, attribution="shapley", max_evals=400), []
        for _ in range(2):
            asked.clear()
            assert (explainer(X[:4]).diagnostics.evaluations <= 400).all()
            spent.append(sum(asked))
        return spent

    first, second = two_calls()
    monkeypatch.setattr(walks, "control_variate", lambda *_: None)
    assert 300 <= first - two_calls()[0] <= 400
    assert second == two_calls()[1]


def test_a_function_that_refuses_mixtures_is_explained_without_the_model(monkeypatch):
    X = np.random.default_rng(7).normal(size=(150, 5))
    refused = control.mixtures(
        X, 300 * 4 * 3 // 2
    )  # 2 walks from every row, of 4 evaluations, and half as many

    def picky(table: np.ndarray) -> np.ndarray:
        if table.shape == refused.shape and (table == refused).all():
            raise ValueError("not these")
        return smooth(table)

    found = TExplainer(picky, X, attribution="shapley")(X[:4])
    monkeypatch.setattr(walks, "control_variate", lambda *_: None)
    without = TExplainer(smooth, X, attribution="shapley")(X[:4])
    np.testing.assert_array_equal(found.values, without.values)


@pytest.mark.parametrize("categories", [3, 300])
def test_the_order_of_categories_means_nothing_to_the_model(categories):
    rng = np.random.default_rng(8)
    codes = rng.permutation(np.arange(900) % categories)
    frame = pd.DataFrame({"x": rng.normal(size=900), "y": rng.normal(size=900), "code": codes.astype(str)})

    def f(table: pd.DataFrame) -> np.ndarray:
        return table["x"] * table["code"].astype(int).mod(3) + np.sin(table["x"] * table["y"])

    def values(order: list[str]) -> np.ndarray:
        dtype = pd.CategoricalDtype(order)
        turned = frame.astype({"code": dtype})
        explainer = TExplainer(
            lambda table: f(table.astype({"code": str})), turned[5:], attribution="shapley", max_evals=4000
        )
        return explainer(turned[:5]).values

    order = [str(code) for code in range(categories)]
    np.testing.assert_allclose(values(order), values(order[1:] + order[:1]), rtol=1e-9, atol=1e-12)


def test_a_function_that_is_nan_between_background_rows_is_explained_without_the_model(monkeypatch):
    X = np.random.default_rng(9).uniform(size=(150, 4))
    X[:, 1] = X[:, 0] + 0.9

    def root(table: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return np.sqrt(table[:, 1] - table[:, 0]) * table[:, 2] + table[:, 3] * table[:, 0]

    found = TExplainer(root, X, attribution="shapley")(X[:9])
    monkeypatch.setattr(walks, "control_variate", lambda *_: None)
    without = TExplainer(root, X, attribution="shapley")(X[:9])
    np.testing.assert_array_equal(found.values, without.values)
    mixtures = control.mixtures(
        X, 300 * 3 * 3 // 2
    )  # 2 walks from every row, of 3 evaluations, and half as many
    assert np.isnan(root(mixtures)).any()


def test_large_predictions_are_explained_without_a_warning():
    X = np.random.default_rng(10).normal(size=(100, 5))
    small = TExplainer(smooth, X, attribution="shapley", max_evals=100)(X[:3]).values
    large = TExplainer(lambda t: 1e60 * smooth(t), X, attribution="shapley")(X[:3])
    assert np.isfinite(large.values).all()
    assert np.abs(large.values.sum() / 1e60 - small.sum()) < 1e-9


def test_a_column_without_a_value_is_explained():
    X = np.random.default_rng(11).normal(size=(100, 5))
    X[:, 3] = np.nan
    with pytest.warns(BackgroundWarning, match="constant"):
        explainer = TExplainer(smooth, X, attribution="shapley")
    found = explainer(X[50:53])
    assert (found.values[:, 3] == 0).all()
    assert np.abs(found.values[:, :3]).min() > 0


def test_categories_that_are_new_mean_the_same_to_the_model_and_to_its_values():
    rng = np.random.default_rng(12)
    frame = pd.DataFrame({"x": rng.normal(size=200), "town": rng.choice([*"aaabc"], size=200)})
    frame["y"] = rng.normal(size=200)

    def f(table: pd.DataFrame) -> np.ndarray:
        return table["x"] * table["town"].map({"a": 1.0, "b": 3.0, "c": 5.0, "new": 9.0}) + table["y"]

    explainer = TExplainer(f, frame, attribution="shapley")
    explainer(frame[:1])
    rows = explainer.schema.read(frame[:4].assign(town=["a", "new", "b", "new"]))
    model = next(v for k, v in explainer.background._derived.items() if k[0] == "control variate")
    assert model is not None
    expected = model(rows) - model(explainer.background.rows).mean(axis=0)
    np.testing.assert_allclose(model.shapley(rows).sum(axis=1), expected, atol=1e-9)


def test_functions_of_many_outputs_have_no_model(monkeypatch):
    X = np.random.default_rng(13).normal(size=(60, 6))
    monkeypatch.setattr(control, "_fitted", lambda *_: pytest.fail("a model was fitted"))
    wide = np.arange(control.MOST_OUTPUTS + 1)
    found = TExplainer(lambda t: smooth(t)[:, None] + wide * t[:, :1], X, attribution="shapley")(X[:2])
    assert found.values.shape == (2, 6, len(wide))


@pytest.mark.parametrize(("width", "points"), [(10, 4000), (20_000, 209), (100_000, None)])
def test_the_model_of_a_wide_table_is_fitted_to_fewer_points(monkeypatch, width, points):
    monkeypatch.setattr(control, "_fitted", lambda _, points: points)
    kept = SimpleNamespace(cached=lambda key, make: make())
    one = SimpleNamespace(outputs=(0,))
    context = SimpleNamespace(rows=np.zeros((1, width)), predictor=one, background=kept)
    assert control.control_variate(context, 10**6) == points


def test_memory_does_not_grow_with_the_outputs():
    X, several = np.random.default_rng(15).normal(size=(400, 6)), np.arange(200) % 5
    explainer = TExplainer(lambda t: t[:, several] * t[:, several + 1], X[:50], attribution="shapley")
    tracemalloc.start()
    explainer(X)
    assert tracemalloc.get_traced_memory()[1] < 2.5e8
    tracemalloc.stop()
