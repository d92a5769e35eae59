"""Which columns make up a feature, and which columns hold categories.

A metric that removes or perturbs "a feature" must move a one-hot group as a whole, or it asks the model about
rows that cannot exist. `owner[j]` is the feature that data column j belongs to; `patterns` holds, for each
categorical feature, the cells its levels take in its columns: one-hot rows, or integer codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from texplainer.errors import InputError
from texplainer.types import Array


@dataclass(frozen=True)
class Features:
    """The features of a table: their names, columns and numbers of categories."""

    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    owner: NDArray[np.int_]  # (columns,)
    patterns: Mapping[int, Array]  # feature -> (levels, its columns)

    @property
    def numeric(self) -> NDArray[np.bool_]:
        """Mask of the columns that hold numbers, not categories."""
        return ~np.isin(self.owner, list(self.patterns))

    def gather(self, values: Array, names: Sequence[str] | None = None) -> Array:
        """One value per feature, in this order: sum the columns of a group, or pick features by name.

        Raises
        ------
        InputError : when there is neither one value per column nor one per feature.
        """
        width, features = len(self.owner), len(self.names)
        fits = values.ndim == 2 and values.shape[1] in (width, features)
        if not fits:
            expected = f"(rows, {width})" if width == features else f"(rows, {width}) or (rows, {features})"
            raise InputError(
                f"the explainer returned values of shape {values.shape}; expected {expected}. "
                "Explain one output, and return one value per column or per feature."
            )
        if values.shape[1] == features:
            known = names is not None and sorted(names) == sorted(self.names)
            return values[:, [list(names).index(name) for name in self.names]] if names and known else values
        summed = np.zeros((len(values), features))
        np.add.at(summed.T, self.owner, values.T)
        return summed


def describe_features(
    names: Sequence[str],
    background: Array,
    groups: Mapping[str, Sequence[int]] | None = None,
    levels: Mapping[int, int] | None = None,
) -> Features:
    """Describe the features of a table.

    Parameters
    ----------
    names, background
        The data columns and some rows of them.
    groups
        Group name -> positions of its one-hot columns; a group stands where its first column stands. Its categories are
        the combinations of values that occur in the background.
    levels
        Integer-coded column -> its number of categories.
    """
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
    patterns: dict[int, Array] = {}
    for feature, (columns, name) in enumerate(parts):
        owner[list(columns)] = feature
        if name in groups and columns == groups[name]:
            patterns[feature] = np.unique(background[:, columns], axis=0)
        elif columns[0] in (levels or {}):
            patterns[feature] = np.arange((levels or {})[columns[0]], dtype=float)[:, None]
    return Features(tuple(n for _, n in parts), tuple(c for c, _ in parts), owner, patterns)
