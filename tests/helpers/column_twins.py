"""Columns of a background one after the other: the obvious twins of what `background` does for all of them at once."""

import numpy as np

from texplainer.background.summary import APART, DIGITS, HALF_WIDTH, REPEATED, TOLERANCE, WITHIN, common_step


def without_codes(known):
    """The values of a column without extreme ones far from all others, such as -999 among counts."""
    while len(known):
        observed = np.unique(known)
        if len(observed) < 3:
            return known
        low = observed[1] - observed[0] > observed[-1] - observed[-2]  # the side that may be a code
        rest = observed[1:] if low else observed[:-1]
        gap, width = (rest[0] - observed[0] if low else observed[-1] - rest[-1]), rest[-1] - rest[0]
        if gap <= APART * width or width <= 10.0**-DIGITS * gap:  # of two values neither is a code
            return known
        known = known[known > observed[0]] if low else known[known < observed[-1]]
    return known


def find_discrete_one_by_one(rows, sd, bandwidth):
    values, integers = {}, []
    for j, column in enumerate(rows.T):
        known = without_codes(column[np.isfinite(column)])
        observed, counts = _distinct(known)
        if len(observed) < 2:
            continue
        if _is_discrete(observed, counts, bandwidth * sd[j]):
            values[j] = observed
        elif np.all(known == np.round(known)):
            integers.append(j)
    return values, tuple(integers)


def _is_discrete(observed, counts, bandwidth):
    step = common_step(observed)
    if step:  # few values may have a common step by chance
        return HALF_WIDTH * bandwidth < WITHIN * step and (step == 1 or _repeat(counts))
    gaps = np.diff(observed)
    nearest = np.minimum(np.append(gaps, np.inf), np.append(np.inf, gaps))
    return _repeat(counts) and bool(np.median(np.repeat(nearest, counts)) > bandwidth)


def _repeat(counts):
    others = np.delete(counts, np.argmax(counts))
    return bool(np.sum(others[others > 1]) >= REPEATED * others.sum())


def _distinct(known):
    """Distinct values, rounding aside, and how often each occurs."""
    observed, counts = np.unique(known, return_counts=True)
    if len(observed) < 2:
        return observed, counts
    apart = np.diff(observed) > TOLERANCE * (observed[-1] - observed[0])
    first = np.concatenate([[0], np.flatnonzero(apart) + 1])
    return observed[first], np.add.reduceat(counts, first)


def references_one_by_one(rows, levels):
    """Quantiles of the known values of each column, and the share of those that are known."""
    values, present = np.full((len(levels), rows.shape[1]), np.nan), np.zeros(rows.shape[1])
    for j, column in enumerate(rows.T):
        known = column[np.isfinite(column)]
        present[j] = len(known) / len(column)
        if len(known):
            values[:, j] = np.quantile(known, levels)
    return values, present


def odd_table(seed):
    """Sixty columns of kinds that tables hold, some with missing values, codes, outliers or infinite cells."""
    rng = np.random.default_rng(seed)
    count = int(rng.choice([1, 2, 3, 40, 137, 200]))
    kinds = (
        lambda: rng.normal(size=count),
        lambda: rng.integers(0, 2, count) * 1.0,
        lambda: rng.poisson(1.5, count) * 1.0,
        lambda: np.round(rng.normal(size=count), 1),
        lambda: np.where(rng.random(count) < 0.98, 0.0, rng.random(count)),
        lambda: np.where(rng.random(count) < 0.9, 0.0, rng.exponential(1000, count)),
        lambda: np.full(count, 3.0),
        lambda: np.log1p(rng.integers(0, 5, count)),
        lambda: np.float32(rng.poisson(2, count) / 17).astype(float),
        lambda: np.round(rng.standard_cauchy(count)),
        lambda: rng.integers(0, 40, count) + 0.5,
        lambda: 1e9 + rng.integers(0, 2, count) * 1e-3,
        lambda: np.exp(rng.normal(0, 8, count)),
    )
    columns = []
    for _ in range(60):
        column = kinds[rng.integers(len(kinds))]()
        for chance, share, odd in (
            (0.25, 0.3, np.nan),
            (0.05, 1.0, np.nan),
            (0.2, 0.05, -999.0),
            (0.1, 0.05, 1e6),
        ):
            if rng.random() < chance:
                column = np.where(rng.random(count) < share, odd, column)
        column[0] = np.inf if rng.random() < 0.05 else column[0]
        columns.append(column)
    return np.column_stack(columns)
