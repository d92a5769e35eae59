"""Columns of a background one after the other: the obvious twins of what `background` does for all of them at once."""

import math
from fractions import Fraction

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
        if len(np.unique(known)) < 2:
            continue
        observed, counts, widest = _distinct(known)
        one_value_each = widest <= TOLERANCE * np.ptp(known) and len(observed) > 1
        if one_value_each and _is_discrete(observed, counts, bandwidth * sd[j]):
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
    """Distinct values, rounding aside, how often each occurs, and how far apart cells are that count as one value."""
    groups = [[]]
    for cell in np.sort(known):
        if groups[-1] and cell - groups[-1][-1] > TOLERANCE * np.ptp(known):
            groups.append([])
        groups[-1].append(cell)
    observed, counts = (np.array(found) for found in zip(*((g[0], len(g)) for g in groups), strict=True))
    return observed, counts, max(g[-1] - g[0] for g in groups)


def references_one_by_one(rows, sd, count):
    """For each column a list of (value, weight), and the share of cells that are missing.

    Values that make up a count-th of the column, or all of at most `count` values, stand for themselves. The others
    are represented by evenly spaced ones: each node is the value in the middle of its part of them.
    """
    found = []
    for column, one_sd in zip(rows.T, sd, strict=True):
        known = sorted(column[np.isfinite(column)])
        groups = []
        for cell in known:
            if groups and cell - groups[-1][-1] <= 1e-11 * one_sd + 1e-15 * abs(cell):
                groups[-1].append(cell)
            else:
                groups.append([cell])
        own = [g for g in groups if len(groups) <= count or len(g) * count >= len(known)]
        rest = [cell for g in groups if g not in own for cell in g]
        pairs = [(g[0], Fraction(len(g), len(known))) for g in own]
        nodes = count - len(own) if rest else 0
        for i in range(nodes):
            level = Fraction(2 * i + 1, 2 * nodes) * len(rest)  # the first cell that as many are not above
            pairs.append((rest[math.ceil(level) - 1], Fraction(len(rest), len(known) * nodes)))
        found.append((sorted(pairs), 1 - len(known) / len(column)))
    return found


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
