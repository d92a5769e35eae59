"""A model file and a table on disk -> explanations, piece by piece.

A piece is one block of `TExplainer`, the rows it explains at a time. The values are then those of the Python
API on the whole table, to the last bit, also for models whose own output depends on the rows they are given
together (matrix products do). A row that cannot be explained leaves its block there and here, so that only
models of this kind can differ, in the last bits, after such a row.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from texplainer.errors import InputError, ModelError, UndefinedRowsWarning
from texplainer.explainer import TExplainer
from texplainer.explanation.explanation import Explanation
from texplainer.files import models, survey
from texplainer.files.tables import Dialect
from texplainer.models.libraries import feature_names, known_levels
from texplainer.support import hashing
from texplainer.tables.native import identifier_among

#: the arguments of TExplainer that are recorded and can be repeated from the record
OPTIONS = (
    "output",
    "scale",
    "engine",
    "step",
    "smoothing",
    "attribution",
    "categorical",
    "bounds",
    "batch_rows",
    "id_column",
)


@dataclass(frozen=True)
class ExplainJob:
    """An explainer and the table it is for; `facts` go into the audit record.

    `columns` are read of every row: the model's, and the identifier if there is one.
    """

    explainer: TExplainer
    table: survey.DiskTable
    columns: tuple[str, ...]
    background: Any
    facts: dict[str, Any]

    @property
    def block(self) -> int:
        """Rows a piece."""
        return self.explainer.block_rows


def prepare_job(
    model: str,
    data: str,
    *,
    background: str | None = None,
    consent: models.Consent | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    dialect: Dialect | None = None,
) -> ExplainJob:
    """Load the model, scan the table, and read the background.

    `columns` are the model's columns; by default those the model names, or all except `drop`. `options` are
    arguments of TExplainer, `dialect` is the format of text tables.
    """
    options = dict(options or {})
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise InputError(f"unknown options {', '.join(unknown)}; expected some of {', '.join(OPTIONS)}.")
    loaded = models.load_model(model, consent)
    table = survey.survey(data, dialect)
    named = set(feature_names(loaded) or ()).intersection(drop)
    if named:
        raise InputError(f"the model has a feature {min(named)!r}; it cannot be dropped.")
    columns = survey.columns_for(table, columns or feature_names(loaded), (*drop, *_declared(options)))
    if "id_column" not in options:
        used = {*columns, *drop}
        found = identifier_among([name for name in table.names if name not in used])
        options |= {} if found is None else {"id_column": found}
    kinds = table.kinds
    levels = known_levels(loaded, columns, [name for name in columns if kinds[name] == "text"])
    table = survey.with_texts(table, levels)
    if background is None:
        picks = survey.sample_rows(table, columns)
        rows = survey.take_rows(table, columns, picks)
        origin: dict[str, Any] = {"sampled_rows": len(picks), "sha256": hashing.of_facts(picks)}
    else:
        source = survey.with_texts(survey.survey(background, dialect), levels)
        rows = survey.take_rows(source, survey.columns_for(source, columns), range(source.rows))
        origin = {"name": source.path.name, "sha256": source.sha256}
    rows = _with_levels(rows, levels)
    explainer = TExplainer(loaded, rows, **options)
    facts = {
        "model": models.fingerprint(model),
        "data": {"name": table.path.name, "sha256": table.sha256, "rows": table.rows},
        "background": origin,
        "configuration": {**options, "columns": list(columns), **_recorded_dialect(dialect)},
    }
    return ExplainJob(explainer, table, (*columns, *_declared(options, columns)), rows, facts)


def _declared(options: Mapping[str, Any], but: Sequence[str] = ()) -> list[str]:
    """The identifier's name, unless it is one of some others."""
    name = options.get("id_column")
    return [] if name is None or name in but else [name]


def _with_levels(rows: Any, levels: Mapping[str, Sequence[Any]]) -> Any:
    """A frame with the model's own categories, in the model's order; others that occur come after them."""
    import pandas as pd

    for name, own in levels.items():
        new = sorted(set(rows[name].dropna()) - set(own), key=str)
        rows[name] = pd.Categorical(rows[name], categories=[*own, *new])
    return rows


def _recorded_dialect(dialect: Dialect | None) -> dict[str, Any]:
    """The dialect for the record, where it is not the format's own."""
    said = {name: mark for name, mark in asdict(dialect or Dialect()).items() if mark is not None}
    return {"dialect": said} if said else {}


def explain_blocks(job: ExplainJob, wanted: Sequence[int] | None = None) -> Iterator[tuple[int, Explanation]]:
    """Explain the table, or only its blocks with the numbers `wanted`: (first row, explanation of the block).

    Raises ModelError if the model fails on every row.
    """
    failure: ModelError | None = None
    good = 0
    for number, frame in enumerate(survey.pieces(job.table, job.columns, job.block)):
        if wanted is not None and number not in wanted:
            continue
        piece, error = explain_piece(job.explainer, frame, job.background)
        failure = failure or error
        good += int((piece.arrays["stability"] != "undefined").sum())
        yield number * job.block, piece
    if failure is not None and not good:
        raise failure


def explain_piece(
    explainer: TExplainer, frame: Any, background: Any
) -> tuple[Explanation, ModelError | None]:
    """Explain some rows; where none can be, each is marked, beside a row of the background that can."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedRowsWarning)  # the caller counts them
        failure = None
        try:
            piece = explainer(frame, progress=False)
            if (piece.arrays["stability"] != "undefined").any():
                return piece, None
        except ModelError as error:
            failure = error
        known = background.iloc[:1].assign(
            **{name: frame[name].iloc[0] for name in frame if name not in background}
        )
        both = pd.concat([known, frame], ignore_index=True)
        return explainer(both, progress=False)[1:], failure
