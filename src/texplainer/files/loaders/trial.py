"""Model files are tried in a child process first: some readers crash, or take all memory, on damaged ones.

The child may use so much memory and time and no more, and ends with its parent. It loads the model and asks
it once, for one row, and tells nothing back but how it ended. It is forked where that can be done: the
library is imported already. A forked child whose parent had threads of OpenMP's can wait for them for ever;
then it is asked again in a process of its own.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from texplainer.errors import InputError
from texplainer.support.parent_watch import end_with

TRIAL_SECONDS = {"fork": 5, "spawn": 120}
FREE_BYTES = 3 * 2**30  # on top of a multiple of the file
TIMES_SIZE = 50
TOO_MUCH = 77  # the exit code of a child that ran out of its memory


def try_in_child(path: Path, library: str, trial: Callable[[Path], object]) -> None:
    """Load a model in another process; refuse a file that crashes its library or is too much for it.

    `trial` loads it there and asks it once; it can be pickled.

    What the library refuses by itself is left to it: the second time it says so here.
    """
    limit = FREE_BYTES + TIMES_SIZE * path.stat().st_size
    alone = threading.active_count() == 1 and hasattr(os, "fork") and sys.platform != "darwin"
    code = _exit_code("fork", path, trial, limit) if alone else None
    code = _exit_code("spawn", path, trial, limit) if code is None else code
    if code is None:
        raise InputError(f"{path} keeps {library} busy for over {TRIAL_SECONDS['spawn']} s; it is damaged.")
    if code == TOO_MUCH:
        raise InputError(f"{path} makes {library} ask for over {limit / 2**30:.0f} GB; it is damaged.")
    if code < 0:
        raise InputError(f"{path} makes {library} crash (signal {-code}); it is damaged.")


def _exit_code(kind: str, path: Path, trial: Callable[[Path], object], limit: int) -> int | None:
    """How a child process ended; None if it did not."""
    context: Any = multiprocessing.get_context(kind)
    child = context.Process(target=_trial, args=(path, trial, os.getpid(), limit))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numerical libraries have threads of their own
        child.start()
    child.join(TRIAL_SECONDS[kind])
    if child.exitcode is None:
        child.kill()
        child.join()
        return None
    return int(child.exitcode)


def _trial(path: Path, trial: Callable[[Path], object], parent: int, limit: int) -> None:
    """In the child: load, ask once, and leave with a word of one number."""
    end_with(parent)
    faulthandler.disable()  # a crash is an answer here, not news
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # readers write their last words there
        os.dup2(nowhere, stream)
    try:
        _limit_memory(limit)
        with threadpool_limits(1):  # the parent's threads are not here
            trial(path)
    except MemoryError:
        os._exit(TOO_MUCH)
    except BaseException as error:
        os._exit(TOO_MUCH if "alloc" in str(error) else 0)
    os._exit(0)


def _limit_memory(limit: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
