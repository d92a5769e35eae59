"""The table of backends: a file and a line each.

A backend carries shards to workers and their records back, in whatever order they finish: one function
(`Dispatch`, shards) -> records, found by the word or the object the user gave as `on`. Every backend gives
the pickled job once to each worker and keeps only a few shards in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from texplainer.errors import InputError
from texplainer.execution.plan import Shard
from texplainer.execution.worker import PickledJob, ShardJob, ShardRecord


@dataclass(frozen=True)
class Dispatch:
    """A job for a backend."""

    on: Any
    job: ShardJob
    pickled: PickledJob
    workers: int


Records = Generator[ShardRecord, None, None]
Map = Callable[[Dispatch, Iterable[Shard]], Records]


@dataclass(frozen=True)
class Backend:
    """A backend that explains shards.

    `count` returns the number of workers (given the requested number or None); `ships` is False if the
    explainer stays in this process.
    """

    map: Map
    count: Callable[[Any, int | None], int]
    ships: bool = True


#: words, schemes of addresses and libraries of objects -> module:name of the backend, the extra it needs
BACKENDS: dict[tuple[str, ...], tuple[str, str]] = {
    ("serial",): ("local:SERIAL", "files"),
    ("processes",): ("local:PROCESSES", "files"),
    ("dask", "distributed", "tcp", "tls"): ("dask:BACKEND", "dask"),
    ("ray",): ("ray:BACKEND", "ray"),
    ("spark", "local", "pyspark"): ("spark:BACKEND", "spark"),
}


def find_backend(on: Any) -> Backend:
    """Return the backend of a name, an address or a client object."""
    key = on.split(":")[0].split("[")[0] if isinstance(on, str) else type(on).__module__.split(".")[0]
    place, extra = next((entry for words, entry in BACKENDS.items() if key in words), ("", ""))
    if not place:
        raise InputError(
            f"on={on!r} is unknown; expected {', '.join(repr(words[0]) for words in BACKENDS)}, the address "
            "of a scheduler (tcp://, ray://, spark://), a dask.distributed.Client or a SparkSession."
        )
    module, _, name = place.partition(":")
    module = module if "." in module else f"texplainer.execution.backends.{module}"
    try:
        return getattr(import_module(module), name)
    except ImportError as error:
        raise InputError(
            f"on={on!r} needs a library that is not installed ({error}); pip install 'texplainer[{extra}]'."
        ) from error
