"""What a process shares: the global random generators, and the parent that it ends with.

Some explainers draw from numpy's, Python's or torch's global generator, and some reseed it. Inside
`isolated(seed)` these generators depend on the seed only; afterwards the user's states are restored exactly.

A parent that was killed cannot stop its workers; they would run on, or wait forever (`end_with`).
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def isolated(seed: int) -> Iterator[None]:
    """Run a block with all global generators seeded, then restore them."""
    torch = sys.modules.get("torch")  # a library that is not loaded has no state to disturb
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    tensor = torch.random.get_rng_state() if torch else None
    try:
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        if torch:
            torch.random.default_generator.manual_seed(seed)
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
        if torch and tensor is not None:
            torch.random.set_rng_state(tensor)


def stream(seed: int, *words: object) -> int:
    """Derive a seed from a seed and some keys; the same on every machine, independent of other keys."""
    return zlib.crc32("\x1f".join(map(str, (seed, *words))).encode())


def end_with(parent: int) -> None:
    """Exit this process within about a second after the process `parent` has ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
