"""The paper's experiments and the wide evaluation: plan -> runs -> results -> tables, figures and pages.

Run from a checkout by `make paper` or `python -m experiments`; not part of the wheel. Finished runs are
skipped, so an interrupted benchmark continues where it stopped. The pages are rewritten at the end from
whatever is finished.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from experiments import results
from experiments.pages.paper import write_page
from experiments.pages.questions import write_question_pages
from experiments.paper import EXPERIMENTS, plan
from experiments.plan import FULL, QUICK, WIDE_FULL, WIDE_QUICK, Run, Sizes
from experiments.results import Result
from experiments.runs import execute
from experiments.wide.experiments import wide_plan
from texplainer.datasets import DatasetUnavailable
from texplainer.errors import InputError
from texplainer.support.process import end_with

__all__ = ["EXPERIMENTS", "FULL", "QUICK", "plan", "run_benchmark", "wide_plan"]

OUT = Path("results")
Say = Callable[[str], object]


@dataclass(frozen=True)
class Suite:
    """A set of experiments: how it is planned, its two sizes, its folder, how its pages are written."""

    plan: Callable[[Sequence[str], Sizes], list[Run]]
    full: Sizes
    quick: Sizes
    folder: str
    write: Callable[[Sequence[Run], Sequence[Result], Path], list[Path]]


def _suite(wide: bool) -> Suite:
    if wide:
        pages = write_question_pages
        return Suite(wide_plan, WIDE_FULL, WIDE_QUICK, "wide", lambda runs, done, out: pages(done, out))
    return Suite(lambda names, sizes: plan(names, sizes), FULL, QUICK, "paper", write_page)


def run_benchmark(
    names: Sequence[str] = (),
    *,
    all: bool = False,
    wide: bool = False,
    models: Sequence[str] = (),
    quick: bool = False,
    list: bool = False,
    out: Path | str | None = None,
    jobs: int = 1,
    tell: Say | None = None,
) -> int:
    """Run experiments by name and write the pages of results.

    Parameters
    ----------
    names : experiments to run, see `list`; of the wide evaluation also beginnings ("banknote").
    all : run every experiment.
    wide : the wide evaluation instead of the paper's experiments; all of it unless some are named.
    models : only the runs of these kinds of models ("network", "boosted", ...; "function" of the wide
        evaluation); all of them if none is named. Environments that hold different libraries divide the work by it.
    quick : a smoke run on few rows, in a folder of its own.
    list : only list the experiments and how far they are.
    out : folder for results; pages are written beside it. By default `results/paper` or `results/wide`, with
        `-quick` behind it for a smoke run.
    jobs : runs done at the same time, each in a process of its own; the running-time experiment runs alone.
    tell : where messages go, by default standard error (the list: standard output).

    Returns
    -------
    The number of runs that could not be done (0 = all is well); data that is not at hand counts only for
    experiments that were named.
    """
    suite = _suite(wide)
    sizes = suite.quick if quick else suite.full
    folder = Path(out) if out is not None else OUT / (suite.folder + ("-quick" if quick else ""))
    if list:
        return list_experiments(of_models(suite.plan(names, sizes), models), folder, tell or print)
    all = all or (wide and not names)
    if not names and not all:
        raise InputError("no experiment named; name some (see --list), or ask for all with --all")
    say = tell or (lambda text: print(text, file=sys.stderr, flush=True))
    chosen = of_models(suite.plan(() if all else names, sizes), models)
    failed = finish_runs(chosen, folder, jobs, forgive=all, say=say)
    everything = suite.plan((), sizes)
    done = [results.read_run(run.name, folder) for run in everything if results.finished(run, folder)]
    if done:
        for path in suite.write(everything, done, folder):
            say(f"wrote {path}")
    return failed


def of_models(runs: Sequence[Run], models: Sequence[str]) -> list[Run]:
    """Keep the runs of some kinds of models; all of them if none is named."""
    known = dict.fromkeys(run.experiment.model for run in runs)
    unknown = [name for name in models if name not in known]
    if unknown:
        raise InputError(f"no run has the model {unknown[0]!r}; these have {', '.join(known)}")
    return [run for run in runs if not models or run.experiment.model in models]


def finish_runs(
    runs: Sequence[Run], folder: Path, jobs: int, *, forgive: bool, say: Callable[[str], object]
) -> int:
    """Do the runs that are not finished; return how many could not be done."""
    todo = [run for run in runs if not results.finished(run, folder)]
    say(f"{len(runs) - len(todo)} of {len(runs)} runs are finished, {len(todo)} to do")
    failed, began = 0, time.perf_counter()
    for done, (run, seconds, problem) in enumerate(outcomes(todo, folder, jobs), 1):
        if problem is None:
            left = (time.perf_counter() - began) / done * (len(todo) - done) / 60
            say(f"[{done}/{len(todo)}] {run.name}: {seconds:.1f} s; about {left:.1f} minutes to go")
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
        results.write_result(execute(run), folder)
    except Exception as problem:
        return run, time.perf_counter() - start, problem
    return run, time.perf_counter() - start, None


def list_experiments(runs: Sequence[Run], folder: Path, say: Say) -> int:
    """List experiments with the state of their runs."""
    for name in dict.fromkeys(run.experiment.name for run in runs):
        own = [run for run in runs if run.experiment.name == name]
        done = sum(results.finished(run, folder) for run in own)
        state = "finished" if done == len(own) else f"{done} of {len(own)} runs finished"
        say(f"{name:24s} {own[0].experiment.title:70s} {state}")
    return 0
