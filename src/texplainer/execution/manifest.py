"""The record of a run: a header line, then one line per shard, appended as they finish.

The header holds fingerprint and plan and is written whole; a line torn by a crash is skipped. On resume the
manifest is written anew with the shards that were found sound. The last line of a run is its summary.

The fingerprint says what a run depends on. A model of a known library is identified by its content; a function by
its name and by what it predicts for the background, for its code cannot be compared. Data is identified by names,
sizes and dates of its files; where these do not tell (a frame in memory, a touched file), the rows of every
finished shard are compared.

A finished folder can be signed: one signature of the header and of every shard's record, which holds the hash of
the shard's file, so that no byte of the folder can change unnoticed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from joblib.hashing import NumpyHasher

from texplainer import __version__
from texplainer.errors import InputError
from texplainer.execution import plan
from texplainer.execution.plan import bytes_digest
from texplainer.execution.worker import ShardRecord
from texplainer.explainer import TExplainer
from texplainer.files import audit
from texplainer.files.paths import locked, put_whole
from texplainer.files.sources import ParquetRows
from texplainer.models.libraries import library_called
from texplainer.support import hashing

FILE = "_manifest.jsonl"
SIGNATURE = "_signature.json"
LOCK = "_lock"
FORMAT, VERSION = "texplainer-run", 2
SHARD = re.compile(r"part-\d{8}\.parquet")
PARTS = r"part-\d{8}\.parquet|_manifest\.jsonl|_signature\.json"  # what a run writes
PLAN = ("rows", "block", "shard_rows", "batch_rows")


def begin(folder: Path, header: Mapping[str, Any], records: Iterable[ShardRecord] = ()) -> None:
    """Write a new manifest, with the records of shards that are already there."""
    sealed = audit.seal(hashing.json_round_trip({"format": FORMAT, "version": VERSION, **header}))
    lines = [sealed, *(asdict(r) for r in records)]
    put_whole(folder / FILE, "".join(json.dumps(line) + "\n" for line in lines).encode())


def append(folder: Path, line: Mapping[str, Any]) -> None:
    """Add one line and flush it to the disk."""
    with (folder / FILE).open("ab") as file:
        file.write((json.dumps(line) + "\n").encode())
        file.flush()
        os.fsync(file.fileno())


def read_manifest(folder: Path) -> tuple[dict[str, Any], list[ShardRecord]] | None:
    """(header, the last record of every shard), or None if there is no manifest."""
    path = folder / FILE
    if not path.exists():
        if any(folder.glob("part-*.parquet")):
            raise InputError(
                f"{folder} holds part-*.parquet but not {FILE}; choose another destination, or restart."
            )
        return None
    lines = list(_lines(path))
    header = lines[0] if lines else {}
    if header.get("format") != FORMAT or header.get("version") != VERSION:
        raise InputError(
            f"{path} is damaged, or of another program or version (expected {FORMAT} version {VERSION}); "
            "restart the run."
        )
    found: dict[int, ShardRecord] = {}
    for line in lines[1:]:
        with contextlib.suppress(TypeError):  # the last line is not a record
            record = ShardRecord(**line)
            found[record.index] = record
    return header, list(found.values())


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for i, line in enumerate(path.read_bytes().splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if isinstance(found, dict):
            yield found
        elif i == 0:
            return


def sound(folder: Path, records: Iterable[ShardRecord]) -> list[ShardRecord]:
    """The records whose file is there and unharmed."""

    def whole(record: ShardRecord) -> bool:
        path = folder / record.file
        try:
            return path.stat().st_size == record.bytes and plan.digest_file(path) == record.sha256
        except OSError:
            return False

    done = [record for record in records if not record.error]
    with ThreadPoolExecutor() as pool:
        return [record for record, good in zip(done, pool.map(whole, done), strict=True) if good]


def clear(folder: Path) -> None:
    """Remove the files of a former run that its manifest names; a folder without one is not touched."""
    path, strangers = folder / FILE, {p.name for p in folder.glob("part-*.parquet")}
    lines = list(_lines(path)) if path.is_file() and not path.is_symlink() else []
    if not lines or lines[0].get("format") != FORMAT:
        if strangers or path.exists():
            raise InputError(
                f"{folder} holds {'a file ' + FILE if path.exists() else 'part-*.parquet'} that is not from a "
                "run of texplainer; nothing was removed. Choose another destination, or empty the folder "
                "yourself."
            )
        return
    run = _run_name(lines[0])
    named = {str(line.get("file")) for line in lines[1:]}
    ours = [n for n in strangers if SHARD.fullmatch(n) and (n in named or _is_of_run(folder / n, run))]
    if strangers - set(ours):
        raise InputError(
            f"{folder} holds {min(strangers - set(ours))}, which its manifest does not name; nothing was "
            "removed. Choose another destination, or move this file away."
        )
    for name in (*ours, FILE, SIGNATURE):
        (folder / name).unlink(missing_ok=True)


def _run_name(header: Mapping[str, Any]) -> str:
    """The name of a run that its shards carry."""
    return bytes_digest(repr(header.get("fingerprint")).encode())[:16]


def _is_of_run(path: Path, run: str) -> bool:
    """Whether a shard was written by this run and killed before the manifest named it."""
    from pyarrow import ArrowException, parquet

    try:
        metadata = parquet.read_metadata(path).metadata or {}
    except (ArrowException, OSError):
        return False
    return metadata.get(b"texplainer.run", b"").decode(errors="replace") == run


def check_plan(folder: Path, header: Mapping[str, Any]) -> None:
    """Refuse to go on with a manifest that was changed after it was written, or cannot be a run's."""
    planned = header.get("plan")
    known = isinstance(planned, dict) and isinstance(header.get("fingerprint"), dict)
    sizes = [planned.get(name) for name in PLAN] if isinstance(planned, dict) else []
    whole = known and all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in sizes)
    if audit.broken_seal(header) or not whole or planned["shard_rows"] % planned["block"]:  # type: ignore[index]
        raise InputError(
            f"{folder / FILE} was changed after it was written: its checksum or its plan does not match. Choose "
            "another destination, or restart (restart=True, --restart) to begin anew."
        )


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock the folder against a second run; the lock ends with the process."""
    busy = f"another run is writing to {folder}; wait for it or choose another folder."
    with locked(folder / LOCK, busy):
        yield


PROBE_ROWS = 1000
IGNORED = {"model", "background", "batch_rows"}  # digested apart, or part of the plan


def run_fingerprint(explainer: TExplainer, source: ParquetRows) -> dict[str, Any]:
    """The fingerprint of a run."""
    settings = {k: plain_setting(v) for k, v in explainer.arguments.items() if k not in IGNORED}
    return {
        "texplainer": __version__,
        "model": model_digest(explainer),
        "background": bytes_digest(np.ascontiguousarray(explainer.background.rows).tobytes()),
        "engine": explainer.engine.name,
        "settings": settings,
        "data": source.identity(),
    }


def model_digest(explainer: TExplainer) -> str:
    """A digest of the model: its type and its content, or its behaviour where content cannot be had."""
    predictor = explainer.predictor
    model, shown = predictor.model, library_called(predictor.kind).content
    name = f"{type(model).__module__}.{getattr(model, '__qualname__', type(model).__qualname__)}"
    try:
        content = None if shown is None else content_digest(shown(model))
    except Exception:
        content = None
    if content is None:
        rows = explainer.background.rows[:PROBE_ROWS]
        content = bytes_digest(np.ascontiguousarray(predictor.everything(rows)).tobytes())
    return bytes_digest(f"{name} {content}".encode())


class _Hasher(NumpyHasher):
    """That of joblib without what two loads of one file differ in.

    These are random generators (a fitted model uses none, and not every file keeps them) and the bytes between
    the fields of structured arrays, such as the nodes of a tree.
    """

    def save(self, obj: Any) -> None:
        if isinstance(obj, GENERATORS):
            obj = type(obj).__name__
        elif isinstance(obj, np.ndarray) and obj.dtype.names:
            obj = {name: np.ascontiguousarray(obj[name]) for name in obj.dtype.names}
        super().save(obj)


GENERATORS = (np.random.RandomState, np.random.Generator)


def content_digest(model: Any) -> str:
    """A digest of all parts of a model, the same in every process and for every time it is loaded."""
    return str(_Hasher(hash_name="md5").hash(model))


def plain_setting(value: Any) -> Any:
    """A setting as JSON can hold it; large ones as a digest."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    try:
        return f"{type(value).__name__} {joblib.hash(value)}"
    except Exception:
        return type(value).__name__


def differing_fingerprints(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Describe the differences between two runs; file dates are ignored."""
    words = [f"the {key}" for key in ("model", "background") if old[key] != new[key]]
    words += [f"{key} ({old[key]} -> {new[key]})" for key in ("texplainer", "engine") if old[key] != new[key]]
    before, after = old["settings"], new["settings"]
    words += [
        f"{key}= ({before.get(key)!r} -> {after.get(key)!r})"
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    ]
    return words + _data_changes(old["data"], new["data"])


def _data_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    words = [
        f"the data's {key} ({_short(old[key])} -> {_short(new[key])})"
        for key in ("rows", "columns")
        if old[key] != new[key]
    ]
    before, after = old.get("files"), new.get("files")
    if before is not None and after is not None:
        if list(before) != list(after):
            words.append(f"the data's files ({_short(list(before))} -> {_short(list(after))})")
        words += [
            f"the file {name} ({before[name][0]} -> {after[name][0]} bytes)"
            for name in before
            if name in after and before[name][0] != after[name][0]
        ]
    return words


def same_dates(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether the data's files are untouched since."""
    files = old["data"].get("files")
    return files is not None and files == new["data"].get("files")


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def sign_folder(folder: Path, key: Any) -> None:
    """Sign a finished run with the private key (PEM) at a path."""
    found = read_manifest(folder)
    if found is None:
        raise InputError(f"{folder} does not contain a run to sign.")
    put_whole(folder / SIGNATURE, json.dumps(audit.sign(_content(*found), Path(key))).encode())


def check_folder(
    folder: Path, header: Mapping[str, Any], records: Iterable[ShardRecord], key: Any = None
) -> tuple[bool, str]:
    """Return whether a folder's signature is valid, with a message; `key` is the public key's path."""
    content = {"sha256": _content(header, records)}
    if not (folder / SIGNATURE).exists():
        return audit.check_signature(content, key)
    try:
        found = json.loads((folder / SIGNATURE).read_bytes())
    except ValueError:
        found = {}
    return audit.check_signature({**content, "signature": found}, key)


def _content(header: Mapping[str, Any], records: Iterable[ShardRecord]) -> str:
    """One fingerprint of all the manifest says."""
    lines = [asdict(record) for record in sorted(records, key=lambda r: r.index) if not record.error]
    return hashing.of_facts({"header": dict(header), "shards": lines})
