"""Which columns make up a feature: one column each, or a one-hot group as a whole.

A metric that removes or perturbs "a feature" must move the whole group, or it asks the model about rows that
cannot exist. `owner[j]` is the feature that data column j belongs to; `levels[j]` are the codes of an
integer-coded category.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from texplainer.errors import InputError
from texplainer.signatures import Array


@dataclass(frozen=True)
class Features:
    """The features of a table: their names, the columns of each, and the codes of category columns."""

    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    owner: NDArray[np.int_]  # (columns,)
    levels: Mapping[int, tuple[float, ...]]

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The one-hot groups of two columns or more."""
        return [columns for columns in self.columns if len(columns) > 1]

    @property
    def numeric(self) -> NDArray[np.bool_]:
        """Mask of the columns that hold numbers, not categories."""
        mask = np.ones(len(self.owner), dtype=bool)
        for columns in self.groups:
            mask[list(columns)] = False
        mask[list(self.levels)] = False
        return mask

    def gather(self, values: Array, names: Sequence[str] | None = None) -> Array:
        """One value per feature, in this order: sum the columns of a group, or pick features by name.

        Raises
        ------
        InputError : when there is neither one value per column nor one per feature.
        """
        width, features = len(self.owner), len(self.names)
        if values.ndim == 3 and values.shape[2] == 1:
            values = values[:, :, 0]
        by_name = names is not None and features < width and sorted(names) == sorted(self.names)
        if names is not None and by_name and values.ndim == 2 and values.shape[1] == features:
            return values[:, [list(names).index(name) for name in self.names]]
        if values.ndim != 2 or values.shape[1] not in (width, features):
            expected = f"(rows, {width})" if width == features else f"(rows, {width}) or (rows, {features})"
            raise InputError(
                f"the explainer returned values of shape {values.shape}; expected {expected}. "
                "Explain one output, and return one value per column or per feature."
            )
        if values.shape[1] == features:
            return values
        summed = np.zeros((len(values), features))
        np.add.at(summed.T, self.owner, values.T)
        return summed


def features_of(
    names: Sequence[str],
    groups: Mapping[str, Sequence[int]] | None = None,
    levels: Mapping[int, Sequence[float]] | None = None,
) -> Features:
    """Describe the features of a table; a group stands where its first column stands."""
    groups = {str(name): tuple(int(j) for j in columns) for name, columns in (groups or {}).items()}
    grouped = [j for columns in groups.values() for j in columns]
    if len(set(grouped)) != len(grouped) or any(not 0 <= j < len(names) for j in grouped):
        raise InputError(
            f"groups={groups} must name each column at most once, by an index below {len(names)}. "
            "Give the positions of each group's one-hot columns."
        )
    single = {(j,): str(names[j]) for j in range(len(names)) if j not in set(grouped)}
    parts = sorted([*((c, n) for n, c in groups.items()), *single.items()], key=lambda part: part[0][0])
    owner = np.empty(len(names), dtype=int)
    for feature, (columns, _) in enumerate(parts):
        owner[list(columns)] = feature
    codes = {int(j): tuple(float(v) for v in values) for j, values in (levels or {}).items()}
    return Features(tuple(n for _, n in parts), tuple(c for c, _ in parts), owner, codes)
