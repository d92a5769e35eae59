"""Carry shards to workers and their records back, in whatever order they finish.

A mapper is one function `(Order, shards) -> records`. `find` looks it up by the word or the object the
user gave as `on`; Dask, Ray and Spark have a file each. Every mapper ships the parcel once per worker and
keeps only a few shards in flight.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any

from texplainer.errors import InputError
from texplainer.execution.plan import Shard
from texplainer.execution.sources import Stream
from texplainer.execution.work import Job, Parcel, Record, explain_shard, failed, keep, work
from texplainer.lifeline import end_with


@dataclass(frozen=True)
class Order:
    """A job to be carried out somewhere."""

    on: Any
    job: Job
    parcel: Parcel
    workers: int


Records = Generator[Record, None, None]
Map = Callable[[Order, Iterable[Shard]], Records]


@dataclass(frozen=True)
class Backend:
    """Where shards can be explained.

    `count` gives the number of workers there (the user's wish or None in); `ships` is False where the
    explainer stays in this process.
    """

    map: Map
    count: Callable[[Any, int | None], int]
    ships: bool = True


def find(on: Any) -> Backend:
    """Look up the backend of a word, an address or a client object."""
    key = on.split(":")[0].split("[")[0] if isinstance(on, str) else type(on).__module__.split(".")[0]
    if key not in BACKENDS:
        raise InputError(
            f"on={on!r} is unknown; expected 'serial', 'processes', 'dask', 'ray', 'spark', the address of "
            "a scheduler (tcp://, ray://, spark://), a dask.distributed.Client or a SparkSession."
        )
    module, _, extra = BACKENDS[key].partition("/")
    try:
        return import_module(module).BACKEND if extra else HERE[module]
    except ImportError as error:
        raise InputError(
            f"on={on!r} needs a library that is not installed ({error}); pip install 'texplainer[{extra}]'."
        ) from error


def serial(order: Order, shards: Iterable[Shard]) -> Records:
    """One shard after the other, here."""
    stream = Stream(order.job.source)
    for shard in shards:
        yield explain_shard(order.job, stream, shard)


def processes(order: Order, shards: Iterable[Shard]) -> Records:
    """Worker processes of this machine.

    A worker that dies (killed, out of memory) takes its pool with it; the shards that were in flight are
    then tried one at a time, so that only one that kills its worker again is given up.
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


def _flow(pool: _Pool, queue: Iterator[Shard], flying: dict[int, Shard], most: int) -> Iterator[Record]:
    """Keep `most` shards in the pool; `flying` holds those that gave no record yet."""
    futures: set[Future[Record]] = set()
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


def _alone(order: Order, shard: Shard) -> Record:
    error: BaseException = RuntimeError("not tried")
    for _ in range(order.job.retries + 1):
        with closing(_Pool(order, 1)) as pool:
            try:
                return pool.submit(shard).result()
            except pool.broken as found:
                error = found
    return failed(shard, error, order.job.retries + 1)


class _Pool:
    """A pool of loky's, whose workers have received the parcel."""

    def __init__(self, order: Order, workers: int) -> None:
        from joblib.externals.loky import ProcessPoolExecutor
        from joblib.externals.loky.process_executor import BrokenProcessPool

        self.name = order.parcel.name
        self.broken = BrokenProcessPool
        self.executor = ProcessPoolExecutor(
            workers, initializer=receive, initargs=(order.parcel, os.getpid())
        )

    def submit(self, shard: Shard) -> Future[Record]:
        return self.executor.submit(work, self.name, shard)

    def close(self) -> None:
        self.executor.shutdown(wait=True, kill_workers=True)


def receive(parcel: Parcel, parent: int) -> None:
    """Keep the parcel at a new worker, which ends when its driver is gone, however that ended."""
    keep(parcel)
    end_with(parent)


def _cores(on: Any, wish: int | None) -> int:
    import joblib

    return wish or joblib.cpu_count()


HERE = {"serial": Backend(serial, lambda on, wish: 1, ships=False), "processes": Backend(processes, _cores)}
#: the word, scheme of an address or library of an object -> module / the extra that installs it
BACKENDS = {
    "serial": "serial",
    "processes": "processes",
    "dask": "texplainer.execution.dask/dask",
    "distributed": "texplainer.execution.dask/dask",
    "tcp": "texplainer.execution.dask/dask",
    "tls": "texplainer.execution.dask/dask",
    "ray": "texplainer.execution.ray/ray",
    "spark": "texplainer.execution.spark/spark",
    "local": "texplainer.execution.spark/spark",
    "pyspark": "texplainer.execution.spark/spark",
}
