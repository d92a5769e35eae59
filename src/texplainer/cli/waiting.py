"""A spinner while something without a measure takes its time; silence when nobody watches."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any


def waiting(words: str) -> AbstractContextManager[Any]:
    """Show that work is going on, on a terminal only."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(words)
