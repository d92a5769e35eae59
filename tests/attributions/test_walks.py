"""Walks: orders without a preference, and bounds that cover features which rarely act."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

from texplainer import TExplainer
from texplainer.attributions.walks import walk_order
from texplainer.errors import BackgroundWarning


def rare_columns() -> tuple[np.ndarray, np.ndarray]:
    """Forty columns, most of them 0/1 and rarely 1, which act on their own and together."""
    rng = np.random.default_rng(0)
    often = rng.uniform(0.01, 0.3, size=34)
    X = np.hstack([rng.normal(size=(1500, 6)), rng.uniform(size=(1500, 34)) < often])
    y = X[:, 0] * X[:, 1] + X[:, 2] + X[:, 6:] @ rng.normal(size=34) + 3 * X[:, 6] * (X[:, 3] > 1)
    return X, y + X[:, 7] * X[:, 4] + 0.3 * rng.normal(size=1500)


@pytest.mark.parametrize("width", [8, 20, 73])
def test_orders_prefer_no_feature(width):
    places = np.stack([walk_order(number, width) for number in range(1024)])
    before = (places[:, :, None] < places[:, None, :]).astype(float)
    first = np.einsum("njk,njl->jkl", before, before) / len(places)  # j before both k and l
    j, k, l = np.indices(first.shape)  # noqa: E741
    apart = (j != k) & (k != l) & (j != l)
    assert np.abs(first[apart] - 1 / 3).max() < 0.07  # 5 standard errors of 1,024 independent orders


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingRegressor(max_iter=60),
        RandomForestRegressor(20, min_samples_leaf=3, random_state=0),
    ],
    ids=["boosting", "forest"],
)
def test_bounds_cover_features_that_rarely_act(model):
    X, y = rare_columns()
    model.fit(X[:1000], y[:1000])
    background, rows = X[1000:1200], X[1200:1225]
    exact = TExplainer(model, background, attribution="shapley")(rows)
    walked = TExplainer(lambda rows: model.predict(rows), background, attribution="shapley")(rows)
    gap = np.abs(exact.values - walked.values)
    bounds = exact.diagnostics.error + walked.diagnostics.error
    assert np.mean(gap <= bounds) >= 0.99
    assert np.median(bounds) <= 9 * np.median(gap)
    assert np.linalg.norm(bounds) <= 5 * np.linalg.norm(gap)


def test_features_that_cannot_act_have_no_bound():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 6))
    X[:, 4] = 2.0  # one value
    with pytest.warns(BackgroundWarning, match="constant"):
        explainer = TExplainer(lambda t: t[:, 0] * t[:, 1] + t[:, 2] ** 2, X, attribution="shapley")
    found = explainer(X[:9])
    assert np.all(found.values[:, 3:] == 0)
    assert np.all(found.diagnostics.error[:, 4] == 0)
    unseen = found.diagnostics.error[:, [3, 5]]  # not used, but walks cannot prove it
    assert np.all(unseen > 0)
    assert np.all(unseen < found.diagnostics.error[:, :3].max(axis=1, keepdims=True))
