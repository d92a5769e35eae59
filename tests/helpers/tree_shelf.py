"""One small model of every kind of tree ensemble, with the model's own raw sums."""

# ruff: noqa: E402  (optional packages, asked for first)

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

pytest.importorskip("numba")
xgb = pytest.importorskip("xgboost")
lgb = pytest.importorskip("lightgbm")

from texplainer.gradients.trees.ensemble import LEAF


def _tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    return X, holes, np.column_stack([X[:, :3], rng.integers(0, 40, len(X))])


X, HOLES, CODES = _tables()
TWO = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
THREE = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.0, 1.0])
REAL = X[:, 0] * 2 + np.sin(3 * X[:, 1])
COUNT = np.exp(X[:, 0] / 2)
SEVERAL = np.column_stack([REAL, X[:, 2], -REAL * X[:, 3]])
PARITY = ((CODES[:, 3] % 3 == 0) ^ (X[:, 0] > 0)).astype(int)


def xgboost(kind, y, x=HOLES, **options):
    return lambda: (kind(n_estimators=6, max_depth=4, n_jobs=1, **options).fit(x, y), x)


def lightgbm(kind, y, x=HOLES, **options):
    fit = options.pop("fit", {})
    return lambda: (kind(n_estimators=6, num_leaves=12, n_jobs=1, verbose=-1, **options).fit(x, y, **fit), x)


def sklearn(kind, y, x=X, **options):
    return lambda: (kind(random_state=0, **options).fit(x, y), x)


def catboost(name, y, x=HOLES, **options):
    def make():
        library = pytest.importorskip("catboost")
        kind = getattr(library, name)
        model = kind(iterations=6, depth=4, verbose=0, allow_writing_files=False, thread_count=1, **options)
        return model.fit(x, y), x

    return make


def xgboost_stopped():
    model = xgb.XGBRegressor(
        n_estimators=60, max_depth=4, learning_rate=0.7, early_stopping_rounds=2, n_jobs=1
    )
    model.fit(
        X[:150],
        REAL[:150] + np.random.default_rng([0, 4]).normal(size=150),
        eval_set=[(X[150:], REAL[150:])],
        verbose=False,
    )
    assert model.best_iteration < model.get_booster().num_boosted_rounds() - 1
    return model, X


def lightgbm_stopped():
    model = lgb.LGBMRegressor(n_estimators=60, learning_rate=0.7, n_jobs=1, verbose=-1)
    stop = lgb.early_stopping(2, verbose=False)
    model.fit(
        X[:150],
        REAL[:150] + np.random.default_rng([0, 5]).normal(size=150),
        eval_set=[(X[150:], REAL[150:])],
        callbacks=[stop],
    )
    return model, X


def score(model, rows):
    return model.predict(rows, output_margin=True)


def raw_score(model, rows):
    return model.predict(rows, raw_score=True)


def raw_value(model, rows):
    return model.predict(rows, prediction_type="RawFormulaVal")


def shares(model, rows):
    p = model.predict_proba(rows)
    p = p if isinstance(p, list) else [p]
    return np.hstack([one[:, 1:] if one.shape[1] == 2 else one for one in p])


def decision(model, rows):
    return model.decision_function(rows)


def predict(model, rows):
    return model.predict(rows)


def log_predict(model, rows):
    return np.log(model.predict(rows))


RF, RFR, ET = RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier
GB, GBR, HGB = GradientBoostingClassifier, GradientBoostingRegressor, HistGradientBoostingClassifier
HGBR = HistGradientBoostingRegressor
SMALL = {"n_estimators": 6, "max_depth": 5}
#: name -> (makes model and data, the model's own raw sums, tolerance)
MODELS = {
    "xgboost binary": (xgboost(xgb.XGBClassifier, TWO), score, 1e-5),
    "xgboost multiclass": (xgboost(xgb.XGBClassifier, THREE), score, 1e-5),
    "xgboost regression": (xgboost(xgb.XGBRegressor, REAL), score, 1e-5),
    "xgboost poisson": (xgboost(xgb.XGBRegressor, COUNT, objective="count:poisson"), score, 1e-5),
    "xgboost logitraw": (xgboost(xgb.XGBRegressor, TWO, objective="binary:logitraw"), score, 1e-5),
    "xgboost base score": (xgboost(xgb.XGBClassifier, TWO, base_score=0.3), score, 1e-5),
    "xgboost dart": (xgboost(xgb.XGBClassifier, TWO, booster="dart", rate_drop=0.5), score, 1e-5),
    "xgboost forest": (xgboost(xgb.XGBRFClassifier, TWO), score, 1e-5),
    "xgboost parallel trees": (
        xgboost(xgb.XGBRegressor, REAL, num_parallel_tree=3, subsample=0.5),
        score,
        1e-5,
    ),
    "xgboost multi-target": (xgboost(xgb.XGBRegressor, SEVERAL), score, 1e-5),
    "xgboost vector leaves": (
        xgboost(xgb.XGBRegressor, SEVERAL, multi_strategy="multi_output_tree"),
        score,
        1e-5,
    ),
    "xgboost categories": (
        xgboost(
            xgb.XGBClassifier, PARITY, CODES, feature_types=["q", "q", "q", "c"], enable_categorical=True
        ),
        score,
        1e-5,
    ),
    "xgboost one-hot categories": (
        xgboost(
            xgb.XGBClassifier,
            PARITY,
            CODES,
            feature_types=["q", "q", "q", "c"],
            enable_categorical=True,
            max_cat_to_onehot=100,
        ),
        score,
        1e-5,
    ),
    "xgboost stopped early": (xgboost_stopped, score, 1e-5),
    "lightgbm binary": (lightgbm(lgb.LGBMClassifier, TWO), raw_score, 1e-10),
    "lightgbm multiclass": (lightgbm(lgb.LGBMClassifier, THREE), raw_score, 1e-10),
    "lightgbm regression": (lightgbm(lgb.LGBMRegressor, REAL), raw_score, 1e-10),
    "lightgbm without missing": (lightgbm(lgb.LGBMRegressor, REAL, X), raw_score, 1e-10),
    "lightgbm use_missing=False": (lightgbm(lgb.LGBMRegressor, REAL, use_missing=False), raw_score, 1e-10),
    "lightgbm dart": (
        lightgbm(lgb.LGBMClassifier, TWO, boosting_type="dart", drop_rate=0.5),
        raw_score,
        1e-10,
    ),
    "lightgbm forest": (
        lightgbm(lgb.LGBMClassifier, TWO, boosting_type="rf", subsample=0.5, subsample_freq=1),
        raw_score,
        1e-10,
    ),
    "lightgbm categories": (
        lightgbm(lgb.LGBMClassifier, PARITY, CODES, min_child_samples=5, fit={"categorical_feature": [3]}),
        raw_score,
        1e-10,
    ),
    "lightgbm stopped early": (lightgbm_stopped, raw_score, 1e-10),
    "catboost binary": (catboost("CatBoostClassifier", TWO), raw_value, 1e-10),
    "catboost multiclass": (catboost("CatBoostClassifier", THREE), raw_value, 1e-10),
    "catboost regression": (catboost("CatBoostRegressor", REAL), raw_value, 1e-10),
    "catboost several": (catboost("CatBoostRegressor", SEVERAL, loss_function="MultiRMSE"), raw_value, 1e-10),
    "catboost lossguide": (catboost("CatBoostRegressor", REAL, grow_policy="Lossguide"), raw_value, 1e-10),
    "catboost depthwise": (catboost("CatBoostClassifier", THREE, grow_policy="Depthwise"), raw_value, 1e-10),
    "catboost nan max": (catboost("CatBoostRegressor", REAL, nan_mode="Max"), raw_value, 1e-10),
    "tree binary": (sklearn(DecisionTreeClassifier, TWO, HOLES, max_depth=6), shares, 1e-10),
    "tree regression": (sklearn(DecisionTreeRegressor, REAL, HOLES, max_depth=6), predict, 1e-10),
    "forest binary": (sklearn(RF, TWO, HOLES, **SMALL), shares, 1e-10),
    "forest multiclass": (sklearn(RF, THREE, **SMALL), shares, 1e-10),
    "forest several": (sklearn(RFR, SEVERAL, **SMALL), predict, 1e-10),
    "forest multilabel": (sklearn(RF, np.column_stack([TWO, THREE]), **SMALL), shares, 1e-10),
    "forest weighted": (sklearn(RF, TWO, class_weight="balanced", **SMALL), shares, 1e-10),
    "forest best-first": (sklearn(RF, TWO, n_estimators=6, max_leaf_nodes=9), shares, 1e-10),
    "extra trees": (sklearn(ET, TWO, **SMALL), shares, 1e-10),
    "extra trees regression": (sklearn(ExtraTreesRegressor, REAL, **SMALL), predict, 1e-10),
    "boosting binary": (sklearn(GB, TWO, n_estimators=6), decision, 1e-10),
    "boosting exponential": (sklearn(GB, TWO, n_estimators=6, loss="exponential"), decision, 1e-10),
    "boosting multiclass": (sklearn(GB, THREE, n_estimators=6), decision, 1e-10),
    "boosting regression": (sklearn(GBR, REAL, n_estimators=6, loss="huber"), predict, 1e-10),
    "boosting from zero": (sklearn(GBR, REAL, n_estimators=6, init="zero"), predict, 1e-10),
    "boosting stopped early": (
        sklearn(GB, TWO, n_estimators=100, n_iter_no_change=2, learning_rate=0.9),
        decision,
        1e-10,
    ),
    "histogram binary": (sklearn(HGB, TWO, HOLES, max_iter=6), decision, 1e-10),
    "histogram multiclass": (sklearn(HGB, THREE, HOLES, max_iter=6), decision, 1e-10),
    "histogram regression": (sklearn(HGBR, REAL, HOLES, max_iter=6), predict, 1e-10),
    "histogram poisson": (sklearn(HGBR, COUNT, max_iter=6, loss="poisson"), log_predict, 1e-10),
    "histogram categories": (
        sklearn(HGB, PARITY, CODES, max_iter=6, categorical_features=[3]),
        decision,
        1e-10,
    ),
}


def awkward(ensemble, data):
    """Rows of the data; rows exactly on thresholds and one float32 beside them; rows with missing cells."""
    rng = np.random.default_rng(1)
    rows = data[rng.integers(len(data), size=300)].copy()
    for column in range(data.shape[1]):
        known = ensemble.threshold[(ensemble.kind & LEAF == 0) & (ensemble.column == column)]
        known = known[np.abs(known) < 1e30]
        if len(known):
            exact = rng.choice(known, 200)
            near = np.nextafter(exact.astype(np.float32), np.float32(rng.choice([-np.inf, np.inf])))
            rows[:100, column] = exact[:100]
            rows[100:200, column] = near[100:]
    return np.where(rng.random(rows.shape) < 0.1, np.nan, rows) if np.isnan(data).any() else rows
