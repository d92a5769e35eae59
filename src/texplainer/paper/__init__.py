"""The paper, reproduced by one command: plan -> runs -> results -> tables and figures.

`main` is what `texplainer bench` calls. Finished runs are skipped, so an interrupted benchmark goes on
where it stopped; the page is rewritten at the end from whatever is finished.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from texplainer.datasets import DatasetUnavailable
from texplainer.errors import InputError
from texplainer.lifeline import end_with

from . import results
from .page import write_page
from .plan import EXPERIMENTS, FULL, QUICK, Run, plan
from .runs import execute

__all__ = ["EXPERIMENTS", "FULL", "QUICK", "main", "plan"]

OUT = Path("results")


def main(
    names: Sequence[str] = (),
    *,
    all: bool = False,
    quick: bool = False,
    list: bool = False,
    out: Path | str | None = None,
    jobs: int = 1,
    tell: Callable[[str], object] | None = None,
) -> int:
    """Run experiments of the paper by name and write the page of results.

    Parameters
    ----------
    names : experiments to run, see `EXPERIMENTS`.
    all : run every experiment.
    quick : a smoke run on few rows, in a folder of its own.
    list : only list the experiments and how far they are.
    out : folder for results; the page is written beside it as `<out>.md` and `<out>.html`. By default
        `results/paper`, or `results/quick`.
    jobs : runs done at the same time, each in a process of its own; the running-time experiment runs alone.
    tell : where messages go, by default standard error (the list: standard output).

    Returns
    -------
    The number of runs that could not be done (0 = all is well); data that is not at hand counts only for
    experiments that were named.
    """
    sizes = QUICK if quick else FULL
    folder = Path(out) if out is not None else OUT / ("quick" if quick else "paper")
    if list:
        return show(plan(names, sizes), folder, tell or print)
    if not names and not all:
        raise InputError("no experiment named; name some (see --list), or ask for all with --all")
    say = tell or (lambda text: print(text, file=sys.stderr, flush=True))
    runs = plan(() if all else names, sizes)
    failed = work(runs, folder, jobs, forgive=all, say=say)
    everything = plan((), sizes)
    done = [results.load(run.name, folder) for run in everything if results.finished(run, folder)]
    if done:
        for path in write_page(everything, done, folder):
            say(f"wrote {path}")
    return failed


def work(runs: Sequence[Run], folder: Path, jobs: int, *, forgive: bool, say: Callable[[str], object]) -> int:
    """Do the runs that are not finished; return how many could not be done."""
    todo = [run for run in runs if not results.finished(run, folder)]
    say(f"{len(runs) - len(todo)} of {len(runs)} runs are finished, {len(todo)} to do")
    failed = 0
    for done, (run, seconds, problem) in enumerate(outcomes(todo, folder, jobs), 1):
        if problem is None:
            say(f"[{done}/{len(todo)}] {run.name}: {seconds:.1f} s")
            continue
        missing = isinstance(problem, DatasetUnavailable)
        what = "skipped" if missing else f"failed with {type(problem).__name__}"
        say(f"[{done}/{len(todo)}] {run.name}: {what}: {problem}")
        failed += not (forgive and missing)
    return failed


Done = tuple[Run, float, Exception | None]


def outcomes(todo: Sequence[Run], folder: Path, jobs: int) -> Iterator[Done]:
    """Do runs one after the other, or several at a time; what is timed comes last and alone."""
    timed = [run for run in todo if run.experiment.kind == "running_time"]
    others = [run for run in todo if run.experiment.kind != "running_time"]
    if jobs > 1 and len(others) > 1:
        spawn = get_context("spawn")
        pool = ProcessPoolExecutor(jobs, mp_context=spawn, initializer=end_with, initargs=(os.getpid(),))
        try:
            for future in as_completed([pool.submit(attempt, run, folder) for run in others]):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)
        others = []
    for run in (*others, *timed):
        yield attempt(run, folder)


def attempt(run: Run, folder: Path) -> Done:
    """Do one run and put its result in place; a failure is an outcome too."""
    start = time.perf_counter()
    try:
        results.save(execute(run), folder)
    except Exception as problem:
        return run, time.perf_counter() - start, problem
    return run, time.perf_counter() - start, None


def show(runs: Sequence[Run], folder: Path, say: Callable[[str], object]) -> int:
    """List experiments with the state of their runs."""
    for name, experiment in EXPERIMENTS.items():
        own = [run for run in runs if run.experiment.name == name]
        if own:
            done = sum(results.finished(run, folder) for run in own)
            state = "finished" if done == len(own) else f"{done} of {len(own)} runs finished"
            say(f"{name:20s} {experiment.title:70s} {state}")
    return 0
