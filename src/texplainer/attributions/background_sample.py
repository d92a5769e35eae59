"""The background rows from which paths to x begin, in groups whose scatter gives the error of a mean."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.types import Array

GROUPS = 32
TRIED = 4  # every fourth group comes first; the relative change is judged by these


@dataclass(frozen=True)
class BackgroundSample:
    """Background rows (paths, features), one for every path, with their weights.

    A background of no more rows than paths is taken whole, every row equally often. `number` (paths,) tells
    paths apart, `groups` (paths,) is the group of each, `count` the number of groups.
    """

    rows: Array
    number: np.ndarray
    groups: np.ndarray
    count: int
    weight: Array  # (paths,)
    predictions: Array  # (paths, outputs) f at the rows
    tried: int = 4  # groups by which the relative change is judged

    @property
    def in_order(self) -> np.ndarray:
        """(count,) the groups in the order of their paths."""
        return np.argsort(np.unique(self.groups, return_index=True)[1])

    def first_groups(self, count: int) -> BackgroundSample:
        """The paths of the first groups, with their own weight."""
        kept = self.groups < count
        return replace(
            self,
            rows=self.rows[kept],
            number=self.number[kept],
            groups=self.groups[kept],
            predictions=self.predictions[kept],
            weight=self.weight[kept],
            count=min(count, self.count),
        )


@dataclass(frozen=True)
class PathContributions:
    """Contributions of the paths from background rows to rows.

    `groups` (rows, groups, features, outputs) are summed over the paths of every group, with their weight.
    """

    groups: Array
    evaluations: int | np.ndarray = 0  # a row
    #: (rows, features, outputs): the bound of the error, where it is not told by the scatter of the groups
    error: Array | None = None
    #: (rows, features): how what is missing in the sum is divided, whatever the model; None: by the variances
    share: Array | None = None


def sample_background(context: ExplainContext, paths: int) -> BackgroundSample:
    """Background rows for about as many paths, evenly over the predictions; made once per background."""
    return context.background.cached(("sample", paths), lambda: _sampled(context, paths))


def _sampled(context: ExplainContext, paths: int) -> BackgroundSample:
    rows = context.background.rows
    total = len(rows)
    predictions = context.predictor(rows)
    order = np.argsort(predictions[:, 0], kind="stable")
    if total >= paths:
        chosen = order[((np.arange(paths) + 0.5) * total / paths).astype(int)]
    else:
        times = paths // total if context.max_evals else round(paths / total)  # a budget is not exceeded
        chosen = np.repeat(order, max(1, times))
    if len(chosen) == 1:  # one row: two paths, so that there is a scatter
        chosen = np.repeat(chosen, 2)
    count = len(chosen)
    unit = np.arange(count) // (2 if count >= GROUPS else 1)  # pairs of paths, where there are enough
    position = unit * min(GROUPS, unit[-1] + 1) // (unit[-1] + 1)
    group = np.argsort(np.argsort(np.arange(position[-1] + 1) % TRIED, kind="stable"))
    return BackgroundSample(
        rows[chosen],
        np.arange(count),
        group[position],
        len(group),
        np.full(count, 1.0 / count),
        predictions[chosen],
        tried=max(1, int(np.searchsorted(np.cumsum(np.bincount(group[position])), count / TRIED, "right"))),
    )
