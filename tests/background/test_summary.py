"""A column's SD: steady from sample to sample, whatever the column holds."""

from __future__ import annotations

import numpy as np
import pytest
from column_twins import odd_table, without_codes

import texplainer as tx
from texplainer.background.summary import DIGITS, NORMAL, ROUNDING, TAIL, robust_sd
from texplainer.errors import BackgroundWarning


@pytest.mark.parametrize("ones", range(1, 12))
def test_a_rare_value_of_two_keeps_its_standard_deviation(ones):
    column = np.zeros(200)
    column[:ones] = 1.0
    noise = 1 + 1e-12 * np.random.default_rng(ones).normal(size=200)
    p = ones / 200
    assert robust_sd(column[:, None])[0] == pytest.approx(np.sqrt(p * (1 - p)))
    assert robust_sd((column * noise)[:, None])[0] == pytest.approx(np.sqrt(p * (1 - p)), rel=1e-9)


def test_outliers_do_not_set_the_scale():
    column = np.random.default_rng(0).normal(size=400)
    plain = robust_sd(column[:, None])[0]
    column[3] = 1e6
    assert plain == pytest.approx(1.0, rel=0.1)
    assert robust_sd(column[:, None])[0] == pytest.approx(plain, rel=0.05)


@pytest.mark.parametrize("offset, sd", [(1e9, 0.5), (1.7e12, 100.0), (1.7e18, 1e7)])
def test_a_column_far_from_zero_keeps_its_standard_deviation(offset, sd):
    """As times in milliseconds and nanoseconds are."""
    column = offset + sd * np.random.default_rng(0).normal(size=(400, 1))
    assert robust_sd(column)[0] == pytest.approx(sd, rel=0.1)
    explainer = tx.TExplainer(lambda rows: np.tanh((rows[:, 0] - offset) / sd), column)
    near = explainer.background.rows[np.abs(column[:, 0] - offset).argmin()]
    assert explainer(near[None]).values.ravel() == pytest.approx([0.95], rel=0.1)


def test_a_column_that_never_varies_has_no_local_value_and_moves_nothing():
    """Its unit is 0, not 1: a value that varies once in the next sample has an SD near 0, too."""
    random = np.random.default_rng(1)
    X = np.column_stack([random.normal(size=(200, 2)), np.zeros(200)])

    def model(rows):
        return rows[:, 0] * (1 + rows[:, 2]) + 5 * rows[:, 2] + np.tanh(rows[:, 1])

    with pytest.warns(BackgroundWarning, match="slope is 0"):
        explainer = tx.TExplainer(model, X)
    rows = X[:5].copy()
    rows[:, 2] = 0.5
    values = explainer(rows).values
    assert (values[:, 2] == 0).all()
    assert values[:, 0] == pytest.approx(1.5 * explainer.background.sigma[0], rel=1e-6)
    assert explainer(rows, attribution="gradient")[:, 2].values.ravel() == pytest.approx(rows[:, 0] + 5)
    assert np.abs(explainer(rows, attribution="shapley").values[:, 2]).min() > 0.1  # the rows do differ there


def test_the_sd_does_not_depend_on_the_share_of_a_code():
    rng = np.random.default_rng(0)
    column = rng.normal(50, 10, size=400)
    for share in (0.01, 0.03, 0.2):
        coded = np.where(rng.random(400) < share, -999.0, column)
        assert robust_sd(coded[:, None])[0] == pytest.approx(10, rel=0.15)


def _sd_of_one_column(column):
    """The obvious way: one column after the other."""
    known = without_codes(column[np.isfinite(column)])
    if not len(known):
        return 1.0
    floor = ROUNDING * np.abs(known).max()
    share = np.round((known - known.min()) / max(np.ptp(known), np.finfo(float).tiny), DIGITS)
    drawn_in = np.clip(known, *np.quantile(known, [TAIL, 1 - TAIL])).std() / NORMAL
    found = [known.std()] if set(share) <= {0.0, 1.0} else [drawn_in, known.std()]
    return next((sd for sd in found if sd > floor), 1.0)


def test_all_columns_at_once_give_what_one_after_the_other_gives():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(137, 12))
    rows[:, 0] = rng.integers(0, 2, 137)
    rows[:, 1] = 3.0
    rows[::9, 2] = np.nan
    rows[::20, 3] = -999.0
    rows[:, 4] = rng.poisson(0.1, 137)
    rows[:, 5] *= 1e12
    rows[:, 6] = np.exp(5 * rows[:, 6])
    rows[:, 7] = np.nan
    rows[0, 8] = np.inf
    rows[:, 9] = 1e9 + rng.integers(0, 2, 137) * 1e-3
    rows[:, 10] = np.where(np.arange(137) < 2, 7.0, 0.0)
    assert robust_sd(rows).tolist() == [_sd_of_one_column(column) for column in rows.T]


@pytest.mark.parametrize("seed", range(12))
def test_odd_columns_at_once_give_what_one_after_the_other_gives(seed, monkeypatch):
    rows = odd_table(seed)
    monkeypatch.setattr("texplainer.background.summary.CELLS", 8 * 25 * len(rows))  # three blocks
    assert robust_sd(rows).tolist() == [_sd_of_one_column(column) for column in rows.T]


@pytest.mark.parametrize("first", [0, 1])
def test_a_missing_value_in_the_first_row_does_not_make_a_constant_column_vary(first):
    rows = np.column_stack([np.arange(20.0), np.full(20, 3.0)])
    rows[first, 1] = np.nan
    with pytest.warns(BackgroundWarning, match="constant \\(first value 3.0\\)"):
        explainer = tx.TExplainer(lambda X: X[:, 0] + np.nan_to_num(X[:, 1]), rows)
    assert explainer.background.unit[1] == 0.0
    assert explainer(rows[2:4]).values[:, 1].tolist() == [0.0, 0.0]
