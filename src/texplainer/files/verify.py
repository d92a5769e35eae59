"""Is a saved result what its model says of its data? Recompute everything it claims, and compare.

A row is "identical" when every number and word of it is the same, to the last bit; "within tolerance" when
nothing moved by more than the comparison allows (`comparison`); "different" otherwise. What the header says
is recomputed too: names, scale, attribution, base values, settings. Model, data, background and configuration
must be the recorded ones; libraries and machine may differ and are reported. The file is read in blocks, so
that memory does not grow with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.files import audit, models, results
from texplainer.files import job as jobs
from texplainer.files.comparison import DIFFERENT, IDENTICAL, WITHIN, RowComparison, near_numbers
from texplainer.files.tables import Dialect
from texplainer.support import hashing

TOLERANCE = 1e-6


@dataclass(frozen=True)
class Verification:
    """The result of a verification.

    Attributes
    ----------
    rows, outcomes, gaps
        (checked rows,): row numbers; "identical", "within tolerance" or "different"; the largest difference.
    total
        How many rows the result has.
    failures
        Why the result is different: changed bytes, another model ...; empty if it is not.
    notes
        Differences that do not matter: library versions, machine; and the signature.
    differing
        Array -> the number of checked rows in which it differs.
    near
        Entries of the header that are within tolerance of the recomputed ones, not equal to them.
    """

    rows: np.ndarray
    outcomes: np.ndarray
    gaps: np.ndarray
    total: int
    failures: tuple[str, ...]
    notes: tuple[str, ...]
    differing: Mapping[str, int] = field(default_factory=dict)
    near: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows per outcome."""
        return {word: int(np.sum(self.outcomes == word)) for word in (IDENTICAL, WITHIN, DIFFERENT)}

    @property
    def outcome(self) -> str:
        """The outcome of the whole result: that of its worst row or entry, or "different" after a failure."""
        if self.failures or self.counts[DIFFERENT]:
            return DIFFERENT
        return WITHIN if self.counts[WITHIN] or self.near else IDENTICAL


def verify_result(
    result: Any,
    model: str,
    data: str,
    *,
    background: str | None = None,
    consent: models.Consent | None = None,
    rows: int | None = None,
    tolerance: float = TOLERANCE,
    public_key: Any = None,
) -> Verification:
    """Recompute a result and compare.

    `rows` limits the work to evenly spaced blocks with at least that many rows; None recomputes all.
    """
    header, blocks = results.open_result(result)
    holds, words = audit.check_signature(header, public_key)
    failures = [] if holds else [words]
    job = repeat_job(result, header["record"], model, data, background, consent)
    failures += foreign(header["record"], job.facts)
    ledger = Ledger(tolerance)
    wanted = chosen_blocks(job.table.rows, job.block, rows)
    digests = compare_blocks(job, blocks, wanted, ledger, results.result_format_short(result))
    failures += [f"{part} changed after saving" for part in results.altered(header, digests)]
    total = ledger.total
    if total != job.table.rows:
        failures.append(f"the result has {total} rows, the data {job.table.rows}")
    if ledger.first is not None:
        failures += ledger.compare_claims(header, results.describe(ledger.first, digests))
        failures += false_fingerprints(header, ledger.first, digests)
    return ledger.close(failures, (words, *differing_environment(header["record"])))


def repeat_job(
    result: Any,
    recorded: Mapping[str, Any],
    model: str,
    data: str,
    background: str | None,
    consent: models.Consent | None,
) -> jobs.ExplainJob:
    """Build the job that a record describes, from the given files."""
    options = recorded["configuration"].get("options")
    configuration = dict(options) if isinstance(options, dict) else {}
    columns, marks = configuration.pop("columns", None), configuration.pop("dialect", {})
    if not isinstance(columns, list) or not isinstance(marks, dict) or set(marks) - {"separator", "decimal"}:
        raise InputError(
            f"{result} was saved from Python: its record lacks the columns that were read and the hashes of the "
            "model file, the data file and the background. Write the result with texplainer explain MODEL DATA "
            "-o FILE to verify it, or explain the rows again in Python and compare the values."
        )
    if background is None and "name" in recorded["background"]:
        raise InputError(
            f"{result} was made with the background {recorded['background']['name']}; pass --background."
        )
    bounds = configuration.get("bounds")
    if isinstance(bounds, list):  # JSON has no pairs
        configuration["bounds"] = tuple(bounds)
    return jobs.prepare_job(
        model,
        data,
        background=background,
        consent=consent,
        columns=columns,
        options=configuration,
        dialect=Dialect(**marks),
    )


def foreign(recorded: Mapping[str, Any], facts: Mapping[str, Any]) -> list[str]:
    """The inputs that are not the recorded ones, and records that contradict themselves."""
    words = []
    for part in results.PARTS:
        then, now = recorded[part], facts[part]
        if then.get("sha256") != now["sha256"]:
            words.append(
                f"the {part} is different: {then.get('name', part)} had the hash "
                f"{str(then.get('sha256', 'none'))[:16]}, this one has {now['sha256'][:16]}"
            )
        words += [
            f"the record says {then[key]!r} for the {key} of the {part}; it is {now.get(key)!r}"
            for key in then
            if key not in ("sha256", "fingerprint", "name") and then[key] != now.get(key)
        ]
    options = recorded["configuration"]
    if options.get("sha256") != hashing.of_facts(options.get("options")):
        words.append("the configuration does not have its recorded fingerprint")
    return words


def differing_environment(recorded: Mapping[str, Any]) -> list[str]:
    """What differs in libraries and machine, for the notes."""
    notes = [f"library {change}" for change in audit.differing_facts(recorded["software"], audit.software())]
    return notes + [
        f"machine {change}" for change in audit.differing_facts(recorded["floats"], audit.floats())
    ]


def false_fingerprints(header: Mapping[str, Any], first: Any, digests: Mapping[str, str]) -> list[str]:
    """Fingerprints of predictions and background that are not those recomputed, on the same machine."""
    if differing_environment(header["record"]):  # other libraries may round otherwise
        return []
    truth = results.fingerprints(first, {"data": header["record"]["values"].get("data", "")})
    words = [
        f"the fingerprint of the {part} is not the recorded one"
        for part, known in truth.items()
        if part != "data" and header["record"][part].get("fingerprint") != known.get("fingerprint")
    ]
    own = header["settings"].get("fingerprints", {})
    if own != first.settings.get("fingerprints", {}):
        words.append("the fingerprints among the settings are not those recomputed")
    if header["record"]["data"].get("fingerprint") != digests.get("data"):
        words.append("the fingerprint of the data is not that of its rows")
    return words


class Ledger:
    """What was found block by block."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.total = 0
        self.first: Any = None
        self.numbers: list[np.ndarray] = []
        self.outcomes: list[np.ndarray] = []
        self.gaps: list[np.ndarray] = []
        self.differing: dict[str, int] = {}
        self.near: list[str] = []

    def compare_claims(self, header: Mapping[str, Any], truth: Mapping[str, Any]) -> list[str]:
        """The entries of a header that are not what the explanation says of itself."""
        truth = hashing.json_round_trip(truth)
        words = []
        for name, new in truth.items():
            old = header.get(name)
            if name == "settings":  # fingerprints are compared apart
                old, new = ({k: v for k, v in s.items() if k != "fingerprints"} for s in (old or {}, new))
            if not near_numbers(old, new, self.tolerance):
                words.append(f"the header says {_short(old)} for {name}; it is {_short(new)}")
            elif not near_numbers(old, new, 0.0):
                self.near.append(name)
        known = {*truth, "format", "version", "record", "layout", "sha256", "signature"}
        return words + [f"the header has an unknown entry {name!r}" for name in header if name not in known]

    def add(self, start: int, saved: Mapping[str, np.ndarray], again: Mapping[str, np.ndarray]) -> None:
        """Compare some rows."""
        found = RowComparison(saved, again, self.tolerance)
        self.numbers.append(np.arange(start, start + len(found.outcomes)))
        self.outcomes.append(found.outcomes)
        self.gaps.append(found.gaps)
        for name, count in found.differing.items():
            self.differing[name] = self.differing.get(name, 0) + count

    def close(self, failures: Sequence[str], notes: Sequence[str]) -> Verification:
        """All of it."""
        nothing = (np.arange(0), np.array([], dtype="<U16"), np.array([]))
        parts = (self.numbers, self.outcomes, self.gaps)
        found = [np.concatenate(part) if part else empty for part, empty in zip(parts, nothing, strict=True)]
        numbers, outcomes, gaps = found
        notes = (*notes, *(f"the header's {name} is within tolerance only" for name in self.near))
        return Verification(
            numbers,
            outcomes,
            gaps,
            self.total,
            tuple(failures),
            notes,
            self.differing,
            tuple(self.near),
        )


def compare_blocks(
    job: jobs.ExplainJob,
    blocks: Iterator[dict[str, np.ndarray]],
    wanted: Sequence[int] | None,
    ledger: Ledger,
    short: bool,
) -> dict[str, str]:
    """Go through file and table side by side; the digests of the file's arrays."""
    digests: dict[str, hashing.RowDigest] = {}
    again = jobs.explain_blocks(job, wanted)
    start, piece = next(again, (-1, None))
    ledger.first = piece
    for number, saved in enumerate(equal_blocks(blocks, job.block)):
        for name, array in saved.items():
            digests.setdefault(name, hashing.RowDigest()).update(array)
        rows = len(saved["values"])
        if piece is not None and start == number * job.block:
            both = min(rows, len(piece))
            new = results.rows_of(piece[:both], short)
            ledger.add(start, {name: array[:both] for name, array in saved.items()}, new)
            start, piece = next(again, (-1, None))
        ledger.total += rows
    return {name: digest.hexdigest() for name, digest in digests.items()}


def equal_blocks(blocks: Iterator[dict[str, np.ndarray]], rows: int) -> Iterator[dict[str, np.ndarray]]:
    """Blocks of any length as blocks of `rows`; only the last may have fewer."""
    held: dict[str, np.ndarray] = {}
    for block in blocks:
        held = {n: np.concatenate([held[n], array]) if held else array for n, array in block.items()}
        while len(held["values"]) >= rows:
            yield {name: array[:rows] for name, array in held.items()}
            held = {name: array[rows:] for name, array in held.items()}
    if held and len(held["values"]):
        yield held


def chosen_blocks(rows: int, block: int, most: int | None) -> Sequence[int] | None:
    """The numbers of evenly spaced whole blocks: a row alone could differ in its last bits."""
    count = -(-rows // block)
    needed = count if most is None else min(count, -(-most // block))
    return None if needed == count else sorted({i * count // needed for i in range(needed)})


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
