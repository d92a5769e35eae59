"""Are two explainers different, or is it the rows? Paired statistics on scores per row.

Differences are paired row by row (all explainers saw the same rows), with a bootstrap interval over rows;
several explainers are compared by average ranks, the Friedman test and Nemenyi's critical difference (Demsar,
2006, JMLR 7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from texplainer.types import Array


@dataclass(frozen=True)
class Difference:
    """Mean of a's scores minus b's over the rows both have, with its bootstrap interval."""

    column: str
    mean: float
    low: float
    high: float
    rows: int
    better: str  # the explainer the interval favours, or "" when it holds 0

    def __str__(self) -> str:
        who = f"{self.better} is better" if self.better else "no difference shown"
        return f"{self.column}: {self.mean:.4g} [{self.low:.4g}, {self.high:.4g}], {self.rows} rows; {who}"


@dataclass(frozen=True)
class Ranks:
    """Average rank of each explainer (1 = best) over rows, per column.

    Two explainers differ when their ranks differ by more than `critical`.
    """

    explainers: tuple[str, ...]
    columns: tuple[str, ...]
    average: Array  # (explainers, columns)
    statistic: Array  # (columns,), Friedman's chi-squared
    p_value: Array  # (columns,)
    critical: Array  # (columns,), Nemenyi's critical difference
    rows: tuple[int, ...]

    def __str__(self) -> str:
        lines = []
        for j, column in enumerate(self.columns):
            order = np.argsort(self.average[:, j])
            names = ", ".join(f"{self.explainers[i]} {self.average[i, j]:.2f}" for i in order)
            lines.append(f"{column}: {names} (CD {self.critical[j]:.2f}, p {self.p_value[j]:.2g})")
        return "\n".join(lines)


def paired_bootstrap(a: Array, b: Array, *, draws: int = 2000, level: float = 0.95, seed: int = 0) -> Array:
    """Mean of a - b with its percentile bootstrap interval: (mean, low, high); NaN without common rows."""
    both = np.isfinite(a) & np.isfinite(b)
    gaps = a[both] - b[both]
    if not len(gaps):
        return np.full(3, np.nan)
    generator = np.random.default_rng([seed, 20])
    chosen = generator.integers(0, len(gaps), (draws, len(gaps)))
    low, high = np.quantile(gaps[chosen].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return np.array([gaps.mean(), low, high])


def row_ranks(scores: Array, better: str) -> Array:
    """Ranks of explainers within each row, (explainers, rows), 1 = best; rows with a gap are left out."""
    complete = np.isfinite(scores).all(axis=0)
    sign = 1.0 if better == "low" else -1.0
    return rankdata(sign * scores[:, complete], axis=0)


def friedman(ranks: Array) -> tuple[float, float]:
    """Friedman's test of equal explainers: (statistic, p); NaN for fewer than 3 explainers or 2 rows."""
    count, rows = ranks.shape
    if count < 3 or rows < 2:
        return np.nan, np.nan
    if np.all(ranks == ranks[0]):  # all tied in every row: nothing tells them apart
        return 0.0, 1.0
    found = friedmanchisquare(*ranks)
    return float(found[0]), float(found[1])


def critical_difference(explainers: int, rows: int, level: float = 0.95) -> float:
    """Nemenyi's critical difference of average ranks."""
    if explainers < 2 or rows < 1:
        return float("nan")
    q = studentized_range.ppf(level, explainers, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(explainers * (explainers + 1) / (6 * rows)))
