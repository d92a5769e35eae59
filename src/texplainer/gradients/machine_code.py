"""Compile with a cache that also knows the other files the machine code is made of.

Numba keeps machine code by the content of the kernel's own file; a change in a file it draws on would go
unnoticed, and old code would run. So their content is part of the name the code is kept under. Where no
folder can be written to, code is compiled in every process.
"""

# pyright: basic, reportCallIssue=false

import hashlib
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from numba import njit

from texplainer.errors import EngineWarning

_reported: set[str] = set()


def compiled(*sources: str) -> Callable[[Any], Any]:
    """Compile a function that draws on the `sources`, modules of its own folder."""

    def decorate(function):
        file = Path(function.__code__.co_filename)
        content = (file.with_name(f"{name}.py").read_bytes() for name in sources)
        function.__qualname__ += f"_{hashlib.sha256(b''.join(content)).hexdigest()[:16]}"
        return cached_njit(error_model="numpy")(function)

    return decorate


def cached_njit(**options: Any) -> Callable[[Any], Any]:
    """`numba.njit` with a cache, or without one where numba finds no folder for it."""

    def decorate(function):
        try:
            return njit(nogil=True, cache=True, no_cfunc_wrapper=True, **options)(function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            if not _reported:
                _reported.add("cache")
                warnings.warn(
                    "the compiled code for tree models cannot be cached: neither the package's folder nor the home "
                    "folder is writable, so it is compiled in every process. Set NUMBA_CACHE_DIR to a writable "
                    "folder.",
                    EngineWarning,
                    stacklevel=2,
                )
            return njit(nogil=True, **options)(function)

    return decorate


#: Compile a function that only compiled code calls, without wrappers for calls from Python: these take a quarter
#: of the time of compiling. A call from Python would crash.
helper = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


def is_compiled(function: Any) -> bool:
    """Whether a function has been compiled already, or never will be (NUMBA_DISABLE_JIT)."""
    return bool(getattr(function, "signatures", True))


def available_threads() -> int:
    """The processors that this process may use, at most `OMP_NUM_THREADS`, as other numerical libraries do."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wish = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]  # of nested levels, the outer one
    return min(usable, int(wish)) if wish.isdecimal() and int(wish) else usable


def in_threads(work: Callable[[int, int], None], rows: int, block: int, threads: int | None) -> None:
    """Call `work` for parts of the rows, whole blocks each."""
    workers = min(threads or available_threads(), -(-rows // block))
    if workers <= 1:
        return work(0, rows)
    share = -(-rows // (4 * workers * block)) * block
    with ThreadPoolExecutor(workers) as pool:
        for job in [pool.submit(work, at, min(at + share, rows)) for at in range(0, rows, share)]:
            job.result()
    return None
