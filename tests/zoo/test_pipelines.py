"""35 pipelines of mixed columns: predictions equal, contributions sum, few on finite differences."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

import texplainer as tx

NUMBERS = {
    "scaled": StandardScaler,
    "min and max": MinMaxScaler,
    "imputed": SimpleImputer,
    "logarithm": lambda: FunctionTransformer(np.log1p),
    "power": PowerTransformer,
    "quantiles": lambda: QuantileTransformer(n_quantiles=20),
    "one-hot bins": lambda: KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform"),
}
MODELS = {
    "forest": lambda: RandomForestClassifier(8, max_depth=4, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(8, max_depth=4, random_state=0),
    "histogram": lambda: HistGradientBoostingClassifier(max_iter=8),
    "xgboost": lambda: pytest.importorskip("xgboost").XGBClassifier(n_estimators=8, max_depth=3),
    "lightgbm": lambda: pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=8, verbose=-1),
}


@pytest.mark.filterwarnings("ignore::texplainer.errors.EngineWarning", "ignore::UserWarning")
@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("model", MODELS)
def test_pipelines_are_explained_by_their_trees(model, numbers):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 9, 160).clip(1),
            "fare": rng.gamma(2, 9, 160),
            "town": rng.choice(list("xyz"), 160),
        }
    )
    y = ((frame.age > 40) ^ (frame.town == "x")).astype(int)
    encoder = OrdinalEncoder() if model == "histogram" else OneHotEncoder(sparse_output=False)
    columns = make_column_transformer((NUMBERS[numbers](), ["age", "fare"]), (encoder, ["town"]))
    pipeline = make_pipeline(columns, MODELS[model]()).fit(frame, y)
    explainer = tx.TExplainer(pipeline, frame[:80])
    assert (explainer.engine.name == "tree") == (numbers != "one-hot bins"), explainer.engine.why
    found = explainer(frame[80:84], attribution="shapley")
    p = pipeline.predict_proba(frame[80:84])[:, 1]
    expected = p if found.scale == "probability" else np.log(p / (1 - p))
    np.testing.assert_allclose(found.predictions, expected, atol=1e-5)
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), expected, atol=1e-5)
    assert "exact" in found.settings["how"]
