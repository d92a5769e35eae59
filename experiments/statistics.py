"""Who is first, and is it shown? Ranks over tables with their tests, and intervals.

A table gives one number per explainer. Explainers that every table has are ranked in each; average ranks are
compared by the Friedman test and Nemenyi's critical difference (Demsar, 2006). "First" is said of an
explainer only where every other's rank is farther away than that difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from texplainer.metrics import comparison
from texplainer.types import Array

Numbers = Mapping[str, float]  # explainer -> its number in one table


@dataclass(frozen=True)
class RankTest:
    """Average ranks (1 = best) of explainers over tables, with the Friedman test and Nemenyi's difference."""

    average: dict[str, float]  # best first
    p_value: float
    critical: float
    tables: int

    @property
    def first(self) -> str:
        """The explainer with the lowest average rank."""
        return next(iter(self.average))

    def beside(self, name: str) -> list[str]:
        """The other explainers that cannot be told apart from one."""
        own = self.average[name]
        return [n for n, rank in self.average.items() if n != name and abs(rank - own) <= self.critical]


def ranked(numbers: Numbers, better: str) -> dict[str, float]:
    """Rank names by their numbers, 1 = best, ties shared; an undefined number comes last."""
    sign = 1.0 if better == "low" else -1.0
    keys = [math.inf if math.isnan(value) else sign * value for value in numbers.values()]
    return dict(zip(numbers, rankdata(keys).tolist(), strict=True))


def rank_test(tables: Sequence[Numbers], better: str) -> RankTest | None:
    """Rank the explainers that every table has; None with fewer than two of them or of tables."""
    names = [name for name in tables[0] if all(name in table for table in tables)] if tables else []
    if len(names) < 2 or len(tables) < 2:
        return None
    ranks = np.array([list(ranked({n: table[n] for n in names}, better).values()) for table in tables]).T
    average = dict(sorted(zip(names, ranks.mean(axis=1).tolist(), strict=True), key=lambda p: (p[1], p[0])))
    _, p_value = comparison.friedman(ranks)
    return RankTest(average, p_value, comparison.critical_difference(len(names), len(tables)), len(tables))


def average_ranks(tables: Sequence[Numbers], better: str) -> dict[str, float]:
    """Average each explainer's rank over the tables it is in."""
    collected: dict[str, list[float]] = {}
    for table in tables:
        for name, rank in ranked(table, better).items():
            collected.setdefault(name, []).append(rank)
    return {name: float(np.mean(own)) for name, own in collected.items()}


def wins(tables: Sequence[Numbers], better: str, one: str, other: str) -> tuple[int, int, int]:
    """Tables in which one beats the other, loses to it, or neither (equal, or undefined)."""
    sign = 1.0 if better == "low" else -1.0
    both = [sign * (table[one] - table[other]) for table in tables if one in table and other in table]
    return sum(gap < 0 for gap in both), sum(gap > 0 for gap in both), sum(not gap for gap in both)


def interval_over_tables(numbers: Sequence[float]) -> tuple[float, float, float]:
    """Mean over tables with its bootstrap interval."""
    values: Array = np.array(numbers, dtype=float)
    known = values[np.isfinite(values)]
    mean = float(known.mean()) if len(known) else math.nan
    return mean, *comparison.bootstrap_interval(values, np.mean)
