"""How fast an explanation of a smoothed ensemble can change: bounds that hold by construction.

With triangular noise of half-width s_j the first derivative is a difference of two means of f over s_j,
and the second is a second difference over s_j^2. So ``|d_j f_s| <= osc_j / s_j`` and ``|d_j^2 f_s| <= 2
osc_j / s_j^2``, where osc_j is how much f can change when feature j alone moves within s_j of the row.
A tree changes only where one of its own thresholds on j is that near, and then by no more than the
range of the leaves under the highest such node.

That bound depends on x_j alone, so it is tabulated once, on at most `CELLS` intervals of each feature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from texplainer.gradients.trees.ensemble import LEAF, Floats, TreeEnsemble
from texplainer.gradients.trees.layout import fold_many_ranges, fold_ranges, subtree_ranges

CELLS = 256
MANY = 300_000  # nodes from which compiling pays


@dataclass(frozen=True)
class Certificate:
    """For every soft feature the edges of its intervals and the oscillation of f on each."""

    edges: dict[int, Floats]  # feature -> (cells - 1,)
    oscillation: dict[int, Floats]  # feature -> (cells, raw outputs)
    widths: Floats  # (features,)
    outputs: int

    def __call__(self, rows: Floats) -> Floats:
        """osc_j of every row, (rows, features, raw outputs); 0 for missing cells and hard features."""
        found = np.zeros((*rows.shape, self.outputs))
        for feature, edges in self.edges.items():
            cells = rows[:, feature]
            here = self.oscillation[feature][np.searchsorted(edges, cells, side="right")]
            found[:, feature] = np.where(np.isnan(cells)[:, None], 0.0, here)
        return found

    def steepest(self) -> Floats:
        """The largest slope anywhere, (features, raw outputs)."""
        found = np.zeros((len(self.widths), self.outputs))
        for feature, oscillation in self.oscillation.items():
            found[feature] = oscillation.max(axis=0) / self.widths[feature]
        return found


def certify(ensemble: TreeEnsemble, widths: Floats) -> Certificate:
    """Tabulate the oscillation of the ensemble within `widths` of a row."""
    outputs, trees = len(ensemble.base), len(ensemble.roots)
    leaf = (ensemble.kind & LEAF) != 0
    ranges = subtree_ranges(ensemble.right, leaf, ensemble.roots, ensemble.value)  # (nodes, width)
    nodes = np.diff(np.append(ensemble.roots, len(leaf)).astype(np.int64))
    tree = np.repeat(np.arange(trees), nodes)
    edges: dict[int, Floats] = {}
    oscillation: dict[int, Floats] = {}
    for feature in np.flatnonzero(widths > 0):
        here = np.flatnonzero(~leaf & (ensemble.column == feature))
        low, high = ensemble.threshold[here] - widths[feature], ensemble.threshold[here] + widths[feature]
        marks = np.unique(np.concatenate([low, high]))
        if len(marks) > CELLS - 1:
            marks = marks[np.linspace(0, len(marks) - 1, CELLS - 1).astype(np.int64)]
        edges[int(feature)] = marks
        first, last = np.searchsorted(marks, low, side="right"), np.searchsorted(marks, high, side="right")
        fold = fold_ranges if len(leaf) < MANY else fold_many_ranges
        oscillation[int(feature)] = fold(
            first, last, tree[here], ensemble.output.astype(np.int64), ranges[here], len(marks) + 1, outputs
        )
    return Certificate(edges, oscillation, widths, outputs)
