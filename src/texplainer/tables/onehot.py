"""One-hot columns as one column of codes, and back.

A model whose input is `Purpose_car, Purpose_radio, ...` encodes one feature in several columns. texplainer
holds such a group as one column of codes. A code is the index of a pattern: a combination of values that
occurs in the background. Changing a code changes the whole group, so impossible rows are never created.
One-hot columns, one-hot columns with the first dropped (all zeros is then a category too), a single 0/1
column and any other multi-column encoding are treated alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from texplainer.errors import InputError
from texplainer.types import Array

SEPARATORS = ("__", "_", "=", ":", ".", "-", " ")


@dataclass(frozen=True)
class ColumnGroup:
    """The columns that encode one feature, and its patterns, (categories, columns).

    `missing` are the values that encode a missing category, NaN by default.
    """

    columns: tuple[int, ...]
    patterns: Array
    missing: Array | float = np.nan

    def cells(self, codes: Array) -> Array:
        """Return the column values of some codes, (codes, columns); the code NaN is a missing category."""
        known = np.isfinite(codes)
        return np.where(known[:, None], self.patterns[np.where(known, codes, 0).astype(int)], self.missing)

    @property
    def indicator(self) -> bool:
        """Return whether all values are 0 or 1."""
        return bool(np.isin(self.patterns, (0.0, 1.0)).all())


@dataclass(frozen=True)
class OneHotLayout:
    """Maps each folded column to one column, or a group of columns, of the model's table.

    `places[j]` is the model's column of folded column j (the first one of a group).
    """

    width: int
    places: tuple[int, ...]
    groups: Mapping[int, ColumnGroup]

    @property
    def plain(self) -> np.ndarray:
        """Folded columns that are a single column of the model's table."""
        return np.array([j for j in range(len(self.places)) if j not in self.groups], dtype=int)

    def to_cells(self, rows: Array) -> Array:
        """Convert rows of codes to rows of the model's table."""
        wide = np.empty((len(rows), self.width))
        wide[:, np.take(self.places, self.plain)] = rows[:, self.plain]
        for j, group in self.groups.items():
            wide[:, group.columns] = group.cells(rows[:, j])
        return wide

    def to_codes(self, wide: Array, names: Sequence[str]) -> Array:
        """Convert rows of the model's table to rows of codes; `names` are its columns, for errors."""
        narrow = wide[:, self.places]
        for j, group in self.groups.items():
            cells = wide[:, group.columns] + 0.0  # -0.0 is 0.0
            code = {pattern.tobytes(): i for i, pattern in enumerate(group.patterns + 0.0)}
            found = np.array([code.get(row.tobytes(), -1) for row in np.ascontiguousarray(cells)])
            missing = np.isnan(cells).any(axis=1)
            unknown = np.nonzero((found < 0) & ~missing)[0]
            if len(unknown):
                i = int(unknown[0])
                own = [names[c] for c in group.columns]
                raise InputError(
                    f"row {i}: the one-hot columns {own} hold {cells[i].tolist()}, "
                    "a combination that does not occur in the background. Add a row with it to the "
                    "background, or correct the row."
                )
            narrow[:, j] = np.where(missing, np.nan, found)
        return narrow

    def narrow(self, wide: np.ndarray, axis: int = 1, fill: float = 0.0) -> np.ndarray:
        """Select the ungrouped columns of an array over the model's columns; groups get `fill`."""
        out = np.take(wide, self.places, axis=axis)
        index = (slice(None),) * axis + (list(self.groups),)
        out[index] = fill
        return out


def layout_of(groups: Mapping[str, Sequence[int]], rows: Array) -> tuple[OneHotLayout, tuple[str | int, ...]]:
    """Return the layout of the given groups, and each folded column's group name or original column."""
    owner = {column: name for name, columns in groups.items() for column in columns}
    places: list[int] = []
    labels: list[str | int] = []
    seen: set[str] = set()
    made: dict[int, ColumnGroup] = {}
    for column in range(rows.shape[1]):
        name = owner.get(column)
        if name is None:
            places.append(column)
            labels.append(column)
        elif name not in seen:
            seen.add(name)
            columns = tuple(groups[name])
            made[len(places)] = ColumnGroup(columns, patterns_of(rows[:, columns]))
            places.append(columns[0])
            labels.append(name)
    return OneHotLayout(rows.shape[1], tuple(places), made), tuple(labels)


def patterns_of(cells: Array) -> Array:
    """Return the distinct patterns of a group; for one-hot columns all possible ones, in column order."""
    width = cells.shape[1]
    found = np.unique(cells[~np.isnan(cells).any(axis=1)], axis=0)
    if width == 1:
        return found
    if np.isin(found, (0.0, 1.0)).all() and found.sum(axis=1).max(initial=0.0) <= 1:
        # rare levels, and none at all, may stand in rows that the background does not hold
        found = np.vstack([np.zeros(width), np.eye(width)[::-1]])
    return found[::-1]  # [1 0 0], [0 1 0], [0 0 1], [0 0 0]


def level_names(group: str, columns: Sequence[str], patterns: Array) -> tuple[str, ...]:
    """Name every pattern by its column that is 1, without the group's prefix."""
    short = [_without_prefix(name, group) for name in columns]
    names = []
    for pattern in patterns:
        on = np.nonzero(pattern)[0]
        if len(on) == 1 and pattern[on[0]] == 1:
            names.append(short[on[0]])
        elif not len(on):
            names.append(f"not {short[0]}" if len(short) == 1 else "none of these")
        else:
            names.append(str(tuple(pattern.tolist())))
    return tuple(names)


def _without_prefix(name: str, group: str) -> str:
    rest = name.removeprefix(group).lstrip("".join(SEPARATORS)) if name.startswith(group) else name
    return rest or name
