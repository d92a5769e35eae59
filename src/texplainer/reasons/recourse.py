"""Recourse: the smallest changes of a row that move its prediction to a target, verified by the model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from texplainer.errors import InputError, UndefinedRowsWarning
from texplainer.explanation import text
from texplainer.reasons.problem import FEW, Goal, goal_of, moves_of
from texplainer.reasons.search import Search, State, cushion_of, diverse, made_robust, solutions
from texplainer.tables import native
from texplainer.types import Array


@dataclass(frozen=True)
class Limits:
    """What a proposal may change; the arguments of `TExplainer.recourse`."""

    actionable: Any = None
    fixed: Any = ()
    ranges: Mapping[str, Any] | None = None
    monotone: Mapping[str, Any] | None = None
    max_changes: int = 3
    margin: float = 0.0
    count: int = 3


@dataclass(frozen=True)
class Change:
    """One change: the value before and after, and its size in SDs (a switch of a category: 1)."""

    feature: str
    before: Any
    after: Any
    sds: float
    switch: bool = False

    @property
    def size(self) -> str:
        """Its size as text."""
        return "switch" if self.switch else f"{self.sds:.2f} SD"


@dataclass(frozen=True, repr=False)
class Recourse:
    """Proposals that reach a target, the smallest change first.

    Attributes
    ----------
    found : whether there is any; otherwise `rows` holds the nearest row that was met
    rows : the proposed rows, a table like the model's input
    predictions : (proposals,), by the model, in the target's unit: probabilities for a classifier
    changes : per proposal its changes: feature, before, after, size in SDs
    robust : (proposals,), whether the target stays reached when columns of numbers move by 5% of their SDs
    before : the prediction of the row itself
    evaluations : how many rows were predicted
    """

    found: bool
    rows: Any
    predictions: np.ndarray
    changes: tuple[tuple[Change, ...], ...]
    robust: np.ndarray
    before: float
    target: str
    scale: str
    evaluations: int

    def __len__(self) -> int:
        return len(self.changes)

    def to_frame(self) -> Any:
        """A pandas table, one line per change: proposal, feature, from, to, sds, prediction, robust."""
        import pandas as pd

        lines = [
            (i, c.feature, c.before, c.after, c.sds, float(self.predictions[i]), bool(self.robust[i]))
            for i, changes in enumerate(self.changes)
            for c in changes
        ]
        names = ("proposal", "feature", "from", "to", "sds", "prediction", "robust")
        columns = list(zip(*lines, strict=True)) or [()] * len(names)
        return pd.DataFrame({name: list(column) for name, column in zip(names, columns, strict=True)})

    def __repr__(self) -> str:
        lines = [self.title]
        for i, changes in enumerate(self.changes):
            lines += [f"  {self.heading(i)}", *text.columns_text([_cells(c) for c in changes], "    ")]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = ("feature", "from", "to", "size")
        tables = [
            text.html_table(self.heading(i), head, [_html_cells(c) for c in changes])
            for i, changes in enumerate(self.changes)
        ]
        return text.html_table(self.title, (), ()) + "".join(tables)

    @property
    def title(self) -> str:
        """What was asked for and whether it was found, as a sentence."""
        now = text.prediction_text(self.before, self.scale)
        words = f"Recourse to {self.target}, from {now}"
        if self.found:
            return f"{words}: {len(self)} proposal{'s'[: len(self) != 1]}, verified by the model"
        if not self.changes[0]:
            return f"{words}: none found, and no change that was tried brings the row nearer"
        return f"{words}: none found within these limits; this is the nearest"

    def heading(self, i: int) -> str:
        """The prediction of one proposal, its size, and whether it is robust."""
        total = sum(change.sds for change in self.changes[i])
        shown = text.prediction_text(float(self.predictions[i]), self.scale)
        doubt = "" if self.robust[i] or not self.found else "; moves by 5% of an SD may undo it"
        return f"{i + 1}. prediction {shown}, size {total:.2f}{doubt}"


def _cells(change: Change) -> list[str]:
    before, after = text.cell_text(change.before), text.cell_text(change.after)
    return [change.feature, f"{before} → {after}", change.size]


def _html_cells(change: Change) -> list[str]:
    return [change.feature, text.cell_text(change.before), text.cell_text(change.after), change.size]


def recourse_of(explainer: Any, row: Any, target: Any, limits: Limits) -> Recourse:
    """Search for proposals; see `TExplainer.recourse` for the arguments."""
    for name in ("max_changes", "count"):
        value = getattr(limits, name)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise InputError(f"{name}={value!r} is invalid; expected a whole number of at least 1.")
    start = explainer.schema.read(explainer.split_identifiers(row)[0])  # (1, features)
    if len(start) != 1:
        raise InputError(f"row holds {len(start)} rows; expected one. Pass one of them, such as X[:1].")
    goal = goal_of(explainer.predictor, target, limits.margin, start)
    moves = moves_of(explainer, start[0], limits)
    score, before = goal.measure(start)
    if not np.isfinite(score[0]):
        raise InputError(f"the model's prediction of the row is {before[0]}; expected a finite number.")
    if goal.met(score)[0]:
        shown = text.prediction_text(float(before[0]), goal.shown)
        raise InputError(
            f"the target {goal.words} is already met: the prediction is {shown}. Nothing to change."
        )
    search = Search(start[0], moves, goal)
    slopes, cost = _slopes(explainer, start, goal)
    noisy = _noisy(explainer, start[0])
    search.cushion = cushion_of(search, noisy)
    states = solutions(search, int(limits.max_changes), slopes)
    if not states and search.cushion:
        search.cushion = 0.0
        states = solutions(search, int(limits.max_changes), slopes)
    chosen = diverse(made_robust(search, states, noisy), int(limits.count))
    nearest = (
        search.nearest if search.nearest is not None and search.nearest.score > score[0] else State((), 0.0)
    )
    found = _result(explainer, search, chosen, nearest, float(before[0]), cost + 1)
    return replace(found, rows=native.with_dtypes_of(found.rows, row))


def _slopes(explainer: Any, row: Array, goal: Goal) -> tuple[np.ndarray, int]:
    """The slope of the score in every feature, (features,), NaN where it is not known; and its evaluations."""
    if goal.output is None:
        return np.full(row.shape[1], np.nan), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedRowsWarning)
        found = explainer(explainer.schema.write(row.copy()), attribution="slope", progress=False)
    cost = int(np.nansum(found.arrays.get("evaluations", np.zeros(1))))
    return goal.factor * found.arrays["gradient"][0, :, goal.output], cost


def _noisy(explainer: Any, row: Array) -> list[tuple[int, float]]:
    """The continuous columns, which are known only up to a few hundredths of an SD: (position, SD)."""
    out = []
    for j in range(len(row)):
        column = explainer.background.rows[:, j]
        many = len(np.unique(column[np.isfinite(column)])) > FEW
        if many and j not in explainer.schema.levels and np.isfinite(row[j]):
            out.append((j, float(explainer.background.sigma[j])))
    return out


def _result(
    explainer: Any, search: Search, chosen: list[State], nearest: State, before: float, evaluations: int
) -> Recourse:
    """The proposals as the user's own table, predicted again."""
    schema, goal = explainer.schema, search.goal
    if chosen:  # the model has the last word, also where its answer depends on the batch
        met = goal.met(goal.measure(np.stack([search.rebuilt(state) for state in chosen]))[0])
        chosen = [state for state, ok in zip(chosen, met, strict=True) if ok]
    states = chosen or [nearest]
    rows = np.stack([search.rebuilt(state) for state in states])  # (proposals, features)
    predictions = goal.measure(rows)[1]
    data, own = schema.shown(rows), schema.shown(search.row[None])
    changes = tuple(
        tuple(
            Change(
                schema.names[moves.feature],
                own[0, moves.feature],
                data[i, moves.feature],
                float(moves.cost(np.array(value))),
                bool(np.isnan(moves.sd)),
            )
            for moves, value in ((search.moves[k], value) for k, value in state.changes)
        )
        for i, state in enumerate(states)
    )
    return Recourse(
        bool(chosen),
        schema.write(rows),
        predictions,
        changes,
        np.array([state.robust and bool(chosen) for state in states]),
        before,
        goal.words,
        goal.shown,
        evaluations + search.evaluations + 2 * len(rows),
    )
