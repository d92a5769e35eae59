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
#: fewer rows than these make a one-hot structure by chance
DETECTION_ROWS = 20
#: expected coincidences of independent columns; that there are none has then a chance of exp(-10)
CHANCE = 10.0


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
            cells = wide[:, group.columns]
            same = (cells[:, None, :] == group.patterns).all(axis=2)  # (rows, levels)
            missing = np.isnan(cells).any(axis=1)
            unknown = np.nonzero(~same.any(axis=1) & ~missing)[0]
            if len(unknown):
                i = int(unknown[0])
                own = [names[c] for c in group.columns]
                raise InputError(
                    f"row {i}: the one-hot columns {own} hold {cells[i].tolist()}, "
                    "a combination that does not occur in the background. Add a row with it to the "
                    "background, or correct the row."
                )
            narrow[:, j] = np.where(missing, np.nan, same.argmax(axis=1))
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
    made: dict[int, ColumnGroup] = {}
    for column in range(rows.shape[1]):
        name = owner.get(column)
        if name is None:
            places.append(column)
            labels.append(column)
        elif name not in labels:
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


def detect(names: Sequence[str], rows: Array, named: bool) -> dict[str, tuple[int, ...]]:
    """Find one-hot groups: 0/1 columns with a common prefix ("Purpose_car"), at most one of them 1 in a row.

    The result must not depend on the sample: a column whose category is too rare to occur in it still belongs
    to its group by name. Columns without names could only be grouped by position, which one rare category
    would break. They are left as they are (`unnamed_groups` finds candidates).
    """
    if len(rows) < DETECTION_ROWS or not named:
        return {}
    return _by_prefix(names, rows, _binary(rows))


def unnamed_groups(rows: Array) -> dict[str, tuple[int, ...]]:
    """Find adjacent 0/1 columns of which exactly one is 1 in every row."""
    if len(rows) < DETECTION_ROWS:
        return {}
    varying = [j for j in _binary(rows) if rows[:, j].any() and not rows[:, j].all()]
    return _by_position(rows, varying)


def _binary(rows: Array) -> list[int]:
    """Return the columns whose values are all 0 or 1."""
    return [j for j in range(rows.shape[1]) if np.isin(rows[:, j], (0.0, 1.0)).all()]


def _by_prefix(names: Sequence[str], rows: Array, binary: list[int]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    taken: set[int] = set()
    prefixes = {p for j in binary for p in _prefixes(names[j])}
    for prefix in sorted(prefixes, key=lambda p: (len(p), p)):  # the shortest prefix makes the largest group
        columns = tuple(j for j in binary if j not in taken and prefix in _prefixes(names[j]))
        if _one_hot(rows, columns):
            shared = set.intersection(*(set(_prefixes(names[j])) for j in columns))
            name = _bare(max(shared, key=len))
            if name not in found and name not in names:
                found[name] = columns
                taken.update(columns)
    return found


def _by_position(rows: Array, binary: list[int]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    start = 0
    while start < len(binary):
        first, total, stop = binary[start], np.zeros(len(rows)), start
        while stop < len(binary) and binary[stop] == first + stop - start and total.max() <= 1:
            total = total + rows[:, binary[stop]]
            stop += 1
            if np.all(total == 1):
                found[f"x{first}..x{binary[stop - 1]}"] = tuple(binary[start:stop])
                start = stop - 1
                break
        start += 1
    return found


def _one_hot(rows: Array, columns: Sequence[int]) -> bool:
    """Return whether exactly one column is 1 in every row, or at most one, beyond chance."""
    cells = rows[:, list(columns)]
    on = cells.sum(axis=1)
    if len(columns) < 2 or on.max() > 1:
        return False
    share = cells.mean(axis=0)
    if np.count_nonzero(share) < 2:  # one level alone, or none, has nothing to exclude
        return False
    together = len(rows) * (share.sum() ** 2 - (share**2).sum()) / 2  # expected of independent columns
    return bool(np.all(on == 1) or together >= CHANCE)


def _prefixes(name: str) -> list[str]:
    """Return every prefix of a name that ends in a separator, including the separator."""
    ends = {at + len(s) for s in SEPARATORS for at in range(1, len(name)) if name.startswith(s, at)}
    return [name[:end] for end in sorted(ends) if end < len(name)]


def _bare(prefix: str) -> str:
    return prefix.rstrip("".join(SEPARATORS)) or prefix


def _without_prefix(name: str, group: str) -> str:
    rest = name.removeprefix(group).lstrip("".join(SEPARATORS)) if name.startswith(group) else name
    return rest or name
