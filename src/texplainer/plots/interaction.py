"""Find the second feature that interacts most with the attribution of the first, from the given rows.

Within slices of rows that are alike in the first feature, the values would be alike too if nothing else
mattered. The feature that explains most of what is left, beyond what chance would, is the one to colour by.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

SLICES, LEAST = 10, 6  # slices of rows alike in the first feature; the fewest rows in one
SEEN = 0.1  # share of the scatter that must be explained to be seen in colours
ROUND_OFF = 1e-6
LEVELS = 12  # categories of more levels explain too much by chance


def strongest(values: np.ndarray, first: np.ndarray, others: dict[int, np.ndarray]) -> int | None:
    """The key of the column that best explains the scatter of values at equal first; None if none does.

    `values` and `first` are (rows,); `others` are columns of numbers or texts.
    """
    slices = _slices(first)
    left = [_left(values[rows], first[rows]) for rows in slices]
    total = sum(float(rest @ rest) for rest in left)
    if total <= ROUND_OFF * float(np.sum((values - values.mean()) ** 2)):
        return None
    found = {
        key: sum(_explained(rest, column[rows]) for rest, rows in zip(left, slices, strict=True))
        for key, column in others.items()
    }
    best = max(found, key=lambda key: found[key], default=None)
    return best if best is not None and found[best] > SEEN * total else None


def _left(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """What a straight line in the first feature leaves of the values of one slice."""
    numbers, rest = numeric(first), values - values.mean()
    if numbers is None or not np.ptp(numbers) > 0:
        return rest
    away = numbers - numbers.mean()
    return rest - away * float(rest @ away) / float(away @ away)


def _slices(first: np.ndarray) -> list[np.ndarray]:
    """Rows alike in a column: its levels, or slices of equal size in its order."""
    numbers = numeric(first)
    if numbers is None:
        groups = [np.flatnonzero(first == level) for level in np.unique(first.astype(str))]
    else:
        count = int(np.clip(len(first) // LEAST, 1, SLICES))
        groups = np.array_split(np.argsort(numbers, kind="stable"), count)
    return [rows for rows in groups if len(rows) >= LEAST]


def _explained(values: np.ndarray, column: np.ndarray) -> float:
    """Sum of squares of values that a column explains, less what chance would."""
    total = float(np.sum((values - values.mean()) ** 2))
    numbers = numeric(column)
    if numbers is None:
        levels, codes = np.unique(column.astype(str), return_inverse=True)
        freedom = len(levels) - 1
        counts = np.bincount(codes)
        means = np.bincount(codes, weights=values) / counts
        found = float(np.sum(counts * (means - values.mean()) ** 2))
    else:
        freedom, found = 1, _straight(values, rankdata(numbers))
    if not 0 < freedom < min(LEVELS, len(values) - 1):
        return 0.0
    return found - freedom * (total - found) / (len(values) - 1 - freedom)


def _straight(values: np.ndarray, ranks: np.ndarray) -> float:
    """Sum of squares of values along the ranks."""
    sd = float(np.sum((ranks - ranks.mean()) ** 2))
    return float((values - values.mean()) @ (ranks - ranks.mean())) ** 2 / sd if sd else 0.0


def numeric(column: np.ndarray) -> np.ndarray | None:
    """A column as numbers, the missing ones in the middle; None if it holds text."""
    try:
        numbers = np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        return None
    known = np.isfinite(numbers)
    return np.where(known, numbers, np.median(numbers[known]) if known.any() else 0.0)
