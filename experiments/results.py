"""Results on disk: a CSV of scores and a JSON record per run, both put in place by renaming.

The record is written last and holds the configuration's hash and the CSV's SHA-256. A run is finished when
both are there and agree, so a run killed at any moment is either finished or simply not done, and an
interrupted benchmark goes on where it stopped. Scores are kept per row; everything shown is derived from
them.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.plan import Run, configuration_hash, definitions_of
from texplainer.datasets.dataset import in_place

LIBRARIES = (
    *("numpy", "scipy", "scikit-learn", "xgboost-cpu", "xgboost", "torch"),
    *("lightgbm", "shap", "lime", "captum", "shapiq", "treeig", "woodelf_explainer", "lightshap"),
)
DIGITS = 7

#: (explainer, score) -> one number per row
ScoreTable = Mapping[tuple[str, str], NDArray[np.float64]]


@dataclass(frozen=True)
class Result:
    """The outcome of one run: per-row scores and the record beside them."""

    name: str
    scores: ScoreTable
    record: Mapping[str, Any]

    @property
    def configuration(self) -> Mapping[str, Any]:
        """The configuration it answers."""
        return self.record["configuration"]


def measured_by(results: Sequence[Result]) -> str:
    """Which versions of texplainer measured these results."""
    found = sorted({str(result.configuration.get("texplainer", "?")) for result in results})
    return f"texplainer {', '.join(found)}"


def machine(results: Sequence[Result]) -> str:
    """Say on what the results were measured: Python, libraries, processor, load; "" if not recorded."""
    known = [r.record for r in results if "machine" in r.record]
    if not known:
        return ""
    loads = [r["machine"]["load"] for r in known]
    environments = dict.fromkeys(_environment(r) for r in known)
    return f"{'; '.join(sorted(environments))}. Load when a run ended: {min(loads):.1f} to {max(loads):.1f}."


def _environment(record: Mapping[str, Any]) -> str:
    """The kinds of models are not named: the caller knows which ran where."""
    libraries = ", ".join(f"{name} {number}" for name, number in sorted(record["versions"].items()))
    return f"Python {record['machine']['python']} on {record['machine']['processor']} with {libraries}"


def this_machine() -> dict[str, Any]:
    """The interpreter, the processor and the load."""
    return {
        "python": platform.python_version(),
        "processor": ", ".join((processor_name(), f"{os.cpu_count()} cores", *blas_kernels())),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else math.nan,
    }


def blas_kernels() -> list[str]:
    """The kernels that OpenBLAS chose for the processor: others round differently."""
    from threadpoolctl import threadpool_info

    found = {one["architecture"] for one in threadpool_info() if "architecture" in one}
    return [f"BLAS kernel {name}" for name in sorted(found)]


def processor_name() -> str:
    """The processor as Linux names it, else as Python does."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def earlier_definitions(results: Sequence[Result]) -> str:
    """Say that results were measured before the attributions were defined anew; "" if none was."""
    old = [
        one
        for one in results
        if one.configuration.get("definitions", 1) != definitions_of(one.configuration["experiment"]["lines"])
    ]
    if not old:
        return ""
    found = ", ".join(sorted({str(one.configuration.get("texplainer", "?")) for one in old}))
    return f"**Measured with version {found}, by an earlier definition of the attributions; will be measured anew.**"


def finished(run: Run, folder: Path) -> bool:
    """Whether the folder holds a complete result of exactly this configuration."""
    record_path, scores_path = paths(run.name, folder)
    try:
        record = json.loads(record_path.read_text())
        intact = hashlib.sha256(scores_path.read_bytes()).hexdigest() == record["scores_sha256"]
    except (OSError, ValueError, KeyError):
        return False
    return intact and record.get("hash") == run.hash


def write_result(result: Result, folder: Path) -> None:
    """Write a result; the record, which makes it count, comes last."""
    record_path, scores_path = paths(result.name, folder)
    text = to_csv(result.scores)
    record = {
        **result.record,
        "hash": configuration_hash(dict(result.configuration)),
        "versions": versions(),
        "machine": this_machine(),
        "scores_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    for path, content in ((scores_path, text), (record_path, json.dumps(record, indent=1) + "\n")):
        with in_place(path) as part:
            part.write_text(content, newline="")


def read_run(name: str, folder: Path) -> Result:
    """Read a finished run's result."""
    record_path, scores_path = paths(name, folder)
    return Result(name, from_csv(scores_path.read_text()), json.loads(record_path.read_text()))


def paths(name: str, folder: Path) -> tuple[Path, Path]:
    """Name the record and the scores of a run."""
    return folder / f"{name}.json", folder / f"{name}.csv"


def to_csv(scores: ScoreTable) -> str:
    """One line per explainer and row, one column per score; an empty cell is undefined."""
    explainers = list(dict.fromkeys(explainer for explainer, _ in scores))
    columns = list(dict.fromkeys(score for _, score in scores))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["explainer", "row", *columns])
    for explainer in explainers:
        own = {score: scores[explainer, score] for score in columns if (explainer, score) in scores}
        for row in range(max(len(values) for values in own.values())):
            cells = [own[score][row] if score in own else math.nan for score in columns]
            writer.writerow([explainer, row, *("" if math.isnan(c) else f"{c:.{DIGITS}g}" for c in cells)])
    return out.getvalue()


def from_csv(text: str) -> dict[tuple[str, str], NDArray[np.float64]]:
    """Read what `to_csv` wrote; a score with no value at all comes back as all undefined."""
    header, *lines = csv.reader(io.StringIO(text))
    collected: dict[tuple[str, str], list[float]] = {}
    for explainer, _, *cells in lines:
        for score, cell in zip(header[2:], cells, strict=True):
            collected.setdefault((explainer, score), []).append(float(cell) if cell else math.nan)
    return {key: np.array(values) for key, values in collected.items()}


def versions() -> dict[str, str]:
    """Versions of the libraries that can change a score."""
    found: dict[str, str] = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
