"""Which columns are discrete: by their values, whatever the sample, the scale and the tails."""

import numpy as np
import pytest
from column_twins import find_discrete_one_by_one, odd_table

from texplainer.background import summary as module
from texplainer.background.summary import DiscreteColumns, common_step, find_discrete, robust_sd


def columns(seed, count=200):
    rng = np.random.default_rng(seed)
    zeros = rng.random(count) < 0.9
    return {
        "0/1": (rng.random(count) < 0.3) * 1.0,
        "rare": np.r_[1.0, np.zeros(count - 1)],
        "count": rng.poisson(1.5, count) * 1.0,
        "ordinal": rng.integers(0, 4, count) * 1.0,
        "scaled count": np.float32(rng.poisson(2, count) / 17.0).astype(float),
        "logs of a few": np.log1p(rng.integers(0, 5, count)),
        "normal": rng.normal(size=count),
        "age": np.round(rng.normal(40, 15, count)),
        "decimals": np.round(rng.normal(size=count), 1),
        "mostly 0": np.where(zeros, 0.0, rng.exponential(1000, count)),
        "mostly 0, whole": np.where(zeros, 0.0, np.round(rng.exponential(1000, count))),
        "one value": np.ones(count),
    }


DISCRETE = {"0/1", "rare", "count", "ordinal", "scaled count", "logs of a few"}


@pytest.mark.parametrize("seed", range(10))
def test_every_sample_decides_alike(seed):
    table = columns(seed)
    rows = np.column_stack(list(table.values()))
    found = find_discrete(rows, robust_sd(rows), 0.25, range(len(table)))
    names = list(table)
    assert {names[j] for j in found.columns} == DISCRETE
    assert {names[j] for j in found.integers} == {"age", "mostly 0, whole"}
    scaled = (rows - 3.0) / 7.0
    again = find_discrete(scaled, robust_sd(scaled), 0.25, range(len(table)))
    assert set(again.columns) >= {names.index(n) for n in DISCRETE - {"rare"}}


def test_a_narrower_bandwidth_makes_more_columns_discrete():
    rows = np.round(np.random.default_rng(0).normal(size=(300, 1)) * 6)
    assert find_discrete(rows, robust_sd(rows), 0.25, [0]).integers == (0,)
    assert find_discrete(rows, robust_sd(rows), 0.1, [0]).columns == [0]


def test_the_common_step_is_the_greatest_common_divisor():
    assert common_step(np.array([4.0, 10.0, 22.0])) == 6.0
    assert common_step(np.array([0.1, 0.4, 0.5, 0.9])) == pytest.approx(0.1)
    assert common_step(np.array([0.0, 1.0, np.sqrt(2), np.pi])) == 0.0


def test_neighbours_are_observed_values_and_the_rows_own_at_an_edge():
    discrete = DiscreteColumns({0: np.array([0.0, 1.0, 5.0])})
    low, high = discrete.neighbours(np.array([[0.0], [1.0], [2.0], [5.0], [9.0], [-1.0], [np.nan]]), 0)
    np.testing.assert_array_equal(low, [0, 0, 1, 1, 5, -1, np.nan])
    np.testing.assert_array_equal(high, [1, 5, 5, 5, 9, 0, np.nan])


def test_columns_keep_their_values_when_renumbered():
    discrete = DiscreteColumns({1: np.array([0.0, 1.0])}, (2,)).renumbered([0, 4, 7])
    assert discrete.columns == [4] and discrete.integers == (7,)
    np.testing.assert_array_equal(discrete.mask(6), [False, False, False, False, True, False])


def populations(count=50_000):
    """Columns of the kinds that tables hold, discrete ones and others, whose step is not the bandwidth."""
    rng = np.random.default_rng(1)

    def coded(column, share):
        return np.where(rng.random(count) < share, -999.0, column)

    digits, flag = rng.integers(0, 10, count) * 1.0, (rng.random(count) < 0.4) * 1.0
    age = np.round(rng.normal(50, 15, count))
    return {
        "0/1": (rng.random(count) < 0.1) * 1.0,
        "skewed count": rng.geometric(0.4, count) - 1.0,
        "likert": rng.integers(1, 6, count) * 1.0,
        "rounded halves": np.round(2 * rng.normal(size=count)) / 2,
        "heavy-tailed count": np.round(rng.standard_t(2, count)),
        **{f"0/1, {share} coded": coded(flag, share) for share in (0.025, 0.1)},
    }, {
        "digits": digits,
        **{f"digits, {share} coded": coded(digits, share) for share in (0.01, 0.025, 0.2)},
        "Poisson of mean 16": rng.poisson(16, count) * 1.0,
        "age": age,
        "age, coded": coded(age, 0.025),
        "normal, coded": coded(rng.normal(50, 10, count), 0.025),
        "heavy-tailed": rng.standard_cauchy(count),
        "rounded": np.round(rng.normal(size=count), 1),
        "skewed": np.round(np.exp(rng.normal(2, 1.2, count))),
    }


@pytest.mark.parametrize("kind", [0, 1])
def test_another_sample_of_200_rows_does_not_flip_the_decision(kind):
    for name, column in populations()[kind].items():
        for seed in range(30):
            rows = np.random.default_rng(seed).choice(column, 200)[:, None]
            found = find_discrete(rows, robust_sd(rows), 0.25, [0])
            assert (found.columns == [0]) == (kind == 0), (name, seed)


def test_a_count_in_other_units_is_decided_as_the_count():
    """Scaled digits (SD 2.87) were discrete, the digits themselves were not."""
    for kind, discrete in zip(populations(), (True, False), strict=True):
        for name in {"likert", "skewed count", "digits", "Poisson of mean 16"} & set(kind):
            for seed in range(30):
                rows = np.random.default_rng(seed).choice(kind[name], 200)[:, None]
                for scaled in (rows, rows / 16, (rows - rows.mean()) / rows.std()):
                    found = find_discrete(scaled, robust_sd(scaled), 0.25, [0])
                    assert (found.columns == [0]) == discrete, (name, seed)


def test_a_code_is_not_the_neighbour_of_a_count():
    rows = np.array([[-999.0], [0.0], [1.0], [0.0], [1.0], [1.0], [0.0], [-999.0]])
    found = find_discrete(rows, robust_sd(rows), 0.25, [0])
    np.testing.assert_array_equal(found.values[0], [0, 1])
    low, high = found.neighbours(rows[:2], 0)
    np.testing.assert_array_equal([low, high], [[-999, 0], [0, 1]])


@pytest.mark.parametrize("seed", range(12))
def test_all_columns_at_once_are_decided_as_one_after_the_other(seed, monkeypatch):
    rows = odd_table(seed)
    if seed % 3 == 0:  # several blocks
        monkeypatch.setattr(module, "CELLS", 8 * 7 * len(rows))
    sd = robust_sd(rows)
    for bandwidth in (0.05, 0.25, 1.0):
        found = find_discrete(rows, sd, bandwidth, range(rows.shape[1]))
        values, integers = find_discrete_one_by_one(rows, sd, bandwidth)
        assert found.columns == list(values) and found.integers == integers
        for j in values:
            np.testing.assert_array_equal(found.values[j], values[j])


def test_neighbours_of_many_rows_are_not_one_value():
    rng = np.random.default_rng(0)
    count = 300_000  # so many that cells within the tolerance of each other form one chain
    amounts = np.where(rng.random(count) < 0.5, 0.0, rng.exponential(size=count))
    rows = np.column_stack([amounts, rng.integers(0, 2, count), np.round(1e6 * rng.random(count))])
    found = find_discrete(rows, robust_sd(rows), 0.25, range(3))
    assert found.columns == [1] and found.integers == (2,)
