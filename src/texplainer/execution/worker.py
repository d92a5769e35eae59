"""What is done at a worker: unpickle the job once, explain the shards that arrive.

A block that fails is tried again; then its failing rows are found by halving and recorded as undefined with
their error. A shard that fails as a whole (it cannot be read or written) gives a record with its error. So
every shard gives a record and nothing is raised.

An explainer is sent as model, background and arguments and is built anew where it arrives. Plain pickle decides
whether it can be sent; what is defined in a script or notebook is sent by value.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import pickle
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.errors import BackgroundWarning, EngineWarning, InputError, ModelError, UndefinedRowsWarning
from texplainer.execution import plan
from texplainer.execution.plan import Shard
from texplainer.explainer import TExplainer
from texplainer.explanation.explanation import Explanation
from texplainer.explanation.fields import by_halves, is_text
from texplainer.files.paths import put_whole
from texplainer.files.sources import ParquetRows, RowStream, digest_rows, encode_parquet
from texplainer.models.libraries import library_called

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class ShardJob:
    """The job data of a worker."""

    explainer: TExplainer
    source: ParquetRows
    destination: str
    layout: plan.ShardColumns
    block: int
    retries: int
    metadata: dict[str, str]


@dataclass(frozen=True)
class PickledJob:
    """A job in bytes, known by its name."""

    name: str
    blob: bytes = field(default=b"", compare=False, repr=False)


@dataclass(frozen=True)
class ShardRecord:
    """The record of a shard.

    `sha256` is of its file, `input` of the rows it was made from; `seconds` by the clock and `cpu` of the
    processor; `peak` the worker's memory so far in MB. A shard with an `error` has no file, and `hopeless`
    says that the next ones would fail likewise.
    """

    index: int
    start: int
    stop: int
    file: str
    sha256: str = ""
    bytes: int = 0
    input: str = ""
    undefined: int = 0
    evaluations: int = 0
    engine: str = ""
    seconds: float = 0.0
    cpu: float = 0.0
    peak: int = 0
    attempts: int = 1
    error: str = ""
    hopeless: bool = False

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.stop - self.start


def explain_shard(job: ShardJob, stream: RowStream, shard: Shard) -> ShardRecord:
    """Explain and write one shard, trying again if it fails."""
    begun, cpu = time.perf_counter(), time.process_time()
    record = ShardRecord(shard.index, shard.start, shard.stop, shard.file)
    for attempt in range(1, job.retries + 2):
        try:
            with one_thread():
                record = _attempt(job, stream, shard)
            spent = {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - cpu}
            return replace(record, attempts=attempt, peak=peak_memory(), **spent)
        except Exception as error:  # whatever it is, the other shards go on
            record = failed(shard, error, attempt)
            stream.close()  # its position is unknown after an error
            if record.hopeless:
                break
    return replace(record, seconds=time.perf_counter() - begun)


def failed(shard: Shard, error: BaseException, attempts: int = 1) -> ShardRecord:
    """The record of a shard that could not be explained."""
    full = isinstance(error, OSError) and error.errno in DISK_FULL
    return ShardRecord(
        shard.index,
        shard.start,
        shard.stop,
        shard.file,
        attempts=attempts,
        error=f"{type(error).__name__}: {error}",
        hopeless=full,
    )


def _attempt(job: ShardJob, stream: RowStream, shard: Shard) -> ShardRecord:
    rows = stream.read(shard.start, shard.stop)
    blocks = [explain_block(job, rows.slice(at, job.block)) for at in range(0, shard.rows, job.block)]
    table = job.layout.table(shard.start, blocks)
    data = encode_parquet(table, job.metadata, [n for n in job.layout.like if is_text(n)])
    put_whole(Path(job.destination) / shard.file, data)
    return ShardRecord(
        shard.index,
        shard.start,
        shard.stop,
        shard.file,
        sha256=plan.bytes_digest(data),
        bytes=data.size,
        input=digest_rows(rows),
        undefined=sum(int(np.sum(block["stability"] == "undefined")) for block in blocks),
        evaluations=sum(plan.evaluations_of(block) for block in blocks),
        engine=job.explainer.engine.name,
    )


def explain_block(job: ShardJob, rows: Any) -> dict[str, np.ndarray]:
    """Explain one block, beside the identifiers of its rows if they have any; failing rows are undefined."""
    pieces: list[dict[str, np.ndarray]] = []
    by_halves(
        range(len(rows)),
        lambda part: pieces.append(_explained(job, rows.slice(part.start, len(part)))),
        lambda _, error: pieces.append(job.layout.blank(1, f"{type(error).__name__}: {error}")),
    )
    label = job.explainer.arguments["id_column"] if job.layout.labels else None
    found = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    return {**plan.row_labels(rows, label), **found}


def _explained(job: ShardJob, rows: Any) -> dict[str, np.ndarray]:
    """Explain some rows; those on which the model fails again are undefined, with its error as reason."""
    try:
        found = _again(job.retries, lambda: explain_quietly(job.explainer, rows))
    except ModelError as error:  # the explainer tried the rows one by one: all of them fail
        return job.layout.blank(len(rows), str(error))
    undefined = _undefined(found)
    lost = np.nonzero(undefined.any(axis=1))[0]
    if job.retries and len(lost) and _recovers(job, rows.take(lost), int(undefined.sum())):
        found = explain_quietly(job.explainer, rows)
    if _undefined(found).all(axis=0).any():  # no row was explained: some arrays were never made
        return {**job.layout.blank(len(rows), ""), **plan.stored_arrays(found)}
    return plan.stored_arrays(found)


def _undefined(found: Explanation) -> np.ndarray:
    """Which rows are undefined, in each attribution that is kept, (rows, attributions)."""
    kept = [found, *found.others.values()]
    return np.stack([one.arrays["stability"] == "undefined" for one in kept], axis=1)


def _recovers(job: ShardJob, rows: Any, undefined: int) -> bool:
    """Whether fewer values of these undefined rows are undefined now; then their block is explained anew."""
    try:
        return int(_undefined(explain_quietly(job.explainer, rows)).sum()) < undefined
    except Exception:
        return False


def explain_quietly(explainer: TExplainer, rows: Any) -> Explanation:
    """Explain rows without warnings; undefined rows are counted in the record."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedRowsWarning)
        return explainer(rows, progress=False)


def _again(retries: int, call: Callable[[], Explanation]) -> Explanation:
    for _ in range(retries):
        with contextlib.suppress(Exception):
            return call()
    return call()


def peak_memory() -> int:
    """The most memory this process has held, in MB; 0 where that is unknown."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    unit = 2**20 if sys.platform == "darwin" else 2**10  # ru_maxrss is in bytes there, in kB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Keep numerical libraries to one thread: workers are the parallelism, and sums keep their order."""
    from threadpoolctl import threadpool_limits

    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch is not None else 1
    if torch is not None:
        torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        if torch is not None:
            torch.set_num_threads(threads)


@contextlib.contextmanager
def as_a_worker() -> Iterator[None]:
    """Build an explainer anew: on one thread, without repeating what was said when it was first built."""
    with one_thread(), warnings.catch_warnings():
        for kind in (BackgroundWarning, EngineWarning):
            warnings.simplefilter("ignore", kind)
        yield


# ---------------------------------------------------------------- at the worker

_KEPT: dict[str, PickledJob] = {}
_OPEN: dict[str, tuple[ShardJob, RowStream]] = {}
_ONE_AT_A_TIME = threading.Lock()  # a stream has one position, a process one setting of threads


def keep_pickled(pickled: PickledJob) -> None:
    """Receive a job; it is unpacked when its first shard arrives."""
    _KEPT[pickled.name] = pickled


def forget_pickled(name: str) -> None:
    """Drop a finished job."""
    _KEPT.pop(name, None)
    _OPEN.pop(name, None)


def explain_kept(name: str, shard: Shard) -> ShardRecord:
    """Explain one shard of a job that was kept before."""
    with _ONE_AT_A_TIME:
        if name not in _OPEN:
            with as_a_worker():
                job: ShardJob = pickle.loads(_KEPT[name].blob)
            _OPEN[name] = (job, RowStream(job.source))
        return explain_shard(*_OPEN[name], shard)


def unpacked_explainer(explainer: TExplainer, batch_rows: int | None = None) -> TExplainer:
    """Return the explainer as a worker rebuilds it; `batch_rows` may be reduced.

    It is pickled even if it stays in this process: pickling turns views into contiguous arrays, and matrix
    products can round differently for them.
    """
    arguments = dict(explainer.arguments)
    with contextlib.suppress(Exception):  # what cannot travel stays as it is
        arguments = pickle.loads(_cloudpickle().dumps(arguments))
    if batch_rows is not None:
        arguments["batch_rows"] = batch_rows
    with as_a_worker():
        return TExplainer(**arguments)


def check_travels(explainer: TExplainer) -> None:
    """Raise before the run starts if the explainer cannot leave this process."""
    try:
        pickle.dumps(explainer)
    except Exception as error:
        model: Any = explainer.predictor.model
        name = getattr(model, "__qualname__", type(model).__qualname__)
        remedy = library_called(explainer.predictor.kind).remedy
        raise InputError(
            f"the model {name} cannot be sent to other processes ({type(error).__name__}: {error}). "
            f"{remedy}, or use on='serial'."
        ) from error


def pack_job(job: ShardJob) -> PickledJob:
    """A job in bytes."""
    blob = _cloudpickle().dumps(job)
    return PickledJob(hashlib.sha256(blob).hexdigest()[:16], blob)


def _cloudpickle() -> Any:
    """The pickler joblib brings along: a package of its own, or part of older versions."""
    try:
        return import_module("cloudpickle")
    except ImportError:
        return import_module("joblib.externals.cloudpickle")
