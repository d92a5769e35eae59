"""Progress in rows: how many, how fast, how long still."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

#: what is told after every shard: (rows done, rows in all)
Tell = Callable[[int, int], None]


@contextlib.contextmanager
def telling(progress: bool | Tell | None, done: int, total: int) -> Iterator[Tell]:
    """A function to call after every shard; a bar on a terminal unless told otherwise."""
    if callable(progress):
        yield progress
    elif progress or (progress is None and sys.stderr.isatty()):
        with _bar(done, total) as tell:
            yield tell
    else:
        yield lambda done, total: None


@contextlib.contextmanager
def _bar(done: int, total: int) -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Speed(ProgressColumn):
        """Rows a second since this run began; shards kept from before do not count."""

        def render(self, task: Task) -> Text:
            seconds = task.elapsed or 0.0
            return Text(f"{(task.completed - done) / seconds:,.0f} rows/s" if seconds else "")

    rows = TextColumn("{task.completed:,} of {task.total:,} rows")
    columns = (BarColumn(), rows, Speed(), TimeRemainingColumn(elapsed_when_finished=True))
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=3600) as shown:
        bar = shown.add_task("", total=total, completed=done)
        yield lambda done, total: shown.update(bar, completed=done)
