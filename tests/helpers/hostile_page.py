"""The counts of the fuzz as tables, on the page docs/results/trust.md; the rest of the page is left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FLIPS = ("refused", "read, the same", "read", "loaded different", "raw error", "crashed", "hung")
#: a sentence on a group, and what is counted in it
GROUPS = {
    "pickles": ("Pickles that would run code, under every name that is read", ("refused", "executed")),
    "arguments": ("Settings and cells, sensible and absurd", ("explained", "refused", "wrong", "hung")),
    "forgeries": ("Forged claims of a result", ("found", "missed")),
}
KILLS = ("killed", "finished", "lost", "twice", "failed", "hung")


def write_page(path: Path, counts: Mapping[str, Any]) -> None:
    """Put the counts between their marks."""
    lines = table("one byte flipped in", FLIPS, counts["flips"])
    for name, (sentence, words) in GROUPS.items():
        found = counts[name]
        said = ", ".join(f"{word} {found.get(word, 0)}" for word in words)
        lines += ["", f"{sentence}: {sum(found.get(word, 0) for word in words)} tried, {said}."]
    lines += ["", *table("runs killed", KILLS, counts["kills"], whole=False)]
    lines += ["", f"All of it took {counts['seconds']} seconds."]
    path.write_text(between(path.read_text(encoding="utf-8"), "fuzz", lines), encoding="utf-8")


def table(what: str, words: Sequence[str], groups: Mapping[str, Mapping[str, int]], whole: bool = True) -> list[str]:  # fmt: skip
    """One line a group and one for all; `whole` adds how many there were."""
    total: Counter[str] = Counter()
    for found in groups.values():
        total.update(found)
    titles = ["tried", *words] if whole else list(words)
    lines = [f"| {what} | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|"]
    for name, found in {**groups, "all": total}.items():
        tried = [sum(found.values())] if whole else []
        cells = [*tried, *(found.get(word, 0) for word in words)]
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return lines


def between(page: str, name: str, lines: Sequence[str]) -> str:
    """The page with other lines between the marks of a name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, _, rest = page.partition(begin)
    _, _, tail = rest.partition(end)
    return head + "\n".join([begin, "", *lines, "", end]) + tail
