"""Real processes are killed, real disks run full: after a resume the output is that of a quiet run."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from execution_subjects import records, results, same

import texplainer as tx

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals and forked processes")

ROWS = 24 * 512 - 300
KILLS = 20


def slow_tanh(X: np.ndarray) -> np.ndarray:
    """A model that takes its time, so that there is something to interrupt."""
    time.sleep(0.002)
    return np.tanh(X).sum(axis=1)


def cells() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(ROWS, 3))


def explainer() -> tx.TExplainer:
    return tx.TExplainer(slow_tanh, cells()[:40], step=1e-3)


def drive(destination: Path, on: str = "serial") -> None:
    tx.run(explainer(), cells(), destination, shard_rows=512, on=on, workers=2)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory) -> Path:
    """The folder of a run nobody disturbed."""
    folder = tmp_path_factory.mktemp("quiet")
    drive(folder)
    return folder


@pytest.fixture(scope="module")
def fork():
    """Start a driver in a process of its own, quickly: forked from one that has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["test_execution_faults"])

    def start(*arguments):
        process = context.Process(target=drive, args=arguments)
        process.start()
        return process

    process = start(Path(os.devnull))  # the first one is slow, and fails at once
    process.join()
    return start


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("part-*.parquet")}


def test_a_driver_killed_at_any_moment_loses_nothing(fork, quiet, tmp_path):
    moments = np.random.default_rng(1).uniform(0.0, 0.6, size=KILLS)
    progress = []
    for moment in moments:
        process = fork(tmp_path)
        process.join(moment)
        if process.exitcode is None:
            process.kill()
            process.join()
        assert process.exitcode in (0, -signal.SIGKILL)  # it may end by itself just before it is killed
        progress.append(len(bytes_of(tmp_path)))
        whole = bytes_of(quiet)
        assert all(whole[name] == data for name, data in bytes_of(tmp_path).items())  # whole or not at all
    assert progress == sorted(progress)
    drive(tmp_path)
    assert bytes_of(tmp_path) == bytes_of(quiet)
    assert same(results(tmp_path), results(quiet))
    assert {r.sha256 for r in records(tmp_path)} == {r.sha256 for r in records(quiet)}
    assert not list(tmp_path.glob(".*.part"))


def test_processes_whose_driver_is_killed_do_no_harm(fork, quiet, tmp_path):
    process = fork(tmp_path, "processes")
    deadline = time.monotonic() + 120
    while not bytes_of(tmp_path) and process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    drive(tmp_path)  # at once: workers of the killed driver may still be writing
    assert bytes_of(tmp_path) == bytes_of(quiet)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with 300 kB of space."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)]
    if os.name != "posix" or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_ends_the_run_and_space_lets_it_go_on(small_disk, quiet, tmp_path):
    np_source = tmp_path / "rows.parquet"
    import pandas as pd

    pd.DataFrame(cells(), columns=["x0", "x1", "x2"]).to_parquet(np_source, index=False)
    report = tx.run(explainer(), np_source, small_disk, shard_rows=512)
    assert report.code == 1 and "No space left" in report.stopped and 0 < report.explained < ROWS
    assert "run again" in str(report)
    done = bytes_of(small_disk)
    assert all(bytes_of_table(small_disk / n) == bytes_of_table(quiet / n) for n in done)
    assert not list(small_disk.glob(".*.part"))
    again = tx.run(explainer(), np_source, small_disk)
    assert again.code == 1 and again.kept >= len(done) - 1
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    last = tx.run(explainer(), np_source, small_disk)
    assert last.ok and last.kept >= len(done) - 1
    assert same(results(small_disk), results(quiet))


def bytes_of_table(path: Path) -> str:
    import pyarrow.parquet as pq

    from texplainer.files.sources import digest_rows

    return digest_rows(pq.read_table(path).replace_schema_metadata(None))
