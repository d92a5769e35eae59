"""Detect categorical features: by dtype, by the model's encoders, by one-hot structure, or as declared."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from texplainer.background.summary import robust_sd
from texplainer.categories.swaps import Feature
from texplainer.errors import BackgroundWarning, InputError
from texplainer.models.libraries import absent_value, encoded_columns
from texplainer.models.libraries import feature_names as feature_names_of
from texplainer.support.messages import suggest
from texplainer.tables import native
from texplainer.tables import schema as frames
from texplainer.tables.onehot import detect, unnamed_groups
from texplainer.tables.schema import Schema
from texplainer.types import Array

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
        groups = detect(schema.names, rows, named)
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
        shown = {group: [names[c] for c in columns] for group, columns in groups.items()}
        warnings.warn(
            f"the columns {frames.some(sorted(shown))} look like one-hot columns, but the table does not "
            f"have column names; they are explained separately. Pass categorical={shown} to treat each "
            "group as one feature, or categorical=[] to keep them separate.",
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
            f"categorical column {column!r} is not in the table; it has {frames.some(names)}."
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
