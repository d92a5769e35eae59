"""Rows that are not explained: one batched question for the whole table, and its slow twin, row by row."""

from __future__ import annotations

import numpy as np
import pytest

import texplainer as tx
from texplainer.errors import ModelError
from texplainer.models.checks import refused_rows


def one_by_one(predictor, rows):
    """The twin: every row with an infinite cell, and every row with a gap that the model minds by itself."""
    out = []
    for i, row in enumerate(rows):
        if np.isinf(row).any():
            out.append(i)
        elif np.isnan(row).any():
            try:
                out += [] if np.isfinite(predictor(row[None])).all() else [i]
            except ModelError:
                out.append(i)
    return out


def fills(X):
    """Takes gaps in the first columns, answers NaN to others."""
    return np.where(np.isnan(X[:, :9]), 0.0, X[:, :9]).sum(axis=1) + X[:, 9:].sum(axis=1)


def raises(X):
    if np.isnan(X[:, 9:]).any():
        raise ValueError("no gaps there")
    return fills(X)


def table(rows, holes):
    random = np.random.default_rng(1)
    X = random.normal(size=(rows, 11))
    X[random.random(X.shape) < holes] = np.nan
    X[:: max(1, rows // 5), 3] = np.inf
    return X


@pytest.mark.parametrize("function", [fills, raises])
@pytest.mark.parametrize("holes", [0.0, 0.02, 0.3, 1.0])
def test_patterns_are_asked_for_as_rows_would_be(function, holes):
    explainer = tx.TExplainer(function, np.random.default_rng(0).normal(size=(60, 11)))
    X = table(300, holes)
    assert sorted(refused_rows(explainer.predictor, explainer.schema.names, X)) == one_by_one(
        explainer.predictor, X
    )


def test_whole_rows_cost_no_question_and_gaps_one():
    asked = []

    def counting(X):
        asked.append(len(X))
        return fills(X)

    explainer = tx.TExplainer(counting, np.random.default_rng(0).normal(size=(60, 11)))
    for holes, questions in ((0.0, 0), (0.3, 1)):
        asked.clear()
        refused_rows(explainer.predictor, explainer.schema.names, table(300, holes))
        assert len(asked) == questions
