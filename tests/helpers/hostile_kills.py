"""Runs into a folder and into a file, killed at random moments: what is there is whole, nothing is lost.

A module of its own, so that workers of any backend find the model in it by name.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import texplainer as tx
from texplainer.files import results

PLACES = {
    "serial": 35,
    "file": 25,
    "processes": 25,
    "dask": 15,
}  # of a hundred kills; a cluster starts slowly
SHARD, SHARDS = 512, 8
TRIES = 6  # starts for a kill: some runs are done before it comes
PATIENCE = 120.0  # seconds after which a run hangs


def slow(X: np.ndarray) -> np.ndarray:
    """A model that takes its time, so that there is something to interrupt."""
    time.sleep(0.002)
    return np.tanh(X).sum(axis=1)


def kill_runs(
    folder: Path, count: int, seed: int, places: Mapping[str, int] = PLACES
) -> dict[str, dict[str, int]]:
    """Kill runs at random moments, by place; in the end all is as if nobody had disturbed.

    *lost* counts files that are missing after the last run, *twice* those that ever differ from an undisturbed
    run's, *failed* runs that ended in an error, *hung* runs that did not end.
    """
    random = np.random.default_rng(seed)
    every = sum(places.values())
    return {
        on: dict(_killed_on(folder, on, max(1, round(count * share / every)), random))
        for on, share in places.items()
        if count
    }


def _killed_on(folder: Path, on: str, count: int, random: np.random.Generator) -> Counter[str]:
    counts: Counter[str] = Counter(killed=0, finished=0, lost=0, twice=0)
    quiet, target = folder / f"quiet-{on}", folder / f"killed-{on}"
    quiet.mkdir()
    _end(_start(quiet, on), PATIENCE)
    whole = _bytes_of(quiet)
    longest = _seconds(folder / f"timed-{on}", on)
    for _ in range(TRIES * count):
        if counts["killed"] == count:
            break
        target.mkdir(exist_ok=True)
        began = time.monotonic()
        word = _end(_start(target, on), float(random.uniform(0.0, longest)))
        counts[word] += 1
        counts["twice"] += _differing(target, whole)
        if word == "finished":  # the next one has all to do again, in no more time
            longest = min(longest, time.monotonic() - began)
            counts["lost"] += len(whole.keys() - _bytes_of(target).keys())
            shutil.rmtree(target)
    target.mkdir(exist_ok=True)
    last = _end(_start(target, on), PATIENCE)
    counts["hung" if last == "killed" else last] += 1
    counts["lost"] += len(whole.keys() - _bytes_of(target).keys())
    counts["twice"] += _differing(target, whole)
    return counts


def _seconds(destination: Path, on: str) -> float:
    """How long a run takes once everything is warm."""
    destination.mkdir()
    began = time.monotonic()
    _end(_start(destination, on), PATIENCE)
    return time.monotonic() - began


def drive(destination: Path, on: str) -> None:
    """One run into a folder, or into one file, in pieces."""
    warnings.simplefilter("ignore")
    rows = np.random.default_rng(0).normal(size=(SHARD * SHARDS - 100, 3))
    explainer = tx.TExplainer(slow, rows[:40], step=1e-3)
    if on != "file":
        tx.run(explainer, rows, destination, shard_rows=SHARD, on=on, workers=2, progress=False)
        return
    with results.ResultWriter(destination / "result.parquet") as writer:
        for start in range(0, len(rows), SHARD):
            writer.write(explainer(rows[start : start + SHARD], progress=False))


def _start(destination: Path, on: str) -> multiprocessing.process.BaseProcess:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["texplainer.explainer", "texplainer.execution.driver"])
    child = context.Process(target=drive, args=(destination, on))
    child.start()
    return child


def _end(child: multiprocessing.process.BaseProcess, seconds: float) -> str:
    """Wait so long, then kill: how the run ended."""
    child.join(seconds)
    if child.exitcode is None and child.pid:
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        return "killed"
    if child.exitcode:
        print("a run ended with exit code", child.exitcode, file=sys.stderr)
        return "failed"
    return "finished"


def _bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("[pr]*.parquet")}


def _differing(folder: Path, whole: Mapping[str, bytes]) -> int:
    return sum(whole.get(name) != data for name, data in _bytes_of(folder).items())
