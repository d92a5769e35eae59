"""Shards carried out on this machine: one after the other, or in worker processes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing
from itertools import islice
from typing import Any

from texplainer.execution.backends.table import Backend, Dispatch, Records
from texplainer.execution.plan import Shard
from texplainer.execution.worker import (
    PickledJob,
    ShardRecord,
    explain_kept,
    explain_shard,
    failed,
    keep_pickled,
)
from texplainer.files.sources import RowStream
from texplainer.support.process import end_with


def serial(order: Dispatch, shards: Iterable[Shard]) -> Records:
    """Explain shards one after the other in this process."""
    stream = RowStream(order.job.source)
    for shard in shards:
        yield explain_shard(order.job, stream, shard)


def processes(order: Dispatch, shards: Iterable[Shard]) -> Records:
    """Worker processes of this machine.

    If a worker dies (killed, out of memory), its pool ends. Unfinished shards are then tried one at a time;
    only a shard that kills its worker again fails.
    """
    queue = iter(shards)
    while True:
        flying: dict[int, Shard] = {}
        with closing(_Pool(order, order.workers)) as pool:
            try:
                yield from _flow(pool, queue, flying, 2 * order.workers)
                return
            except pool.broken:
                suspects = [flying[index] for index in sorted(flying)]
        for shard in suspects:
            yield _alone(order, shard)


def _flow(pool: _Pool, queue: Iterator[Shard], flying: dict[int, Shard], most: int) -> Iterator[ShardRecord]:
    """Keep `most` shards in the pool; `flying` holds those that gave no record yet."""
    futures: set[Future[ShardRecord]] = set()
    while True:
        for shard in islice(queue, most - len(futures)):
            flying[shard.index] = shard
            futures.add(pool.submit(shard))
        if not futures:
            return
        done, futures = wait(futures, return_when=FIRST_COMPLETED)
        for future in done:
            record = future.result()
            del flying[record.index]
            yield record


def _alone(order: Dispatch, shard: Shard) -> ShardRecord:
    error: BaseException = RuntimeError("not tried")
    for _ in range(order.job.retries + 1):
        with closing(_Pool(order, 1)) as pool:
            try:
                return pool.submit(shard).result()
            except pool.broken as found:
                error = found
    return failed(shard, error, order.job.retries + 1)


class _Pool:
    """A pool of loky's, whose workers have received the pickled job."""

    def __init__(self, order: Dispatch, workers: int) -> None:
        from joblib.externals.loky import ProcessPoolExecutor
        from joblib.externals.loky.process_executor import BrokenProcessPool

        self.name = order.pickled.name
        self.broken = BrokenProcessPool
        self.executor = ProcessPoolExecutor(
            workers, initializer=keep_in_worker, initargs=(order.pickled, os.getpid())
        )

    def submit(self, shard: Shard) -> Future[ShardRecord]:
        return self.executor.submit(explain_kept, self.name, shard)

    def close(self) -> None:
        self.executor.shutdown(wait=True, kill_workers=True)


def keep_in_worker(pickled: PickledJob, parent: int) -> None:
    """Store the pickled job in a new worker, which exits when its parent ends."""
    keep_pickled(pickled)
    end_with(parent)


def _cores(on: Any, wish: int | None) -> int:
    import joblib

    return wish or joblib.cpu_count()


SERIAL = Backend(serial, lambda on, wish: 1, ships=False)
PROCESSES = Backend(processes, _cores)
