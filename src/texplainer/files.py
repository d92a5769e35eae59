"""Explanations in and out of files, without pickle.

The file's suffix says its format. A table (Parquet, Arrow, CSV, JSON lines) has one line per explained
row and columns such as `values/age`; an npz archive has one entry per array. Everything that is no
row (names, settings, base values, the audit record) is the header, JSON: inside the file, or beside
it as `result.csv.json` for the formats that have no place for it. Written by plain pyarrow and numpy,
readable by them. `Writer` takes an explanation in pieces; `save` is one piece.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from texplainer import audit, fingerprints
from texplainer.errors import InputError
from texplainer.explanation import CategoryEffects, Explanation
from texplainer.model_files import existing, first_line
from texplainer.result_formats import FORMATS, Format

FORMAT, VERSION = "texplainer-explanation", 1
#: arrays kept by the formats for people; the others keep all
SHORT = ("predictions", "base_values", "predicted_class", "verdict", "reason", "values", "error", "data")


def save(explanation: Explanation, path: Any, **facts: Any) -> None:
    """Write an Explanation to a .npz, .parquet, .arrow, .feather, .csv or .jsonl file.

    `facts` go into the audit record: `model`, `data`, `background` and `configuration`, mappings of
    plain values; `key`, the path of an Ed25519 key to sign with.
    """
    with Writer(path, **facts) as writer:
        writer.write(explanation)


def load(path: Any) -> Explanation:
    """Read what `save` wrote; a damaged, changed or newer file is refused with a word."""
    header, arrays = read(path)
    changed = altered(header, arrays)
    if changed:
        raise InputError(
            f"{path} was changed after it was saved: {', '.join(changed)} differ from the recorded "
            "fingerprints. Compute it again, or compare row by row with: texplainer verify."
        )
    return restore(header, arrays)


def read(path: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read header and arrays of a file, of a format and version that is known, unchecked otherwise."""
    path = existing(path)
    try:
        header, arrays = format_of(path).read(path)
        if not isinstance(header, dict):
            raise ValueError("its header is no object")
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} is no saved explanation, or is damaged ({first_line(error)}).") from error
    version = header.get("version", 0)
    if header.get("format") != FORMAT or not isinstance(version, int) or version > VERSION:
        raise InputError(
            f"{path} has format {header.get('format')!r} version {version}; this texplainer reads "
            f"{FORMAT!r} up to version {VERSION}. Upgrade texplainer to open it."
        )
    return header, arrays


def altered(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> list[str]:
    """The parts of a result that do not have their recorded fingerprint."""
    recorded = header.get("record", {}).get("values", {})
    changed = [n for n, array in arrays.items() if recorded.get(n) != fingerprints.of_array(array)]
    changed += [name for name in recorded if name not in arrays]
    return [*changed, *(["the header"] if audit.broken_seal(header) else [])]


def restore(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Explanation:
    """An Explanation from its header and arrays."""
    arrays = dict(arrays)
    categories = {
        name: CategoryEffects(
            tuple(levels), arrays.pop(f"category/{name}"), np.array(header["frequencies"][name], dtype=float)
        )
        for name, levels in header["categories"].items()
        if f"category/{name}" in arrays
    }
    if header["base_values"] is not None:
        arrays["base_values"] = np.array(header["base_values"], dtype=float)
    if "gradient" not in arrays:  # a short format
        arrays["gradient"] = np.full(arrays["values"].shape, np.nan)
    return Explanation(
        arrays,
        tuple(header["feature_names"]),
        tuple(header["output_names"]),
        header["scale"],
        header["attribution"],
        header["engine"],
        header["settings"],
        categories,
        frozenset(header["dropped"]),
    )


def format_of(path: Path) -> Format:
    """The format a suffix stands for."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path} has the suffix {path.suffix!r}; expected one of {', '.join(FORMATS)}.")
    return FORMATS[path.suffix.lower()]


class Writer:
    """Writes an explanation that arrives in pieces; the file is there whole or not at all."""

    def __init__(
        self, path: Any, *, key: Any = None, configuration: Mapping[str, Any] | None = None, **facts: Any
    ):
        self.path = Path(path)
        self.format = format_of(self.path)
        self._part = self.path.with_name(f".{self.path.name}.part")
        self._key, self._configuration, self._facts = key, configuration, facts
        self._digests: dict[str, fingerprints.RowDigest] = {}
        self._first: Explanation | None = None
        self._widths: dict[str, tuple[int, ...]] = {}

    def __enter__(self) -> Writer:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._sink = self.format.open(self._part)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self._finish()
            else:
                self._sink.abandon()
        finally:
            self._part.unlink(missing_ok=True)

    def write(self, piece: Explanation) -> None:
        """Add the rows of a further piece."""
        arrays = self._rows_of(piece)
        if self._first is None:
            self._first = piece
            self._widths = {name: array.shape[1:] for name, array in arrays.items()}
            self._digests = {name: fingerprints.RowDigest() for name in arrays}
        arrays = {name: _fit(arrays[name], width) for name, width in self._widths.items()}
        for name, array in arrays.items():
            self._digests[name].update(array)
        self._sink.write(arrays, piece.feature_names, piece.output_names)

    def _rows_of(self, piece: Explanation) -> dict[str, np.ndarray]:
        arrays = dict(piece.arrays)
        if arrays["base_values"].ndim == 1:  # the same for all rows: in the header
            del arrays["base_values"]
        if self.format.short:
            return {name: arrays[name] for name in SHORT if name in arrays}
        return arrays | {f"category/{name}": c.effects for name, c in piece.categories.items()}

    def _finish(self) -> None:
        first = self._first
        if first is None:
            raise InputError("there is nothing to save: no row was explained.")
        hashes = {name: digest.hexdigest() for name, digest in self._digests.items()}
        # the same explanation gives the same file, however long it took
        settings = {k: v for k, v in first.settings.items() if k != "seconds"}
        found = dict(settings.get("fingerprints", {}))
        facts = {"data": {"fingerprint": hashes["data"]}, **{k: {"fingerprint": v} for k, v in found.items()}}
        header = {
            "format": FORMAT,
            "version": VERSION,
            "feature_names": list(first.feature_names),
            "output_names": list(first.output_names),
            "base_values": first.arrays["base_values"].tolist() if "base_values" not in hashes else None,
            "scale": first.scale,
            "attribution": first.attribution,
            "engine": first.engine,
            "settings": settings,
            "dropped": sorted(first.dropped),
            "categories": {name: list(c.levels) for name, c in first.categories.items()},
            "frequencies": {name: c.frequencies.tolist() for name, c in first.categories.items()},
            "record": audit.record(
                self._configuration or {k: v for k, v in settings.items() if k != "fingerprints"},
                hashes,
                **{
                    part: {**facts.get(part, {}), **self._facts.get(part, {})}
                    for part in ("model", "data", "background")
                },
            ),
        }
        header = fingerprints.json_round_trip(header)
        beside = self._sink.close(lambda layout: audit.seal({**header, "layout": layout}, self._key))
        if beside is not None:
            note = self._part.with_suffix(".json")
            note.write_bytes(beside)
            os.replace(note, sidecar(self.path))
        os.replace(self._part, self.path)


def sidecar(path: Path) -> Path:
    """Where the header of a format without a place for it lies."""
    return path.with_name(path.name + ".json")


def _fit(array: np.ndarray, width: tuple[int, ...]) -> np.ndarray:
    """Pad or cut a trace to the first piece's length (Algorithm 1 stops at different times)."""
    if array.shape[1:] == width or array.ndim != 2:
        return array
    out = np.full((len(array), *width), np.nan)
    kept = min(array.shape[1], width[0])
    out[:, :kept] = array[:, :kept]
    return out
