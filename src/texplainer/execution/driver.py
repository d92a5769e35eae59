"""`run`: plan the shards, keep those that are done, carry out the others, report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from texplainer.errors import InputError
from texplainer.execution import manifest, plan, worker
from texplainer.execution.backends.table import Backend, Dispatch, find_backend
from texplainer.execution.worker import PickledJob, ShardJob, ShardRecord, explain_quietly
from texplainer.explainer import TExplainer
from texplainer.files import audit
from texplainer.files.paths import as_path, sweep_parts, writing
from texplainer.files.sources import ParquetRows, RowStream, digest_rows, open_source
from texplainer.support.progress import OnProgress, reporting


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
    progress: bool | OnProgress | None = None,
    retries: int = 1,
    record: Mapping[str, Any] | None = None,
) -> RunReport:
    """Explain a table of any length into a folder of Parquet shards.

    Values are bit-identical for any `on`, `workers` and `shard_rows`. An interrupted run is resumed when it
    is started again.

    Parameters
    ----------
    explainer
        A TExplainer.
    source
        A table on disk or a folder of them; a pandas, polars, Arrow, Dask or Spark frame, a Ray dataset, an
        array. Columns that the explainer does not use are ignored.
    destination
        The folder for `part-*.parquet` and the manifest; workers must see it under the same path.
    on
        "serial", "processes", "dask", "ray", "spark", a scheduler's address, a Dask client, a SparkSession.
    resume
        Keep the valid shards of an earlier, equal run; False raises an error if the folder contains results.
    restart
        Delete the results of an earlier run.
    shard_rows
        Rows a shard, rounded up to whole blocks of 512 or 4032 rows (`plan.BLOCKS`); the work that a crash
        can lose.
    memory
        Memory per worker for rows and results, such as "2GB", in addition to interpreter and model.
    workers
        Number of workers.
    progress
        True, False, None (a bar on a terminal), or a callback (rows done, rows in total).
    retries
        How often a failing block or shard is tried again.
    record
        Facts for the manifest, for verification; set by the command line.
    """
    if not isinstance(explainer, TExplainer):
        raise InputError(f"explainer is a {type(explainer).__name__}; expected a TExplainer.")
    _check_count("retries", retries, 0)
    _check_count("workers", workers, 1)
    backend = find_backend(on)
    if backend.ships:
        worker.check_travels(explainer)
    folder = as_path(destination).resolve()
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    options = RunOptions(shard_rows, memory, backend.count(on, workers), retries, progress, record)
    with manifest.alone(folder):
        if restart:
            manifest.clear(folder)
        return _run(explainer, source, folder, (backend, on), options, resume)


def _check_count(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number; None leaves the choice to the backend."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise InputError(f"{name}={value!r} is not possible; expected an integer of at least {least}.")


@dataclass(frozen=True)
class RunOptions:
    """Options of a run."""

    shard_rows: int | None
    memory: str | int | None
    workers: int
    retries: int
    progress: bool | OnProgress | None
    record: Mapping[str, Any] | None


def _run(
    explainer: TExplainer,
    source: Any,
    folder: Path,
    place: tuple[Backend, Any],
    options: RunOptions,
    resume: bool,
) -> RunReport:
    """Carry out a run in a folder that no other run is writing to."""
    begun = time.perf_counter()
    earlier = manifest.read_manifest(folder)
    if earlier is not None and not resume:
        raise InputError(f"{folder} holds a run; resume it, restart it, or choose another destination.")
    sweep_parts(folder, manifest.PARTS)
    rows = open_source(
        source, explainer.schema.inner or explainer.schema, folder, explainer.arguments["id_column"]
    )
    if earlier is not None:
        manifest.check_plan(folder, earlier[0])
    job, header = _prepare(explainer, rows, folder, options, earlier[0] if earlier else None)
    done = _verified(folder, rows, header, earlier) if earlier else []
    try:
        manifest.begin(folder, header, done)
    except OSError as error:  # a full disk: the earlier manifest is still there
        words = f"the manifest cannot be written ({error})"
        return sum_up(folder, header, done, [], words, time.perf_counter() - begun)
    backend, on = place
    order = Dispatch(on, job, worker.pack_job(job) if backend.ships else PickledJob(""), options.workers)
    records, stopped = _carry_out(backend, order, folder, header["plan"], done, options.progress)
    return sum_up(folder, header, done, records, stopped, time.perf_counter() - begun)


def _prepare(
    explainer: TExplainer,
    source: ParquetRows,
    folder: Path,
    options: RunOptions,
    earlier: dict[str, Any] | None,
) -> tuple[ShardJob, dict[str, Any]]:
    """The job and the manifest's header; the plan of an earlier run is kept."""
    explainer = worker.unpacked_explainer(explainer)
    layout = shard_columns(explainer, source)
    known = manifest.run_fingerprint(explainer, source)
    if earlier is not None:
        _refuse_changes(manifest.differing_fingerprints(earlier["fingerprint"], known), folder)
        planned = earlier["plan"]
        if planned["rows"] != source.rows:
            _refuse_changes([f"the planned rows ({planned['rows']} -> {source.rows})"], folder)
        wish = options.shard_rows
        if wish is not None and plan.checked_rows(wish, planned["block"]) != planned["shard_rows"]:
            _refuse_changes([f"shard_rows= ({planned['shard_rows']} -> {wish})"], folder)
    else:
        planned = _plan(explainer, source, layout, options)
    if planned["batch_rows"] != explainer.predictor.batch_rows:
        explainer = worker.unpacked_explainer(explainer, planned["batch_rows"])
    name = plan.bytes_digest(repr(known).encode())[:16]
    metadata = {"texplainer.version": known["texplainer"], "texplainer.run": name}
    header = {"fingerprint": known, "plan": planned, **claims(explainer, layout)}
    if options.record is not None:
        facts = dict(options.record)
        header["record"] = audit.audit_record(facts.pop("configuration"), {}, **facts)
    job = ShardJob(explainer, source, str(folder), layout, planned["block"], options.retries, metadata)
    return job, header


def shard_columns(explainer: TExplainer, source: ParquetRows) -> plan.ShardColumns:
    """The columns of an explainer's shards, learnt from one row."""
    found = explain_quietly(explainer, explainer.schema.write(explainer.background.rows[:1]))
    label = explainer.arguments["id_column"]
    labels = plan.row_labels(RowStream(source).read(0, 1), label) if label in source.columns else {}
    return plan.ShardColumns.of(found, labels)


def claims(explainer: TExplainer, layout: plan.ShardColumns) -> dict[str, Any]:
    """What the manifest says of all its rows."""
    several = not isinstance(explainer.arguments["attribution"], str)
    return {
        "engine": explainer.engine.name,
        "scale": explainer.predictor.scale,
        "attribution": list(explainer.arguments["attribution"]) if several else explainer.attribution,
        "features": list(layout.features),
        "outputs": list(layout.outputs),
        "base_values": list(layout.base_values),
    }


def _plan(
    explainer: TExplainer, source: ParquetRows, layout: plan.ShardColumns, options: RunOptions
) -> dict[str, int]:
    block, batch_rows = plan.BLOCKS[explainer.engine.exact], explainer.predictor.batch_rows
    width = explainer.schema.width
    if options.shard_rows is not None:
        shard_rows = plan.checked_rows(options.shard_rows, block)
    else:
        shard_rows = plan.default_rows(source.rows, width, options.workers, block)
    if options.memory is not None:
        shard_rows, batch_rows = plan.fit_to_memory(
            options.memory, width, layout.row_bytes, block, shard_rows, batch_rows
        )
    return {"rows": source.rows, "block": block, "shard_rows": shard_rows, "batch_rows": batch_rows}


def _refuse_changes(words: list[str], folder: Path) -> None:
    if words:
        raise InputError(
            f"{folder} holds the results of another run: {'; '.join(words)} changed. Choose another "
            "destination, or restart (restart=True, --restart)."
        )


def _verified(
    folder: Path,
    source: ParquetRows,
    header: dict[str, Any],
    earlier: tuple[dict[str, Any], list[ShardRecord]],
) -> list[ShardRecord]:
    """The records of an earlier run that can be kept: file unharmed, rows the same."""
    planned = {s.index: s for s in plan.cut_shards(source.rows, header["plan"]["shard_rows"])}
    own = [r for r in earlier[1] if r.index in planned and r.file == planned[r.index].file]
    found = sorted(manifest.sound(folder, own), key=lambda r: r.index)
    if not manifest.same_dates(earlier[0]["fingerprint"], header["fingerprint"]):
        stream = RowStream(source)
        for record in found:
            if digest_rows(stream.read(record.start, record.stop)) != record.input:
                _refuse_changes([f"the data's rows {record.start}..{record.stop}"], folder)
    return found


def _carry_out(
    backend: Backend,
    order: Dispatch,
    folder: Path,
    planned: dict[str, int],
    done: list[ShardRecord],
    progress: bool | OnProgress | None,
) -> tuple[list[ShardRecord], str]:
    """Explain the shards that are missing; every record is in the manifest before the next is awaited."""
    finished = {r.index for r in done}
    todo = [s for s in plan.cut_shards(planned["rows"], planned["shard_rows"]) if s.index not in finished]
    if not todo:
        return [], ""
    rows = sum(r.rows for r in done)
    records: list[ShardRecord] = []
    with reporting(progress, rows, planned["rows"]) as tell, closing(backend.map(order, todo)) as found:
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


@dataclass(frozen=True)
class RunReport:
    """The result of a run.

    Attributes
    ----------
    destination
        The folder of results.
    rows, shards
        Of the whole table.
    kept
        Shards that were already there.
    undefined
        Rows without an explanation; the column `reason` gives the reason.
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
    failed: tuple[ShardRecord, ...]
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
            f"{self.kept} of {self.shards} shards existed before",
            f"results in {self.destination}",
        ]
        if self.undefined:
            lines.append(f"{self.undefined:,} rows are undefined; see the column 'reason'")
        lines += [f"shard {r.index} (rows {r.start}..{r.stop}) failed: {r.error}" for r in self.failed[:10]]
        if len(self.failed) > 10:
            lines.append(f"... and {len(self.failed) - 10} more")
        if self.stopped:
            lines.append(f"stopped early: {self.stopped}; run again to resume")
        return "\n".join(lines)


def sum_up(
    folder: Path,
    header: dict[str, Any],
    done: list[ShardRecord],
    records: list[ShardRecord],
    stopped: str,
    seconds: float,
) -> RunReport:
    """The report of a run from the records kept (`done`) and made; the manifest notes that it ended."""
    good = [r for r in records if not r.error]
    everything = [*done, *good]
    planned = header["plan"]
    report = RunReport(
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
        rows = sum(r.rows for r in everything)
        manifest.append(folder, {"ended": report.code, "rows": rows, "seconds": round(seconds, 3)})
    return report
