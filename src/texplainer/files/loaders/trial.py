"""Model files are tried in a child process first: some readers crash, or take all memory, on damaged ones.

The child may use so much memory and time and no more, and ends with its parent. It loads the model and asks
it once, for one row, and tells nothing back but how it ended. It is forked where that can be done: the
library is imported already. Threads of OpenMP's do not come along in a fork, and the thread that had them
would wait for them for ever; the trial is made in a thread that never had any. What a damaged file makes its
reader read beyond its arrays is not the same in a thread, so a second trial is made as the parent will load
it; if that one waits, it is let be. Where a process cannot be forked, or the child hangs all the same, a new
interpreter is asked: not multiprocessing's, which runs the user's script a second time.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from texplainer.errors import InputError
from texplainer.support.process import end_with

TRIAL_SECONDS = {"fork": 5, "fresh": 120}
FREE_BYTES = 3 * 2**30  # on top of a multiple of the file
TIMES_SIZE = 50
LEAST_SECONDS = 1.0  # given to the second trial
TOO_MUCH = 77  # the exit code of a child that ran out of its memory


def try_in_child(path: Path, library: str, trial: Callable[..., object], *given: str) -> None:
    """Load a model in another process; reject a file that crashes its library or exceeds the limits.

    `trial(*given, path)`, a function of a module, loads it there and predicts once. An error of the library
    itself is raised by the second load, in this process.
    """
    limit = FREE_BYTES + TIMES_SIZE * path.stat().st_size
    code = _forked(path, trial, given, limit) if _may_fork() else None
    code = _fresh(path, trial, given, limit) if code is None else code
    if code is None:
        raise InputError(f"{path} keeps {library} busy for over {TRIAL_SECONDS['fresh']} s; it is damaged.")
    if code == TOO_MUCH:
        raise InputError(f"{path} makes {library} ask for over {limit / 2**30:.0f} GB; it is damaged.")
    if code < 0:
        raise InputError(f"{path} makes {library} crash (signal {-code}); it is damaged.")
    if code > 0:
        raise InputError(f"{path} makes {library} end its process (exit code {code}); it is damaged.")


def _may_fork() -> bool:
    """Whether this process can be forked; a worker of a pool may not have children of multiprocessing's."""
    alone = threading.active_count() == 1 and not multiprocessing.current_process().daemon
    return alone and hasattr(os, "fork") and sys.platform != "darwin"


def _forked(path: Path, trial: Callable[..., object], given: tuple[str, ...], limit: int) -> int | None:
    """How a forked child ended; None if it did not."""
    context: Any = multiprocessing.get_context("fork")
    child = context.Process(target=_trial, args=(path, trial, given, os.getpid(), limit))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numerical libraries have threads of their own
        child.start()
    child.join(TRIAL_SECONDS["fork"])
    if child.exitcode is None:
        child.kill()
        child.join()
        return None
    return int(child.exitcode)


def _fresh(path: Path, trial: Callable[..., object], given: tuple[str, ...], limit: int) -> int | None:
    """How a new interpreter ended; None if it did not."""
    code = (
        f"import sys; sys.path[:] = {[str(place) for place in sys.path]!r}\n"
        f"from texplainer.files.loaders.trial import _trial\n"
        f"from {trial.__module__} import {trial.__name__} as trial\n"
        f"_trial({str(path)!r}, trial, {given!r}, {os.getpid()}, {limit})"
    )
    try:
        return subprocess.run(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            timeout=TRIAL_SECONDS["fresh"],
        ).returncode
    except subprocess.TimeoutExpired:
        return None


def _trial(
    path: str | Path, trial: Callable[..., object], given: tuple[str, ...], parent: int, limit: int
) -> None:
    """In the child process: load, predict once, and exit with a code."""
    end_with(parent if os.name == "posix" else os.getppid())  # elsewhere a launcher may stand between
    faulthandler.disable()  # a crash is an answer here, not news
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # readers write their last words there
        os.dup2(nowhere, stream)
    _limit_memory(limit)
    began = time.monotonic()
    asked = threading.Thread(target=_ask, args=(Path(path), trial, given))
    asked.start()
    asked.join()
    again = threading.Timer(max(LEAST_SECONDS, 3 * (time.monotonic() - began)), os._exit, (0,))
    again.daemon = True
    again.start()
    _ask(Path(path), trial, given)
    os._exit(0)


def _ask(path: Path, trial: Callable[..., object], given: tuple[str, ...]) -> None:
    """Load and ask; what the library refuses by itself is left to it, but for memory."""
    try:
        with threadpool_limits(1):
            trial(*given, path)
    except BaseException as error:
        if isinstance(error, MemoryError) or "alloc" in str(error):
            os._exit(TOO_MUCH)


def _limit_memory(limit: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit += _own_data()
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    with contextlib.suppress(ValueError, OSError):  # macOS may refuse
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _own_data() -> int:
    """Bytes this process has already: a forked child has all its parent's, whose tables may be large."""
    try:
        found = re.search(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError):
        return 0
    return int(found[1]) * 1024 if found else 0
