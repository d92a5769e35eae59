"""`run`: plan the shards, keep those that are done, carry out the others, report."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from texplainer.errors import InputError
from texplainer.execution import fingerprint, manifest, mappers, plan, shards, ship
from texplainer.execution.bar import Tell, telling
from texplainer.execution.sources import Source, Stream
from texplainer.execution.spool import open_source
from texplainer.execution.work import Job, Parcel, Record, digest_rows, explain
from texplainer.explainer import TExplainer


@dataclass(frozen=True)
class Report:
    """What became of a run.

    Attributes
    ----------
    destination
        The folder of results.
    rows, shards
        Of the whole table.
    kept
        Shards that were already there.
    undefined
        Rows without an explanation; the column `reason` tells why.
    failed
        The records of shards that could not be explained or written, with their errors.
    stopped
        Why the run ended early, or "".
    evaluations
        Rows given to the model, of all shards.
    engine, seconds
        The engine's name; the time this run took.
    explained
        Rows explained by this run.
    """

    destination: Path
    rows: int
    shards: int
    kept: int
    undefined: int
    failed: tuple[Record, ...]
    stopped: str
    evaluations: int
    engine: str
    seconds: float
    explained: int

    @property
    def ok(self) -> bool:
        """Whether every row has its explanation."""
        return not (self.failed or self.undefined or self.stopped)

    @property
    def code(self) -> int:
        """The exit code of a program: 0, or 1 if anything is missing."""
        return 0 if self.ok else 1

    @property
    def rows_per_second(self) -> float:
        """Rows explained by this run, a second."""
        return self.explained / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        lines = [
            f"{self.explained:,} rows explained in {self.seconds:,.1f} s "
            f"({self.rows_per_second:,.0f} rows/s, engine {self.engine}); "
            f"{self.kept} of {self.shards} shards were there before",
            f"results in {self.destination}",
        ]
        if self.undefined:
            lines.append(f"{self.undefined:,} rows are undefined; the column 'reason' tells why")
        lines += [f"shard {r.index} (rows {r.start}..{r.stop}) failed: {r.error}" for r in self.failed[:10]]
        if len(self.failed) > 10:
            lines.append(f"... and {len(self.failed) - 10} more")
        if self.stopped:
            lines.append(f"stopped early: {self.stopped}; run again to go on")
        return "\n".join(lines)


def run(
    explainer: TExplainer,
    source: Any,
    destination: str | Path,
    *,
    on: Any = "serial",
    resume: bool = True,
    restart: bool = False,
    shard_rows: int | None = None,
    memory: str | int | None = None,
    workers: int | None = None,
    progress: bool | Tell | None = None,
    retries: int = 1,
) -> Report:
    """Explain a table of any length into a folder of Parquet shards.

    Values do not depend on `on`, `workers` and `shard_rows`, to the last bit. A run that was
    interrupted goes on where it stopped when it is started again.

    Parameters
    ----------
    explainer
        A TExplainer.
    source
        A Parquet, CSV, Arrow or Feather file or a folder of them; a pandas, polars, Arrow, Dask or
        Spark frame, a Ray dataset, an array. Columns the explainer does not know are left out.
    destination
        The folder for `part-*.parquet` and the manifest; workers must see it under the same path.
    on
        "serial", "processes", "dask", "ray", "spark", the address of a scheduler, a
        `dask.distributed.Client` or a `SparkSession`.
    resume
        Keep the sound shards of an earlier run of the same model, data and settings; with False
        a destination that holds results is refused.
    restart
        Throw an earlier run's results away.
    shard_rows
        Rows a shard, rounded up to whole blocks of 512 or 4096 rows (`plan.BLOCKS`); what a crash can cost.
    memory
        Budget of a worker for rows and results, such as "2GB", on top of interpreter and model: makes
        shards and batches smaller if need be.
    workers
        How many workers to start or use.
    progress
        True, False, None (a bar on a terminal), or a function of (rows done, rows in all).
    retries
        How often a failing block or shard is tried again.
    """
    if not isinstance(explainer, TExplainer):
        raise InputError(f"explainer is a {type(explainer).__name__}; expected a TExplainer.")
    backend = mappers.find(on)
    if backend.ships:
        ship.check(explainer)
    folder = Path(destination).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with manifest.alone(folder):
        begun = time.perf_counter()
        if restart:
            manifest.clear(folder)
        earlier = manifest.read(folder)
        if earlier is not None and not resume:
            raise InputError(f"{folder} holds a run; resume it, restart it, or choose another destination.")
        shards.sweep(folder)
        rows = open_source(source, explainer.schema.inner or explainer.schema, folder)
        count = backend.count(on, workers)
        wishes = _Wishes(shard_rows, memory, count, retries)
        job, header = _prepare(explainer, rows, folder, wishes, earlier[0] if earlier else None)
        done = _verified(folder, rows, header, earlier) if earlier else []
        try:
            manifest.begin(folder, header, done)
        except OSError as error:  # a full disk: the earlier manifest is still there
            words = f"the manifest cannot be written ({error})"
            return _report(folder, header, done, [], words, time.perf_counter() - begun)
        order = mappers.Order(on, job, ship.pack(job) if backend.ships else Parcel(""), count)
        records, stopped = _carry_out(backend, order, folder, header["plan"], done, progress)
        return _report(folder, header, done, records, stopped, time.perf_counter() - begun)


@dataclass(frozen=True)
class _Wishes:
    shard_rows: int | None
    memory: str | int | None
    workers: int
    retries: int


def _prepare(
    explainer: TExplainer, source: Source, folder: Path, wishes: _Wishes, earlier: dict[str, Any] | None
) -> tuple[Job, dict[str, Any]]:
    """The job and the manifest's header; the plan of an earlier run is kept."""
    explainer = ship.rebuilt(explainer)
    layout = shards.Layout.of(explain(explainer, explainer.schema.write(explainer.background.rows[:1])))
    known = fingerprint.take(explainer, source)
    if earlier is not None:
        _refuse_changes(fingerprint.changes(earlier["fingerprint"], known), folder)
        planned = earlier["plan"]
        wish = wishes.shard_rows
        if wish is not None and plan.checked_rows(wish, planned["block"]) != planned["shard_rows"]:
            _refuse_changes([f"shard_rows= ({planned['shard_rows']} -> {wish})"], folder)
    else:
        planned = _plan(explainer, source, layout, wishes)
    if planned["batch_rows"] != explainer.predictor.batch_rows:
        explainer = ship.rebuilt(explainer, planned["batch_rows"])
    name = shards.digest(repr(known).encode())[:16]
    metadata = {"texplainer.version": known["texplainer"], "texplainer.run": name}
    header = {
        "fingerprint": known,
        "plan": planned,
        "engine": explainer.engine.name,
        "scale": explainer.predictor.scale,
        "attribution": explainer.attribution,
        "outputs": list(layout.outputs),
        "base_values": list(layout.base_values),
    }
    return Job(explainer, source, str(folder), layout, planned["block"], wishes.retries, metadata), header


def _plan(explainer: TExplainer, source: Source, layout: shards.Layout, wishes: _Wishes) -> dict[str, int]:
    block, batch_rows = plan.BLOCKS[explainer.engine.exact], explainer.predictor.batch_rows
    if wishes.shard_rows is not None:
        shard_rows = plan.checked_rows(wishes.shard_rows, block)
    else:
        shard_rows = plan.default_rows(source.rows, wishes.workers, block)
    if wishes.memory is not None:
        width = explainer.schema.width
        shard_rows, batch_rows = plan.fit_to_memory(
            wishes.memory, width, layout.row_bytes, block, shard_rows, batch_rows
        )
    return {"rows": source.rows, "block": block, "shard_rows": shard_rows, "batch_rows": batch_rows}


def _refuse_changes(words: list[str], folder: Path) -> None:
    if words:
        raise InputError(
            f"{folder} holds the results of another run: {'; '.join(words)} changed. Choose another "
            "destination, or restart (restart=True, --restart) to begin anew."
        )


def _verified(
    folder: Path, source: Source, header: dict[str, Any], earlier: tuple[dict[str, Any], list[Record]]
) -> list[Record]:
    """The records of an earlier run that can be kept: file unharmed, rows the same."""
    planned = {s.index: s for s in plan.cut(source.rows, header["plan"]["shard_rows"])}
    own = [r for r in earlier[1] if r.index in planned and r.file == planned[r.index].file]
    found = sorted(manifest.sound(folder, own), key=lambda r: r.index)
    if not fingerprint.same_dates(earlier[0]["fingerprint"], header["fingerprint"]):
        stream = Stream(source)
        for record in found:
            if digest_rows(stream.read(record.start, record.stop)) != record.input:
                _refuse_changes([f"the data's rows {record.start}..{record.stop}"], folder)
    return found


def _carry_out(
    backend: mappers.Backend,
    order: mappers.Order,
    folder: Path,
    planned: dict[str, int],
    done: list[Record],
    progress: bool | Tell | None,
) -> tuple[list[Record], str]:
    """Explain the shards that are missing; every record is in the manifest before the next is awaited."""
    finished = {r.index for r in done}
    todo = [s for s in plan.cut(planned["rows"], planned["shard_rows"]) if s.index not in finished]
    if not todo:
        return [], ""
    rows = sum(r.rows for r in done)
    records: list[Record] = []
    with telling(progress, rows, planned["rows"]) as tell, closing(backend.map(order, todo)) as found:
        for record in found:
            records.append(record)
            try:
                manifest.append(folder, asdict(record))
            except OSError as error:
                return records, f"the manifest cannot be written ({error})"
            if record.hopeless:
                return records, record.error
            rows += record.rows
            tell(rows, planned["rows"])
    return records, ""


def _report(
    folder: Path,
    header: dict[str, Any],
    done: list[Record],
    records: list[Record],
    stopped: str,
    seconds: float,
) -> Report:
    good = [r for r in records if not r.error]
    everything = [*done, *good]
    planned = header["plan"]
    report = Report(
        destination=folder,
        rows=planned["rows"],
        shards=-(-planned["rows"] // planned["shard_rows"]),
        kept=len(done),
        undefined=sum(r.undefined for r in everything),
        failed=tuple(r for r in records if r.error),
        stopped=stopped,
        evaluations=sum(r.evaluations for r in everything),
        engine=header["engine"],
        seconds=seconds,
        explained=sum(r.rows for r in good),
    )
    if not stopped:
        summing_up = {
            "ended": report.code,
            "rows": sum(r.rows for r in everything),
            "seconds": round(seconds, 3),
        }
        manifest.append(folder, summing_up)
    return report
