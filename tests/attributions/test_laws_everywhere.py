"""The laws again, on every kind of engine times what tables hold: categories, missing cells, several classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR

from texplainer import TExplainer
from texplainer.attributions.table import ATTRIBUTIONS, GENERAL

X = np.random.default_rng(0).normal(size=(240, 5)) * [1.0, 2.0, 0.5, 1.0, 3.0] + [0.0, 1.0, 5.0, 0.0, -2.0]
TARGET = np.tanh(X[:, 0]) * X[:, 1] + 0.5 * X[:, 2]
CLASSES = np.digitize(TARGET, np.quantile(TARGET, [0.3, 0.7]))
GAPS = X.copy()
GAPS[::7, 1] = np.nan
TABLE = pd.DataFrame(GAPS[:, :4], columns=list("abcd"))
TABLE["kind"] = pd.Categorical(
    np.array(["red", "green", "blue"])[np.random.default_rng([0, 2]).integers(0, 3, len(TABLE))]
)
COLOURED = TARGET + (TABLE["kind"] == "red").to_numpy()
COLOURED_CLASSES = np.digitize(COLOURED, np.quantile(COLOURED, [0.3, 0.7]))
NET: dict[str, Any] = {"hidden_layer_sizes": (16,), "solver": "lbfgs", "max_iter": 150, "random_state": 0}
COUNT = 8  # rows explained


def encoded(last: Any) -> Any:
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return make_pipeline(make_column_transformer((numbers, list("abcd")), (OneHotEncoder(), ["kind"])), last)


def torch_network() -> Any:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3)).double()


def xgboost(kind: str, *data: Any, **options: Any) -> Any:
    library = pytest.importorskip("xgboost")
    return getattr(library, kind)(n_estimators=30, max_depth=4, n_jobs=1, **options).fit(*data)


def lightgbm(kind: str, *data: Any) -> Any:
    library = pytest.importorskip("lightgbm")
    return getattr(library, kind)(n_estimators=20, n_jobs=1, verbose=-1).fit(*data)


def coloured(frame: pd.DataFrame) -> np.ndarray:
    b = frame["b"].to_numpy()
    steep = frame["c"].to_numpy() * (frame["kind"] == "red").to_numpy()
    return np.sin(frame["a"].to_numpy()) * np.where(np.isnan(b), 2.0, b) + steep


#: name -> how the model is made, and its background
MODELS: dict[str, tuple[Callable[[], Any], Any]] = {
    "network": (lambda: MLPRegressor(**NET).fit(X, TARGET), X),
    "network, classes": (lambda: MLPClassifier(**NET, alpha=0.1).fit(X, CLASSES), X),
    "logistic, classes": (lambda: LogisticRegression().fit(X, CLASSES), X),
    "kernel machine": (lambda: SVR().fit(X, TARGET), X),
    "Gaussian process": (
        lambda: GaussianProcessRegressor(RBF(3) + WhiteKernel(0.05), optimizer=None).fit(X, TARGET),
        X,
    ),
    "torch, classes": (torch_network, X),
    "forest": (lambda: RandomForestRegressor(20, max_depth=6, random_state=0).fit(X, TARGET), X),
    "forest, classes": (lambda: RandomForestClassifier(20, max_depth=6, random_state=0).fit(X, CLASSES), X),
    "boosted, classes": (
        lambda: GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, CLASSES),
        X,
    ),
    "boosted, gaps": (lambda: HistGradientBoostingRegressor(max_iter=30).fit(GAPS, TARGET), GAPS),
    "xgboost, classes": (lambda: xgboost("XGBClassifier", X, CLASSES), X),
    "xgboost, gaps, categories": (
        lambda: xgboost("XGBRegressor", TABLE, COLOURED, enable_categorical=True),
        TABLE,
    ),
    "lightgbm, gaps, categories, classes": (
        lambda: lightgbm("LGBMClassifier", TABLE, COLOURED_CLASSES),
        TABLE,
    ),
    "pipeline, gaps, categories": (lambda: encoded(MLPRegressor(**NET)).fit(TABLE, COLOURED), TABLE),
    "pipeline, gaps, categories, classes": (
        lambda: encoded(MLPClassifier(**NET, alpha=0.1)).fit(TABLE, COLOURED_CLASSES),
        TABLE,
    ),
    "pipeline of steps": (
        lambda: encoded(RandomForestRegressor(20, max_depth=6, random_state=0)).fit(TABLE, COLOURED),
        TABLE,
    ),
    "function": (lambda: lambda rows: np.tanh(rows[:, 0]) * rows[:, 1] + rows[:, 2] ** 2, X),
    "function of steps": (lambda: lambda rows: np.floor(4 * np.tanh(rows[:, 0]) * rows[:, 1]), X),
    "function, gaps, categories": (lambda: coloured, TABLE),
}
#: predictions in float32, whose rounding the sums share
FLOAT32 = ("xgboost",)


@cache
def made(name: str) -> Any:
    return MODELS[name][0]()


def few(background: Any) -> Any:
    return background.iloc[:COUNT] if isinstance(background, pd.DataFrame) else background[:COUNT]


@cache
def explained(name: str) -> dict[str, Any]:
    """Every attribution of a model's first rows, all outputs."""
    background = MODELS[name][1]
    explainer = TExplainer(made(name), background, output="all")
    return {spec: explainer(few(background), attribution=spec) for spec in GENERAL}


@pytest.mark.parametrize("name", MODELS)
def test_every_attribution_has_error_bounds_and_a_relative_change(name: str) -> None:
    for spec, found in explained(name).items():
        for array in (found.values, found.diagnostics.error, found.diagnostics.relative_change):
            assert np.isfinite(array).all(), spec
        # the derivative at a point of a function of steps is 0
        at_point = np.isfinite(found.gradient).any() and not ATTRIBUTIONS[spec].neighbourhood
        assert np.abs(found.values).max() > 0 or at_point
        assert ATTRIBUTIONS[spec].signed or np.all(found.values >= 0)


@pytest.mark.parametrize("name", MODELS)
def test_shares_add_up(name: str) -> None:
    found = explained(name)["shapley"]
    left = np.asarray(found.base_values) + found.values.sum(axis=1) - found.predictions
    size = max(1.0, float(np.abs(found.predictions).max()))
    assert np.abs(left).max() <= (1e-6 if name.startswith(FLOAT32) else 1e-9) * size


@pytest.mark.parametrize("name", [name for name in MODELS if "classes" in name])
def test_classes_of_a_probability_cancel(name: str) -> None:
    background = MODELS[name][1]
    explainer = TExplainer(made(name), background, output="all", scale="probability")
    for spec in ("slope", "shapley", "gradient"):
        values = explainer(few(background), attribution=spec).values
        # averages of exact gradients are taken in float32, point derivatives of black boxes by differences
        slack = {"shapley": 1e-14, "slope": 1e-6, "gradient": 1e-9}[spec]
        if (
            spec == "shapley"
            and "line integrals" in explainer(few(background)[:1], attribution=spec).settings["how"]
        ):
            slack = 1e-6
        if explainer.predictor.dtype == np.float32:  # its probabilities sum to 1 in float32 only
            slack = 1e-6
        assert np.abs(values.sum(axis=2)).max() <= slack * max(1.0, np.abs(values).max()), spec


@pytest.mark.parametrize("name", MODELS)
def test_an_unused_column_has_nothing(name: str) -> None:
    """As a function: black boxes have no formula that would show it."""
    model, background = made(name), MODELS[name][1]
    predict = next((getattr(model, n) for n in ("predict_proba", "predict") if hasattr(model, n)), model)
    if "torch" in name:
        pytest.skip("a network of five inputs")
    extra = np.random.default_rng(1).normal(size=len(background))
    if isinstance(background, pd.DataFrame):
        wide: Any = background.assign(unused=extra)
        explainer = TExplainer(lambda rows: predict(rows.drop(columns="unused")), wide, output="all")
    else:
        wide = np.column_stack([background, extra])
        explainer = TExplainer(lambda rows: predict(rows[:, :5]), wide, output="all")
    for spec in GENERAL:
        np.testing.assert_array_equal(explainer(few(wide), attribution=spec).values[:, 5], 0.0)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "boosted, gaps"])
def test_noise_in_the_last_digits_of_the_background_stays_there(name: str) -> None:
    """(Not where thresholds are the background's own cells: there the model itself jumps.)"""
    background = MODELS[name][1]
    noise = 1 + 1e-12 * np.random.default_rng(2).normal(size=(len(background), 4))
    noisy = background.copy()
    if isinstance(background, pd.DataFrame):
        noisy[list("abcd")] *= noise
    else:
        noisy[:, :4] *= noise
    explainer = TExplainer(made(name), noisy, output="all")
    for spec in ("slope", "shapley", "variation"):
        clean = explained(name)[spec].values
        away = np.linalg.norm(explainer(few(background), attribution=spec).values - clean, axis=1)
        # line integrals are summed in float32; a tie that noise breaks shows at 1e-6
        near = 1e-7 if spec == "shapley" and explainer.engine.at_point.narrow else 1e-9
        assert np.max(away / np.maximum(np.linalg.norm(clean, axis=1), 1e-300)) < near, spec


@pytest.mark.parametrize("made_of", ["pipeline", "function"])
@pytest.mark.parametrize("count", [240, 100])
def test_a_linear_model_of_categories_gets_its_formulas(made_of: str, count: int) -> None:
    table = TABLE.assign(b=X[:, 1]).iloc[:count]
    worth = {"red": 1.0, "green": -2.0, "blue": 0.5}
    slopes = np.array([1.0, -1.0, 4.0, 0.0])
    truth = table[list("abcd")].to_numpy() @ slopes + table["kind"].astype(str).map(worth).to_numpy()
    fitted = encoded(LinearRegression()).fit(table, truth)
    explainer = TExplainer(fitted if made_of == "pipeline" else lambda rows: fitted.predict(rows), table)
    numbers, rows = table[list("abcd")].to_numpy(), few(table)
    own, all_worth = (t["kind"].astype(str).map(worth).to_numpy() for t in (rows, table))
    away = numbers[:COUNT] - numbers.mean(axis=0)
    local, shares, effect = (explainer(rows, attribution=r).values for r in ("slope", "shapley", "variation"))
    np.testing.assert_allclose(shares[:, :4], slopes * away, atol=1e-9)
    sigma = explainer.background.sigma[:4]
    np.testing.assert_allclose(local[:, :4], np.tile(sigma * slopes, (COUNT, 1)), atol=1e-9)
    for values in (local, shares):
        np.testing.assert_allclose(values[:, 4], own - all_worth.mean(), atol=1e-9)
    np.testing.assert_allclose(
        effect[:, 4], np.sqrt(((own[:, None] - all_worth) ** 2).mean(axis=1)), atol=1e-9
    )
