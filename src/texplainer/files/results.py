"""Explanations in and out of files, without pickle.

The file's suffix says its format. A table (Parquet, Arrow, CSV, JSON lines) has one line per explained row
and columns such as `values/age`; an npz archive has one entry per array. Everything else (names,
settings, base values, the audit record) is the header, JSON: inside the file, or beside it as
`result.csv.json` for the formats that have no place for it. Written by plain pyarrow and numpy, readable by
them. `ResultWriter` takes an explanation in pieces; `save_explanation` is one piece.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.explanation.explanation import Explanation
from texplainer.explanation.fields import CATEGORY, FACTS, CategoryEffects, held, is_shared
from texplainer.files import audit
from texplainer.files.formats import FORMATS, ResultFormat
from texplainer.files.paths import (
    as_path,
    create,
    existing,
    first_line,
    locked,
    part_of,
    sweep_parts,
    writing,
)
from texplainer.support import hashing

FORMAT, VERSION = "texplainer-explanation", 3
KEPT_BYTES = 2**28  # a result up to this size is read once, a larger one twice
BESIDE = (".csv", ".jsonl")  # formats whose header is a file of its own


def save_explanation(explanation: Explanation, path: Any, **facts: Any) -> None:
    """Write an Explanation to a .npz, .parquet, .arrow, .feather, .csv or .jsonl file.

    `facts` go into the audit record: `model`, `data`, `background` and `configuration`, mappings of plain
    values; `key`, the path of an Ed25519 key to sign with.
    """
    with ResultWriter(path, **facts) as writer:
        writer.write(explanation)


def load_explanation(path: Any) -> Explanation:
    """Read a file of `save_explanation`; damaged or modified files and other versions are rejected."""
    header, blocks = open_result(path)
    digests: dict[str, hashing.RowDigest] = {}
    pieces, held_bytes = [], 0
    for block in blocks:  # a small file may unpack to more than the memory: only its first part is kept
        held_bytes += sum(rows.nbytes for rows in block.values())
        pieces = [*pieces, block] if held_bytes <= KEPT_BYTES else []
        for name, rows in block.items():
            digests.setdefault(name, hashing.RowDigest()).update(rows)
    changed = altered(header, {name: digest.hexdigest() for name, digest in digests.items()})
    if changed:
        raise InputError(
            f"{path} was changed after it was saved: {', '.join(changed)} differ from the recorded hashes. "
            "Recompute it, or compare row by row with: texplainer verify."
        )
    return restore(header, _joined(pieces)) if pieces else restore(*read_result(path))


def read_result(path: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read header and arrays of a file, of a format and version that is known, unchecked otherwise."""
    header, blocks = open_result(path)
    return header, _joined(list(blocks))


def _joined(pieces: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def open_result(path: Any) -> tuple[dict[str, Any], Iterator[dict[str, np.ndarray]]]:
    """Yield the header of a file and its arrays, in blocks of rows; any error becomes an InputError."""
    path = existing(path)
    blocks = _damage_named(path, result_format(path).blocks(path))
    header = next(blocks)
    check_header(path, header)
    return header, _whole(path, blocks)


def _damage_named(path: Path, blocks: Iterator[Any]) -> Iterator[Any]:
    """The blocks; an error of the library that reads them names the file."""
    try:
        yield from blocks
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{path} is not a saved explanation, or is damaged ({first_line(error)})."
        ) from error


def _whole(path: Path, blocks: Iterator[Any]) -> Iterator[Any]:
    """The blocks, each with its values, at least one."""
    empty = True
    for block in blocks:
        empty = False
        if "values" not in block:
            raise InputError(
                f"{path} does not have an array 'values', only {', '.join(block)}; it is damaged."
            )
        yield block
    if empty:
        raise InputError(f"{path} has no rows; it is damaged.")


#: what the header of a result holds, and of which type
HEADER: dict[str, type | tuple[type, ...]] = {
    **{fact.name: fact.kind for fact in FACTS},
    "base_values": (list, type(None)),
    "categories": dict,
    "frequencies": dict,
    "others": dict,
    "record": dict,
    "layout": (list, dict),
    "sha256": str,
}
RECORD = ("model", "data", "background", "configuration", "values", "software", "floats")


def check_header(path: Path, header: Any) -> None:
    """Refuse a header of another format or version, or with entries of the wrong kind."""
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"{path} is not a saved explanation: its header names another format.")
    if header.get("version") != VERSION:
        record = header.get("record")
        made = record.get("software") if isinstance(record, dict) else None
        maker = made.get("texplainer", "another") if isinstance(made, dict) else "another"
        raise InputError(
            f"{path} is of version {header.get('version')!r}, written by texplainer {maker}; this version "
            f"reads version {VERSION} only. Recompute it, or open it with the texplainer that wrote it."
        )
    wrong = [name for name, kind in HEADER.items() if not isinstance(header.get(name, ...), kind)]
    record = header.get("record")
    wrong += [name for name in RECORD if isinstance(record, dict) and not isinstance(record.get(name), dict)]
    others = header.get("others")
    wrong += [] if _well_formed(others) else ["others"]
    for names in ("feature_names", "output_names", "dropped", "units"):
        words = header.get(names)
        wrong += [names] if isinstance(words, list) and not all(isinstance(w, str) for w in words) else []
    if wrong:
        raise InputError(
            f"the header of {path} is malformed: {', '.join(wrong)} is missing or of another kind."
        )


def _well_formed(others: Any) -> bool:
    """Whether the header's entries of other attributions are facts of the right kind."""
    kinds = {fact.name: fact.kind for fact in FACTS}
    return isinstance(others, dict) and all(
        isinstance(own, dict)
        and isinstance(own.get("settings"), dict)
        and all(name in kinds and isinstance(value, kinds[name]) for name, value in own.items())
        for own in others.values()
    )


def altered(header: Mapping[str, Any], digests: Mapping[str, str]) -> list[str]:
    """The parts of a result without their recorded fingerprint; `digests` are those of its arrays."""
    recorded = header["record"]["values"]
    changed = [name for name, digest in digests.items() if recorded.get(name) != digest]
    changed += [name for name in recorded if name not in digests]
    return [*changed, *(["the header"] if audit.broken_seal(header) else [])]


def restore(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Explanation:
    """An Explanation from its header and arrays."""
    own = {name: _prefixed(arrays, name) for name in header["others"]}
    arrays = {name: array for name, array in arrays.items() if name.partition("/")[0] not in own}
    categories = {
        name: CategoryEffects(
            tuple(levels), arrays.pop(CATEGORY + name), np.array(header["frequencies"][name], dtype=float)
        )
        for name, levels in header["categories"].items()
        if CATEGORY + name in arrays
    }
    if header["base_values"] is not None:
        arrays["base_values"] = np.array(header["base_values"], dtype=float)
    if "gradient" not in arrays:  # a short format
        arrays["gradient"] = np.full(arrays["values"].shape, np.nan)
    facts = {fact.name: fact.read(header[fact.name]) for fact in FACTS}
    found = Explanation(arrays, categories=categories, **facts)
    for name, further in own.items():
        settings = {**header["others"][name]["settings"], **_known_inputs(header["settings"])}
        one = {**header, **header["others"][name], "settings": settings, "others": {}, "categories": {}}
        found = found.with_other(restore(one, {**{n: arrays[n] for n in arrays if is_shared(n)}, **further}))
    return found


def _prefixed(arrays: Mapping[str, np.ndarray], owner: str) -> dict[str, np.ndarray]:
    """The arrays of another attribution, under their own names."""
    found = {n.removeprefix(f"{owner}/"): a for n, a in arrays.items() if n.startswith(f"{owner}/")}
    if "values" not in found:
        raise InputError(f"the result has no array '{owner}/values', which its header names; it is damaged.")
    return found


def _known_inputs(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The fingerprints of model and background, which are those of every attribution."""
    return {name: value for name, value in settings.items() if name == "fingerprints"}


def result_format(path: Path) -> ResultFormat:
    """The format a suffix stands for."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path} has the suffix {path.suffix!r}; expected one of {', '.join(FORMATS)}.")
    if path.suffix.lower() != ".npz" and find_spec("pyarrow") is None:
        raise InputError(
            f"{path} needs pyarrow, which is not installed. Run: pip install 'texplainer[files]', "
            "or use a .npz file."
        )
    return FORMATS[path.suffix.lower()]


def result_format_short(path: Any) -> bool:
    """Whether a file keeps only the arrays people read."""
    return result_format(Path(path)).short


class ResultWriter:
    """Writes an explanation that arrives in blocks; the file is written atomically."""

    def __init__(
        self, path: Any, *, key: Any = None, configuration: Mapping[str, Any] | None = None, **facts: Any
    ):
        self.path = as_path(path)
        self.format = result_format(self.path)
        self._part = part_of(self.path)
        self._name_lock = self.path.with_name(f".{self.path.name}.lock")
        self._key, self._configuration, self._facts = key, configuration, facts
        self._digests: dict[str, hashing.RowDigest] = {}
        self._first: Explanation | None = None
        self._widths: dict[str, tuple[int, ...]] = {}

    def __enter__(self) -> ResultWriter:
        with writing(self.path), ExitStack() as stack:
            if self.path.is_dir():
                raise InputError(f"{self.path} is a folder; expected the name of a file.")
            self.path.parent.mkdir(parents=True, exist_ok=True)
            busy = f"another run is writing to {self.path}; wait for it or choose another file."
            stack.enter_context(locked(self._name_lock, busy))
            stack.callback(self._name_lock.unlink, missing_ok=True)
            sweep_parts(self.path.parent, re.escape(self.path.name))
            _check_sidecar(self.path)
            os.close(create(self._part))
            self._sink = self.format.open(self._part)
            self._lock = stack.pop_all()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        with self._lock:
            try:
                if kind is None:
                    with writing(self.path):
                        self._finish()
                else:
                    self._sink.abandon()
            finally:
                self._part.unlink(missing_ok=True)

    def write(self, piece: Explanation) -> None:
        """Add the rows of a further piece."""
        arrays = rows_of(piece, self.format.short)
        if self._first is None:
            self._first = piece
            self._widths = {name: array.shape[1:] for name, array in arrays.items()}
            self._digests = {name: hashing.RowDigest() for name in arrays}
        arrays = {name: fit_width(arrays[name], width) for name, width in self._widths.items()}
        for name, array in arrays.items():
            self._digests[name].update(array)
        with writing(self.path):
            self._sink.write(arrays, piece.feature_names, piece.output_names)

    def _finish(self) -> None:
        first = self._first
        if first is None:
            raise InputError("there is nothing to save: no row was explained.")
        hashes = {name: digest.hexdigest() for name, digest in self._digests.items()}
        said = describe(first, hashes)
        facts = {part: {**fingerprints(first, hashes)[part], **self._facts.get(part, {})} for part in PARTS}
        settings = {k: v for k, v in said["settings"].items() if k != "fingerprints"}
        made = audit.audit_record(self._configuration or settings, hashes, **facts)
        header = hashing.json_round_trip({"format": FORMAT, "version": VERSION, **said, "record": made})
        beside = self._sink.close(lambda layout: audit.seal({**header, "layout": layout}, self._key))
        if beside is not None:
            note = self._part.with_suffix(".json")
            note.write_bytes(beside)
            os.replace(note, sidecar(self.path))
        os.replace(self._part, self.path)


PARTS = ("model", "data", "background")


def rows_of(piece: Explanation, short: bool = False) -> dict[str, np.ndarray]:
    """The arrays of an explanation that are saved by row, or those of the formats for people."""
    arrays = piece.every_array()
    if arrays["base_values"].ndim == 1:  # the same for all rows: in the header
        del arrays["base_values"]
    if "index" in arrays:
        arrays["index"] = _plain_labels(arrays["index"])
    if short:
        return held(arrays, "short")
    return arrays | {CATEGORY + name: c.effects for name, c in piece.categories.items()}


def _plain_labels(labels: np.ndarray) -> np.ndarray:
    """Labels of rows as a file can hold them: whole numbers, or texts."""
    whole = all(isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in labels)
    return labels.astype(np.int64) if whole else np.array([str(v) for v in labels], dtype=object)


def describe(piece: Explanation, arrays: Container[str]) -> dict[str, Any]:
    """What the header says of an explanation apart from its rows; `arrays` are saved by row."""
    return {
        **_facts(piece),
        "others": {name: _differing(_facts(other), _facts(piece)) for name, other in piece.others.items()},
        "base_values": piece.arrays["base_values"].tolist() if "base_values" not in arrays else None,
        "categories": {name: list(c.levels) for name, c in piece.categories.items()},
        "frequencies": {name: c.frequencies.tolist() for name, c in piece.categories.items()},
    }


def _facts(piece: Explanation) -> dict[str, Any]:
    return {fact.name: fact.write(getattr(piece, fact.name)) for fact in FACTS}


def _differing(facts: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """What another attribution does not have in common with the first; the inputs are the same."""
    own = {name: value for name, value in facts.items() if value != known[name]}
    settings = {name: value for name, value in facts["settings"].items() if name != "fingerprints"}
    return {**own, "settings": settings}


def fingerprints(piece: Explanation, hashes: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Facts about model, data and background that an explanation contains."""
    known = {"data": hashes["data"], **piece.settings.get("fingerprints", {})}
    return {part: {"fingerprint": known[part]} if part in known else {} for part in PARTS}


def _check_sidecar(path: Path) -> None:
    """Refuse to replace a file beside the result that is not the header of one."""
    beside = sidecar(path)
    if path.suffix.lower() not in BESIDE or not beside.exists():
        return
    try:
        ours = json.loads(beside.read_bytes()).get("format") == FORMAT
    except (ValueError, AttributeError, OSError):
        ours = False
    if not ours:
        raise InputError(
            f"{beside} exists and is not the header of a result; saving would replace it. Move it, or choose "
            "another name."
        )


def sidecar(path: Path) -> Path:
    """Return the path of the separate header file, for formats without metadata."""
    return path.with_name(path.name + ".json")


def fit_width(array: np.ndarray, width: tuple[int, ...]) -> np.ndarray:
    """Pad or cut a trace to the first piece's length (Algorithm 1 stops at different times)."""
    if array.shape[1:] == width or array.ndim != 2:
        return array
    out = np.full((len(array), *width), np.nan)
    kept = min(array.shape[1], width[0])
    out[:, :kept] = array[:, :kept]
    return out


MOST_LINES = 1_048_576  # of a sheet, its head included


def write_workbook(explanation: Explanation, path: Any) -> Path:
    """Write the sheets "values" (`to_frame`) and "importance"; text is never read as a formula."""
    try:
        from openpyxl import Workbook
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE, WriteOnlyCell
    except ModuleNotFoundError as error:
        raise ImportError(
            "to_excel needs openpyxl, which is not installed. Install it with: pip install 'texplainer[excel]'"
        ) from error
    target = as_path(path)
    if target.suffix.lower() != ".xlsx":
        raise InputError(f"{target.name!r} is not an Excel file; expected a name that ends in .xlsx.")
    book = Workbook(write_only=True)
    for name, frame in (("values", explanation.to_frame()), ("importance", explanation.importance())):
        if len(frame) >= MOST_LINES:
            raise InputError(
                f"the sheet {name!r} would have {len(frame):,} lines; Excel holds {MOST_LINES:,}. "
                "Write fewer rows, such as explanation[:1000], or save a .parquet or .csv file."
            )
        sheet = book.create_sheet(name)

        def cell(value: Any, sheet: Any = sheet) -> Any:
            if isinstance(value, str):
                made = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("", value))
                made.data_type = "s"  # a text that begins with "=" would become a formula
                return made
            return None if value is None or value != value else getattr(value, "item", lambda: value)()

        sheet.append([cell(head) for head in ("label", *frame.columns)])
        for line in frame.itertuples():
            sheet.append([cell(value) for value in line])
    target.parent.mkdir(parents=True, exist_ok=True)
    book.save(target)
    return target.resolve()
