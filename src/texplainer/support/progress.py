"""Progress bars over tasks, rows and bytes; shown on a terminal only."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
#: a progress callback: (rows done, rows in total)
OnProgress = Callable[[int, int], None]


_asked: ContextVar[bool | None] = ContextVar("progress", default=None)


def watched(show: bool | None = None) -> bool:
    """Return whether to show progress: `show`, that of the task around, otherwise whether this is a terminal."""
    show = _asked.get() if show is None else show
    return sys.stderr.isatty() if show is None else show


@contextlib.contextmanager
def asked_for(show: bool | None) -> Iterator[None]:
    """Let `show` hold for the tasks within, too: False shows none of them."""
    before = _asked.set(show)
    try:
        yield
    finally:
        _asked.reset(before)


def track(
    tasks: Sequence[T], label: str, show: bool | None = None, sizes: Sequence[int] | None = None
) -> Iterable[T]:
    """Iterate over tasks with a progress bar; `sizes` are their weights (rows in a block)."""
    if show is None and len(tasks) <= 1:
        return tasks
    return _tracked(tasks, label, sizes) if watched(show) else tasks


@contextlib.contextmanager
def reporting(progress: bool | OnProgress | None, done: int, total: int) -> Iterator[OnProgress]:
    """Return a callback of (rows done, rows in total); by default a progress bar on a terminal."""
    if callable(progress):
        yield progress
    elif watched(progress):
        with _row_bar(done, total) as tell:
            yield tell
    else:
        yield lambda done, total: None


@contextlib.contextmanager
def waiting(words: str, moment: float = 0.0) -> Iterator[None]:
    """Show a spinner during a task of unknown length, if it takes more than a moment (seconds)."""
    if not watched():
        yield
        return
    shown = _console().status(words)
    timer = threading.Timer(moment, shown.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        shown.stop()


@contextlib.contextmanager
def counting_bytes(words: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Return a callback for received bytes; `total` is None if unknown."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=_console(), disable=not watched()) as shown:
        bar = shown.add_task(words, total=total)
        yield lambda count: shown.advance(bar, count)


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True)


def _tracked(tasks: Sequence[T], label: str, sizes: Sequence[int] | None) -> Iterator[T]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_console(), transient=True) as progress:
        bar = progress.add_task(label, total=sum(sizes) if sizes else len(tasks))
        for i, task in enumerate(tasks):
            yield task
            progress.advance(bar, sizes[i] if sizes else 1)


@contextlib.contextmanager
def _row_bar(done: int, total: int) -> Iterator[OnProgress]:
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Speed(ProgressColumn):
        """Rows per second since this run started; rows of earlier runs are not counted."""

        def render(self, task: Task) -> Text:
            seconds = task.elapsed or 0.0
            return Text(f"{(task.completed - done) / seconds:,.0f} rows/s" if seconds else "")

    rows = TextColumn("{task.completed:,} of {task.total:,} rows")
    columns = (BarColumn(), rows, Speed(), TimeRemainingColumn(elapsed_when_finished=True))
    with Progress(*columns, console=_console(), speed_estimate_period=3600) as shown:
        bar = shown.add_task("", total=total, completed=done)
        yield lambda done, total: shown.update(bar, completed=done)
