"""Shards on Spark: jobs of one partition a shard, through `mapInArrow`.

The pickled job is a broadcast variable, fetched once per executor; a Python worker unpacks it once and is
reused. Shards go in waves of one per slot, two waves at a time, so that the second fills the slots the
first has left and finished shards are known before the end.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import asdict
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from texplainer.execution.backends.table import Backend, Dispatch, Records
from texplainer.execution.plan import Shard
from texplainer.execution.worker import ShardRecord, explain_kept, failed, keep_pickled

WAVES = 2


def on_spark(order: Dispatch, shards: Iterable[Shard]) -> Records:
    """Explain shards on a session, at a master's address, or on local threads."""
    queue = iter(shards)
    with ExitStack() as stack:
        session = _session(order.on, order.workers, stack)
        pickled: Any = session.sparkContext.broadcast(order.pickled)
        stack.callback(pickled.destroy)
        pool = stack.enter_context(ThreadPoolExecutor(WAVES))
        stack.callback(session.sparkContext.cancelAllJobs)
        flying: set[Future[list[ShardRecord]]] = set()
        while True:
            while len(flying) < WAVES and (wave := list(islice(queue, order.workers))):
                flying.add(pool.submit(_wave, session, pickled, wave, order.job.retries))
            if not flying:
                return
            done, flying = wait(flying, return_when=FIRST_COMPLETED)
            for future in done:
                yield from future.result()


def _wave(session: SparkSession, pickled: Any, wave: list[Shard], retries: int) -> list[ShardRecord]:
    """Run one Spark job; if Spark gives it up, its shards are tried one by one, then recorded as failed."""
    try:
        places = session.range(0, len(wave), 1, len(wave))  # one row in each of as many partitions
        found = places.mapInArrow(_at_worker(pickled, wave), "record string").collect()
        return [ShardRecord(**json.loads(row.record)) for row in found]
    except Exception as error:
        if len(wave) > 1:
            return [record for shard in wave for record in _wave(session, pickled, [shard], retries)]
        if retries:
            return _wave(session, pickled, wave, retries - 1)
        return [failed(wave[0], error)]


def _at_worker(pickled: Any, wave: list[Shard]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def explain(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_pickled(pickled.value)
        for batch in batches:
            for place in batch.column(0).to_pylist():
                record = explain_kept(pickled.value.name, wave[place])
                yield pa.RecordBatch.from_pydict({"record": [json.dumps(asdict(record))]})

    return explain


def _session(on: Any, workers: int, stack: ExitStack) -> SparkSession:
    if not isinstance(on, str):
        return on
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors of this machine: the same Python
    master = f"local[{workers}]" if on == "spark" else on
    builder: Any = SparkSession.builder.master(master).appName("texplainer")  # pyright: ignore
    for quiet in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(quiet, "false")
    session = builder.getOrCreate()
    stack.callback(session.stop)
    return session


def count(on: Any, wish: int | None) -> int:
    """How many shards run at once: the wish, or the session's slots."""
    import joblib

    if wish:
        return wish
    session = on if not isinstance(on, str) else SparkSession.getActiveSession()
    return session.sparkContext.defaultParallelism if session is not None else joblib.cpu_count()


BACKEND = Backend(on_spark, count)
