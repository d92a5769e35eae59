"""Helpers for messages: similar names, and short descriptions of objects."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any


def suggest(name: Any, names: Sequence[str]) -> str:
    """Return "Did you mean ...?" with the names most similar to an unknown one; empty if there are none.

    Case and separators are ignored.
    """
    plain = {_plain(known): known for known in reversed(names)}
    found = [plain[key] for key in get_close_matches(_plain(str(name)), list(plain), n=3, cutoff=0.6)]
    return f" Did you mean {' or '.join(map(repr, found))}?" if found else ""


def describe(subject: Any) -> str:
    """Describe an object: numbers and strings by value, anything else by type."""
    if subject is None or isinstance(subject, (bool, int, float, str)):
        return repr(subject)
    kind = type(subject).__name__
    return f"{'an' if kind[0] in 'AEIOaeio' else 'a'} {kind}"


def _plain(name: str) -> str:
    return name.lower().replace("_", " ").replace("-", " ").strip()


def some(names: Sequence[Any], most: int = 8) -> str:
    """Show the first few names of a list."""
    shown = ", ".join(repr(n) if isinstance(n, str) else str(n) for n in names[:most])
    return f"[{shown}, ... {len(names) - most} more]" if len(names) > most else f"[{shown}]"
