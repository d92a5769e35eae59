"""The compiled soft trees against leaf-box enumeration, and their laws."""

import os
import shutil
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import texplainer

pytest.importorskip("numba")

from oracles_trees import hard, random_rows, random_tree, smoothed, trees_of

from texplainer.gradients.trees import soft
from texplainer.gradients.trees.compiled import block_rows
from texplainer.gradients.trees.ensemble import Tree, assemble
from texplainer.gradients.trees.layout import coherent_order
from texplainer.gradients.trees.soft import mass_inside, with_half_widths
from texplainer.gradients.trees.split import split_between, split_once


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    features, depth = draw(st.integers(1, 4)), draw(st.integers(0, 6))
    width = draw(st.sampled_from([1, 1, 2, 3]))
    outputs = width if width > 1 else draw(st.integers(1, 3))
    wild = draw(st.booleans())
    trees = [
        random_tree(rng, features, width, depth, int(rng.integers(outputs)) if width == 1 else 0, wild)
        for _ in range(draw(st.integers(1, 4)))
    ]
    widths = rng.choice([0.0, 0.05, 0.3, 1.0, 3.0], features)
    rows = random_rows(rng, draw(st.integers(1, 9)), features, wild)
    return trees, rows, widths, outputs, rng.normal(size=outputs)


@pytest.mark.parametrize("execution", ["scalar", "dense"])
@settings(max_examples=60, deadline=None)
@given(problem=problems())
def test_equals_leaf_boxes(execution, problem):
    trees, rows, widths, outputs, base = problem
    ensemble = assemble(trees, features=len(widths), base=base, link="identity")
    value, gradient = with_half_widths(ensemble, widths)(rows, execution=execution)
    expected, slopes = smoothed(trees, rows, widths, outputs, base)
    scale = 1 + sum(np.abs(tree.value).max() for tree in trees)
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-13 * scale)
    per_width = np.where(widths == 0, 1, widths)[:, None]
    np.testing.assert_allclose(gradient * per_width, slopes * per_width, rtol=0, atol=1e-13 * scale)


@settings(max_examples=40, deadline=None)
@given(problem=problems())
def test_without_width_is_the_model(problem):
    trees, rows, widths, outputs, base = problem
    ensemble = assemble(trees, features=len(widths), base=base, link="identity")
    value, gradient = with_half_widths(ensemble, np.zeros(len(widths)))(rows)
    np.testing.assert_allclose(value, hard(trees, rows, outputs, base), rtol=0, atol=1e-13)
    assert not gradient.any()


def forest(seed, features=5, trees=20, depth=7, width=1):
    rng = np.random.default_rng(seed)
    return [random_tree(rng, features, width, depth) for _ in range(trees)], rng


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("half", [0.02, 0.4, 2.0])
def test_same_bits_in_every_execution_order_batch_and_thread(width, half):
    trees, rng = forest(3, width=width)
    rows = random_rows(rng, 700, 5, wild=True)
    f = with_half_widths(assemble(trees, features=5, base=np.zeros(width), link="identity"), np.full(5, half))
    found = f(rows, execution="scalar", threads=1)
    assert all(np.isfinite(one).all() and one.any() for one in found)

    def same(rows, at, **how):
        for one, expected in zip(f(rows, **how), found, strict=True):
            np.testing.assert_array_equal(one, expected[at])

    everything, shuffled = np.arange(700), rng.permutation(700)
    same(rows, everything, execution="dense", threads=1)
    same(rows, everything, execution="dense", threads=3)
    same(rows, everything)
    same(rows[shuffled], shuffled)
    for at in (slice(0, 1), slice(5, 70), slice(400, 700)):
        same(rows[at], at)


def test_a_long_table_in_small_blocks_reaches_the_dense_execution(monkeypatch):
    """100 trees, 2,016 rows a block: no single block is worth compiling for, ten of them are."""
    monkeypatch.setattr(soft, "dense_rows", types.SimpleNamespace(signatures=[]))
    monkeypatch.setattr(soft, "_work_done", {"scalar": 0.0}, raising=False)
    monkeypatch.setattr(soft, "execute", lambda *how: None)
    plan = types.SimpleNamespace(kind=np.zeros(9_700), inverse=np.ones(28), outputs=1)
    arrays = (np.zeros((2 * block_rows(plan), 1)), np.arange(2 * block_rows(plan)))
    chosen = [soft.fastest(plan, arrays, None)[0] > 0 for _ in range(10)]
    assert not any(chosen[:1]) and all(chosen[2:])


def test_executions_are_tried_on_the_same_rows(monkeypatch):
    """On rows far out a deep tree has little to do: tried there, the scalar execution once looked the faster."""
    trees, rng = forest(4, depth=5)
    f = with_half_widths(assemble(trees, features=5, base=[0.0], link="identity"), np.full(5, 0.7))
    block = block_rows(f.plan)
    rows = rng.normal(size=(2 * block + 100, 5))
    f(rows, execution="dense")  # compiled
    seen = {}
    execute = soft.execute

    def noted(name, plan, arrays, first, last, many):
        cells, order, *_ = arrays
        if last > first:
            seen.setdefault(name, cells[order[first:last]])
        execute(name, plan, arrays, first, last, many)

    monkeypatch.setattr(soft, "execute", noted)
    f(rows, threads=1)
    assert len(seen["scalar"]) == soft.TRIAL and len(seen["dense"]) == block
    assert {tuple(row) for row in seen["scalar"]} <= {tuple(row) for row in seen["dense"]}


def test_gradient_is_the_derivative_of_the_smoothed_value():
    trees, rng = forest(4, depth=5)
    rows, widths = rng.normal(size=(6, 5)), np.full(5, 0.7)
    f = with_half_widths(assemble(trees, features=5, base=[0.0], link="identity"), widths)
    _, gradient = f(rows)
    for j in range(5):
        step = np.zeros(5)
        step[j] = 1e-5
        difference = (f(rows + step)[0] - f(rows - step)[0]) / 2e-5
        np.testing.assert_allclose(gradient[:, j], difference, atol=1e-4)


@pytest.mark.parametrize("bounded", ["upper", "lower", "both"])
def test_slope_of_one_split_between_bounds(bounded):
    """Through Python, one formula at a time: against differences of its own probability."""
    lower, upper, s = -0.4, 0.7, 1.3

    def split(x):
        if bounded == "upper":
            return split_once(0.1, upper, x, 1 / s)
        if bounded == "lower":
            right, left, slope = split_once(0.1, lower, x, -1 / s)
            return left, right, slope
        return split_between(0.1, lower, upper, x, 1 / s)

    for x in (-0.9, -0.2, 0.05, 0.3, 0.95):
        left, right, slope = split(x)
        assert left + right == pytest.approx(1)
        first = (split(x + 1e-6)[1] - split(x - 1e-6)[1]) / 2e-6 * s
        assert slope == pytest.approx(first, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(problem=problems())
def test_thresholds_outside_the_range_are_not_softened(problem):
    """Inside the range, the same as a tree whose thresholds outside it are far away."""
    trees, rows, widths, _, base = problem
    ensemble = assemble(trees, features=len(widths), base=base, link="identity")
    low, high = np.full(len(widths), -0.6), np.full(len(widths), 0.5)
    inside = np.clip(rows, low, high)
    far = [
        replace(
            t, threshold=np.where(t.threshold > 0.5, 1e6, np.where(t.threshold < -0.6, -1e6, t.threshold))
        )
        for t in trees
    ]
    expected = with_half_widths(assemble(far, features=len(widths), base=base, link="identity"), widths)
    for execution in ("scalar", "dense"):
        found = with_half_widths(ensemble, widths, (low, high))(inside, execution=execution)
        for one, other in zip(found, expected(inside), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_the_mass_inside_is_that_of_the_triangular_kernel():
    rng = np.random.default_rng(0)
    noise = rng.triangular(-1, 0, 1, size=200_000)
    limits = (np.array([-1.0, -np.inf]), np.array([0.5, np.inf]))
    for x in (-1.0, -0.5, 0.2, 0.5):
        found = mass_inside(np.array([[x, x]]), np.array([0.8, 0.8]), limits)[0]
        at = x + 0.8 * noise
        assert found[0] == pytest.approx(np.mean((at >= -1) & (at <= 0.5)), abs=5e-3) and found[1] == 1.0
    outside = mass_inside(np.array([[2.0, 2.0]]), np.array([0.8, 0.8]), limits)[0]
    assert outside[0] == 0.5  # its own edge


def test_thresholds_of_whole_numbers_are_taken_between_them():
    """Anywhere between two integers a threshold decides alike, and gives the same slopes."""
    trees, rng = forest(5, features=3)
    at = [
        replace(t, threshold=np.floor(3 * t.threshold) + shift) for shift in (1e-9, 0.3, 0.999) for t in trees
    ]
    rows = np.round(3 * rng.normal(size=(30, 3)))
    count = len(trees)
    found = [
        with_half_widths(
            assemble(at[i : i + count], features=3, base=[0.0], link="identity"),
            np.full(3, 2.0),
            None,
            (0, 1, 2),
        )(rows)[1]
        for i in (0, count, 2 * count)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_the_smoothed_value_is_the_mean_over_noise():
    trees, _ = forest(5, features=2, trees=3, depth=3)
    widths = np.array([0.6, 1.5])
    x = np.array([[0.1, -0.3]])
    # Inverse of the distribution on a fine regular grid.
    u = (np.arange(1000) + 0.5) / 1000
    noise = np.where(u < 0.5, np.sqrt(2 * u) - 1, 1 - np.sqrt(2 * (1 - u)))
    grid = np.stack(np.meshgrid(noise, noise, indexing="ij"), axis=-1).reshape(-1, 2)
    ensemble = assemble(trees, features=2, base=[0.0], link="identity")
    mean = with_half_widths(ensemble, np.zeros(2))(x + widths * grid)[0].mean()
    assert with_half_widths(ensemble, widths)(x)[0][0, 0] == pytest.approx(mean, abs=2e-3)


@pytest.mark.parametrize("execution", ["scalar", "dense"])
@pytest.mark.parametrize("first", ["near", "far"])
def test_tiny_masses_keep_their_digits(first, execution):
    """Between two thresholds at the noise's very end, and beyond both, lie masses of some 1e-17."""
    near, far = 1 - 1e-8, 1 - 5e-9
    # Either threshold may be asked first; the leaves are 0 below both, 1e16 between them, 3e16 beyond.
    children = {
        "near": ([1, -1, 3, -1, -1], [2, -1, 4, -1, -1]),
        "far": ([1, 3, -1, -1, -1], [2, 4, -1, -1, -1]),
    }
    threshold = {"near": [near, 0, far, 0, 0], "far": [far, near, 0, 0, 0]}
    value = {"near": [0, 0, 0, 1e16, 3e16], "far": [0, 0, 3e16, 0, 1e16]}
    left, right = map(np.array, children[first])
    none = np.zeros(5, int)
    tree = Tree(left, right, none, np.array(threshold[first]), none, np.array(value[first])[:, None])
    ensemble = assemble([tree], features=1, base=[0.0], link="identity")
    found, gradient = with_half_widths(ensemble, np.ones(1))(np.zeros((1, 1)), execution=execution)
    masses = [(1 - t) ** 2 / 2 for t in (near, far)]
    assert found[0, 0] == pytest.approx(1e16 * (masses[0] - masses[1]) + 3e16 * masses[1], rel=1e-7)
    assert gradient[0, 0, 0] == pytest.approx(1e16 * (far - near) + 3e16 * (1 - far), rel=1e-7)


def test_linear_in_the_leaves_and_blind_to_unused_features():
    trees, rng = forest(6)
    rows, widths = rng.normal(size=(40, 6)), np.full(6, 0.5)

    def gradient(trees):
        return with_half_widths(assemble(trees, features=6, base=[0.0], link="identity"), widths)(rows)[1]

    np.testing.assert_allclose(gradient(trees), gradient(trees[:7]) + gradient(trees[7:]), atol=1e-12)
    assert not gradient(trees)[:, 5].any()


def test_assembling_keeps_the_trees():
    trees, _ = forest(7, trees=3, depth=4)
    again = list(trees_of(assemble(trees, features=5, base=[0.0], link="identity")))
    rows = random_rows(np.random.default_rng(0), 50, 5, wild=True)
    np.testing.assert_array_equal(hard(trees, rows, 1), hard(again, rows, 1))


def test_coherent_order_is_a_permutation_with_tight_blocks():
    rows = np.random.default_rng(8).normal(size=(1000, 4))
    rows[::11, 0] = np.nan
    order = coherent_order(rows, np.array([1.0, 1.0, 0.0, 0.0]), 50)
    np.testing.assert_array_equal(np.sort(order), np.arange(1000))
    sd = np.nanstd(rows[order][:, 1].reshape(-1, 50), axis=1).mean()
    assert sd < 0.6 * rows[:, 1].std()
    same = np.ones((130, 2))
    np.testing.assert_array_equal(np.sort(coherent_order(same, np.ones(2), 16)), np.arange(130))


def test_compiled_code_is_not_kept_when_a_file_it_draws_on_changes(tmp_path):
    """The kernels' own file stays as it is; only the formula of a split changes."""
    shutil.copytree(
        Path(texplainer.__file__).parent, tmp_path / "texplainer", ignore=shutil.ignore_patterns("*cache*")
    )
    code = """
import numpy as np
from texplainer.gradients.trees import soft
from texplainer.gradients.trees.ensemble import Tree, assemble
from texplainer.gradients.trees.soft import with_half_widths
from texplainer.gradients.trees.split import split_between, split_once
n = np.zeros(3, int)
tree = Tree(np.array([1, -1, -1]), np.array([2, -1, -1]), n, n * 1.0, n, np.array([[0.0], [0.0], [1.0]]))
f = with_half_widths(assemble([tree], features=1, base=[0.0], link="identity"), np.ones(1))
print(f(np.zeros((1, 1)), execution="scalar")[0][0, 0])
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}

    def run():
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
        return float(done.stdout)

    assert run() == 0.5
    formula = tmp_path / "texplainer" / "gradients" / "trees" / "split.py"
    formula.write_text(formula.read_text().replace("0.5 * k * k", "0.25 * k * k"))
    assert run() == 0.25
