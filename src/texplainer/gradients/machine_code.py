"""Compile with a cache that also knows the other files the machine code is made of.

Numba keeps machine code by the content of the kernel's own file; a change in a file it draws on would go
unnoticed, and old code would run. So their content is part of the name the code is kept under.
"""

# pyright: basic

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit


def compiled(*sources: str) -> Callable[[Any], Any]:
    """Compile a function that draws on the `sources`, modules of its own folder."""

    def decorate(function):
        file = Path(function.__code__.co_filename)
        content = (file.with_name(f"{name}.py").read_bytes() for name in sources)
        function.__qualname__ += f"_{hashlib.sha256(b''.join(content)).hexdigest()[:16]}"
        return njit(nogil=True, cache=True, error_model="numpy")(function)

    return decorate
