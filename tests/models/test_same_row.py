"""The same row alone and in batches: bit-identical, or differences of a stated size."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

import texplainer as tx
from texplainer.attributions.table import GENERAL

X = np.random.default_rng(0).normal(size=(200, 6))
y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
W, V = np.random.default_rng([0, 2]).normal(size=(6, 30)), np.random.default_rng([0, 3]).normal(size=30)
ROWS = X[:21]


def xgboost() -> Any:
    library = pytest.importorskip("xgboost")
    return library.XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1).fit(X, y)


def lightgbm() -> Any:
    library = pytest.importorskip("lightgbm")
    return library.LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1).fit(X, y)


def onnx() -> Any:
    runtime = pytest.importorskip("onnxruntime")
    convert = pytest.importorskip("skl2onnx")
    graph = convert.to_onnx(mlp(), X[:1].astype(np.float32), options={"zipmap": False}, target_opset=17)
    return runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])


def torch(width: str) -> Any:
    library = pytest.importorskip("torch")
    library.manual_seed(0)
    parts = [library.nn.Linear(6, 50), library.nn.Tanh(), library.nn.Linear(50, 1)]
    return library.nn.Sequential(*parts).to(getattr(library, width))


def mlp() -> Any:
    return MLPClassifier((30, 20), max_iter=60, random_state=0).fit(X, y)


#: models that predict a row without regard to the others: the same bits, whatever the attribution and the engine
EXACT: dict[str, Callable[[], Any]] = {
    "function of each row": lambda: lambda table: np.tanh(table).sum(axis=1),
    "forest": lambda: RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, y),
    "XGBoost": xgboost,
    "LightGBM": lightgbm,
    "SVC": lambda: SVC().fit(X, y),
}
#: models made of matrix products, and how much of a row's largest value may depend on the rows beside it
CLOSE: dict[str, tuple[Callable[[], Any], float]] = {
    "matrix products": (lambda: lambda table: np.tanh(table @ W) @ V, 1e-13),
    "MLP": (mlp, 1e-13),
    "logistic": (lambda: LogisticRegression().fit(X, y), 1e-13),
    "Gaussian process": (lambda: GaussianProcessRegressor(alpha=0.1).fit(X, X[:, 0]), 1e-10),
    "torch float64": (lambda: torch("float64"), 1e-7),  # line integrals are float32 inside
    "torch float32": (lambda: torch("float32"), 1e-5),
    "ONNX": (onnx, 1e-5),
}


@cache
def made(name: str) -> Any:
    return EXACT[name]() if name in EXACT else CLOSE[name][0]()


def every_way(model: Any, **settings: Any) -> tuple[Any, list[Any]]:
    """An explanation of all rows together, and of some of them in other batches and alone."""
    explainer = tx.TExplainer(model, X[:60], **settings)
    others = [tx.TExplainer(model, X[:60], batch_rows=rows, **settings)(ROWS[:5]) for rows in (7, 100, 1000)]
    return explainer(ROWS), [*others, explainer(ROWS[:1])]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("attribution", GENERAL)
@pytest.mark.parametrize("engine", ["auto", "finite-difference"])
@pytest.mark.parametrize("name", EXACT)
def test_a_row_is_bit_identical_in_any_batch(name: str, engine: str, attribution: str) -> None:
    together, others = every_way(made(name), engine=engine, attribution=attribution)
    for other in others:
        for array in ("values", "predictions", "error"):
            np.testing.assert_array_equal(other.arrays[array], together.arrays[array][: len(other)])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("attribution", ["slope", "shapley", "variation"])
@pytest.mark.parametrize("name", CLOSE)
def test_differences_have_the_stated_size(name: str, attribution: str) -> None:
    together, others = every_way(made(name), attribution=attribution)
    size = np.abs(together.values).max(axis=1, keepdims=True)
    for other in others:
        gap = np.abs(other.values - together.values[: len(other)]) / size[: len(other)]
        assert gap.max() <= CLOSE[name][1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("hidden", [(30, 20), (64, 64, 64)])
def test_gradients_of_a_network_are_bit_identical_in_any_batch(hidden: tuple[int, ...]) -> None:
    explainer = tx.TExplainer(MLPClassifier(hidden, max_iter=30, random_state=0).fit(X, y), X[:60])
    together = explainer(X, attribution="gradient").values
    for part in (slice(0, 1), slice(0, 5), slice(33, 50)):
        np.testing.assert_array_equal(explainer(X[part], attribution="gradient").values, together[part])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CLOSE)
def test_slopes_at_a_point_differ_within_their_bounds(name: str) -> None:
    together, others = every_way(made(name), attribution="gradient", engine="finite-difference")
    for other in others:
        gap = np.abs(other.values - together.values[: len(other)])
        bound = other.arrays["error"] + together.arrays["error"][: len(other)]
        assert np.all(gap <= bound.reshape(gap.shape))
