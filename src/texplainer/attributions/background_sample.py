"""The background rows from which paths to x begin, in groups whose scatter gives the error of a mean."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from texplainer.attributions.attribution import ExplainContext
from texplainer.types import Array

GROUPS = 16


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
        chosen = np.tile(order, max(1, round(paths / total)))
    count = len(chosen)
    groups = np.arange(count) * min(GROUPS, count) // count if count < 2 * GROUPS else np.arange(count) // 2
    groups = groups % GROUPS
    if count == 1:  # one row: two paths, so that there is a scatter
        chosen, groups, count = np.repeat(chosen, 2), np.arange(2), 2
    return BackgroundSample(
        rows[chosen],
        np.arange(count),
        groups,
        int(groups.max()) + 1,
        np.full(count, 1.0 / count),
        predictions[chosen],
    )
