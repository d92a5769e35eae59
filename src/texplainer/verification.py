"""Is a saved result what its model says of its data? Recompute and compare, row by row.

A row is "identical" when every number of its values and predictions has the same bits, "within
tolerance" when no value moved by more than the error bounds recorded for it or a small part of the
row's greatest value, "different" otherwise. Model, data, background and configuration must be the
recorded ones; libraries and machine may differ and are reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from texplainer import audit, files, model_files, streams
from texplainer.errors import InputError
from texplainer.explanation import Explanation

IDENTICAL, WITHIN, DIFFERENT = "identical", "within tolerance", "different"
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Check:
    """What a verification found.

    Attributes
    ----------
    rows, verdicts, gaps
        (checked rows,): row numbers, one of the three words each, the greatest difference of a value.
    total
        How many rows the result has.
    failures
        What makes the result another one: changed bytes, another model ...; empty if nothing does.
    notes
        What differs without harm: library versions, float facts; and who signed.
    """

    rows: np.ndarray
    verdicts: np.ndarray
    gaps: np.ndarray
    total: int
    failures: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many rows got which verdict."""
        return {word: int(np.sum(self.verdicts == word)) for word in (IDENTICAL, WITHIN, DIFFERENT)}

    @property
    def verdict(self) -> str:
        """The word for the whole result: that of its worst row, or "different" after a failure."""
        if self.failures or self.counts[DIFFERENT]:
            return DIFFERENT
        return WITHIN if self.counts[WITHIN] else IDENTICAL


def verify(
    result: Any,
    model: str,
    data: str,
    *,
    background: str | None = None,
    consent: model_files.Consent | None = None,
    rows: int | None = None,
    tolerance: float = TOLERANCE,
    public_key: Any = None,
) -> Check:
    """Recompute a result and compare.

    `rows` limits the work to evenly spaced blocks with at least that many rows; None recomputes all.
    """
    header, arrays = files.read(result)
    failures = [f"{part} changed after saving" for part in files.altered(header, arrays)]
    holds, words = audit.check_signature(header, public_key)
    if not holds:
        failures.append(words)
    recorded = header["record"]
    configuration = dict(recorded["configuration"]["options"])
    columns = configuration.pop("columns", None)
    if columns is None:
        raise InputError(
            f"{result} was saved from Python and does not tell how to repeat it. Only results of "
            "texplainer explain can be verified."
        )
    if background is None and "name" in recorded["background"]:
        raise InputError(
            f"{result} was made with the background {recorded['background']['name']}; pass --background."
        )
    job = streams.prepare(
        model, data, background=background, consent=consent, columns=columns, options=_options(configuration)
    )
    failures += _foreign(recorded, job.facts)
    notes = [f"library {change}" for change in audit.changes(recorded["software"], audit.software())]
    notes += [f"machine {change}" for change in audit.changes(recorded["floats"], audit.floats())]
    saved = files.restore(header, arrays)
    if len(saved) != job.table.rows:
        failures.append(f"the result has {len(saved)} rows, the data {job.table.rows}")
    found = _compare(job, saved, rows, tolerance)
    return Check(*found, len(saved), tuple(failures), (words, *notes))


def _options(configuration: dict[str, Any]) -> dict[str, Any]:
    """Arguments as TExplainer takes them: JSON has no pairs."""
    bounds = configuration.get("bounds")
    return configuration | ({"bounds": tuple(bounds)} if isinstance(bounds, list) else {})


def _foreign(recorded: dict[str, Any], facts: dict[str, Any]) -> list[str]:
    """The inputs that are not the recorded ones."""
    return [
        f"the {part} is another one: {recorded[part].get('name', part)} had the fingerprint "
        f"{recorded[part].get('sha256', 'none')[:16]}, this has {facts[part]['sha256'][:16]}"
        for part in ("model", "data", "background")
        if recorded[part].get("sha256") != facts[part]["sha256"]
    ]


def _compare(
    job: streams.Job, saved: Explanation, most: int | None, tolerance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    wanted = _blocks(len(saved), job.block, most)
    numbers, verdicts, gaps = [], [], []
    for start, piece in streams.explain(job, wanted):
        end = min(start + len(piece), len(saved))
        if end <= start:
            break
        words, gap = compare(saved[start:end], piece[: end - start], tolerance)
        numbers.append(np.arange(start, end))
        verdicts.append(words)
        gaps.append(gap)
    if not numbers:
        return np.arange(0), np.array([], dtype="<U16"), np.array([])
    return np.concatenate(numbers), np.concatenate(verdicts), np.concatenate(gaps)


def _blocks(rows: int, block: int, most: int | None) -> Sequence[int] | None:
    """The numbers of evenly spaced whole blocks: a row alone could differ in its last bits."""
    count = -(-rows // block)
    needed = count if most is None else min(count, -(-most // block))
    return None if needed == count else sorted({i * count // needed for i in range(needed)})


def compare(saved: Explanation, again: Explanation, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """A verdict and the greatest difference for every row of two explanations of the same rows."""
    old, new = saved.arrays["values"], again.arrays["values"]
    if old.shape != new.shape:
        return np.full(len(old), DIFFERENT, dtype="<U16"), np.full(len(old), np.inf)
    same = _same(old, new) & _same(saved.arrays["predictions"], again.arrays["predictions"])
    with np.errstate(invalid="ignore"):
        gap = np.where(np.isnan(old) & np.isnan(new), 0.0, np.abs(old - new))
        gap = np.where(np.isnan(gap), np.inf, gap)
        allowed = tolerance * np.nanmax(np.abs(old), axis=(1, 2), keepdims=True, initial=0.0)
        for one in (saved, again):
            allowed = allowed + np.nan_to_num(one.arrays.get("error", np.zeros(old.shape)), nan=0.0)
        moved = np.abs(saved.arrays["predictions"] - again.arrays["predictions"])
        size = tolerance * np.maximum(np.abs(saved.arrays["predictions"]), 1e-300)
        near = np.all(gap <= allowed, axis=(1, 2)) & np.all(
            (moved <= size) | (np.isnan(moved) & np.isnan(saved.arrays["predictions"])), axis=1
        )
    words = np.where(same, IDENTICAL, np.where(near, WITHIN, DIFFERENT)).astype("<U16")
    return words, gap.max(axis=(1, 2), initial=0.0)


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rows that are equal bit for bit; one NaN is as good as another."""
    equal = (a.view(np.int64) == b.view(np.int64)) | (np.isnan(a) & np.isnan(b))
    return equal.reshape(len(a), -1).all(axis=1)
