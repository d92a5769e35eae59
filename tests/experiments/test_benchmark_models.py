"""The paper's models: rebuilt from plain files they predict the same, bit by bit, and are trained once."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from experiments import models
from texplainer import datasets
from texplainer.errors import InputError


@pytest.mark.parametrize("name", models.RECIPES)
def test_cached_model_equals_the_fitted_one(name: str, tmp_path: Path) -> None:
    data = datasets.load("4ft")
    fitted = models.train(name, data, cache=tmp_path)
    files = sorted((tmp_path / "models").iterdir())
    stamps = [file.stat().st_mtime_ns for file in files]
    again = models.train(name, data, cache=tmp_path)
    assert again.model is not fitted.model
    np.testing.assert_array_equal(
        again.model.predict_proba(data.X_test), fitted.model.predict_proba(data.X_test)
    )
    np.testing.assert_array_equal(again.model.predict(data.X_test), fitted.model.predict(data.X_test))
    assert replace(again, model=None) == replace(fitted, model=None)
    assert [file.stat().st_mtime_ns for file in files] == stamps
    assert not [file for file in files if b"sklearn" in file.read_bytes()[:200]]  # arrays and JSON, no pickle


def test_key_changes_with_data_settings_and_only_then() -> None:
    data, recipe = datasets.load("4ft"), models.RECIPES["3hnn"]
    key = models.content_key(recipe, data)
    assert key == models.content_key(recipe, datasets.load("4ft"))
    moved = data.X_train.copy()
    moved[0, 0] += 1e-12
    assert key != models.content_key(recipe, replace(data, X_train=moved))
    assert key != models.content_key(replace(recipe, settings=recipe.settings | {"alpha": 1e-3}), data)


def test_sizes_are_the_papers() -> None:
    """The paper counts 9.7K, 18K and 51K parameters for 20, 20 and 37 inputs."""

    def parameters(layers: tuple[int, ...], inputs: int) -> int:
        widths = (inputs, *layers, 1)
        return sum((a + 1) * b for a, b in pairwise(widths))

    sizes = {
        name: models.RECIPES[name].settings["hidden_layer_sizes"] for name in ("3hnn", "5hnn64", "5hnn128")
    }
    assert round(parameters(sizes["3hnn"], 20), -2) == 9_700
    assert round(parameters(sizes["5hnn64"], 20), -3) == 18_000
    assert round(parameters(sizes["5hnn128"], 37), -3) == 52_000


@pytest.mark.parametrize(
    ("name", "data", "within"), [("3hnn", "4ft", 0.02), ("3hnn", "20ft", 0.03), ("xgb", "20ft", 0.05)]
)
def test_accuracy_is_near_the_papers(name: str, data: str, within: float, tmp_path: Path) -> None:
    trained = models.train(name, datasets.load(data), cache=tmp_path)
    assert trained.paper_accuracy is not None
    assert abs(trained.accuracy - trained.paper_accuracy) <= within + 1e-9


def test_forest_reading_collapses_to_one_half(tmp_path: Path) -> None:
    """`XGBRFClassifier` with learning rate 0.01: right classes, probabilities all near one half."""
    data = datasets.load("4ft")
    trained = models.train("xgbrf", data, cache=tmp_path)
    assert trained.accuracy > 0.85
    assert np.abs(trained.model.predict_proba(data.X_test) - 0.5).max() < 0.01


def test_unknown_model_is_named() -> None:
    with pytest.raises(InputError, match="unknown model 'svm'; the paper's models are 3hnn"):
        models.train("svm", datasets.load("4ft"))
