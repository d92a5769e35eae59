"""The model never sees our own arrays, and one that does not repeat itself is noticed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from animals import ZOO
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import texplainer as tx
from texplainer.errors import ModelError, ModelWarning
from texplainer.models import predictor

NAMES = ["a", "b", "c"]
X = np.random.default_rng(0).normal(2.0, 3.0, size=(80, 3))
y = X @ [1.0, -2.0, 0.5]


def scaled(table: np.ndarray) -> np.ndarray:
    table -= 2.0
    table /= 3.0
    return np.tanh(table).sum(axis=1)


def filled(table: pd.DataFrame) -> np.ndarray:
    table.fillna(0.0, inplace=True)
    table["a"] = table["a"] * 2.0
    return np.tanh(table.to_numpy()).sum(axis=1)


def polars_scaled(table: pl.DataFrame) -> np.ndarray:
    for name in NAMES:
        table.replace_column(table.columns.index(name), (table[name] / 3.0).rename(name))
    return np.tanh(table.to_numpy()).sum(axis=1)


class Buffer:
    """Answers with one and the same array, written anew at every call."""

    def __init__(self) -> None:
        self.kept = np.zeros(100_000)

    def __call__(self, table: np.ndarray) -> np.ndarray:
        out = self.kept[: len(table)]
        out[:] = np.tanh(table / 3.0).sum(axis=1)
        return out


def torch_in_place() -> Any:
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            if not x.requires_grad:
                x.sub_(2.0).div_(3.0)
                return x.tanh().sum(dim=1, keepdim=True)
            return ((x - 2.0) / 3.0).tanh().sum(dim=1, keepdim=True)

    return Model().double()


def copying(mutating: Any) -> Any:
    """The same model, given a copy by its owner."""
    return lambda table: mutating(table.clone() if isinstance(table, pl.DataFrame) else table.copy())


MUTATING = {
    "function of an array": (scaled, X),
    "function of a pandas frame": (filled, pd.DataFrame(X, columns=NAMES)),
    "function of a polars frame": (polars_scaled, pl.DataFrame(X, schema=NAMES)),
    "one buffer for all answers": (Buffer(), X),
}


@pytest.mark.parametrize("attribution", ["gradient", "variation"])
@pytest.mark.parametrize("name", MUTATING)
def test_a_model_that_changes_its_input_is_explained_like_one_that_does_not(name, attribution) -> None:
    model, table = MUTATING[name]
    before = np.array(table)
    found = tx.TExplainer(model, table, attribution=attribution)(table[:9])
    truth = tx.TExplainer(copying(model), before if table is X else table, attribution=attribution)(table[:9])
    np.testing.assert_array_equal(found.values, truth.values)
    np.testing.assert_array_equal(found.predictions, truth.predictions)
    np.testing.assert_array_equal(np.array(table), before)


@pytest.mark.parametrize("final", [LinearRegression(), LogisticRegression()])
def test_a_scaler_without_copy(final) -> None:
    target = y if isinstance(final, LinearRegression) else y > y.mean()
    kept = make_pipeline(StandardScaler(), final).fit(X.copy(), target)
    moved = make_pipeline(StandardScaler(copy=False), final).fit(X.copy(), target)
    for engine in ("auto", "finite-difference"):
        mine, own = X.copy(), X.copy()
        found = tx.TExplainer(moved, mine, engine=engine)(mine[:9])
        truth = tx.TExplainer(kept, own, engine=engine)(own[:9])
        np.testing.assert_allclose(found.values, truth.values, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(mine, X)


def test_a_torch_module_that_works_in_place() -> None:
    model, mine = torch_in_place(), X.copy()
    found = tx.TExplainer(model, mine)(mine[:9])
    truth = tx.TExplainer(lambda t: np.tanh((t - 2.0) / 3.0).sum(axis=1), X.copy())(X[:9])
    np.testing.assert_allclose(found.predictions, truth.predictions, rtol=1e-5)
    np.testing.assert_array_equal(mine, X)


def test_a_model_that_answers_differently_is_noticed_and_recorded() -> None:
    random = np.random.default_rng(0)
    with pytest.warns(ModelWarning, match="different predictions") as said:
        explainer = tx.TExplainer(lambda t: t.sum(axis=1) + random.normal(size=len(t)), X)
    assert len(said) == 1
    assert explainer(X[:3], progress=False).settings["repeatable"] is False


def test_a_model_that_repeats_itself_is_not(recwarn: pytest.WarningsRecorder) -> None:
    assert "repeatable" not in tx.TExplainer(lambda t: t.sum(axis=1), X)(X[:3]).settings
    assert not [w for w in recwarn if issubclass(w.category, ModelWarning)]


def test_a_model_that_leaves_is_reported() -> None:
    def leaving(table: np.ndarray) -> np.ndarray:
        raise SystemExit(0)

    with pytest.raises(ModelError, match="SystemExit"):
        tx.TExplainer(leaving, X)


# ---------------------------------------------------------------- every adapter


def one_of_each_library() -> list[str]:
    first: dict[str, str] = {}
    for name, animal in ZOO.items():
        first.setdefault(animal.library, name)
    return list(first.values())


def scrambled(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same answers, but the table is not what it was afterwards: not its cells, nor its columns."""

    def calling(table: Any) -> Any:
        answer = np.array(call(copy.deepcopy(table)))
        cells = table if isinstance(table, np.ndarray) else table.to_numpy()
        if cells.flags.writeable:
            cells[...] = cells[::-1].copy()
        if isinstance(table, pd.DataFrame):
            for name in list(table.columns):
                table[name] = table[name].to_numpy()[::-1]
        return answer

    return calling


def dense(table: Any) -> np.ndarray:
    return table.toarray() if hasattr(table, "toarray") else np.asarray(table)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("attribution", ["gradient", "shapley"])
@pytest.mark.parametrize("name", one_of_each_library())
def test_no_adapter_hands_out_our_own_arrays(name: str, attribution: str, monkeypatch: Any) -> None:
    animal = ZOO[name]
    pytest.importorskip(animal.library)
    model, table = animal.make()
    settings = {**(animal.takes or {}), "engine": "finite-difference", "attribution": attribution}
    truth = tx.TExplainer(model, table, **settings)(table[:6])
    own = predictor.outlet_of

    def mutating(model: Any, schema: Any) -> Any:
        adapter = own(model, schema)
        return replace(adapter, scales={name: scrambled(call) for name, call in adapter.scales.items()})

    monkeypatch.setattr(predictor, "outlet_of", mutating)
    before = copy.deepcopy(table)
    found = tx.TExplainer(model, table, **settings)(table[:6])
    np.testing.assert_array_equal(found.values, truth.values)
    np.testing.assert_array_equal(found.predictions, truth.predictions)
    assert np.array_equal(dense(table), dense(before))
