"""Finite effects against a slow, obvious twin and closed forms."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies

from texplainer import TExplainer, effects
from texplainer.representatives import calibrated, representatives

RNG = np.random.default_rng(5)
X = RNG.normal(size=(150, 4)) * [1.0, 3.0, 0.2, 1.0] + [0.0, 1.0, 5.0, 0.0]
ROWS = X[:6]


def curved(rows):
    return np.tanh(rows[:, 0]) * rows[:, 1] + 0.5 * rows[:, 2] ** 2


def effect_twin(explainer, x):
    """The definition, one evaluation at a time."""
    f = lambda row: explainer.predictor(row[None, :])[0, 0]  # noqa: E731
    moves = effects.scattered(explainer.background, explainer.predictor.schema.numeric)
    out = np.zeros(len(x))
    for j in range(len(x)):
        squares, lean = 0.0, 0.0
        for towards, t, reference in zip(moves.towards, moves.t, moves.references, strict=True):
            base = x + t * (towards - x)
            swapped = base.copy()
            swapped[j] = reference[j]
            a = f(base) - f(swapped)
            squares += a * a
            lean += a * (base[j] - reference[j])
        out[j] = np.sign(lean) * np.sqrt(squares / len(moves.t))
    return out


def test_effects_equal_their_slow_twin():
    explainer = TExplainer(curved, X)
    assert explainer.attribution == "effect"
    found = explainer(ROWS).values
    np.testing.assert_allclose(found, [effect_twin(explainer, x) for x in ROWS], rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(found[:, 3], 0.0)  # a feature the model does not use


def test_effects_of_a_linear_model_are_coefficient_times_displacement():
    weights = np.array([1.0, -2.0, 30.0, 0.0])
    explainer = TExplainer(lambda r: r @ weights, X)
    moves = effects.scattered(explainer.background, np.ones(4, bool))
    away = effects.between(ROWS, moves, np.ones(4, bool)) - moves.references
    expected = weights * np.sqrt(np.mean(away**2, axis=1))
    np.testing.assert_allclose(explainer(ROWS).values, expected, rtol=1e-9)


def test_references_are_the_columns_quantiles_and_deterministic():
    explainer = TExplainer(curved, X)
    first, second = (effects.scattered(explainer.background, np.ones(4, bool)) for _ in range(2))
    for name in ("towards", "t", "references"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    levels = (np.arange(effects.POINTS) + 0.5) / effects.POINTS
    np.testing.assert_allclose(np.sort(first.references, axis=0), np.quantile(X, levels, axis=0))
    assert not np.array_equal(np.argsort(first.references[:, 0]), np.argsort(first.references[:, 1]))
    assert first.t.min() > 0 and first.t.max() < effects.REACH


def _anchors(explainer):
    background = explainer.background
    centres, weights = representatives(X, background.sigma, effects.POINTS // 2)
    return centres, calibrated(weights, explainer.predictor(centres), background.base)


def test_additive_shares_add_up():
    """Exactly, whatever the interactions; nothing is left over."""
    explainer = TExplainer(lambda r: np.sin(r[:, 0] * r[:, 1] * r[:, 3] * r[:, 2]), X, attribution="additive")
    found = explainer(ROWS)
    expected = found.predictions - explainer.background.base[0]
    np.testing.assert_allclose(found.values.sum(axis=1), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.diagnostics.completeness, 0.0, atol=1e-12)


def test_additive_shares_of_an_additive_model_are_its_terms():
    explainer = TExplainer(lambda r: np.exp(r[:, 0]) + r[:, 1] ** 2, X, attribution="additive")
    centres, weights = _anchors(explainer)
    expected = np.stack(
        [np.exp(ROWS[:, 0]) - weights @ np.exp(centres[:, 0]), ROWS[:, 1] ** 2 - weights @ centres[:, 1] ** 2]
    ).T
    np.testing.assert_allclose(explainer(ROWS).values[:, :2], expected, rtol=1e-10)


def test_additive_shares_of_a_product_are_shapleys():
    """For two features and opposite walks the sample is complete: the exact Shapley value."""
    explainer = TExplainer(lambda r: r[:, 0] * r[:, 1], X[:, :2], attribution="additive")
    background = explainer.background
    centres, weights = representatives(X[:, :2], background.sigma, effects.POINTS // 2)
    weights = calibrated(weights, explainer.predictor(centres), background.base)
    x = ROWS[0, :2]
    expected = weights @ (0.5 * (x[0] - centres[:, 0]) * (x[1] + centres[:, 1]))
    np.testing.assert_allclose(explainer(ROWS[:1, :2]).values[0, 0], expected, rtol=1e-10)


def test_calibrated_weights_reach_the_target_and_hardly_move():
    weights, predictions = np.full(8, 1 / 8), RNG.normal(size=(8, 2))
    predictions = np.column_stack([predictions, -predictions.sum(axis=1)])  # outputs that sum to a constant
    target = weights @ predictions + [0.05, -0.02, -0.03]
    found = calibrated(weights, predictions, target)
    np.testing.assert_allclose(found @ predictions, target, atol=1e-9)
    assert found.sum() == pytest.approx(1.0) and np.abs(found - weights).max() < 0.05
    np.testing.assert_array_equal(calibrated(weights, np.ones((8, 1)), np.ones(1)), weights)


@pytest.mark.parametrize("attribution", ["effect", "additive"])
def test_evaluations_are_counted_truly_and_batches_respected(attribution):
    calls = []

    def counted(rows):
        calls.append(len(rows))
        return curved(rows)

    explainer = TExplainer(counted, X, attribution=attribution, batch_rows=100)
    calls.clear()
    found = explainer(ROWS)
    assert max(calls) <= 100
    anchors = 16 if attribution == "additive" else 0  # predicted once a block
    assert sum(calls) - anchors == found.diagnostics.evaluations.sum()


@settings(max_examples=15, deadline=None)
@given(strategies.integers(1, 400), strategies.permutations(range(6)))
def test_batching_and_row_order_change_nothing(batch_rows, order):
    whole = TExplainer(curved, X)(ROWS).values
    found = TExplainer(curved, X, batch_rows=batch_rows)(ROWS[order]).values
    np.testing.assert_array_equal(found, whole[order])


@settings(max_examples=15, deadline=None)
@given(strategies.permutations(range(4)))
def test_columns_in_another_order_have_the_same_effects(order):
    for attribution in ("effect", "additive"):
        found = TExplainer(curved, X, attribution=attribution)(ROWS).values
        back = np.argsort(order)
        other = TExplainer(lambda r, back=back: curved(r[:, back]), X[:, order], attribution=attribution)
        np.testing.assert_allclose(other(ROWS[:, order]).values, found[:, order], rtol=1e-9, atol=1e-12)


def test_what_is_the_same_for_every_row_is_made_once(monkeypatch):
    made = []
    real = effects.representatives
    monkeypatch.setattr(effects, "representatives", lambda *a: made.append(1) or real(*a))
    explainer = TExplainer(curved, X)
    explainer(ROWS), explainer(ROWS[:1])
    assert len(made) == 1


def test_categories_and_missing_cells_keep_their_own_value_at_base_points():
    table = pd.DataFrame({"a": X[:, 0], "c": pd.Categorical(np.where(X[:, 1] > 1, "up", "down"))})
    seen = []

    def model(frame):
        seen.append(frame)
        return np.nan_to_num(frame["a"].to_numpy()) + 2.0 * (frame["c"] == "up").to_numpy()

    explainer = TExplainer(model, table)
    seen.clear()
    found = explainer(table.iloc[:4])
    assert {level for frame in seen for level in frame["c"].unique()} <= {"up", "down"}
    assert np.all(np.abs(found.values[:, 1]) > 0.5)
    gap = table.iloc[:4].copy()
    gap.loc[0, "a"] = np.nan
    values = explainer(gap).values
    assert np.isfinite(values).all() and values[0, 0] != 0.0
    np.testing.assert_allclose(values[1:], found.values[1:])


def test_representatives_are_rows_with_shares_and_survive_gaps():
    picked, weights = representatives(X, X.std(axis=0), 16)
    assert len(picked) <= 16 and weights.sum() == pytest.approx(1.0)
    assert all((row == X).all(axis=1).any() for row in picked)
    broken = X.copy()
    broken[::2, 0] = np.nan
    broken[1::2, 1] = np.nan  # no row is complete
    picked, weights = representatives(broken, X.std(axis=0), 8)
    assert np.isfinite(picked).all() and weights.sum() == pytest.approx(1.0)
    few, shares = representatives(X[:3], X.std(axis=0), 16)
    assert len(few) == 3 and shares.tolist() == [1 / 3] * 3
