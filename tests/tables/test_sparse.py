"""Sparse tables: a value that is not stored is what the model takes it for."""

import numpy as np
import pytest
import scipy.sparse as sp

import texplainer as tx
from texplainer.errors import InputError

FORMATS = ["csr_matrix", "csc_matrix", "coo_matrix", "lil_matrix", "dok_matrix", "csr_array", "coo_array"]


def data():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(300, 5))
    dense[rng.random(dense.shape) < 0.6] = 0.0
    return dense, dense[:, 0] * 2 + dense[:, 1] ** 2 - 3 * (dense[:, 2] == 0)


def xgboost(**options):
    return pytest.importorskip("xgboost").XGBRegressor(n_estimators=12, max_depth=3, **options)


def lightgbm(**options):
    return pytest.importorskip("lightgbm").LGBMRegressor(n_estimators=12, verbose=-1, **options)


def catboost(**options):
    return pytest.importorskip("catboost").CatBoostRegressor(iterations=12, verbose=0, **options)


def forest(**options):
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(8, random_state=0, max_depth=4, **options)


def scaled(**options):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    return make_pipeline(MaxAbsScaler(), xgboost(**options))


MODELS = {
    "xgboost": (xgboost, {}),
    "xgboost, missing=0": (xgboost, {"missing": 0.0}),
    "xgboost, missing=-1": (xgboost, {"missing": -1.0}),
    "xgboost behind a scaler": (scaled, {}),
    "lightgbm": (lightgbm, {}),
    "lightgbm, zero_as_missing": (lightgbm, {"zero_as_missing": True}),
    "catboost": (catboost, {}),
    "forest": (forest, {}),
}


@pytest.mark.parametrize("name", MODELS)
def test_predictions_and_contributions_are_those_of_the_sparse_table(name):
    make, options = MODELS[name]
    dense, y = data()
    table = sp.csr_matrix(dense)
    model = make(**options).fit(table, y)
    explainer = tx.TExplainer(model, table[:100])
    found = explainer(table[100:108], attribution=("shapley", "slope"))
    expected = np.asarray(model.predict(table[100:108]))
    np.testing.assert_allclose(found.predictions, expected, rtol=1e-5, atol=1e-5)
    base = np.mean(np.asarray(model.predict(table[:100]), dtype=float))
    np.testing.assert_allclose(found.values.sum(axis=1), expected - base, atol=1e-4)
    assert explainer.engine.name == "tree"
    assert "exact" in found.settings["how"]


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_same(form):
    dense, y = data()
    model = xgboost().fit(sp.csr_matrix(dense), y)
    explainer = tx.TExplainer(model, sp.csr_matrix(dense[:50]), attribution="shapley")
    expected = explainer(sp.csr_matrix(dense[50:54])).values
    np.testing.assert_array_equal(explainer(getattr(sp, form)(dense[50:54])).values, expected)


def test_a_stored_zero_is_a_zero_and_an_absent_one_is_missing():
    dense, y = data()
    model = xgboost().fit(sp.csr_matrix(dense), y)
    stored = sp.csr_matrix(dense[:4])
    stored.data[:] = 0.0  # zeros that are stored
    explainer = tx.TExplainer(model, sp.csr_matrix(dense[:50]))
    np.testing.assert_allclose(explainer(stored).predictions, model.predict(stored), rtol=1e-6)


def test_a_model_that_reads_the_sparse_table_otherwise_is_refused():
    dense, _ = data()

    def model(table):
        return np.asarray(table.sum(axis=1)).ravel() if sp.issparse(table) else table[:, 0] * 5

    with pytest.raises(InputError, match="the model predicts"):
        tx.TExplainer(model, sp.csr_matrix(dense[:50]))
