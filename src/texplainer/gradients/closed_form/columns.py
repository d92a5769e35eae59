"""A ColumnTransformer of the user's table as a map of its numeric columns.

Each of its parts sees some columns. A part of numeric columns is a map of its own (`transformers`). What a part
makes of categories does not depend on numbers: it is read once for every category of every column, by
transforming one row with each of them, and looked up afterwards. A part that mixes several of them in one column
is found out when the values are compared with the model's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.gradients.maps import Map, Pullback
from texplainer.gradients.transformers import transformer
from texplainer.models.predictor import Predictor
from texplainer.tables import native
from texplainer.types import Array

#: a numeric part: its columns in the table, its map, and its columns in the output
Part = tuple[np.ndarray, Map, np.ndarray]


def column_map(fitted: Any, predictor: Predictor, background: Array) -> Map:
    """The map from rows of codes and numbers to what the ColumnTransformer makes of them."""
    schema = predictor.schema
    names = getattr(fitted, "feature_names_in_", None)
    place = np.arange(schema.width)
    if names is not None and schema.named:
        if not set(names) <= set(schema.names):
            raise Unsupported("its ColumnTransformer was fitted on columns of other names.")
        place = np.array([schema.names.index(name) for name in names])
    parts, encoded = [], []
    for name, part, _ in fitted.transformers_:
        columns = place[np.asarray(fitted._transformer_to_input_indices[name], dtype=int)]
        piece = fitted.output_indices_[name]
        made = np.arange(piece.start, piece.stop)
        numeric = schema.numeric[columns]
        if (isinstance(part, str) and part == "drop") or not len(made):
            continue
        if isinstance(part, str):  # passthrough: each column is a part of its own
            kept = transformer(None)
            parts += [(columns[[i]], kept, made[[i]]) for i in np.flatnonzero(numeric)]
            encoded += [(columns[[i]], made[[i]]) for i in np.flatnonzero(~numeric)]
        elif numeric.all():
            parts.append((columns, transformer(part), made))
        elif not numeric.any():
            encoded.append((columns, made))
        else:
            raise Unsupported(f"its part {name!r} takes numbers and categories together.")
    base = _transformed(fitted, predictor, background[:1])[0]
    ask = partial(_transformed, fitted, predictor)
    codings = [
        _coding(ask, predictor, background[:1], int(j), made) for columns, made in encoded for j in columns
    ]
    return _joined(parts, codings, base, schema.width)


def _transformed(fitted: Any, predictor: Predictor, rows: Array) -> Array:
    table = fitted.transform(predictor.schema.write(rows.copy()))
    return np.asarray(native.dense(table) if native.is_sparse(table) else table, dtype=float)


@dataclass(frozen=True)
class Coding:
    """What a part makes of the categories of one column, less what it makes of the first row's."""

    column: int
    made: np.ndarray  # its columns in the output
    table: Array  # (codes + 1, made); the last is that of a missing value
    ask: Callable[[int], Array]  # a code -> (made,)

    def of(self, cells: Array) -> Array:
        """(rows, made); a category that the background does not have is transformed when it is met."""
        code = np.where(np.isfinite(cells), cells, -1).astype(int)
        known = code < len(self.table) - 1
        out = self.table[np.where(known, code, 0)]
        for new in np.unique(code[~known]):
            out[code == new] = self.ask(int(new))
        return out


def _coding(
    ask: Callable[[Array], Array], predictor: Predictor, row: Array, column: int, made: np.ndarray
) -> Coding:
    base = ask(row)[0, made]

    def of_codes(codes: Any) -> Array:
        rows = np.repeat(row, len(codes), axis=0)
        rows[:, column] = codes
        return ask(rows)[:, made] - base

    table = of_codes(np.arange(len(predictor.schema.levels[column])))
    try:
        missing = of_codes([np.nan])
    except Exception:  # whatever a transformer raises: it does not take missing values
        missing = np.full((1, len(made)), np.nan)
    return Coding(column, made, np.vstack([table, missing]), lambda code: of_codes([code])[0])


def _joined(parts: list[Part], codings: list[Coding], base: Array, features: int) -> Map:
    """The parts side by side."""

    def forward(rows: Array) -> tuple[Array, Pullback]:
        out = np.repeat(base[None].astype(rows.dtype), len(rows), axis=0)
        for coding in codings:
            out[:, coding.made] += coding.of(rows[:, coding.column]).astype(rows.dtype)
        backs = []
        for columns, one, made in parts:
            out[:, made], back = one(rows[:, columns])
            backs.append((columns, made, back))

        def pullback(d: Array) -> Array:
            slopes = np.zeros((*d.shape[:2], features), dtype=d.dtype)
            for columns, made, back in backs:
                slopes[:, :, columns] += back(d[:, :, made])
            return slopes

        return out, pullback

    return forward
