"""Stated bounds cover the derivatives of a published list of hard functions."""

from __future__ import annotations

import numpy as np
import pytest
from hard_functions import HARD, Hard, cover


@pytest.mark.parametrize("hard", HARD, ids=lambda hard: hard.name)
def test_every_function_has_the_gradient_it_claims(hard: Hard):
    """By a wide centred difference in extended precision of the smooth ones; the table itself can be wrong."""
    if hard.narrow or hard.kind in ("noisy", "quantised", "step", "cancelling"):
        pytest.skip("its values are not good enough to differentiate")
    rows = hard.rows(20, 3)
    step = 1e-5 * np.std(rows, axis=0)
    truth = hard.gradient(rows)
    for j in range(rows.shape[1]):
        move = np.zeros(rows.shape[1])
        move[j] = step[j]
        ahead, behind = rows + move, rows - move
        slope = (hard.f(ahead) - hard.f(behind)) / (ahead - behind)[:, j]
        scale = np.abs(truth).max(axis=0)[j] + np.abs(hard.f(rows)).max() * 1e-15 / step[j]
        assert np.median(np.abs(slope - truth[:, j])) <= 1e-4 * max(scale, 1e-300)


def test_the_list_is_long_and_of_all_kinds():
    assert len(HARD) >= 40 and len({hard.name for hard in HARD}) == len(HARD)
    kinds = {"smooth", "kinked", "noisy", "oscillating", "badly scaled", "cancelling", "quantised", "step"}
    assert kinds | {"float32", "float16"} == {hard.kind for hard in HARD}


@pytest.mark.parametrize(("narrow", "least"), [(False, 0.99), (True, 0.95)])
def test_bounds_cover(narrow: bool, least: float):
    found = [cover(hard) for hard in HARD if hard.narrow == narrow]
    assert np.mean([one.covered for one in found]) >= least
    stable = np.sum([one.stable_cells for one in found])
    assert np.sum([one.stable_covered for one in found]) >= 0.99 * stable > 0


@pytest.mark.parametrize(
    "hard", [h for h in HARD if h.kind in ("noisy", "float16", "quantised", "cancelling")]
)
def test_none_of_the_hardest_is_left_behind(hard: Hard):
    """What version 0.1.0 missed: noise it did not see."""
    assert cover(hard).covered >= 0.95
