"""German credit and HELOC from their raw tables, through four kinds of model: one attribution per raw column.

Warnings are errors here as everywhere in these tests: none is given.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from texplainer import TExplainer

CATEGORIES = {
    "german": ["Sex", "Housing", "Saving accounts", "Checking account", "Purpose"],
    "heloc": ["MaxDelq2PublicRecLast12M", "MaxDelqEver"],
}


def raw(name: str, folder: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """The table as it comes, with its missing cells."""
    if name == "german":
        frame = pd.read_csv(folder / "german_credit.csv")
        return frame.drop(columns="Risk"), (frame["Risk"] == "good").to_numpy(dtype=int)
    frame = pd.read_csv(folder / "heloc.csv")
    frame = frame[(frame.drop(columns="RiskPerformance") != -9).any(axis=1)].reset_index(drop=True)
    features = frame.drop(columns="RiskPerformance").replace([-7, -8, -9], np.nan)
    return features[:1500], (frame["RiskPerformance"] == "Good").to_numpy(dtype=int)[:1500]


def pipeline(frame: pd.DataFrame, y: np.ndarray, names: list[str]) -> tuple[Any, pd.DataFrame]:
    numbers = [c for c in frame if c not in names]
    encode = make_column_transformer(
        (make_pipeline(SimpleImputer(), MinMaxScaler()), numbers), (OneHotEncoder(), names)
    )
    return make_pipeline(encode, LogisticRegression(max_iter=2000)).fit(frame, y), frame


def lightgbm(frame: pd.DataFrame, y: np.ndarray, names: list[str]) -> tuple[Any, pd.DataFrame]:
    from lightgbm import LGBMClassifier

    frame = frame.astype(dict.fromkeys(names, "category"))
    return LGBMClassifier(n_estimators=20, num_leaves=7, verbose=-1, n_jobs=1).fit(frame, y), frame


def xgboost(frame: pd.DataFrame, y: np.ndarray, names: list[str]) -> tuple[Any, pd.DataFrame]:
    from xgboost import XGBClassifier

    frame = frame.astype(dict.fromkeys(names, "category"))
    model = XGBClassifier(n_estimators=20, max_depth=3, enable_categorical=True, n_jobs=1)
    return model.fit(frame, y), frame


def catboost(frame: pd.DataFrame, y: np.ndarray, names: list[str]) -> tuple[Any, pd.DataFrame]:
    from catboost import CatBoostClassifier

    text = {n: frame[n].astype(object).where(frame[n].notna(), "none").astype(str) for n in names}
    frame = frame.assign(**text)  # CatBoost takes no missing category
    model = CatBoostClassifier(20, depth=3, cat_features=names, verbose=0, allow_writing_files=False)
    return model.fit(frame, y), frame


@pytest.mark.parametrize("make", (pipeline, lightgbm, xgboost, catboost), ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", CATEGORIES)
def test_raw_tables_are_explained_end_to_end(name, make, data_dir):
    frame, y = raw(name, data_dir)
    assert frame.shape[1] == {"german": 9, "heloc": 23}[name]
    model, frame = make(frame, y, CATEGORIES[name])
    explainer = TExplainer(model, frame[:300], attribution="shapley", scale="probability")
    explanation = explainer(frame[300:320])
    assert explanation.feature_names == tuple(frame.columns)
    assert explanation.values.shape == (20, frame.shape[1]) and np.isfinite(explanation.values).all()
    assert list(explanation.categories) == CATEGORIES[name]
    # one category of one row by hand, through the user's own table
    column = CATEGORIES[name][-1]
    row = frame[300:301]
    here = model.predict_proba(row)[0, 1]
    effects = explanation.categories[column]
    for level, effect in zip(effects.levels, effects.effects[0, :, 0], strict=True):
        moved = row.copy()
        moved[column] = pd.Series([np.nan if level is None else level], row.index, dtype=row[column].dtype)
        assert effect == pytest.approx(model.predict_proba(moved)[0, 1] - here, abs=2e-7)


@pytest.mark.parametrize("name", CATEGORIES)
def test_encoded_tables_fold_back_to_the_raw_columns(name, data_dir):
    frame, y = raw(name, data_dir)
    wide = pd.get_dummies(frame.astype(dict.fromkeys(CATEGORIES[name], str)), columns=CATEGORIES[name])
    wide = wide.fillna(wide.mean())
    model = make_pipeline(MinMaxScaler(), LogisticRegression(max_iter=2000)).fit(wide, y)
    explanation = TExplainer(model, wide)(wide[:10])
    assert set(explanation.feature_names) == set(frame.columns)
