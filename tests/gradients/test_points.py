"""The fixed point sets: balanced, orthogonal where that is possible, the same everywhere."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texplainer.gradients.points import Blocks, magnitudes, points, prime_order, shuffle, signs


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([24, 40, 64, 128]), st.integers(1, 80))
def test_columns_have_variance_one_and_are_orthogonal_where_they_can_be(count, features):
    z = points(count, features)
    assert z.shape == (count // 2, features)
    np.testing.assert_allclose(np.mean(z**2, axis=0), 1.0, rtol=0, atol=1e-11)
    if features <= count // 2:
        np.testing.assert_allclose(z.T @ z / len(z), np.eye(features), rtol=0, atol=1e-10)
    assert np.abs(z).max() < 4


def test_points_cannot_be_changed_and_no_two_are_alike():
    z = points(64, 50)
    with pytest.raises(ValueError, match="read-only"):
        z[0] = 0.0
    assert len(np.unique(z, axis=0)) == len(z) and len(np.unique(z.T, axis=0)) == z.shape[1]
    alike = np.abs(np.corrcoef(np.concatenate([z, -z]).T) - np.eye(50))
    assert alike.max() < 0.8  # columns used again are in another order


def test_many_features_take_memory_for_the_points_alone():
    z = points(64, 20_000)
    assert z.nbytes == 32 * 20_000 * 8
    np.testing.assert_allclose(np.mean(z**2, axis=0), 1.0)


def test_the_points_are_these_bits_on_every_machine():
    text = ",".join(f"{v:.9f}" for v in points(64, 7).ravel())
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "1a8f886188430b25"


@pytest.mark.parametrize("order", [4, 8, 12, 20, 24, 32, 44, 60])
def test_paley_matrices_are_hadamard_and_confound_no_feature_with_three_others(order):
    h = signs(order, np.arange(order), np.arange(order))
    np.testing.assert_array_equal(h.T @ h, order * np.eye(order))
    if order >= 20:
        triple = h[:, :1] * h[:, 1:2] * h[:, 2:3]
        assert np.abs(triple.T @ h[:, 3:]).max() <= 0.7 * order  # in Sylvester's matrices one is `order`


@pytest.mark.parametrize(("least", "order"), [(1, 4), (4, 4), (5, 8), (13, 20), (28, 32), (33, 44)])
def test_orders(least, order):
    assert prime_order(least) == order


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 60), st.integers(1, 9), st.integers(0, 8))
def test_a_block_is_orthogonal_and_its_rows_can_be_had_one_by_one(features, blocks, block):
    design, block = Blocks(features, blocks), block % blocks
    whole = design.signs(block, 0, design.order)
    np.testing.assert_array_equal(whole.T @ whole, design.order * np.eye(features))
    np.testing.assert_array_equal(design.signs(block, 1, 3), whole[1:3])
    assert design.pairs == blocks * design.order >= features
    np.testing.assert_allclose(np.mean(design.sizes**2, axis=0), 1.0)
    # every column has every magnitude once
    np.testing.assert_allclose(
        np.sort(design.sizes, axis=0), np.tile(magnitudes(blocks)[:, None], features), rtol=1e-9
    )


def test_orders_of_shuffles_differ_by_key_and_are_permutations():
    order = shuffle(32, np.arange(40))
    np.testing.assert_array_equal(np.sort(order, axis=0), np.tile(np.arange(32)[:, None], 40))
    assert len(np.unique(order.T, axis=0)) == 40
