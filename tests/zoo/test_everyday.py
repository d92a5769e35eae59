"""What once failed or was obscure: tables of categories alone, encoders, names, unfitted models, shap's words."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.svm import SVC

import texplainer as tx
from texplainer.attributions.table import ATTRIBUTIONS
from texplainer.errors import InputError


def people(rows=150):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": rng.choice(["x", "y", "z"], rows), "owner": rng.choice(["u", "v"], rows)})
    return frame, ((frame.town == "x") ^ (frame.owner == "u")).astype(int)


@pytest.mark.parametrize("attribution", [name for name in ATTRIBUTIONS if name != "shapley_path"])
@pytest.mark.parametrize("encoder", [OneHotEncoder, OrdinalEncoder])
@pytest.mark.parametrize("model", [LogisticRegression, RandomForestClassifier])
def test_tables_of_categories_alone(model, encoder, attribution):
    frame, y = people()
    fitted = make_pipeline(encoder(), model()).fit(frame, y)
    found = tx.TExplainer(fitted, frame, attribution=attribution)(frame[:3])
    assert found.values.shape == (3, 2) and np.isfinite(found.values).all() and found.values.any()


@pytest.mark.parametrize("encoder", ["TargetEncoder", "OneHotEncoder", "OrdinalEncoder", "WOEEncoder"])
def test_category_encoders_encode_their_own_columns_only(encoder):
    library = pytest.importorskip("category_encoders")
    frame, y = people()
    rng = np.random.default_rng(1)
    frame = frame.assign(age=rng.normal(40, 10, len(frame)), fare=rng.gamma(2, 10, len(frame)))
    model = make_pipeline(
        getattr(library, encoder)(cols=["town", "owner"]), RandomForestClassifier(8, max_depth=4)
    ).fit(frame, y)
    explainer = tx.TExplainer(model, frame, attribution="shapley")
    assert [explainer.schema.names[j] for j in explainer.schema.levels] == ["town", "owner"]
    found = explainer(frame[:3])
    np.testing.assert_allclose(found.diagnostics.completeness, 0.0, atol=1e-9)
    assert "exact" in found.settings["how"]


@pytest.mark.parametrize("kind", [pd.Index, np.array, pd.Series, tuple, list])
def test_feature_names_of_any_kind(kind):
    X = np.random.default_rng(0).normal(size=(60, 3))
    explainer = tx.TExplainer(lambda t: t[:, 0], X, feature_names=kind(["a", "b", "c"]))
    assert explainer(X[:2]).feature_names == ("a", "b", "c")


UNFITTED = {
    "LogisticRegression": LogisticRegression,
    "SVC": SVC,
    "XGBClassifier": lambda: pytest.importorskip("xgboost").XGBClassifier(),
    "XGBRegressor": lambda: pytest.importorskip("xgboost").XGBRegressor(),
    "Booster": lambda: pytest.importorskip("xgboost").Booster(),
    "LGBMClassifier": lambda: pytest.importorskip("lightgbm").LGBMClassifier(),
    "LGBMRegressor": lambda: pytest.importorskip("lightgbm").LGBMRegressor(),
    "CatBoostClassifier": lambda: pytest.importorskip("catboost").CatBoostClassifier(),
    "CatBoostRegressor": lambda: pytest.importorskip("catboost").CatBoostRegressor(),
    "Pipeline": lambda: make_pipeline(OrdinalEncoder(), SVC()),
}


@pytest.mark.parametrize("name", UNFITTED)
def test_every_unfitted_model_gets_the_same_sentence(name):
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(InputError, match=f"^the {name} is not fitted; expected a fitted one"):
        tx.TExplainer(UNFITTED[name](), X)


# ---------------------------------------------------------------- shap's words


def test_shap_values_and_expected_value_are_contributions():
    X = np.random.default_rng(0).normal(size=(80, 3))
    explainer = tx.TExplainer(lambda t: np.column_stack([t[:, 0] * 2, t[:, 1] - t[:, 2]]), X)
    found = explainer.shap_values(X[:4])
    assert found.shape == (4, 3, 2) and explainer.expected_value.shape == (2,)
    total = explainer.expected_value + found.sum(axis=1)
    np.testing.assert_allclose(total, np.column_stack([X[:4, 0] * 2, X[:4, 1] - X[:4, 2]]))
    one = tx.TExplainer(lambda t: t[:, 0] * 2, X)
    assert isinstance(one.expected_value, float) and one.shap_values(X[:4]).shape == (4, 3)
    assert explainer(X[:4]).attribution == "slope"  # .values stays slopes


@pytest.mark.parametrize(
    ("keyword", "hint"),
    [
        ("masker", "background"),
        ("data", "background"),
        ("link", "scale"),
        ("model_output", "scale"),
        ("algorithm", "engine"),
        ("nsamples", "max_evals"),
        ("npermutations", "max_evals"),
        ("feature_perturbation", "interventional"),
        ("seed", "seed"),
        ("cat_features", "categorical"),
        ("atribution", "attribution"),
    ],
)
def test_keywords_of_shap_get_a_hint(keyword, hint):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(TypeError, match=hint):
        tx.TExplainer(lambda t: t[:, 0], X, **{keyword: 1})


@pytest.mark.parametrize("keyword", ["check_additivity", "nsamples", "silent", "approximate", "y"])
def test_keywords_of_shap_in_calls_get_a_hint(keyword):
    X = np.random.default_rng(0).normal(size=(20, 2))
    explainer = tx.TExplainer(lambda t: t[:, 0], X)
    with pytest.raises(TypeError, match=f"{keyword!r}. Instead, "):
        explainer.shap_values(X, **{keyword: 1})
    with pytest.raises(TypeError, match=f"{keyword!r}. Instead, "):
        explainer(X, **{keyword: 1})


@pytest.mark.parametrize("plot", ["bar", "beeswarm", "waterfall", "heatmap", "force", "decision"])
def test_plots_draw_what_shap_explained(plot):
    shap = pytest.importorskip("shap")
    plt = pytest.importorskip("matplotlib.pyplot")
    X = np.random.default_rng(0).normal(size=(20, 3))
    found = shap.Explanation(X * [1.0, 2.0, 3.0], base_values=0.5, data=X, feature_names=["a", "b", "c"])
    subject = found[0] if plot in ("waterfall", "force") else found
    axes = getattr(tx.plots, plot)(subject)
    assert axes.figure is not None
    plt.close("all")
