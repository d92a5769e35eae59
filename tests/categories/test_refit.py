"""The paper's continuity induction and target encoding: refitted, compared, repeatable."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from texplainer import TExplainer
from texplainer.categories.refit import DELTA, PRIOR_ROWS, Refitted, RefitWarning
from texplainer.errors import InputError

COLOUR = {"blue": -1.0, "grey": 0.5, "red": 2.0}


def table(rows: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": random.uniform(size=rows),
            "colour": random.choice(list(COLOUR), rows),
            "noise": random.choice(["p", "q"], rows),
        }
    )
    return frame, 3 * frame["x"].to_numpy() + frame["colour"].map(COLOUR).to_numpy(dtype=float)


def pipeline(final):
    encode = make_column_transformer((MinMaxScaler(), ["x"]), (OneHotEncoder(), ["colour", "noise"]))
    return make_pipeline(encode, final)


def classifier() -> tuple[object, pd.DataFrame, np.ndarray]:
    frame, z = table()
    y = (z + np.random.default_rng(1).normal(0, 0.3, len(z)) > 2).astype(int)
    return pipeline(LogisticRegression()).fit(frame, y), frame, y


def test_induction_refits_on_noisy_cells_brought_to_the_unit_interval():
    """A slow twin of the refit: the same noise, the same scaling, the same clone."""
    model, frame, y = classifier()
    words = {
        "attribution": "gradient",
        "smoothing": 0,
        "scale": "probability",
    }
    explainer = TExplainer(Refitted(model, frame, y, seed=7), frame, **words)
    levels = [sorted(COLOUR), ["p", "q"]]
    cells = np.hstack(
        [
            (frame[name].to_numpy()[:, None] == np.array(own)).astype(float)
            for name, own in zip(("colour", "noise"), levels, strict=True)
        ]
    )
    noise = np.random.default_rng(7).uniform(-DELTA, DELTA, cells.shape)
    wide = np.column_stack([frame["x"], cells + noise])
    low, high = wide.min(axis=0), wide.max(axis=0)
    clone = LogisticRegression().fit((wide - low) / (high - low), y)
    exact = (np.column_stack([frame["x"], cells]) - low) / (high - low)
    explanation = explainer(frame[:30])
    np.testing.assert_allclose(explanation.predictions, clone.predict_proba(exact[:30])[:, 1], rtol=1e-9)
    p = explanation.predictions
    g = (p * (1 - p))[:, None] * (clone.coef_ / (high - low))  # (rows, cells) per unit of the unscaled cell
    own = cells[:30, :3].argmax(axis=1)
    expected = g[:, 1:4] - g[np.arange(30), 1 + own][:, None]
    np.testing.assert_allclose(explanation.categories["colour"].effects[:, :, 0], expected, rtol=1e-6)
    np.testing.assert_allclose(explanation[:, "x"].values, g[:, 0], rtol=1e-6)


def test_target_cells_are_the_levels_shrunken_means():
    model, frame, y = classifier()
    explainer = TExplainer(Refitted(model, frame, y, "target"), frame)
    group = explainer.predictor.schema.layout.groups[1]
    for code, level in enumerate(sorted(COLOUR)):
        mine = y[frame["colour"] == level]
        expected = (mine.sum() + PRIOR_ROWS * y.mean()) / (len(mine) + PRIOR_ROWS)
        assert group.patterns[code, 0] == pytest.approx(expected)


@pytest.mark.parametrize("method", ("induction", "target"))
def test_refits_are_repeatable_reported_and_rank_the_informative_first(method):
    model, frame, y = classifier()
    make = lambda seed: TExplainer(  # noqa: E731
        Refitted(model, frame, y, method, seed), frame, attribution="slope"
    )
    explainer = make(0)
    explanation = explainer(frame[:50])
    np.testing.assert_array_equal(explanation.values, make(0)(frame[:50]).values)
    assert np.any(explanation.values != make(1)(frame[:50]).values) == (method == "induction")
    assert explanation.values.shape == (50, 3) and explanation.feature_names == ("x", "colour", "noise")
    size = np.abs(explanation.values)
    assert (size[:, 1] > size[:, 2]).mean() >= 0.95
    assert explainer.refit is not None and explainer.refit.disagreement < 0.1
    assert explanation.settings["refit"]["disagreement"] == explainer.refit.disagreement
    assert "the refitted model disagrees by" in repr(explainer)


def test_induction_of_a_linear_model_agrees_with_swaps():
    frame, z = table()
    model = pipeline(LinearRegression()).fit(frame, z)
    swaps = TExplainer(model, frame, attribution="slope")(frame[:20])
    induced = TExplainer(Refitted(model, frame, z), frame, attribution="slope")(frame[:20])
    np.testing.assert_allclose(
        induced.values, swaps.values, atol=0.1
    )  # noisy cells dampen coefficients a bit


def test_a_refit_far_from_the_original_warns():
    model, frame, y = classifier()
    with pytest.warns(RefitWarning, match=r"disagrees with the original by \d+\.\d% .*Pass the model itself"):
        explainer = TExplainer(Refitted(model, frame, 1 - y), frame)
    assert explainer.refit is not None and explainer.refit.disagreement > 0.5
    assert explainer.refit.refitted > 0.8 > 0.5 > explainer.refit.original


def test_one_hot_arrays_are_induced_too():
    frame, z = table()
    wide = pd.get_dummies(frame, dtype=float)
    y = (z > 2).astype(int)
    explainer = TExplainer(Refitted(LogisticRegression().fit(wide, y), wide, y), wide)
    assert explainer(wide[:5]).feature_names == ("x", "colour", "noise")


@pytest.mark.parametrize("library", ("lightgbm", "catboost", "xgboost"))
def test_native_categories_are_induced_too(library):
    frame, z = table()
    y = (z > 2).astype(int)
    kinds = frame.astype({"colour": "category", "noise": "category"})
    if library == "lightgbm":
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(n_estimators=10, verbose=-1).fit(kinds, y)
    elif library == "xgboost":
        from xgboost import XGBClassifier

        model = XGBClassifier(n_estimators=10, enable_categorical=True).fit(kinds, y)
    else:
        from catboost import CatBoostClassifier

        kinds = frame
        columns = ["colour", "noise"]
        model = CatBoostClassifier(10, cat_features=columns, verbose=0, allow_writing_files=False)
        model.fit(kinds, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefitWarning)
        explanation = TExplainer(Refitted(model, kinds, y), kinds)(kinds[:5])
    assert np.isfinite(explanation.values).all() and explanation.values.shape == (5, 3)


BAD = {
    "an unknown method": (
        {"method": "embedding"},
        "'embedding' is unknown; expected one of induction, target",
    ),
    "too few labels": ({"y": [1]}, "400 rows and y 1 labels"),
    "a function": ({}, "a function cannot be cloned and refitted"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_refitted_is_refused(name):
    frame, y = table()
    given, message = BAD[name]
    with pytest.raises(InputError, match=message):
        TExplainer(Refitted(lambda t: t["x"].to_numpy(), **{"X": frame, "y": y, **given}), frame)


def test_missing_cells_are_imputed_for_the_clone():
    _, frame, y = classifier()
    encode = make_column_transformer((SimpleImputer(), ["x"]), (OneHotEncoder(), ["colour", "noise"]))
    holed = frame.copy()
    holed.loc[:20, "x"] = np.nan
    model = make_pipeline(encode, LogisticRegression()).fit(holed, y)
    explainer = TExplainer(Refitted(model, holed, y), holed)
    assert explainer.refit is not None and explainer.refit.disagreement < 0.1
    assert np.isfinite(explainer(holed[:5]).values).all()
