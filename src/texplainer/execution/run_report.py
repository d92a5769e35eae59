"""What became of a run, for a person and for a program."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from texplainer.execution import manifest
from texplainer.execution.worker import ShardRecord


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
