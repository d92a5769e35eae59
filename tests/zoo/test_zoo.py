"""Every model and table of the zoo, met as a new user would meet it."""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from animals import ZOO
from scipy.special import expit

import texplainer as tx

ROWS = 4
POINTS = 128


def head(table, rows=ROWS):
    return table.head(rows) if hasattr(table, "collect") else table[:rows]


def met(name):
    animal = ZOO[name]
    if find_spec(animal.library) is None:
        pytest.skip(f"{animal.library} is not installed")
    model, table = animal.make()
    explainer = tx.TExplainer(model, table, **(animal.takes or {}))
    return explainer, explainer(head(table)), table


def own_predictions(explainer, rows):
    """What the model itself says of the explained outputs, None where only its scores are explained."""
    predictor, model = explainer.predictor, explainer.predictor.model
    table = predictor.schema.write(rows)
    if predictor.scale == "raw" and callable(model) and predictor.kind == "callable":
        return np.asarray(model(table)).reshape(ROWS, -1)
    if predictor.scale == "raw" and predictor.task == "regression":
        method = "decision_function" if predictor.all_names == ("score",) else "predict"
        ask = getattr(model, method, None)
        if predictor.kind == "xgboost" and type(model).__name__ == "Booster":
            table = import_module("xgboost").DMatrix(table)
        return None if ask is None else np.asarray(ask(table)).reshape(ROWS, -1)
    if hasattr(model, "predict_proba") and predictor.scale in ("probability", "log-odds"):
        found = model.predict_proba(table)
        if isinstance(found, list):
            found = np.hstack([p[:, 1:] for p in found])
        return np.asarray(found)[:, list(predictor.outputs)]
    return None


def coarse_slopes(explainer, rows):
    """Slopes per SD: f a little higher in one feature less f a little lower, (rows, features, outputs)."""
    discrete = explainer.background.discrete.mask(explainer.schema.width)
    moving = np.flatnonzero(explainer.schema.numeric & ~discrete & (explainer.background.unit > 0))
    moves = (np.arange(POINTS) + 0.5) / POINTS * 6**0.5 * max(explainer.engine.width, 0.1)
    sigma, bounds = explainer.background.sigma, explainer.background.bounds
    found = np.zeros((*rows.shape, len(explainer.predictor.outputs)))
    for i, row in enumerate(rows):
        for j in moving:
            ahead, behind = np.tile(row, (2, POINTS, 1))
            ahead[:, j] += moves * sigma[j]
            behind[:, j] -= moves * sigma[j]
            if bounds is not None:
                low, high = np.minimum(bounds[0], row), np.maximum(bounds[1], row)
                ahead, behind = np.clip(ahead, low, high), np.clip(behind, low, high)
            apart = np.nan_to_num((ahead - behind)[:, j] / sigma[j])
            change = explainer.predictor(ahead) - explainer.predictor(behind)
            found[i, j] = change.sum(axis=0) / max(apart.sum(), 1e-300)
    return found


def assert_alike(values, coarse, exact=True):
    """Same direction and size; the kernels of the engines are not all the same."""
    size, other = np.linalg.norm(values), np.linalg.norm(coarse)
    if max(size, other) > 1e-9:
        assert (values * coarse).sum() / (size * other) > (0.95 if exact else 0.8), "direction of the slopes"
        assert 0.6 < size / other < 1.6, "size of the slopes"


def unused(explainer):
    """Numeric features whose cells, exchanged among the background's rows or doubled, change no prediction."""
    rows, found = explainer.background.rows, []
    here = explainer.predictor(rows)
    for j in np.flatnonzero(explainer.schema.numeric):
        column = rows[:, j]
        others = (2 * column, -column, *(np.roll(column, shift) for shift in (1, 7, 31)))
        asked = np.tile(rows, (len(others), 1))
        asked[:, j] = np.concatenate(others)
        if np.array_equal(explainer.predictor(asked), np.tile(here, (len(others), 1)), equal_nan=True):
            found.append(j)
    return found


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the libraries say is not the matter here
        yield


@pytest.mark.parametrize("name", ZOO)
def test_every_animal(name, tmp_path):
    animal = ZOO[name]
    explainer, explanation, table = met(name)
    rows = explainer.schema.read(head(table))
    values = np.asarray(explanation.values, dtype=float)
    assert np.all(np.isfinite(values)), "values"
    if animal.engine is not None:
        assert explainer.engine.name == animal.engine, explainer.engine.why
    assert explainer.engine.how, "how it finds slopes"
    own = own_predictions(explainer, rows)
    if own is not None and not animal.returned:
        found = np.asarray(explanation.predictions).reshape(ROWS, -1)
        found = expit(found) if explanation.scale == "log-odds" else found
        np.testing.assert_allclose(found, own, rtol=1e-5, atol=1e-5)
    if not animal.coarse:
        coarse = coarse_slopes(explainer, rows)
        moved = coarse.any(axis=(0, 2))
        assert_alike(explanation.arrays["values"][:, moved], coarse[:, moved], explainer.engine.exact)
    shares = explainer(head(table), attribution="shapley")
    total = np.asarray(shares.values).sum(axis=1) + np.asarray(shares.base_values)
    size = 1 + np.abs(np.asarray(shares.predictions)).max()
    np.testing.assert_allclose(total, shares.predictions, atol=0.05 * size)
    for j in unused(explainer):
        assert np.all(explanation.arrays["values"][:, j] == 0), f"local value of the unused {j}"
        assert np.all(shares.arrays["values"][:, j] == 0), f"share of the unused {j}"
    for suffix in (".npz", ".parquet"):
        explanation.save(tmp_path / f"e{suffix}")
        back = tx.Explanation.load(tmp_path / f"e{suffix}")
        np.testing.assert_allclose(np.asarray(back.values, dtype=float), values)


def test_the_zoo_is_large_and_says_what_it_does_not_check():
    assert len(ZOO) >= 120
    unchecked = [name for name, animal in ZOO.items() if animal.returned or animal.coarse]
    assert len(unchecked) <= 4, unchecked


def test_most_linear_models_and_trees_leave_a_constant_column_alone():
    names = ("Ridge", "LogisticRegression of 2", "RandomForestClassifier of 2", "lightgbm of 2")
    for name in (name for name in names if find_spec(ZOO[name].library)):
        assert 4 in unused(met(name)[0]), name


def test_a_feature_no_model_uses_gets_nothing():
    function = lambda t: t[:, 0] * t[:, 1]  # noqa: E731
    table = np.random.default_rng(0).normal(size=(50, 3))
    for attribution in ("slope", "shapley", "variation", "gradient"):
        assert np.all(tx.TExplainer(function, table, attribution=attribution)(table[:5]).values[:, 2] == 0)
