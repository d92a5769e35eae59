"""Shards on a Dask cluster.

The pickled job is sent as a worker plugin: the scheduler gives it once to every worker, also to one that joins
or comes back later. Dask moves the shards of a worker that died to another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from itertools import islice
from typing import Any

from distributed import Client, LocalCluster, WorkerPlugin, as_completed

from texplainer.execution.backends.table import Backend, Dispatch, Records
from texplainer.execution.plan import Shard
from texplainer.execution.worker import PickledJob, explain_kept, failed, forget_pickled, keep_pickled


class Carrier(WorkerPlugin):
    """Leaves the pickled job at a worker."""

    def __init__(self, pickled: PickledJob) -> None:
        self.pickled = pickled
        self.name = f"texplainer-{pickled.name}"

    def setup(self, worker: Any) -> None:
        """Keep the pickled job; called once at every worker."""
        keep_pickled(self.pickled)

    def teardown(self, worker: Any) -> None:
        """Drop the job when the run is over."""
        forget_pickled(self.pickled.name)


def on_dask(order: Dispatch, shards: Iterable[Shard]) -> Records:
    """Explain shards on a client's cluster, at an address, or on a cluster of this machine."""
    queue = iter(shards)
    with ExitStack() as stack:
        client = _client(order.on, order.workers, stack)
        carrier = Carrier(order.pickled)
        client.register_plugin(carrier)
        stack.callback(client.unregister_worker_plugin, carrier.name)
        flying: dict[Any, Shard] = {}
        stack.callback(lambda: client.cancel(list(flying)))
        finished = as_completed()

        def send(count: int) -> None:
            for shard in islice(queue, count):
                # impure: a shard's file is part of its result, so that a remembered one will not do
                future = client.submit(
                    explain_kept,
                    order.pickled.name,
                    shard,
                    pure=False,
                    retries=order.job.retries,
                )
                flying[future] = shard
                finished.add(future)

        send(2 * _threads(client, order.workers))
        for future in finished:
            shard = flying.pop(future)
            error = future.exception()
            yield failed(shard, error, order.job.retries + 1) if error is not None else future.result()
            send(1)


def _client(on: Any, workers: int, stack: ExitStack) -> Client:
    if not isinstance(on, str):
        return on
    if on != "dask":
        return stack.enter_context(Client(on))
    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)  # pyright: ignore
    return stack.enter_context(Client(stack.enter_context(cluster)))


def _threads(client: Client, otherwise: int) -> int:
    known: Any = client.nthreads()
    return sum(known.values()) or otherwise


def count(on: Any, wish: int | None) -> int:
    """How many shards run at once."""
    if on == "dask":
        import joblib

        return wish or joblib.cpu_count()
    if isinstance(on, str):
        with Client(on) as client:
            return _threads(client, wish or 1)
    return _threads(on, wish or 1)


BACKEND = Backend(on_dask, count)
