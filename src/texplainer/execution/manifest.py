"""The run's memory: a header line, then one line a shard, appended as they finish.

The header holds fingerprint and plan and is written whole; a line torn by a crash is skipped. On resume the
manifest is written anew with the shards that were found sound. The last line of a run sums it up.
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

from texplainer.errors import InputError
from texplainer.execution import shards
from texplainer.execution.worker import ShardRecord
from texplainer.files import audit
from texplainer.files.paths import locked, put_whole
from texplainer.support import hashing

FILE = "_manifest.jsonl"
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
        with contextlib.suppress(TypeError):  # the summing-up line is no record
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
            return path.stat().st_size == record.bytes and shards.digest_file(path) == record.sha256
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
    for name in (*ours, FILE, "_signature.json"):
        (folder / name).unlink(missing_ok=True)


def _run_name(header: Mapping[str, Any]) -> str:
    """The name of a run that its shards carry."""
    return shards.bytes_digest(repr(header.get("fingerprint")).encode())[:16]


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
            f"{folder / FILE} was changed after it was written: its checksum or its plan does not hold. Choose "
            "another destination, or restart (restart=True, --restart) to begin anew."
        )


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock the folder against a second run; the lock ends with the process."""
    busy = f"another run is writing to {folder}; wait for it or choose another folder."
    with locked(folder / LOCK, busy):
        yield
