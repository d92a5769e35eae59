"""Model files are tried in a child that may take so much memory and time, and ends with its parent."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import model_shelf
import pytest

from texplainer.errors import InputError
from texplainer.files import models
from texplainer.files.loaders import safety

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="children are forked")
PARENT = """
import os, sys, time
from pathlib import Path
from texplainer.files.loaders import safety

def sleeping(path):
    path.with_suffix(".pid").write_text(str(os.getpid()))
    time.sleep(300)

safety.TRIAL_SECONDS["fork"] = 300
safety.try_in_child(Path(sys.argv[1]), "x", sleeping)
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
    time.sleep(30)  # the signal goes to another thread


def leaving(path: Path) -> None:
    os._exit(3)  # as a library in machine code may


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (hungry, "ask for over"),
        (sleepy, "busy for over"),
        (falling, "crash .signal 11"),
        (leaving, "end its process .exit code 3"),
    ],
)
def test_a_file_that_is_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask, words) -> None:  # fmt: skip
    (tmp_path / "model.x").write_bytes(b"x")
    monkeypatch.setattr(safety, "FREE_BYTES", 2**28)
    monkeypatch.setattr(safety, "TRIAL_SECONDS", {"fork": 1, "fresh": 0})
    monkeypatch.setattr(safety.threading, "active_count", lambda: 1)
    with pytest.raises(InputError, match=words):
        safety.try_in_child(tmp_path / "model.x", "x", ask)


@pytest.mark.parametrize("forks", [True, False])
def test_a_booster_that_claims_a_hundred_million_features_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: bool
) -> None:
    pytest.importorskip("xgboost")
    monkeypatch.setattr(safety, "_may_fork", lambda: forks)
    model_shelf.xgboost(tmp_path)
    whole = (tmp_path / "model.json").read_bytes()
    forged = re.sub(rb'"num_feature":"4"', b'"num_feature":"2147483647"', whole)
    assert forged != whole
    (tmp_path / "forged.json").write_bytes(forged)
    with pytest.raises(InputError, match="damaged"):
        models.load_model(tmp_path / "forged.json")


def run_script(folder: Path, text: str, **environment: str) -> str:
    """What a user's script prints, without a guard of its main part."""
    (folder / "script.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


AFTER_TRAINING = """
import sys, time
import lightgbm
import numpy as np
from texplainer.files import models
print("begun")
X = np.random.default_rng(0).normal(size=(3000, 5))
lightgbm.train({"num_threads": 2, "verbose": -1}, lightgbm.Dataset(X, X[:, 0]), 5)
began = time.monotonic()
models.load_model("model.txt")
print(time.monotonic() - began)
"""


def test_a_booster_is_tried_at_once_after_training_with_threads(tmp_path: Path) -> None:
    """OpenMP's threads do not come along in a fork: the child waited for them, and 5 s were lost per load."""
    pytest.importorskip("lightgbm")
    model_shelf.lightgbm(tmp_path)
    found = run_script(tmp_path, AFTER_TRAINING, OMP_NUM_THREADS="2").split()
    assert float(found[-1]) < 4


IN_A_THREAD = """
import threading
from texplainer.files import models
print("begun")
done = []
thread = threading.Thread(target=lambda: done.append(models.load_model("model.txt")))
thread.start()
thread.join()
print(len(done))
"""
IN_A_POOL = """
import multiprocessing
from texplainer.files import models
print("begun")
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(len(pool.map(type, pool.map(models.load_model, ["model.txt"]))))
"""
BESIDE_A_LARGE_TABLE = """
import numpy as np
from texplainer.files import models
print("begun")
table = np.zeros(4 * 10**8)  # 3.2 GB that nobody has touched
models.load_model("model.txt")
print(1)
"""


@pytest.mark.parametrize("script", [IN_A_THREAD, IN_A_POOL, BESIDE_A_LARGE_TABLE])
def test_a_sound_model_is_read_wherever_it_is_asked_for(tmp_path: Path, script: str) -> None:
    """A child of multiprocessing's ran the script again, was not allowed in pools; a large parent was too much."""
    pytest.importorskip("lightgbm")
    model_shelf.lightgbm(tmp_path)
    assert run_script(tmp_path, script).split() == ["begun", "1"]


def twice(path: Path) -> None:
    """Sound in a thread, a crash where the parent would load it."""
    if threading.current_thread() is threading.main_thread():
        falling(path)


def test_a_file_is_tried_as_the_parent_will_load_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a reader reads beyond its arrays is not the same in a thread: such files passed, then crashed us."""
    (tmp_path / "model.x").write_bytes(b"x")
    monkeypatch.setattr(safety.threading, "active_count", lambda: 1)
    with pytest.raises(InputError, match="crash"):
        safety.try_in_child(tmp_path / "model.x", "x", twice)
