"""Which explainer is first, and is the difference significant? Rank tests and intervals over data sets.

The block is the data set. Tables of one data set (its models, its seeds) are not independent, so they are
averaged first (`over_data_sets`). Explainers that every block has are ranked in each; average ranks are
compared by the Friedman test and Nemenyi's critical difference (Demsar, 2006). An explainer is "separable"
from another only where the Friedman test rejects at 5% and their ranks differ by more than that difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from texplainer.metrics import comparison
from texplainer.types import Array

Numbers = Mapping[str, float]  # explainer -> its number in one table
LEVEL = 0.05


@dataclass(frozen=True)
class RankTest:
    """Average ranks (1 = best) of explainers over blocks, with the Friedman test and Nemenyi's difference."""

    average: dict[str, float]  # best first
    p_value: float
    critical: float
    blocks: int

    @property
    def first(self) -> str:
        """The explainer with the lowest average rank."""
        return next(iter(self.average))

    def beside(self, name: str) -> list[str]:
        """The other explainers that are not separable from one."""
        own = self.average[name]
        if self.p_value > LEVEL:
            return [n for n in self.average if n != name]
        return [n for n, rank in self.average.items() if n != name and abs(rank - own) <= self.critical]


def ranked(numbers: Numbers, better: str) -> dict[str, float]:
    """Rank names by their numbers, 1 = best, ties shared; an undefined number comes last."""
    sign = 1.0 if better == "low" else -1.0
    keys = [math.inf if math.isnan(value) else sign * value for value in numbers.values()]
    return dict(zip(numbers, rankdata(keys).tolist(), strict=True))


Tables = Mapping[tuple[str, str], Numbers]  # (data set, model) -> its table


def completed(tables: Tables, better: str) -> dict[tuple[str, str], Numbers]:
    """Give a line that is undefined where others are not the worst number of that table.

    A table in which every line is undefined is left out.
    """
    worst = max if better == "low" else min
    found: dict[tuple[str, str], Numbers] = {}
    for key, table in tables.items():
        known = [value for value in table.values() if not math.isnan(value)]
        if known:
            found[key] = {n: worst(known) if math.isnan(value) else value for n, value in table.items()}
    return found


def over_data_sets(tables: Tables, better: str) -> dict[str, dict[str, float]]:
    """Average the completed tables of each data set into one block.

    A line must be in every table of a data set to be in its block.
    """
    grouped: dict[str, list[Numbers]] = {}
    for (data_set, _), table in completed(tables, better).items():
        grouped.setdefault(data_set, []).append(table)
    return {
        data_set: {n: float(np.mean([t[n] for t in own])) for n in own[0] if all(n in t for t in own)}
        for data_set, own in grouped.items()
    }


def rank_test(blocks: Sequence[Numbers], better: str) -> RankTest | None:
    """Rank the explainers that every block has; None with fewer than two of them or of blocks."""
    names = [name for name in blocks[0] if all(name in block for block in blocks)] if blocks else []
    if len(names) < 2 or len(blocks) < 2:
        return None
    ranks = np.array([list(ranked({n: block[n] for n in names}, better).values()) for block in blocks]).T
    average = dict(sorted(zip(names, ranks.mean(axis=1).tolist(), strict=True), key=lambda p: (p[1], p[0])))
    _, p_value = comparison.friedman(ranks)
    return RankTest(average, p_value, comparison.critical_difference(len(names), len(blocks)), len(blocks))


def paired_blocks(tables: Tables, better: str, one: str, other: str) -> list[dict[str, float]]:
    """Two lines' numbers per data set, over the completed tables that have both.

    A line that fits networks alone is compared on networks.
    """
    every = completed(tables, better)
    both = {key: {n: t[n] for n in (one, other)} for key, t in every.items() if one in t and other in t}
    return list(over_data_sets(both, better).values())


def paired_difference(tables: Tables, better: str, one: str, other: str) -> tuple[float, float, float]:
    """Mean over data sets of one's number minus the other's, with its 95% bootstrap interval over data sets."""
    blocks = paired_blocks(tables, better, one, other)
    mean, low, high = comparison.paired_bootstrap(
        np.array([block[one] for block in blocks]), np.array([block[other] for block in blocks])
    )
    return float(mean), float(low), float(high)


def average_ranks(tables: Sequence[Numbers], better: str) -> dict[str, float]:
    """Average each explainer's rank over the tables it is in."""
    collected: dict[str, list[float]] = {}
    for table in tables:
        for name, rank in ranked(table, better).items():
            collected.setdefault(name, []).append(rank)
    return {name: float(np.mean(own)) for name, own in collected.items()}


def interval_over_blocks(numbers: Sequence[float]) -> tuple[float, float, float]:
    """Mean over blocks with its bootstrap interval."""
    values: Array = np.array(numbers, dtype=float)
    known = values[np.isfinite(values)]
    mean = float(known.mean()) if len(known) else math.nan
    return mean, *bootstrap_interval(values, np.mean)


def bootstrap_interval(
    scores: Array, fold: Callable[[Array], Any], *, draws: int = 1000, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of a statistic of scores per row; NaN without rows."""
    known = scores[np.isfinite(scores)]
    if not len(known):
        return np.nan, np.nan
    chosen = np.random.default_rng([seed, 21]).integers(0, len(known), (draws, len(known)))
    found = np.array([fold(known[one]) for one in chosen])
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
