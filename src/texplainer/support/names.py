"""What people give: the name they may have meant, and an object in a few words."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any


def suggest(name: Any, names: Sequence[str]) -> str:
    """A sentence with the names nearest to an unknown one, to be put after a message; empty if none is near.

    Case and the kind of blanks do not count.
    """
    plain = {_plain(known): known for known in reversed(names)}
    found = [plain[key] for key in get_close_matches(_plain(str(name)), list(plain), n=3, cutoff=0.6)]
    return f" Did you mean {' or '.join(map(repr, found))}?" if found else ""


def describe(subject: Any) -> str:
    """An object in a few words: a number or text itself, anything else by its type."""
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
