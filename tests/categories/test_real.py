"""German credit and HELOC from their raw tables, through four kinds of model: one attribution per raw column.

Generated tables with the same traits (texts, missing cells, codes, skewed counts) take their place in the same tests, so
that these run where the real ones are not.

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
    "like german": ["sex", "housing", "savings", "purpose"],
    "like heloc": ["worst_recent", "worst_ever"],
}
WIDTHS = {"german": 9, "heloc": 23, "like german": 8, "like heloc": 7}


def generated(name: str, rows: int = 500) -> tuple[pd.DataFrame, np.ndarray]:
    """A small table with the traits of a real one."""
    random = np.random.default_rng(0)
    risk = random.normal(size=rows)
    if name == "like german":  # texts with missing cells, whole numbers, a skewed amount
        frame = pd.DataFrame(
            {
                "age": random.integers(19, 75, rows),
                "sex": random.choice(["male", "female"], rows),
                "job": random.integers(0, 4, rows),
                "housing": random.choice(["own", "free", "rent"], rows, p=[0.7, 0.1, 0.2]),
                "savings": random.choice(["little", "moderate", "rich"], rows, p=[0.7, 0.2, 0.1]),
                "amount": random.lognormal(8 + 0.3 * risk, 0.8).round(),
                "duration": random.integers(1, 12, rows) * 6,
                "purpose": random.choice(["car", "radio/TV", "education", "repairs"], rows),
            }
        )
        frame.loc[random.random(rows) < 0.2, "savings"] = np.nan
        good = risk + 0.03 * frame["age"] + (frame["housing"] == "own") < 2
        return frame, good.to_numpy(dtype=int)
    counts = {f"count_{k}": random.poisson(np.exp(0.4 * risk + k / 2)).astype(float) for k in range(4)}
    shares = {
        "burden": np.clip(random.gamma(2.0, 20.0, rows), 0, 232)
    }  # numbers with gaps, codes of delinquency
    codes = {"worst_recent": random.choice([0, 4, 6, 7], rows), "worst_ever": random.choice([2, 5, 8], rows)}
    frame = pd.DataFrame({**counts, **shares, **codes})
    frame = frame.mask(
        pd.DataFrame(random.random(frame.shape) < 0.08, columns=frame.columns) & ~frame.columns.isin(codes)
    )
    return frame, (risk + 0.1 * codes["worst_recent"] > 0.4).astype(int)


def raw(name: str, request: pytest.FixtureRequest) -> tuple[pd.DataFrame, np.ndarray]:
    """The table as it comes, with its missing cells; a real one is skipped where the data are not."""
    if name.startswith("like"):
        return generated(name)
    folder: Path = request.getfixturevalue("data_dir")
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
def test_raw_tables_are_explained_end_to_end(name, make, request):
    frame, y = raw(name, request)
    assert frame.shape[1] == WIDTHS[name]
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
def test_encoded_tables_fold_back_to_the_raw_columns(name, request):
    frame, y = raw(name, request)
    wide = pd.get_dummies(frame.astype(dict.fromkeys(CATEGORIES[name], str)), columns=CATEGORIES[name])
    wide = wide.fillna(wide.mean())
    model = make_pipeline(MinMaxScaler(), LogisticRegression(max_iter=2000)).fit(wide, y)
    explanation = TExplainer(model, wide)(wide[:10])
    assert set(explanation.feature_names) == set(frame.columns)
