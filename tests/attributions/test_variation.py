"""Effects against a slow, obvious twin."""

import numpy as np
import pytest
from column_twins import odd_table, references_one_by_one

from texplainer import TExplainer
from texplainer.attributions.replaced import REFERENCES, _references, references_of
from texplainer.background.summary import robust_sd

X = np.random.default_rng(5).normal(size=(150, 4)) * [1.0, 3.0, 0.2, 1.0] + [0.0, 1.0, 5.0, 0.0]
ROWS = X[:6]


def curved(rows):
    return np.tanh(rows[:, 0]) * np.where(np.isnan(rows[:, 1]), 0.5, rows[:, 1]) + 0.5 * rows[:, 2] ** 2


def effect_twin(f, background, x):
    """The definition, one evaluation at a time."""
    out = np.zeros(len(x))
    found = references_one_by_one(background, robust_sd(background), REFERENCES)
    for j, (pairs, missing) in enumerate(found):
        total = 0.0
        for reference, weight in [*((r, float(w) * (1 - missing)) for r, w in pairs), (np.nan, missing)]:
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
    sd = robust_sd(rows)
    monkeypatch.setattr("texplainer.background.summary.CELLS", 8 * 25 * len(rows))  # three blocks
    found = _references(rows, sd)
    for j, (pairs, missing) in enumerate(references_one_by_one(rows, sd, REFERENCES)):
        used = found.weights[:-1, j] > 0
        together = sorted(zip(found.values[:-1, j][used], found.weights[:-1, j][used], strict=True))
        np.testing.assert_allclose(together, [(v, float(w) * (1 - missing)) for v, w in pairs], rtol=1e-12)
        np.testing.assert_allclose(found.weights[-1, j], missing, atol=1e-15)
        assert np.all(np.diff(found.values[:-1, j]) >= 0) or not pairs


def test_the_few_references_keep_the_weight_of_all():
    rows = odd_table(3)
    all_of = _references(rows, robust_sd(rows))
    _, few = all_of.few()
    np.testing.assert_allclose(few.weights.sum(axis=0), 1.0)
    occurs = (few.values[:, None] == all_of.values[None]) & (all_of.weights > 0)
    assert np.all(occurs.any(axis=1) | (few.weights == 0) | np.isnan(few.values))


@pytest.mark.parametrize("rare", [1, 4, 15])
def test_a_column_whose_rare_values_matter_is_not_zero(rare):
    rows = np.zeros((200, 2))
    rows[:rare, 0] = 1.0  # a flag that is hardly ever set
    rows[:rare, 1] = np.linspace(1.0, 50.0, rare)  # an amount that is hardly ever there
    found = TExplainer(lambda r: 3.0 * r[:, 0] + r[:, 1], rows, attribution="variation")(np.zeros((1, 2)))
    expected = [3.0 * np.sqrt(rare / 200), np.sqrt((rows[:, 1] ** 2).mean())]
    np.testing.assert_allclose(found.values[0], expected, rtol=1e-10)


def test_replaced_values_occur_in_their_column():
    rows = np.column_stack([np.repeat([0.0, 1.0], [7, 4]), np.arange(11) ** 3])
    asked = []

    def model(points):
        asked.append(points.copy())
        return points[:, 0] + np.sqrt(points[:, 1])

    explainer = TExplainer(model, rows, attribution="variation")
    asked.clear()
    explainer(rows[:1])
    assert set(np.concatenate(asked)[:, 0]) == {0.0, 1.0}
