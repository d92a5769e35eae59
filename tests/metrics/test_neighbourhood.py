"""The shared neighbours: same class, nearest first, valid rows, inside the data, never padded."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texplainer.errors import InputError
from texplainer.metrics.evidence.features import describe_features
from texplainer.metrics.evidence.perturbations import flip, neighbourhood

BACKGROUND = np.random.default_rng(0).random((200, 3))
PLAIN = describe_features("abc", BACKGROUND)
ONE_HOT = np.array([[0.0, 1, 0, 0, 0], [1.0, 0, 0, 1, 2], [0.5, 0, 1, 0, 1]])
MIXED = describe_features("abcde", ONE_HOT, {"g": (1, 2, 3)}, {4: 3})


def side(rows):
    return (rows[:, 0] > 0.5).astype(int)


def anywhere(rows):
    return np.zeros(len(rows), dtype=int)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), sigma=st.floats(1e-3, 0.5), count=st.integers(1, 12))
def test_neighbours_keep_the_class_the_range_and_the_order(seed, sigma, count):
    rows = np.random.default_rng(seed).random((6, 3))
    found = neighbourhood(rows, side, BACKGROUND, PLAIN, neighbours=count, sigma=sigma, seed=seed)
    there = found.rows[found.valid]
    assert found.rows.shape == (6, count, 3)
    assert (side(there) == np.repeat(side(rows), found.valid.sum(axis=1))).all()
    assert (there >= np.minimum(BACKGROUND.min(0), rows.min(0))).all()
    assert (there <= np.maximum(BACKGROUND.max(0), rows.max(0))).all()
    distance = np.linalg.norm(found.rows - rows[:, None], axis=-1)
    assert np.allclose(distance[found.valid], found.distance[found.valid])
    assert (np.sort(found.distance, axis=1) == found.distance).all()
    assert (found.distance[found.valid] > 0).all()


def test_a_row_draws_the_same_whatever_stands_beside_it():
    rows = np.random.default_rng(1).random((5, 3))
    many = neighbourhood(rows, side, BACKGROUND, PLAIN, seed=3)
    few = neighbourhood(rows[:2], side, BACKGROUND, PLAIN, seed=3)
    assert np.array_equal(many.rows[:2], few.rows)
    assert not np.array_equal(many.rows, neighbourhood(rows, side, BACKGROUND, PLAIN, seed=4).rows)


def test_the_noise_has_the_paper_s_variance():
    inside = np.full((1, 3), 0.5)
    found = neighbourhood(inside, anywhere, BACKGROUND, PLAIN, neighbours=4000, candidates=4000)
    assert found.rows.var() == pytest.approx(0.001, rel=0.1)


def test_a_shortage_is_reported_not_padded():
    alone = np.array([[0.5, 0.5, 0.5], [0.2, 0.2, 0.2]])

    def only_itself(rows):
        return np.where(np.all(rows == alone[0], axis=1), 7, 0)

    found = neighbourhood(alone, only_itself, BACKGROUND, PLAIN, neighbours=4)
    assert found.counts.tolist() == [0, 4]
    assert np.isnan(found.rows[0]).all()


def test_max_distance_is_honoured():
    rows = np.full((2, 3), 0.5)
    near = neighbourhood(rows, anywhere, BACKGROUND, PLAIN, neighbours=5, max_distance=0.03)
    assert (near.distance[near.valid] <= 0.03).all()
    none = neighbourhood(rows, anywhere, BACKGROUND, PLAIN, neighbours=5, max_distance=1e-9)
    assert none.counts.tolist() == [0, 0]


def test_categories_stay_valid_and_flip_as_often_as_told():
    rows = np.tile([0.3, 0.0, 1.0, 0.0, 1.0], (4000, 1))
    moved = flip(rows, MIXED, 0.25, np.random.default_rng(0))
    assert (moved[:, 1:4].sum(axis=1) == 1).all() and set(np.unique(moved[:, 1:4])) == {0.0, 1.0}
    assert set(np.unique(moved[:, 4])) == {0.0, 1.0, 2.0}
    assert np.mean(moved[:, 2] == 0) == pytest.approx(0.25, abs=0.03)
    assert np.mean(moved[:, 4] != 1) == pytest.approx(0.25, abs=0.03)
    assert (rows[:, 2] == 1).all(), "the input is not written to"


def test_noise_leaves_categories_alone():
    found = neighbourhood(ONE_HOT[2:], anywhere, ONE_HOT, MIXED, flip_share=0.0)
    assert (found.rows[0, :, 1:] == [0, 1, 0, 1]).all()


@pytest.mark.parametrize("wrong", [{"neighbours": 0}, {"sigma": -1.0}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(InputError, match="expected at least 1 neighbour"):
        neighbourhood(BACKGROUND[:1], anywhere, BACKGROUND, PLAIN, **wrong)


def test_groups_must_name_columns_once():
    with pytest.raises(InputError, match="at most once"):
        describe_features("abc", BACKGROUND, {"g": (0, 1), "h": (1, 2)})


def test_features_gather_columns_by_sum_and_features_by_name():
    features = describe_features(("a", "b_1", "b_2", "c"), np.eye(4), {"b": (1, 2)})
    assert features.names == ("a", "b", "c")
    by_column = features.gather(np.array([[1.0, 2.0, 3.0, 4.0]]), ("a", "b_1", "b_2", "c"))
    assert by_column.tolist() == [[1.0, 5.0, 4.0]]
    assert features.gather(np.array([[1.0, 2.0, 3.0]]), ("c", "a", "b")).tolist() == [[2.0, 3.0, 1.0]]
    with pytest.raises(InputError, match=r"shape \(1, 2\)"):
        features.gather(np.zeros((1, 2)))


def test_the_authors_neighbours_are_the_first_draws_whatever_their_distance():
    rows = BACKGROUND[:6]
    found = neighbourhood(
        rows, lambda table: np.zeros(len(table), int), BACKGROUND, PLAIN, convention="first-draws", seed=3
    )
    drawn = [
        row + np.random.default_rng([3, 0, i]).normal(0.0, 0.001, (100, len(row)))[:10]
        for i, row in enumerate(rows)
    ]
    np.testing.assert_array_equal(found.rows, drawn)
    assert (np.diff(found.distance, axis=1) < 0).any()  # in the order of the draws, not of distance
    with pytest.raises(
        InputError, match="convention='last' is unknown; expected one of nearest, first-draws"
    ):
        neighbourhood(rows, len, BACKGROUND, PLAIN, convention="last")
