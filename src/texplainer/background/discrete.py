"""Which numeric columns hold so few values that a slope must be a difference between them.

A slope averaged over a quarter SD means nothing for a 0/1 column: no value lies in between. A column is
*discrete* where its values lie further apart than the bandwidth:

- whole numbers: moves over the kernel's half-width, rounded, reach the next whole numbers only (SD below 2.4 by
  default). An average over such moves is the difference between the neighbours, so that nothing depends on how a column
  near the limit is treated;
- values on another lattice (decimals, scaled integers): its step exceeds the bandwidth, and nearly all values repeat;
- other values that nearly all repeat: in the median row the nearest other value is beyond the bandwidth.

The lattice's step is the greatest common divisor of the differences, not the smallest gap seen: it does not
depend on how many rows the background has, nor on its tails. Codes such as -999, far from all other values, are
neither counted nor neighbours of a count.

Columns of whole numbers that are wide enough to be averaged over are kept too: no model can be asked about
half a year, so that tree thresholds belong in the middle between two integers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from texplainer.limits import CELLS
from texplainer.types import Array

TOLERANCE = 1e-5  # of a column's range: scaled integers have lost some digits
FINEST = 8  # tolerances: a finer lattice cannot be told from none
APART = (
    5  # ranges of the other values: a value further away than that stands for something else, as -999 does
)
DIGITS = 9  # of a column's range: values that agree to so many are one value
HALF_WIDTH = 6**0.5  # of the kernel, in units of the bandwidth
WITHIN = 1.5  # half-width in which an average over rounded moves is the difference of the next whole numbers
REPEATED = 0.9  # share of the rows beside the most frequent value whose value occurs again


@dataclass(frozen=True)
class DiscreteColumns:
    """The discrete columns of a background.

    Attributes
    ----------
    values
        Discrete column -> its observed values, sorted.
    integers
        Columns of whole numbers that are not discrete.
    """

    values: dict[int, Array] = field(default_factory=dict)
    integers: tuple[int, ...] = ()

    @property
    def columns(self) -> list[int]:
        """The discrete columns."""
        return list(self.values)

    def renumbered(self, places: Sequence[int]) -> DiscreteColumns:
        """The same columns of a table in which column j stands at places[j]."""
        values = {int(places[j]): observed for j, observed in self.values.items()}
        return DiscreteColumns(values, tuple(int(places[j]) for j in self.integers))

    def mask(self, features: int) -> np.ndarray:
        """Mark the discrete columns, (features,)."""
        out = np.zeros(features, bool)
        out[self.columns] = True
        return out

    def neighbours(self, rows: Array, column: int) -> tuple[Array, Array]:
        """Nearest observed values below and above each row's own, (rows,) each.

        At an edge it is the row's own value; a missing cell stays missing.
        """
        observed, own = self.values[column], rows[:, column]
        slack = TOLERANCE * (observed[-1] - observed[0])  # a rounded copy of a value is that value
        below = np.searchsorted(observed, own - slack, side="left") - 1
        above = np.searchsorted(observed, own + slack, side="right")
        last = len(observed) - 1
        low = np.where(below >= 0, observed[np.clip(below, 0, last)], own)
        high = np.where(above <= last, observed[np.clip(above, 0, last)], own)
        missing = np.isnan(own)
        return np.where(missing, np.nan, low), np.where(missing, np.nan, high)


def find_discrete(rows: Array, sd: Array, bandwidth: float, columns: Collection[int]) -> DiscreteColumns:
    """Find the discrete ones among some numeric columns; `bandwidth` is in units of `sd` (features,)."""
    values: dict[int, Array] = {}
    integers: list[int] = []
    chosen, size = np.asarray(list(columns), dtype=int), block_of(len(rows))
    for start in range(0, len(chosen), size):
        part = chosen[start : start + size]
        _find(rows.T[part], bandwidth * sd[part], part.tolist(), values, integers)
    return DiscreteColumns(values, tuple(integers))


def _find(
    table: Array, bandwidth: Array, columns: list[int], values: dict[int, Array], integers: list[int]
) -> None:
    """Put the discrete ones of some columns, (columns, rows), into `values`, other whole numbers into `integers`."""
    low, high = ranges_without_codes(table)
    known = (table >= low[:, None]) & (table <= high[:, None])
    table = np.sort(np.where(known, table, np.nan), axis=1)  # what does not count stands last
    known = np.sort(~known, axis=1) == 0
    tolerance = TOLERANCE * (high - low)
    # values closer than the tolerance are one; the distinct values of all columns stand in one array
    apart = np.diff(table, axis=1, prepend=-np.inf) > tolerance[:, None]
    cells, starts = table[known], np.flatnonzero(apart[known])
    observed, counts = cells[starts], np.diff(np.append(starts, len(cells)))
    found = (apart & known).sum(axis=1)
    ends = np.cumsum(found)
    whole = np.all((table == np.round(table)) | ~known, axis=1)
    for i, j in enumerate(columns):
        if found[i] < 2:
            continue
        mine = slice(ends[i] - found[i], ends[i])
        if _is_discrete(observed[mine], counts[mine], bandwidth[i]):
            values[j] = observed[mine].copy()
        elif whole[i]:
            integers.append(j)


def _is_discrete(observed: Array, counts: np.ndarray, bandwidth: float) -> bool:
    step = common_step(observed)
    if step == 1 and np.all(observed == np.round(observed)):
        return HALF_WIDTH * bandwidth < WITHIN
    if step:  # few values may have a common step by chance
        return step > bandwidth and (step == 1 or _repeat(counts))
    gaps = np.diff(observed)
    nearest = np.minimum(np.append(gaps, np.inf), np.append(np.inf, gaps))
    return _repeat(counts) and bool(np.median(np.repeat(nearest, counts)) > bandwidth)


def _repeat(counts: np.ndarray) -> bool:
    """Whether nearly all values beside the most frequent one occur again."""
    most = counts.max()
    again = counts[counts > 1].sum() - (most if most > 1 else 0)
    return bool(again >= REPEATED * (counts.sum() - most))


def common_step(observed: Array) -> float:
    """The greatest common divisor of the differences of sorted values; 0 where they have none.

    Euclid's algorithm, with a tolerance: scaled integers have lost some digits.
    """
    tolerance = TOLERANCE * float(observed[-1] - observed[0])
    step = 0.0
    for gap in np.diff(observed).tolist():
        while gap > tolerance:
            rest = step % gap
            step, gap = gap, 0.0 if gap - rest <= tolerance else rest
        if step <= FINEST * tolerance:
            return 0.0
    return step


def ranges_without_codes(columns: Array) -> tuple[Array, Array]:
    """The range of each column, (columns, rows), without extreme values far from all others, such as -999 among counts.

    NaN for a column without any value. Of two distinct values neither is a code.
    """
    known = np.isfinite(columns)
    low = np.where(known, columns, np.inf).min(axis=1)
    high = np.where(known, columns, -np.inf).max(axis=1)
    low[low == np.inf] = high[high == -np.inf] = np.nan
    todo = np.flatnonzero(low < high)
    while len(todo):
        cells, bottom, top = columns[todo], low[todo], high[todo]
        second = np.where(known[todo] & (cells > bottom[:, None]), cells, np.inf).min(axis=1)
        last = np.where(known[todo] & (cells < top[:, None]), cells, -np.inf).max(axis=1)
        at_bottom = second - bottom > top - last  # the side that may be a code
        gap = np.where(at_bottom, second - bottom, top - last)
        width = np.where(at_bottom, top - second, last - bottom)
        code = (second < top) & (gap > APART * width) & (width > 10.0**-DIGITS * gap)
        low[todo] = np.where(code & at_bottom, second, bottom)
        high[todo] = np.where(code & ~at_bottom, last, top)
        todo = todo[code]
    return low, high


def block_of(rows: int) -> int:
    """How many columns of so many rows are worked on at a time, in cache."""
    return max(1, CELLS // (8 * max(1, rows)))


def of_equal_count(table: Array, known: np.ndarray) -> Iterator[tuple[np.ndarray, Array]]:
    """The known cells of columns, (columns, rows), in groups of as many: which columns, and (these, cells)."""
    counts = known.sum(axis=1)
    for count in np.unique(counts[counts > 0]):
        which = np.flatnonzero(counts == count)
        yield which, table[which][known[which]].reshape(len(which), count)
