"""The categorical features: by dtype, by the model's encoders, by one-hot structure, or as declared.

Text, category dtypes, columns that the model encodes, and groups of one-hot columns are each held as one
column of codes (`tables`). Their attributions follow from the effect of each category (`Categories`): of
replacing the row's category by it (`swaps`, the default, without retraining), or from the derivatives of a
refitted model (`refit`: the paper's continuity induction, and target encoding).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from texplainer.background.summary import Background, robust_sd
from texplainer.categories.swaps import Feature, Swap, swap_effects, swap_of
from texplainer.errors import BackgroundWarning, InputError
from texplainer.explanation.fields import CATEGORY, CategoryEffects
from texplainer.models.libraries import absent_value, encoded_columns
from texplainer.models.libraries import feature_names as feature_names_of
from texplainer.models.predictor import Predictor
from texplainer.support.messages import some, suggest
from texplainer.tables import native
from texplainer.tables import schema as frames
from texplainer.tables.onehot import SEPARATORS
from texplainer.tables.schema import Schema
from texplainer.types import Array

#: fewer rows than these make a one-hot structure by chance
DETECTION_ROWS = 20
#: expected coincidences of independent columns; that there are none has then a chance of exp(-10)
CHANCE = 10.0
Groups = dict[str, tuple[int, ...]]


def learn_with_categories(
    background: Any,
    feature_names: Sequence[str] | None,
    categorical: Sequence[Any] | Mapping[str, Any] | None,
    model: Any,
    training: Any = None,
) -> tuple[Schema, Array, dict[str, str]]:
    """Learn a background's schema, read it, and return why each feature is categorical.

    `categorical` is None (found by dtype, by the model's own encoders and by one-hot structure), the columns
    that hold categories, or a mapping: a group of one-hot columns by its name, or "nominal", "ordinal",
    "numeric" for a column. Text and category dtypes are always categorical. If a `training` table is given,
    the categories are learnt from it: it may contain categories that the background does not.
    """
    feature_names = None if feature_names is None else list(feature_names)  # an array, too
    background, training = native.collected(background), native.collected(training)
    source = background if training is None else training
    source = native.columns_of(source, absent=absent_value(model))  # once: wide tables take time
    feature_names = feature_names or _model_names(model, source)
    names = frames.names_of(source, feature_names)
    requests = _requests(categorical, names)
    declared = {
        n: "declared" for n, request in requests.items() if request in ("nominal", "ordinal", "declared")
    }
    encoded = dict.fromkeys(
        encoded_columns(model, names) if categorical is None else (), "encoded by the model"
    )
    schema, rows = frames.learn(source, feature_names, (*declared, *encoded), absent_value(model))
    schema = _with_requests(schema, requests)
    groups = _groups(requests, names)
    reasons = encoded | declared | dict.fromkeys(groups, "declared")
    if categorical is None:
        named = schema.named or feature_names is not None
        groups = onehot_groups(schema.names, rows, named)
        if not named:
            _mention(unnamed_groups(rows), schema.names)
        reasons |= dict.fromkeys(groups, "one-hot columns found in the background")
    if groups:
        schema, rows = schema.grouped(groups, rows)
    if training is not None:
        rows = schema.read(background)
    found = [schema.names[j] for j in sorted(schema.levels)]
    return schema, rows, {name: reasons.get(name, "detected by dtype") for name in found}


def _model_names(model: Any, table: Any) -> tuple[str, ...] | None:
    """Return the names a model was fitted with, for a table without names."""
    found = native.columns_of(table)
    names = feature_names_of(model) if found.names is None else None
    return names if names is not None and len(names) == len(found.values) else None


def _mention(groups: Groups, names: Sequence[str]) -> None:
    """Warn that some unnamed columns look like one categorical feature."""
    if groups:
        listed = [f"{group!r}: {some([names[c] for c in own])}" for group, own in groups.items()]
        more = ", ..." if len(listed) > 3 else ""
        warnings.warn(
            f"the columns {some(sorted(groups))} look like one-hot columns, but the table does not "
            f"have column names; they are explained separately. Pass categorical={{{', '.join(listed[:3])}{more}}} "
            "to treat each group as one feature, or categorical=[] to keep them separate.",
            BackgroundWarning,
            stacklevel=4,
        )


def _requests(categorical: Sequence[Any] | Mapping[str, Any] | None, names: Sequence[str]) -> dict[str, Any]:
    """Read `categorical` as {column: word} and {group: columns}."""
    if categorical is None:
        return {}
    if isinstance(categorical, str):
        categorical = [categorical]
    if not isinstance(categorical, (Mapping, Sequence)):
        raise InputError(
            f"categorical={categorical!r} is not a list of columns; expected names or a mapping."
        )
    if not isinstance(categorical, Mapping):
        if any(isinstance(c, (bool, np.bool_)) and str(c) not in names for c in categorical):
            raise InputError(
                f"categorical={list(categorical)} is a mask; expected the names or positions of the columns that "
                "hold categories."
            )
        return {_column(c, names): "declared" for c in categorical}
    words = ("nominal", "ordinal", "numeric")
    wrong = [f"{n!r}: {w!r}" for n, w in categorical.items() if isinstance(w, str) and w not in words]
    if wrong:
        raise InputError(
            f"categorical has {', '.join(wrong)}; expected a list of columns or one of {', '.join(words)}."
        )
    return {_column(n, names) if isinstance(w, str) else str(n): w for n, w in categorical.items()}


def _column(column: Any, names: Sequence[str]) -> str:
    if isinstance(column, (int, np.integer)) and str(column) not in names and 0 <= column < len(names):
        return names[int(column)]
    if str(column) not in names:
        raise InputError(
            f"categorical column {column!r} is not in the table; it has {some(names)}."
            f"{suggest(column, names)}"
        )
    return str(column)


def _groups(requests: Mapping[str, Any], names: Sequence[str]) -> Groups:
    """Return the declared groups; reject those that cannot be folded."""
    groups: Groups = {}
    taken: dict[int, str] = {}
    for group, request in requests.items():
        if isinstance(request, str):
            continue
        columns = groups[group] = tuple(names.index(_column(c, names)) for c in request)
        if not columns:
            raise InputError(f"the categorical group {group!r} is empty; give its one-hot columns' names.")
        twice = [names[c] for c in columns if taken.setdefault(c, group) != group]
        if twice:
            raise InputError(f"the column {twice[0]!r} is in two groups of categorical=; keep it in one.")
        if group in names and names.index(group) not in columns:
            raise InputError(f"the group {group!r} has the name of a column outside it; choose another name.")
    return groups


def _with_requests(schema: Schema, requests: Mapping[str, Any]) -> Schema:
    """Apply the user's "ordinal" and "numeric" declarations over what was detected."""
    at = {name: j for j, name in enumerate(schema.names)}
    ordinal = set(schema.ordinal) | {at[n] for n, request in requests.items() if request == "ordinal"}
    ordinal -= {at[n] for n, request in requests.items() if request == "nominal"}
    numeric = {at[n] for n, request in requests.items() if request == "numeric"}
    coded = [schema.names[j] for j in numeric if schema.levels.get(j, (False, True)) != (False, True)]
    if coded:
        raise InputError(
            f"the columns {coded} hold text or a category dtype, not numbers; convert them first."
        )
    bare = {j: own for j, own in schema.levels.items() if j not in numeric}
    return replace(schema, levels=bare, ordinal=frozenset(ordinal & set(bare)))


def declared_numeric(categorical: Any, names: Sequence[str]) -> list[int]:
    """The columns declared "numeric": they are not discrete, however few values they hold."""
    if not isinstance(categorical, Mapping):
        return []
    declared = {
        str(n) for n, request in categorical.items() if isinstance(request, str) and request == "numeric"
    }
    return [j for j, name in enumerate(names) if name in declared]


# ---------------------------------------------------------------- one-hot columns


def onehot_groups(names: Sequence[str], rows: Array, named: bool) -> dict[str, tuple[int, ...]]:
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
    return np.flatnonzero(((rows == 0.0) | (rows == 1.0)).all(axis=0)).tolist()


def _by_prefix(names: Sequence[str], rows: Array, binary: list[int]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    taken: set[int] = set()
    members: dict[str, list[int]] = {}
    for j in binary:
        for prefix in _prefixes(names[j]):
            members.setdefault(prefix, []).append(j)
    known = set(names)
    for prefix in sorted(members, key=lambda p: (len(p), p)):  # the shortest prefix makes the largest group
        columns = tuple(j for j in members[prefix] if j not in taken)
        if _one_hot(rows, columns):
            shared = set.intersection(*(set(_prefixes(names[j])) for j in columns))
            name = _bare(max(shared, key=len))
            if name not in found and name not in known:
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
    if len(columns) < 2:
        return False
    cells = rows[:, list(columns)]
    on = cells.sum(axis=1)
    if on.max() > 1:
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


# ---------------------------------------------------------------- the features


#: rows, f(rows) -> for every feature (rows, levels, outputs): f with the level - f
Effects = Callable[[Array, Array], list[Array]]


@dataclass(frozen=True)
class Categories:
    """The categorical features of an explainer, and how the effects of their categories are computed."""

    features: tuple[Feature, ...]
    effects: Effects
    evaluations: int  # a row, at most

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the effects in a block's arrays."""
        return tuple(CATEGORY + f.name for f in self.features)

    def swaps(self, rows: Array, f0: Array) -> list[Swap]:
        """Return the effects of replacing each feature's category, for some rows."""
        if not self.features:
            return []
        deltas = self.effects(rows, f0)
        return [swap_of(*parts, rows) for parts in zip(self.features, deltas, strict=True)]

    def fill(self, values: Array, found: Sequence[Swap], formula: Callable[[Swap], Array]) -> Array:
        """Return `values` with the columns of categorical features filled in."""
        values = values.copy()  # it may be the gradient itself
        for feature, swap in zip(self.features, found, strict=True):
            values[:, feature.column] = formula(swap)
        return values

    def results(self, effects: Mapping[str, np.ndarray]) -> dict[str, CategoryEffects]:
        """Combine the effects of all categories with their names and frequencies."""
        return {
            f.name: CategoryEffects(f.levels, effects[CATEGORY + f.name], f.frequencies)
            for f in self.features
            if CATEGORY + f.name in effects
        }


def categories_of(predictor: Predictor, background: Background, names: Sequence[str]) -> Categories:
    """The categorical features; their effects are differences of predictions.

    `names` are the user's names; the model may have been fitted with others.
    """
    features = features_of(predictor.schema, background.rows, names)
    floor = 8 * predictor.unit * background.output_sd
    return Categories(
        features, partial(swap_effects, predictor, features, floor), sum(len(f.codes) for f in features)
    )


def features_of(schema: Schema, background: Array, names: Sequence[str]) -> tuple[Feature, ...]:
    """Describe the categorical features by their categories in the background."""
    found = []
    for j, levels in sorted(schema.levels.items()):
        codes, counts = np.unique(background[:, j], return_counts=True)  # one NaN, last
        held = tuple(None if np.isnan(c) else levels[int(c)] for c in codes)
        positions, sd = None, np.nan
        if j in schema.ordinal:
            numbers = all(isinstance(level, (int, float)) for level in levels)
            positions = np.array(levels if numbers else range(len(levels)), dtype=float)
            cells = background[np.isfinite(background[:, j]), j].astype(int)
            sd = float(robust_sd(positions[cells][:, None])[0])
        found.append(Feature(names[j], j, held, codes, counts / counts.sum(), positions, sd))
    return tuple(found)
