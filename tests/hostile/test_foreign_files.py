"""What is not ours is not removed, not overwritten and not followed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import texplainer as tx
from texplainer.errors import InputError
from texplainer.execution import manifest
from texplainer.files import audit
from texplainer.files.paths import create, part_of, put_whole, sweep_parts

pytest.importorskip("pyarrow")
X = np.random.default_rng(0).normal(size=(1500, 3))


def explainer() -> tx.TExplainer:
    return tx.TExplainer(lambda rows: rows[:, 0] * rows[:, 1], X[:100])


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


SPARK = (
    "part-00000-5a1c.snappy.parquet",
    "part-00000007.parquet",
    "_SUCCESS",
    ".part-00000.crc",
    ".mine.part",
)


def test_restart_does_not_touch_a_folder_of_spark(tmp_path: Path) -> None:
    for name in SPARK:
        (tmp_path / name).write_bytes(b"theirs")
    with pytest.raises(InputError, match="not from a run of texplainer; nothing was removed"):
        tx.run(explainer(), X, tmp_path, restart=True)
    assert names(tmp_path) - {manifest.LOCK} == set(SPARK)


def test_restart_removes_what_the_manifest_names_and_nothing_else(tmp_path: Path) -> None:
    tx.run(explainer(), X, tmp_path, shard_rows=512)
    (tmp_path / "part-00000099.parquet").write_bytes(b"theirs")
    before = names(tmp_path)
    with pytest.raises(InputError, match=r"holds part-00000099\.parquet, which its manifest does not name"):
        tx.run(explainer(), X, tmp_path, restart=True)
    assert names(tmp_path) == before
    (tmp_path / "part-00000099.parquet").unlink()
    (tmp_path / ".notes.part").write_bytes(b"theirs")
    assert tx.run(explainer(), X[:600], tmp_path, restart=True, shard_rows=1024).ok
    assert names(tmp_path) - {"_input"} == {
        "part-00000000.parquet",
        manifest.FILE,
        manifest.LOCK,
        ".notes.part",
    }


def test_a_shard_written_before_its_record_is_the_runs_own(tmp_path: Path) -> None:
    tx.run(explainer(), X, tmp_path, shard_rows=512)
    path = tmp_path / manifest.FILE
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0])  # as if the run had been killed before the first record
    assert tx.run(explainer(), X, tmp_path, restart=True, shard_rows=512).ok


def _plan(header: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**header, "plan": {**header["plan"], **changes}}


FORGERIES = {
    "another plan": lambda h: _plan(h, rows=564),
    "no plan": lambda h: {k: v for k, v in h.items() if k != "plan"},
    "no fingerprint": lambda h: {k: v for k, v in h.items() if k != "fingerprint"},
    "sealed, no block": lambda h: audit.seal({**h, "plan": {"rows": 1500, "shard_rows": 512}}),
    "sealed, empty shards": lambda h: audit.seal(_plan(h, shard_rows=0)),
    "sealed, negative shards": lambda h: audit.seal(_plan(h, shard_rows=-512)),
    "sealed, other rows": lambda h: audit.seal(_plan(h, rows=564)),
    "sealed, odd shards": lambda h: audit.seal(_plan(h, shard_rows=100)),
    "sealed, text": lambda h: audit.seal(_plan(h, block="512")),
    "sealed, a list": lambda h: audit.seal({**h, "plan": [512]}),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_changed_manifest_is_not_resumed(name: str, tmp_path: Path) -> None:
    tx.run(explainer(), X, tmp_path, shard_rows=512)
    path = tmp_path / manifest.FILE
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(json.dumps(FORGERIES[name](json.loads(first))).encode() + b"\n" + b"".join(rest))
    with pytest.raises(InputError, match=r"was changed after it was written|planned rows .* changed"):
        tx.run(explainer(), X, tmp_path)


def test_parts_are_new_files_with_names_nobody_can_guess(tmp_path: Path) -> None:
    assert len({part_of(tmp_path / "r.npz") for _ in range(50)}) == 50
    victim, part = tmp_path / "victim", part_of(tmp_path / "r.npz")
    victim.write_bytes(b"theirs")
    part.symlink_to(victim)
    with pytest.raises(FileExistsError):
        create(part)
    assert victim.read_bytes() == b"theirs"


def test_the_part_of_a_living_writer_is_not_swept(tmp_path: Path) -> None:
    dead, alive, other = (part_of(tmp_path / name) for name in ("a.npz", "a.npz", "b.npz"))
    os.close(create(dead))
    os.close(create(other))
    held = create(alive)
    sweep_parts(tmp_path, r"a\.npz")
    assert names(tmp_path) == {alive.name, other.name}
    os.close(held)
    sweep_parts(tmp_path, r"a\.npz")
    assert names(tmp_path) == {other.name}


def test_a_lock_that_is_a_symlink_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"theirs")
    (tmp_path / ".r.npz.lock").symlink_to(victim)
    with pytest.raises(InputError, match="symbolic link"):
        explainer()(X[:2]).save(tmp_path / "r.npz")
    assert victim.read_bytes() == b"theirs" and not (tmp_path / "r.npz").exists()


@pytest.mark.parametrize("content", [b'{"mine": 1}', b"[1]", b"not JSON"])
def test_an_unrelated_file_with_the_headers_name_is_kept(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "r.csv.json").write_bytes(content)
    found = explainer()(X[:2])
    with pytest.raises(InputError, match=r"r\.csv\.json exists and is not the header of a result"):
        found.save(tmp_path / "r.csv")
    assert names(tmp_path) == {"r.csv.json"} and (tmp_path / "r.csv.json").read_bytes() == content
    (tmp_path / "r.csv.json").unlink()
    found.save(tmp_path / "r.csv")
    found.save(tmp_path / "r.csv")  # its own header may be replaced
    assert names(tmp_path) == {"r.csv", "r.csv.json"}


def test_put_whole_leaves_one_file(tmp_path: Path) -> None:
    put_whole(tmp_path / "a", b"1")
    put_whole(tmp_path / "a", b"2")
    assert names(tmp_path) == {"a"} and (tmp_path / "a").read_bytes() == b"2"


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM")
def test_sigterm_leaves_no_partial_file(tmp_path: Path) -> None:
    (tmp_path / "slow_model.py").write_text(
        "import time\ndef predict(rows):\n    time.sleep(0.05)\n    return rows['a'] * rows['b']\n"
    )
    (tmp_path / "data.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in X[:, :2]))
    words = [sys.executable, "-m", "texplainer", "explain", "slow_model:predict", "data.csv", "-o", "r.csv"]
    path = os.pathsep.join([*sys.path, str(tmp_path)])
    child = subprocess.Popen(
        words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".r.csv.*.part")) and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGTERM)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 143, said
    assert not list(tmp_path.glob(".r.csv*")) and not (tmp_path / "r.csv").exists()


@pytest.mark.parametrize("arguments", [{"retries": -1}, {"retries": 0.5}, {"workers": -3}, {"workers": 0}])
def test_a_run_of_impossible_numbers_is_refused(arguments: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=next(iter(arguments))):
        tx.run(explainer(), X, tmp_path / "out", **arguments)
