"""Model files are tried in a child that may take so much memory and time, and ends with its parent."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import model_shelf
import pytest

from texplainer.errors import InputError
from texplainer.files import models
from texplainer.files.loaders import trial

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="children are forked")
PARENT = """
import os, sys, time
from pathlib import Path
from texplainer.files.loaders import trial

def sleeping(path):
    path.with_suffix(".pid").write_text(str(os.getpid()))
    time.sleep(300)

trial.TRIAL_SECONDS["fork"] = 300
trial.try_in_child(Path(sys.argv[1]), "x", sleeping)
"""


def alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="processes are watched in /proc")
def test_the_child_ends_with_its_parent(tmp_path: Path) -> None:
    (tmp_path / "model.x").write_bytes(b"x")
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path / "model.x")])
    note, end = tmp_path / "model.pid", time.monotonic() + 60
    while not (note.exists() and note.read_text()) and time.monotonic() < end:
        time.sleep(0.05)
    child = int(note.read_text())
    assert alive(child)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    end = time.monotonic() + 20
    while alive(child) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(child)


def hungry(path: Path) -> None:
    bytearray(2**29)


def sleepy(path: Path) -> None:
    time.sleep(60)


def falling(path: Path) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.parametrize(
    ("ask", "words"), [(hungry, "ask for over"), (sleepy, "busy for over"), (falling, "crash .signal 11")]
)
def test_a_file_that_is_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask, words) -> None:  # fmt: skip
    (tmp_path / "model.x").write_bytes(b"x")
    monkeypatch.setattr(trial, "FREE_BYTES", 2**28 + _used())
    monkeypatch.setattr(trial, "TRIAL_SECONDS", {"fork": 1, "spawn": 0})
    monkeypatch.setattr(trial.threading, "active_count", lambda: 1)
    with pytest.raises(InputError, match=words):
        trial.try_in_child(tmp_path / "model.x", "x", ask)


def _used() -> int:
    """What the limit counts already: this process's own data."""
    found = re.search(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 2**30


def test_a_booster_that_claims_a_hundred_million_features_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("xgboost")
    model_shelf.xgboost(tmp_path)
    whole = (tmp_path / "model.json").read_bytes()
    forged = re.sub(rb'"num_feature":"4"', b'"num_feature":"2147483647"', whole)
    assert forged != whole
    (tmp_path / "forged.json").write_bytes(forged)
    with pytest.raises(InputError, match="damaged"):
        models.load_model(tmp_path / "forged.json")
