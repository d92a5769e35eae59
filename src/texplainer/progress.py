"""A progress bar where a person is watching, silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def track(
    tasks: Sequence[T], label: str, show: bool | None = None, sizes: Sequence[int] | None = None
) -> Iterable[T]:
    """Iterate over tasks under a bar; `sizes` weighs them (rows in a block)."""
    if show is None:
        show = len(tasks) > 1 and sys.stderr.isatty()
    return _bar(tasks, label, sizes) if show else tasks


def _bar(tasks: Sequence[T], label: str, sizes: Sequence[int] | None) -> Iterator[T]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(label, total=sum(sizes) if sizes else len(tasks))
        for i, task in enumerate(tasks):
            yield task
            progress.advance(bar, sizes[i] if sizes else 1)
