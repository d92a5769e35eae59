"""The error bars of shares cover the shares of every background row and very many places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import texplainer as tx

PLACES = 40
MODELS: dict[str, Callable[[], Any]] = {
    "log-odds of a class against the rest": LogisticRegression,
    "network": lambda: MLPClassifier((16,), max_iter=100, random_state=0),
}


def all_lines(model: Any, background: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Integrated gradients from every background row, by plain sums over evenly spaced places."""
    slopes = tx.TExplainer(model, background, output="all", attribution="gradient", smoothing=0)
    away = rows[:, None] - background  # (rows, background rows, features)
    total = 0.0
    for context in (np.arange(PLACES) + 0.5) / PLACES:
        points = background + context * away
        found = slopes(points.reshape(-1, rows.shape[1]), progress=False).values
        total = total + (away[..., None] * found.reshape(*points.shape, -1)).mean(axis=1) / PLACES
    return np.asarray(total)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_bars_cover_the_lines_from_every_background_row(name: str) -> None:
    covered = []
    for seed in range(4):
        random = np.random.default_rng(seed)
        X = random.normal(size=(400, 8)) * random.uniform(0.5, 2, 8)
        scores = X[:, :3] + 0.5 * X[:, 3:6] ** 2 * random.normal(size=3) + random.normal(size=(400, 3))
        model = MODELS[name]().fit(X, scores.argmax(axis=1))
        background, rows = X[:200], X[300:320]
        found = tx.TExplainer(model, background, output="all", attribution="shapley")(rows)
        gap = np.abs(found.values - all_lines(model, background, rows))
        covered.append(np.mean(gap <= found.arrays["error"].reshape(gap.shape) + 1e-9))
    assert np.mean(covered) >= 0.99
