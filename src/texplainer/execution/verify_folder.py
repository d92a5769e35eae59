"""Is a folder of shards what its model says of its data? Recompute shard by shard, as its workers did.

The manifest's claims, the records of its shards, the bytes of their files and every column in them are
compared with what is computed anew. One shard is in memory at a time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.execution import driver, manifest, plan, worker
from texplainer.execution.worker import ShardJob, ShardRecord, explain_block, one_thread
from texplainer.files import audit, formats, models, verify
from texplainer.files.sources import RowStream, digest_rows, open_source, read_shard

LAST = {"format", "version", "fingerprint", "plan", "record", "sha256"}


def verify_folder(
    folder: Any,
    model: str,
    data: str,
    *,
    background: str | None = None,
    consent: models.Consent | None = None,
    rows: int | None = None,
    tolerance: float = verify.TOLERANCE,
    public_key: Any = None,
) -> verify.Verification:
    """Recompute a run's shards and compare; `rows` limits the work to evenly spaced shards."""
    folder = Path(folder)
    header, records = _read(folder)
    holds, words = manifest.check_folder(folder, header, records.values(), public_key)
    failures = [] if holds else [words]
    if audit.broken_seal(header):
        failures.append("the manifest's header changed after it was written")
    job = verify.repeat_job(folder, header["record"], model, data, background, consent)
    failures += verify.foreign(header["record"], job.facts)
    ledger = verify.Ledger(tolerance)
    with tempfile.TemporaryDirectory() as copy, one_thread():
        explainer = worker.unpacked_explainer(job.explainer, header["plan"]["batch_rows"])
        label = explainer.arguments["id_column"]
        source = open_source(job.table, explainer.schema.inner or explainer.schema, Path(copy), label)
        layout = driver.shard_columns(explainer, source)
        failures += _false_header(header, explainer, source, layout, ledger)
        block = plan.BLOCKS[explainer.engine.exact]
        again = ShardJob(explainer, source, str(folder), layout, block, 0, {})
        planned = plan.cut_shards(source.rows, plan.checked_rows(header["plan"]["shard_rows"], block))
        failures += _wrong_files(folder, planned, records)
        wanted = verify.chosen_blocks(source.rows, planned[0].rows, rows)
        for shard in planned:
            record = records.get(shard.index)
            if record is not None and (folder / shard.file).is_file():
                ledger.total += record.rows
                if wanted is None or shard.index in wanted:
                    failures += _compare_shard(again, shard, record, folder, ledger)
    if ledger.total != job.table.rows:
        failures.append(f"the shards have {ledger.total} rows, the data {job.table.rows}")
    return ledger.close(failures, (words, *verify.differing_environment(header["record"])))


def _read(folder: Path) -> tuple[dict[str, Any], dict[int, ShardRecord]]:
    found = manifest.read_manifest(folder)
    if found is None:
        raise InputError(f"{folder} does not contain a run; expected a folder written by texplainer explain.")
    header, records = found
    record, planned = header.get("record"), header.get("plan")
    names = ("model", "data", "background", "configuration", "software", "floats")
    if not isinstance(record, dict) or not all(isinstance(record.get(name), dict) for name in names):
        raise InputError(
            f"{folder} was written from Python and does not record how to repeat it. Only folders of "
            "texplainer explain can be verified."
        )
    if not isinstance(planned, dict) or not all(
        type(planned.get(name)) is int and planned[name] > 0 for name in ("rows", "shard_rows", "batch_rows")
    ):
        raise InputError(f"the manifest of {folder} is malformed: its plan has no rows.")
    return header, {r.index: r for r in records if not r.error}


def _false_header(
    header: Mapping[str, Any],
    explainer: Any,
    source: Any,
    layout: plan.ShardColumns,
    ledger: verify.Ledger,
) -> list[str]:
    truth = driver.claims(explainer, layout)
    said = {name: value for name, value in header.items() if name not in LAST}
    words = ledger.compare_claims(said, truth)
    planned = header["plan"]
    block = plan.BLOCKS[explainer.engine.exact]
    if planned.get("block") != block or planned["rows"] != source.rows or planned["shard_rows"] % block:
        words.append("the manifest's plan is not one for this table")
    known: Any = header.get("fingerprint")
    try:
        changed = manifest.differing_fingerprints(known, manifest.run_fingerprint(explainer, source))
    except (KeyError, TypeError, AttributeError):
        return [*words, "the manifest's fingerprint is malformed"]
    # the data may have been copied from another format, or moved: its own fingerprint tells
    return words + [
        f"the manifest is of another run: {word} changed" for word in changed if "the file" not in word
    ]


def _wrong_files(folder: Path, planned: list[plan.Shard], records: Mapping[int, ShardRecord]) -> list[str]:
    words = [f"shard {s.index} is missing" for s in planned if s.index not in records]
    expected = {shard.file: shard for shard in planned}
    words += [f"{p.name} is not one of its shards" for p in folder.glob("part-*") if p.name not in expected]
    for record in records.values():
        shard = expected.get(record.file)
        if shard is None or (record.start, record.stop, record.index) != (
            shard.start,
            shard.stop,
            shard.index,
        ):
            words.append(f"the record of shard {record.index} is not one of the plan")
        elif not (folder / record.file).is_file() or plan.digest_file(folder / record.file) != record.sha256:
            words.append(f"{record.file} changed after it was written")
    return words


def _compare_shard(
    job: ShardJob, shard: plan.Shard, record: ShardRecord, folder: Path, ledger: verify.Ledger
) -> Iterator[str]:
    """Compare one shard; what its record says of it that is not so."""
    table = read_shard(folder / shard.file)
    expected = job.layout.array_columns
    if (
        table.column_names != [name for slot in expected for name in slot["columns"]]
        or len(table) != shard.rows
    ):
        yield f"{shard.file} has other rows or columns than its run"
        return
    saved = formats.from_table(table, expected)
    rows = RowStream(job.source).read(shard.start, shard.stop)
    undefined = evaluations = 0
    for at in range(0, shard.rows, job.block):
        found = explain_block(job, rows.slice(at, job.block))
        count = len(found["values"])
        undefined += int(np.sum(found["stability"] == "undefined"))
        evaluations += plan.evaluations_of(found)
        numbers = {"row": np.arange(shard.start + at, shard.start + at + count)}
        part = {name: array[at : at + count] for name, array in saved.items()}
        ledger.add(shard.start + at, part, {**numbers, **found})
    truth = {
        "undefined": undefined,
        "evaluations": evaluations,
        "engine": job.explainer.engine.name,
        "input": digest_rows(rows),
        "bytes": (folder / shard.file).stat().st_size,
    }
    for name, value in truth.items():
        if getattr(record, name) != value:
            said = getattr(record, name)
            yield f"the record of shard {shard.index} says {said!r} for {name}; it is {value!r}"
