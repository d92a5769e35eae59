"""Locality, stability under other backgrounds and seeds: closed forms, a slow twin, and known truth."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import texplainer as tx
from experiments.gated import GATED
from texplainer.metrics.evidence import explained
from texplainer.metrics.evidence.explained import PLACES, STOPS, local_effects
from texplainer.metrics.evidence.features import describe_features
from texplainer.metrics.scores import accuracy, faithfulness, stability

X = np.random.default_rng(0).random((400, 3))


def test_effects_of_a_linear_function_are_its_slopes_times_the_box():
    # f = 2a - 3b: within r SDs on each side the range is 2 r sigma |slope|, from every place.
    sd = np.array([1.0, 0.5, 2.0])
    found = local_effects(
        lambda rows: 2 * rows[:, 0] - 3 * rows[:, 1],
        X[:5],
        sd,
        describe_features("abc", X),
        radius=0.25,
    )
    assert found == pytest.approx(np.tile([1.0, 0.75, 0.0], (5, 1)))


def test_effects_against_a_slow_twin():
    def model(rows):
        return rows[:, 0] * rows[:, 1] + np.sin(5 * rows[:, 2])

    sd, radius = np.array([0.3, 0.2, 0.1]), 0.75
    found = local_effects(model, X[:4], sd, describe_features("abc", X), radius=radius, seed=7)
    offsets = np.random.default_rng([7, 13]).uniform(-1.0, 1.0, (PLACES, 3))
    offsets[0] = 0
    for i, row in enumerate(X[:4]):
        for j in range(3):
            ranges = []
            for offset in offsets:
                seen = []
                for stop in STOPS:
                    place = row + radius * sd * offset
                    place[j] = row[j] + radius * sd[j] * stop
                    seen.append(model(place[None])[0])
                ranges.append(max(seen) - min(seen))
            assert found[i, j] == pytest.approx(max(ranges))


def test_a_category_takes_all_its_levels():
    table = np.column_stack([X[:, 0], np.eye(3)[np.random.default_rng([0, 2]).integers(0, 3, len(X))]])
    features = describe_features(("a", "g1", "g2", "g3"), table, {"g": (1, 2, 3)})
    found = local_effects(
        lambda rows: rows @ [1.0, 0.0, 5.0, 2.0], table[:6], table.std(axis=0), features, radius=0.5
    )
    assert found[:, 1] == pytest.approx(np.full(6, 5.0))


def test_misplaced_mass_by_hand():
    effects = np.array([[1.0, 0.005, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    values = np.array([[2.0, -1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    found = accuracy.misplaced_mass(values, effects)
    assert found[0] == pytest.approx(0.5)  # (1 + 1) / 4: the second is below 1% of the largest
    assert np.isnan(found[1:]).all()  # nothing to misplace, nothing that matters, nothing said


def test_effect_correlation_by_hand():
    effects = np.array([[3.0, 2.0, 1.0]] * 3)
    values = np.array([[-9.0, 0.5, 0.1], [0.1, 0.5, -9.0], [1.0, 1.0, 1.0]])
    assert accuracy.effect_correlation(values, effects) == pytest.approx([1.0, -1.0, 0.0])


def test_truth_mass_by_hand():
    truth = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    found = accuracy.truth_mass(np.array([[1.0, -3.0], [1.0, 1.0], [0.0, 0.0]]), truth)
    assert found[0] == pytest.approx(0.75) and np.isnan(found[1:]).all()


@pytest.mark.parametrize("name", GATED)
def test_slopes_are_local_and_a_global_average_is_not(name):
    function = GATED[name]
    background, rows = function.sample(300, 0), function.sample(40, 1)
    sd = background.std(axis=0)
    step = 1e-5 * np.eye(function.features)

    def slopes(table):
        table = np.asarray(table)
        return np.stack([(function(table + h) - function(table - h)) / 2e-5 for h in step], axis=1) * sd

    def global_average(table):
        return np.tile(np.abs(slopes(background)).mean(axis=0), (len(table), 1))

    found = tx.evaluate(
        {"slopes": slopes, "average": global_average}, rows, model=function, background=background,
        metrics=["misplaced", "local_rank", "truth_mass"], truth=function.relevant(rows, 0.75).astype(float),
        controls=("constant", "zero"),
    )  # fmt: skip
    mass, rank = found.per_row("truth_mass"), found.per_row("local_rank/0.25")
    assert np.nanmean(mass["slopes"]) < 1e-9 < 0.1 < np.nanmean(mass["average"])
    assert np.nanmean(rank["slopes"]) > max(np.nanmean(rank[one]) for one in ("average", "constant"))
    assert np.isnan(mass["zero"]).all()
    assert np.nanmean(found.per_row("misplaced/0.75")["slopes"]) < 0.05  # a flat place: rounding alone


def test_relative_change_by_hand():
    one, two = np.array([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]])
    found = stability.relative_change(one, two)
    assert found[0] == 0.0 and np.isnan(found[1]) and found[2] == pytest.approx(np.sqrt(2))


def test_background_stability_of_a_linear_model():
    """Shares beta (x - mean): two samples differ by the difference of their means, and by nothing else."""
    model = LinearRegression().fit(X, X @ [1.0, 2.0, -1.0])

    class Shares:
        def __init__(self, background):
            self.mean = np.asarray(background).mean(axis=0)

        def __call__(self, table):
            return model.coef_ * (np.asarray(table) - self.mean)

        def rebuilt(self, background=None, seed=None):
            return self if background is None else Shares(background)

    found = tx.evaluate(
        {"shapley": Shares(X), "slopes": lambda table: np.tile(model.coef_, (len(table), 1))}, X[:10],
        model=model, background=X, metrics=["background", "seed"],
    )  # fmt: skip
    one, two = explained.two_samples(X, describe_features("abc", X), 0)
    assert len(one) == len(two) == 200 and not {*map(tuple, one)} & {*map(tuple, two)}
    first, second = Shares(one)(X[:10]), Shares(two)(X[:10])
    assert found.per_row("background/sample")["shapley"] == pytest.approx(
        stability.relative_change(first, second)
    )
    noise = found.per_row("background/noise")["shapley"]
    assert (noise > 0).any() and (noise < 1e-9).all()
    assert (found.per_row("seed")["shapley"] == 0).all()
    assert "cannot be rebuilt" in found.notes["slopes: Background"]
    assert (found.per_row("background/sample")["constant"] == 0).all()
    assert np.isnan(found.per_row("background/sample")["zero"]).all()


def test_samples_of_the_background_lack_no_level():
    table = np.column_stack([X[:, 0], np.where(np.arange(400)[:, None] == 7, [0.0, 1.0], [1.0, 0.0])])
    features = describe_features(("a", "g1", "g2"), table, {"g": (1, 2)})
    for sample in explained.two_samples(table, features, 0):  # the second level stands in one row of 400
        assert sample[:, 2].sum() == 1 and len(sample) <= 201


def test_explainers_are_built_again():
    pytest.importorskip("lime")
    model = LinearRegression().fit(X, X[:, 0] * X[:, 1])
    built = {"T": tx.TExplainer(model, X), "seeded": tx.explainers.lime(model, X, samples=100),
             "unseeded": tx.explainers.lime(model, X, samples=100, seed=None)}  # fmt: skip
    found = tx.evaluate(built, X[:4], metrics=["background", "seed", "res"], runs=2)
    seed, again = found.per_row("seed"), found.per_row("res/max")
    assert (seed["T"] == 0).all() and (again["seeded"] == 0).all()
    assert (seed["seeded"] > 0).all() and (seed["unseeded"] > 0).all() and (again["unseeded"] > 0).all()
    assert np.isfinite(found.per_row("background/sample")["T"]).all()


def test_zeros_skipped_by_hand():
    # e = (0, 2), e' = (5, 3): the first takes no part, the second changes by 1/2; x changes by 1/10 of the first.
    e, near_e = np.array([[0.0, 2.0]]), np.array([[[5.0, 3.0]]])
    x, near = np.array([[1.0, 0.0]]), np.array([[[1.1, 7.0]]])
    there = np.ones((1, 1), bool)
    found = stability.relative_input_stability(e, near_e, x, near, there, convention="zeros-skipped")
    assert found["mean"] == pytest.approx([5.0])
    # What is not a zero is clipped: e = (1e-9, 2) changes by 1e-3 / 1e-5 in the first.
    small = stability.relative_input_stability(
        np.array([[1e-9, 2.0]]), np.array([[[1e-3, 2.0]]]), x, near, there, convention="zeros-skipped"
    )
    assert small["mean"] == pytest.approx([1000.0], rel=1e-5)
    silent = stability.relative_input_stability(0 * e, near_e, x, near, there, convention="zeros-skipped")
    assert np.isnan(silent["mean"]).all()  # zeros never change under this convention: undefined, not perfect


def test_pgu_as_openxai_has_it():
    """f = a + 10 b + 100 c, fills 0, order c, b, a: all but the top 1 costs 11, all but the top 2 costs 1."""
    rows, weights = np.ones((1, 3)), np.array([1.0, 10.0, 100.0])
    found = faithfulness.prediction_gap_complement(
        weights[None], rows=rows, prediction=rows @ weights, predict=lambda table: table @ weights,
        fills=np.zeros((1, 1, 3)), owner=np.arange(3), ties=np.zeros((1, 3)), k=(1, 2),
    )  # fmt: skip
    assert found == pytest.approx([(11 + 1) / 2])  # trapezoid of (11, 1), width 1
