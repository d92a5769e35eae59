"""Designs of resolution V: signs whose products of two are orthogonal to all products of at most two."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from texplainer.errors import InputError
from texplainer.interactions import resolution


@pytest.mark.parametrize("shift", [0, 7])
@pytest.mark.parametrize("features", [1, 2, 5, 6, 7, 11, 15, 23])
def test_products_of_two_signs_are_orthogonal(features, shift):
    runs = resolution.runs(features)
    z = resolution.contrast_signs(features, 0, runs, shift)
    pairs = [z[:, i] * z[:, j] for i, j in combinations(range(features), 2)]
    columns = np.column_stack([np.ones(runs), z, *pairs])
    assert set(np.unique(z)) <= {-1.0, 1.0}
    np.testing.assert_array_equal(columns.T @ columns, runs * np.eye(columns.shape[1]))


@pytest.mark.parametrize(
    ("features", "runs"), [(3, 8), (6, 64), (7, 64), (15, 256), (30, 1024), (200, 65536)]
)
def test_the_runs_are_about_two_a_pair(features, runs):
    assert resolution.runs(features) == runs


def test_any_four_columns_of_a_large_design_are_independent():
    """Strength four, on drawn quadruples: the products of four signs sum to 0 over all runs."""
    z = resolution.contrast_signs(63, 0, resolution.runs(63))
    random = np.random.default_rng(0)
    for _ in range(200):
        chosen = random.choice(63, 4, replace=False)
        assert z[:, chosen].prod(axis=1).sum() == 0


def test_parts_are_the_whole():
    whole = resolution.contrast_signs(10, 0, 256)
    np.testing.assert_array_equal(
        np.vstack([resolution.contrast_signs(10, 0, 100), resolution.contrast_signs(10, 100, 256)]), whole
    )


def test_too_many_features_are_refused_with_a_remedy():
    with pytest.raises(InputError, match=r"600 features.*group the features"):
        resolution.runs(600)
