"""Is a saved result what its model says of its data? Recompute everything it claims, and compare.

A row is "identical" when all its numbers and texts are the same, to the last bit; "within tolerance" when nothing
moved by more than the comparison allows; "different" otherwise. Tolerances are relative to the *recomputed*
numbers, plus the *recomputed* error bounds of the values; nothing is taken from the file under test. What the
header says is recomputed too: names, scale, attribution, base values, settings. Model, data, background and
configuration must be the recorded ones; libraries and machine may differ and are reported. The file is read in
blocks, so that memory does not grow with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.explanation.fields import CATEGORY
from texplainer.files import audit, models, results
from texplainer.files import job as jobs
from texplainer.files.results import fit_width
from texplainer.files.tables import Dialect
from texplainer.support import hashing

IDENTICAL, WITHIN, DIFFERENT = "identical", "within tolerance", "different"
BOUND_FACTOR = 2.0  # bounds are estimates: on another machine they may differ by so much


class RowComparison:
    """The outcomes of some rows, the largest difference of a value, and the arrays that differ."""

    def __init__(self, saved: Mapping[str, np.ndarray], again: Mapping[str, np.ndarray], tolerance: float):
        rows = len(again["values"])
        self.differing: dict[str, int] = {}
        self.gaps = np.zeros(rows)
        same, near = np.ones(rows, bool), np.ones(rows, bool)
        for name in {**again, **saved}:
            if name not in saved or name not in again:
                equal = close = np.zeros(rows, bool)
            else:
                new = fit_width(again[name], saved[name].shape[1:])
                equal, close = compare_arrays(name, saved[name], new, again.get(_error_of(name)), tolerance)
            if not close.all():
                self.differing[name] = int((~close).sum())
            same, near = same & equal, near & close
        self.outcomes = np.where(same, IDENTICAL, np.where(near, WITHIN, DIFFERENT)).astype("<U16")
        if "values" in saved and saved["values"].shape == again["values"].shape:
            self.gaps = _gap(saved["values"], again["values"]).reshape(rows, -1).max(axis=1, initial=0.0)


def _error_of(name: str) -> str:
    """The bounds that belong to some values: "shapley/error" to "shapley/values"."""
    owner = name.rpartition("/")[0]
    return f"{owner}/error" if owner else "error"


def compare_arrays(
    name: str, old: np.ndarray, new: np.ndarray, error: np.ndarray | None, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """(equal, near enough) for every row; `error` are the recomputed bounds of the values."""
    if old.shape != new.shape or _sort(old) != _sort(new):
        nothing = np.zeros(len(new), bool)
        return nothing, nothing
    if old.dtype.kind != "f":
        equal = _by_row(_equal_cells(old, new))
        return equal, equal
    equal = _by_row((old == new) | (np.isnan(old) & np.isnan(new)))
    if name == "data":
        return equal, equal
    kind = "" if name.startswith(CATEGORY) else name.rpartition("/")[2]
    if kind == "error":
        return equal, _by_row(_same_size(old, new))
    size = np.abs(np.where(np.isfinite(new), new, 0.0)).reshape(len(new), -1).max(axis=1, initial=0.0)
    allowed = tolerance * size.reshape(-1, *[1] * (new.ndim - 1))
    if kind == "values" and error is not None and error.shape == new.shape:
        allowed = allowed + np.nan_to_num(error, nan=0.0, posinf=0.0)
    return equal, _by_row(_gap(old, new) <= allowed)


def near_numbers(old: Any, new: Any, tolerance: float) -> bool:
    """Whether two plain values of a header are equal, floats up to a tolerance."""
    if isinstance(old, bool) or isinstance(new, bool) or not isinstance(new, (int, float)):
        if isinstance(new, dict) and isinstance(old, dict):
            return old.keys() == new.keys() and all(near_numbers(old[k], new[k], tolerance) for k in new)
        if isinstance(new, list) and isinstance(old, list):
            return len(old) == len(new) and all(
                near_numbers(a, b, tolerance) for a, b in zip(old, new, strict=True)
            )
        return type(old) is type(new) and old == new
    if not isinstance(old, (int, float)):
        return False
    return old == new or (old != old and new != new) or abs(old - new) <= tolerance * abs(new)


def _gap(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        gap = np.where((old == new) | (np.isnan(old) & np.isnan(new)), 0.0, np.abs(old - new))
    return np.where(np.isnan(gap), np.inf, gap)


def _same_size(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        near = (old <= BOUND_FACTOR * new) & (new <= BOUND_FACTOR * old)
    return near | (old == new) | (np.isnan(old) & np.isnan(new))


def _equal_cells(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Equality of texts, whole numbers and mixed cells; one missing cell is as good as another."""
    if old.dtype.kind != "O":
        return np.asarray(old == new)
    pairs = zip(old.ravel().tolist(), new.ravel().tolist(), strict=True)
    equal = [a == b or (_missing(a) and _missing(b)) for a, b in pairs]
    return np.array(equal, bool).reshape(old.shape)


def _missing(cell: Any) -> bool:
    return cell is None or cell != cell


def _sort(array: np.ndarray) -> str:
    """What kind of cells an array has: numbers with a fraction, whole numbers, or others."""
    return {"f": "f", "i": "i", "u": "i", "b": "b"}.get(array.dtype.kind, "text")


def _by_row(cells: np.ndarray) -> np.ndarray:
    return np.asarray(cells.reshape(len(cells), -1).all(axis=1))


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
        if not 0 <= tolerance < np.inf:
            raise InputError(
                f"tolerance={tolerance} is invalid; expected a number of at least 0, such as 1e-6."
            )
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
