"""Gated functions: what is called irrelevant cannot move them, what is called relevant can."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.gated import GATED


@pytest.mark.parametrize("name", GATED)
@pytest.mark.parametrize("radius", [0.25, 0.75])
def test_the_truth_is_true(name: str, radius: float) -> None:
    """Slow twin: move one feature over a fine grid from many places in the box, and look."""
    function = GATED[name]
    rng = np.random.default_rng(0)
    rows = function.sample(40, seed=3)
    relevant = function.relevant(rows, radius)
    assert relevant.shape == rows.shape and relevant.any() and not relevant.all()
    for row, truth in zip(rows, relevant, strict=True):
        places = row + rng.uniform(-radius, radius, (400, len(row)))
        for j, matters in enumerate(truth):
            moved = places.copy()
            moved[:, j] = row[j] + rng.uniform(-radius, radius, len(places))
            change = np.abs(function(moved) - function(places)).max()
            assert change == 0.0 if not matters else True
        # what matters shows where the box is not only grazed by a gate
    shown = 0
    for row, truth in zip(rows, function.relevant(rows, 0.8 * radius), strict=True):
        places = row + rng.uniform(-radius, radius, (2000, len(row)))
        for j in np.flatnonzero(truth):
            moved = places.copy()
            moved[:, j] = row[j] + rng.uniform(-radius, radius, len(places))
            shown += np.abs(function(moved) - function(places)).max() > 0
    assert shown >= 0.98 * function.relevant(rows, 0.8 * radius).sum()


def test_rows_are_drawn_alike_everywhere() -> None:
    rows = GATED["switch"].sample(3, seed=0)
    assert (rows == rows.round(6)).all() and (rows == GATED["switch"].sample(3, seed=0)).all()
