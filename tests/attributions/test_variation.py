"""Effects against a slow, obvious twin."""

import numpy as np
import pytest
from column_twins import odd_table, references_one_by_one

from texplainer import TExplainer
from texplainer.attributions.replaced import QUANTILES, _references, references_of

X = np.random.default_rng(5).normal(size=(150, 4)) * [1.0, 3.0, 0.2, 1.0] + [0.0, 1.0, 5.0, 0.0]
ROWS = X[:6]


def curved(rows):
    return np.tanh(rows[:, 0]) * np.where(np.isnan(rows[:, 1]), 0.5, rows[:, 1]) + 0.5 * rows[:, 2] ** 2


def effect_twin(f, background, x):
    """The definition, one evaluation at a time."""
    out = np.zeros(len(x))
    for j in range(len(x)):
        column = background[:, j]
        known = column[~np.isnan(column)]
        references = list(np.quantile(known, (np.arange(QUANTILES) + 0.5) / QUANTILES))
        weights = [len(known) / len(column) / QUANTILES] * QUANTILES
        references.append(np.nan)
        weights.append(1 - len(known) / len(column))
        total = 0.0
        for reference, weight in zip(references, weights, strict=True):
            if weight:
                swapped = x.copy()
                swapped[j] = reference
                total += weight * (f(swapped[None])[0] - f(x[None])[0]) ** 2
        out[j] = np.sqrt(total)
    return out


def test_effects_equal_their_slow_twin():
    found = TExplainer(curved, X, attribution="variation")(ROWS)
    np.testing.assert_allclose(found.values, [effect_twin(curved, X, x) for x in ROWS], rtol=1e-10)
    assert np.all(found.values >= 0)


def test_a_missing_cell_is_one_more_value_of_its_column():
    gaps = X.copy()
    gaps[::5, 1] = np.nan
    found = TExplainer(curved, gaps, attribution="variation")(gaps[:6]).values
    np.testing.assert_allclose(found, [effect_twin(curved, gaps, x) for x in gaps[:6]], rtol=1e-10)
    weights = references_of(TExplainer(curved, gaps).background).weights
    np.testing.assert_allclose(weights.sum(axis=0), 1.0)


def test_evaluations_are_counted_truly_and_batches_respected():
    calls = []

    def counted(rows):
        calls.append(len(rows))
        return curved(rows)

    for name in ("variation", "shapley"):
        explainer = TExplainer(counted, X, attribution=name, batch_rows=100)
        explainer(ROWS)  # what belongs to the background is measured once
        calls.clear()
        found = explainer(ROWS)
        assert max(calls) <= 100 and sum(calls) == found.diagnostics.evaluations.sum()


@pytest.mark.parametrize("seed", range(12))
def test_references_of_all_columns_at_once_are_those_of_one_after_the_other(seed, monkeypatch):
    rows = odd_table(seed)
    monkeypatch.setattr("texplainer.background.summary.CELLS", 8 * 25 * len(rows))  # three blocks
    found = _references(rows)
    values, present = references_one_by_one(rows, (np.arange(QUANTILES) + 0.5) / QUANTILES)
    np.testing.assert_array_equal(found.values[:-1], values)
    np.testing.assert_array_equal(found.weights[:-1], np.broadcast_to(present / QUANTILES, values.shape))
    np.testing.assert_array_equal(found.weights[-1], 1.0 - present)
