"""Who vouches for a folder of shards: one signature of the manifest's header and of every shard's record.

A record holds the fingerprint of its shard's file, so that no byte of the folder can change under the
signature. It is made when the last shard is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from texplainer.errors import InputError
from texplainer.execution import manifest
from texplainer.execution.worker import ShardRecord
from texplainer.files import audit
from texplainer.files.paths import put_whole
from texplainer.support import hashing

FILE = "_signature.json"


def sign_folder(folder: Path, key: Any) -> None:
    """Sign a finished run with the private key (PEM) at a path."""
    found = manifest.read_manifest(folder)
    if found is None:
        raise InputError(f"{folder} does not contain a run to sign.")
    put_whole(folder / FILE, json.dumps(audit.sign(_content(*found), Path(key))).encode())


def check_folder(
    folder: Path, header: Mapping[str, Any], records: Iterable[ShardRecord], key: Any = None
) -> tuple[bool, str]:
    """Return whether a folder's signature is valid, with a message; `key` is the public key's path."""
    content = {"sha256": _content(header, records)}
    if not (folder / FILE).exists():
        return audit.check_signature(content, key)
    try:
        found = json.loads((folder / FILE).read_bytes())
    except ValueError:
        found = {}
    return audit.check_signature({**content, "signature": found}, key)


def _content(header: Mapping[str, Any], records: Iterable[ShardRecord]) -> str:
    """One fingerprint of all the manifest says."""
    lines = [asdict(record) for record in sorted(records, key=lambda r: r.index) if not record.error]
    return hashing.of_facts({"header": dict(header), "shards": lines})
