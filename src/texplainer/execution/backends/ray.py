"""Shards on a Ray cluster: one actor a worker, each given the pickled job once, from Ray's object store.

Ray starts an actor that died anew; its shard is tried again, then given up.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from importlib import import_module
from itertools import islice
from typing import Any

from texplainer.execution.backends.table import Backend, Dispatch, Records
from texplainer.execution.plan import Shard
from texplainer.execution.worker import PickledJob, ShardRecord, explain_kept, failed, keep_pickled

ray: Any = import_module("ray")  # type checkers take `import ray` for this very file


class Worker:
    """An actor that keeps the pickled job and explains the shards it is given."""

    def __init__(self, pickled: PickledJob) -> None:
        self.name = pickled.name
        keep_pickled(pickled)

    def explain(self, shard: Shard) -> ShardRecord:
        """Explain one shard."""
        return explain_kept(self.name, shard)


def on_ray(order: Dispatch, shards: Iterable[Shard]) -> Records:
    """Explain shards on the running Ray, at a ray:// address, or on a Ray of this machine."""
    queue = iter(shards)
    with ExitStack() as stack:
        _connect(order.on, order.workers, stack)
        pickled = ray.put(order.pickled)
        options = {"num_cpus": 1, "max_restarts": -1, "max_task_retries": order.job.retries}
        actor: Any = ray.remote(Worker).options(**options)
        crew = [actor.remote(pickled) for _ in range(order.workers)]
        for one in crew:
            stack.callback(ray.kill, one)
        flying: dict[Any, tuple[Any, Shard]] = {}

        def send(one: Any, count: int) -> None:
            for shard in islice(queue, count):
                flying[one.explain.remote(shard)] = (one, shard)

        for one in crew:
            send(one, 2)  # the next shard waits at the actor while it works
        while flying:
            for reference in ray.wait(list(flying))[0]:
                one, shard = flying.pop(reference)
                try:
                    record = ray.get(reference)
                except ray.exceptions.RayError as error:
                    record = failed(shard, error, order.job.retries + 1)
                yield record
                send(one, 1)


def _connect(on: str, workers: int | None, stack: ExitStack) -> None:
    if ray.is_initialized():
        return
    if on != "ray":
        ray.init(on)
    elif os.environ.get("RAY_ADDRESS"):
        ray.init()
    else:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    stack.callback(ray.shutdown)


def count(on: Any, wish: int | None) -> int:
    """How many actors are started: the wish, or one a processor of the cluster."""
    import joblib

    if wish:
        return wish
    if not ray.is_initialized() and on == "ray" and not os.environ.get("RAY_ADDRESS"):
        return joblib.cpu_count()
    with ExitStack() as stack:
        _connect(on, None, stack)
        return max(1, int(ray.cluster_resources().get("CPU", 1)))


BACKEND = Backend(on_ray, count)
