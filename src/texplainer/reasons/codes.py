"""Reason codes: the features that pushed a prediction in the adverse direction, the largest first.

A reason is a contribution (attribution "shapley"), so that the reasons, the excluded features and the rest add
up to the prediction. Two reasons share a rank if the error bounds of their contributions, directly or through
a third one between them, overlap: the numbers cannot tell which is larger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from texplainer.attributions import table
from texplainer.errors import InputError
from texplainer.explanation import text
from texplainer.explanation.explanation import Explanation
from texplainer.reasons.columns import by_name, known_names, typical_values
from texplainer.support.messages import suggest
from texplainer.tables import native

PRINTED = 10  # rows that are printed


@dataclass(frozen=True)
class Reason:
    """One reason of one row.

    `rank` is shared by reasons that the bounds cannot order (`tied`). `certain` says whether the bound excludes
    that the contribution points the other way. Of a group, `value` and `reference` are texts of its columns.
    """

    rank: int
    feature: str
    value: Any
    reference: Any
    contribution: float
    bound: float
    phrase: str
    tied: bool = False
    certain: bool = True


@dataclass(frozen=True)
class RowReasons:
    """The reasons of one row.

    `excluded` is the total contribution of the excluded features and `excluded_bound` its bound; `rest` is the
    contribution of all features that are neither reasons nor excluded. `also` names features that are not
    listed although they are tied with the last reason. `note` is the reason why a row has none.
    """

    row: Any
    prediction: float
    base: float
    reasons: tuple[Reason, ...]
    excluded: float
    excluded_bound: float
    rest: float
    also: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, repr=False)
class Reasons:
    """The reasons of some rows, as `Explanation.reasons` returns them; a sequence of `RowReasons`."""

    rows: tuple[RowReasons, ...]
    output: str
    scale: str
    toward: str
    excluded: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[RowReasons]:
        return iter(self.rows)

    def __getitem__(self, key: Any) -> Any:
        """One row's reasons, or those of a slice of rows."""
        return replace(self, rows=self.rows[key]) if isinstance(key, slice) else self.rows[key]

    def to_frame(self) -> Any:
        """A pandas table, one line per reason: row, rank, feature, value, contribution, bound, phrase."""
        import pandas as pd

        names = ("row", "rank", "feature", "value", "contribution", "bound", "phrase")
        lines = [
            (one.row, r.rank, r.feature, r.value, r.contribution, r.bound, r.phrase)
            for one in self.rows
            for r in one.reasons
        ]
        columns = list(zip(*lines, strict=True)) or [()] * len(names)
        return pd.DataFrame({name: list(column) for name, column in zip(names, columns, strict=True)})

    def __repr__(self) -> str:
        shown = [line for one in self.rows[:PRINTED] for line in self._row_lines(one)]
        left = len(self.rows) - PRINTED
        return "\n".join(
            [self._title(), *shown, *([f"... {left} more rows; to_frame() has all"] if left > 0 else [])]
        )

    def _repr_html_(self) -> str:
        head = ("rank", "reason", "value", "typical", "contribution")
        parts = [text.html_table(self._title(), (), ())]
        for one in self.rows[:PRINTED]:
            lines = [
                [
                    f"{r.rank}{'=' if r.tied else ''}{'' if r.certain else '?'}",
                    r.phrase or r.feature,
                    text.cell_text(r.value),
                    "" if r.reference is None else text.cell_text(r.reference),
                    _contribution(r.contribution, r.bound),
                ]
                for r in one.reasons
            ]
            parts.append(text.html_table(self._heading(one), head, lines, self._foot(one)))
        return "".join(parts)

    def _title(self) -> str:
        side = "higher" if self.toward == "up" else "lower"
        if self.scale != "log-odds":
            named = self.scale == "probability" or self.output != "output"
            what = table.quantity(self.scale, self.output) if named else text.output_text(self.output)
            return f"Reasons toward a {side} {what}"
        what = table.quantity("probability", self.output)  # it rises and falls with the log-odds
        return f"Reasons toward a {side} {what} (contributions in log-odds)"

    def _heading(self, one: RowReasons) -> str:
        shown = text.prediction_text(one.prediction, self.scale)
        usual = text.base_text(one.base, self.scale)
        return f"row {one.row}: {text.output_text(self.output)} {shown}; base value: {usual}"

    def _row_lines(self, one: RowReasons) -> list[str]:
        return [
            self._heading(one),
            *text.columns_text(_cells(one)),
            *(f"     {words}" for words in self._foot(one)),
        ]

    def _foot(self, one: RowReasons) -> list[str]:
        """What a reader must know beside the list."""
        lines = []
        if one.note:
            return [one.note]
        if not one.reasons:
            lines.append("no feature pushed the prediction in this direction")
        if any(reason.tied for reason in one.reasons):
            lines.append("= tied: the error bounds overlap, so that their order is not known")
        if one.also:
            lines.append(f"tied with the last reason and not listed: {', '.join(one.also)}")
        if any(not reason.certain for reason in one.reasons):
            lines.append("? the error bound reaches 0: the direction is not certain")
        lines.append(f"all other features together {text.signed(one.rest)}")
        if self.excluded:
            total = _contribution(one.excluded, one.excluded_bound)
            lines.append(f"excluded features ({', '.join(self.excluded)}) together {total}")
        return lines


def _cells(one: RowReasons) -> list[list[str]]:
    """Rank, phrase, value beside the typical one, and contribution of every reason, as text."""
    return [
        [
            f"{r.rank}{'=' if r.tied else ' '}{' ' if r.certain else '?'}",
            r.phrase or r.feature,
            (f"{r.feature} = " if r.phrase else "") + _compared(r.value, r.reference),
            _contribution(r.contribution, r.bound),
        ]
        for r in one.reasons
    ]


def _compared(value: Any, reference: Any) -> str:
    """A value and what is typical: "2400, above the typical 1030"; "missing, typical 172"; "yes, as is typical"."""
    shown = text.cell_text(value)
    if reference is None:
        return shown
    if not isinstance(reference, float):
        usual = text.cell_text(reference)
        return f"{shown}, as is typical" if shown == usual else f"{shown}, typical {usual}"
    usual = text.cell_text(float(f"{reference:.3g}"))
    if native.is_missing(value):
        return f"{shown}, typical {usual}"
    side = "above" if value > reference else "below" if value < reference else "at"
    return f"{shown}, {side} the typical {usual}"


def _contribution(value: float, bound: float) -> str:
    """A contribution with its bound, where that is not negligible."""
    return text.signed(value, bound, 1e-4 * abs(value))


@dataclass(frozen=True)
class _Features:
    """What may be a reason: single features and groups, each with the positions of its columns."""

    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    excluded: tuple[int, ...]


def reasons_of(
    explanation: Explanation,
    k: int = 4,
    toward: Any = None,
    exclude: Any = (),
    phrases: Mapping[str, str] | None = None,
    group: Mapping[str, Sequence[str]] | None = None,
    reference: Any = None,
) -> Reasons:
    """The reasons of every row; see `Explanation.reasons` for the arguments."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InputError(f"k={k!r} is not a number of reasons; expected a whole number of at least 1.")
    names = explanation.feature_names
    features = _features(names, known_names("exclude", exclude, names), by_name("group", group))
    phrases = _phrases(phrases, features, names)
    output, sign = _direction(explanation, toward)
    background = explanation.live.background if explanation.live is not None else None
    typical = _typical(reference, background, names)
    parts = _contributions(explanation)
    arrays = parts.arrays
    base = np.broadcast_to(arrays["base_values"], arrays["predictions"].shape)  # (rows, outputs)
    error = arrays.get("error")
    rows = []
    for i, label in enumerate(explanation.index):
        values = arrays["values"][i, :, output]
        bounds = np.full(len(names), np.nan) if error is None else error[i, :, output]
        found = _row(values, bounds, arrays["data"][i], features, typical, phrases, sign, int(k))
        why = arrays["reason"][i] if "reason" in arrays else "its values are not numbers"
        note = "" if np.isfinite(values).all() else f"undefined: {why}"
        row = getattr(label, "item", lambda label=label: label)()
        rows.append(
            replace(
                found,
                row=row,
                prediction=float(arrays["predictions"][i, output]),
                base=float(base[i, output]),
                note=note,
            )
        )
    return Reasons(
        tuple(rows),
        str(explanation.output_names[output]),
        explanation.scale,
        "up" if sign > 0 else "down",
        tuple(names[j] for j in features.excluded),
    )


def _contributions(explanation: Explanation) -> Explanation:
    """The attribution "shapley" of the same rows."""
    try:
        return explanation.with_attribution("shapley")
    except InputError:
        raise InputError(
            "reasons are ranked by contribution; this explanation holds the attribution "
            f"{explanation.attribution!r} and, loaded or made by hand, has no explainer to compute 'shapley'. "
            "Explain the rows with explainer(X, attribution='shapley') before saving them."
        ) from None


def _features(names: Sequence[str], excluded: Sequence[str], group: Mapping[str, Sequence[str]]) -> _Features:
    """The features and groups that may be reasons; refuses a column that has two places."""
    place = dict.fromkeys(excluded, "exclude")
    columns = []
    for title, members in group.items():
        for name in known_names(f"group {title!r}", members, names):
            if name in place:
                raise InputError(
                    f"the feature {name!r} is named by group {title!r} and by {place[name]}; expected once. "
                    "Leave it out of one of them."
                )
            place[name] = f"group {title!r}"
        if title in names and title not in place:
            raise InputError(
                f"group {title!r} has the name of a feature that is not in it; expected another name."
            )
        columns.append(tuple(names.index(name) for name in known_names("group", members, names)))
    single = [(j,) for j, name in enumerate(names) if name not in place]
    return _Features(
        (*group, *(names[j] for (j,) in single)),
        (*columns, *single),
        tuple(j for j, name in enumerate(names) if name in excluded),
    )


def _phrases(phrases: Any, features: _Features, names: Sequence[str]) -> dict[str, str]:
    """The user's table of phrases; every key must be a feature or a group."""
    phrases = by_name("phrases", phrases)
    known = [*features.names, *names]
    for name, phrase in phrases.items():
        if name not in known:
            raise InputError(
                f"phrases has the key {name!r}, which is neither a feature nor a group.{suggest(name, known)}"
            )
        if not isinstance(phrase, str):
            raise InputError(f"the phrase of {name!r} is {phrase!r}; expected a text.")
    return phrases


def _direction(explanation: Explanation, toward: Any) -> tuple[int, float]:
    """The position of the output and the sign of the adverse direction."""
    names = [str(name) for name in explanation.output_names]
    classes = [str(name) for name in explanation.settings.get("classes", ())]
    one = len(names) == 1
    if str(toward) in names:  # also where a class is called "up" or "down"
        return names.index(str(toward)), 1.0
    if one and len(classes) == 2 and str(toward) in classes:
        return 0, -1.0
    if one and toward in (None, "up", "down"):
        return 0, -1.0 if toward == "down" else 1.0
    if not one and toward in (None, "up", "down"):
        raise InputError(
            f"the explanation holds {len(names)} outputs ({', '.join(names[:6])}); reasons are of one. "
            f"Pass toward={names[0]!r} (--output on the command line), or pick it with explanation[..., {names[0]!r}]."
        )
    known = list(dict.fromkeys([*names, *(classes if len(classes) == 2 else ())]))
    raise InputError(
        f"toward={toward!r} is unknown; expected 'up', 'down', or the class the decision went to, "
        f"one of {', '.join(known[:8])}."
    )


def _typical(reference: Any, background: Any, names: Sequence[str]) -> dict[str, Any]:
    """What is typical of every feature: in the user's table, else in the background, else unknown."""
    if reference is not None:
        return typical_values(reference, names)
    if background is None:
        return dict.fromkeys(names)
    own, rows = background()
    found = typical_values(rows, own)
    return {name: found.get(name) for name in names}


def _row(
    values: np.ndarray,
    bounds: np.ndarray,
    data: np.ndarray,
    features: _Features,
    typical: Mapping[str, Any],
    phrases: Mapping[str, str],
    sign: float,
    k: int,
) -> RowReasons:
    """The reasons of one row: the largest contributions in the adverse direction."""
    sums = np.array([sum(values[list(c)]) for c in features.columns])  # (features and groups,)
    bars = np.array([sum(bounds[list(c)]) for c in features.columns])
    adverse = np.nonzero(sign * np.nan_to_num(sums) > 0)[0]
    order = adverse[np.argsort(-sign * sums[adverse], kind="stable")]
    ranks = shared_ranks(sign * sums[order], np.nan_to_num(bars[order]))
    names = list(typical)
    reasons = []
    for rank, i in zip(ranks[:k], order[:k], strict=True):
        columns = [names[j] for j in features.columns[i]]
        value = _joined(columns, [data[j] for j in features.columns[i]], features.names[i])
        known = [typical[name] for name in columns]
        usual = None if all(v is None for v in known) else _joined(columns, known, features.names[i])
        reasons.append(
            Reason(
                int(rank),
                features.names[i],
                value,
                usual,
                float(sums[i]),
                float(bars[i]),
                _phrase(features.names[i], phrases.get(features.names[i], ""), value, usual),
                bool(np.sum(ranks == rank) > 1),
                bool(not abs(sums[i]) <= bars[i]),
            )
        )
    last = ranks[min(k, len(ranks)) - 1] if len(ranks) else 0
    also = tuple(features.names[i] for rank, i in zip(ranks[k:], order[k:], strict=True) if rank == last)
    out = list(features.excluded)
    left = float(values.sum() - values[out].sum() - sums[order[:k]].sum())
    return RowReasons(
        None, 0.0, 0.0, tuple(reasons), float(values[out].sum()), float(bounds[out].sum()), left, also
    )


def shared_ranks(sizes: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Ranks of sizes in falling order; sizes whose intervals size ± bound overlap share the first of theirs.

    Between two ranks every interval of the one lies above every interval of the other.
    """
    ranks = np.arange(1, len(sizes) + 1)
    if not len(sizes):
        return ranks
    lowest = np.minimum.accumulate(sizes - bounds)  # of this and the larger ones
    highest = np.maximum.accumulate((sizes + bounds)[::-1])[::-1]  # of this and the smaller ones
    starts = np.append(True, lowest[:-1] > highest[1:])
    return ranks[starts][np.cumsum(starts) - 1]


def _joined(columns: Sequence[str], values: Sequence[Any], title: str) -> Any:
    """The value of a single feature; of a group a text with those of its columns."""
    if len(columns) == 1 and columns[0] == title:
        return values[0]
    return ", ".join(f"{name} {text.cell_text(value)}" for name, value in zip(columns, values, strict=True))


def _phrase(feature: str, phrase: str, value: Any, reference: Any) -> str:
    """A phrase with {value} and {reference} filled in; other braces stay.

    A phrase describes a value ("Income too low"); of a missing one it would be false, and is replaced.
    """
    if phrase and native.is_missing(value):
        return f"No value given for {feature}"
    shown = phrase.replace("{value}", text.cell_text(value))
    return shown.replace("{reference}", "unknown" if reference is None else text.cell_text(reference))
