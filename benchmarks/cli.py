"""The command line by the clock and the scale: start-up, and a CSV of a million rows streamed.

    python benchmarks/cli.py                 # 1,000,000 rows x 20 columns, a few minutes
    python benchmarks/cli.py --rows 100000   # smaller
    python benchmarks/cli.py --write docs/results/cli.md

Every figure comes from the real command in a process of its own. Peak memory is the greatest resident
set of that process as the operating system reports it, libraries included; the limit is 1 GB.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from conditions import measured_on

COLUMNS = 20
LIMIT_MB = 1000
LIMIT_SECONDS = 0.5
CHUNK = 50_000
OPTIONS = ("--attribution", "gradient")  # the cheapest: streaming is measured, not the model
COMMAND = str(Path(sys.executable).with_name("texplainer"))
QUESTION = "How fast is the command line, and how much memory does it need?"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--write", type=Path, help="Markdown file to write")
    arguments = parser.parse_args()
    lines = ["| what | measured | limit |", "|---|---|---|"]
    extra = start_up()
    lines.append(
        f"| `texplainer --help` beyond `python -c 'import click'` | {extra:.2f} s | {LIMIT_SECONDS} s |"
    )
    fine = extra < LIMIT_SECONDS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, arguments.rows)
        size = (folder / "data.csv").stat().st_size / 1e6
        for out in ("result.parquet", "result.csv"):
            seconds, peak = measured(["explain", "model.skops", "data.csv", "-o", out, *OPTIONS], folder)
            what = f"`explain` {arguments.rows:,} x {COLUMNS} CSV ({size:,.0f} MB) to {out}"
            speed = f"{seconds:,.0f} s, {arguments.rows / seconds:,.0f} rows/s"
            lines.append(f"| {what} | {peak:,.0f} MB peak, {speed} | {LIMIT_MB:,} MB |")
            fine &= peak < LIMIT_MB
        words = [
            "verify",
            "result.parquet",
            "--model",
            "model.skops",
            "--data",
            "data.csv",
            "--rows",
            "10000",
        ]
        seconds, peak = measured(words, folder)
        lines.append(f"| `verify --rows 10000` of it | {peak:,.0f} MB peak, {seconds:,.0f} s | |")
    lines.append("")
    lines.append("`python benchmarks/cli.py --write FILE`. The model is a small network, and `explain` runs")
    lines.append(
        f"with `{' '.join(OPTIONS)}`, the cheapest: reading and writing are measured, not the model."
    )
    lines += ["", measured_on("pyarrow", "pandas", "skops")]
    print("\n".join(lines))
    if arguments.write:
        head = ["# The command line, measured", "", QUESTION, ""]
        arguments.write.write_text("\n".join([*head, *lines]) + "\n")
    return 0 if fine else 1


def start_up(times: int = 7) -> float:
    """Seconds that help takes beyond importing click, the best of some runs each."""

    def best(words: list[str]) -> float:
        found = []
        for _ in range(times):
            begun = time.perf_counter()
            subprocess.run(words, check=True, capture_output=True)
            found.append(time.perf_counter() - begun)
        return min(found)

    return best([COMMAND, "--help"]) - best([sys.executable, "-c", "import click"])


def make(folder: Path, rows: int) -> None:
    """A table and a network fitted on its first part, which the closed-form engine explains."""
    import pyarrow as pa
    import skops.io
    from pyarrow import csv
    from sklearn.neural_network import MLPClassifier

    random = np.random.default_rng(0)
    names = [f"column {j}" for j in range(COLUMNS)]
    writer = None
    for start in range(0, rows, CHUNK):
        X = random.normal(size=(min(CHUNK, rows - start), COLUMNS))
        table = pa.table({name: X[:, j] for j, name in enumerate(names)})
        if writer is None:
            writer = csv.CSVWriter(folder / "data.csv", table.schema)
            y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
            model = MLPClassifier((32,), solver="lbfgs", max_iter=200, random_state=0).fit(X[:5000], y[:5000])
            skops.io.dump(model, folder / "model.skops")
        writer.write_table(table)
    if writer is not None:
        writer.close()


def measured(words: list[str], folder: Path) -> tuple[float, float]:
    """Seconds and peak megabytes of the command."""
    begun = time.perf_counter()
    process = subprocess.Popen([COMMAND, *words], cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"texplainer {' '.join(words)} left with {process.returncode}")
    return time.perf_counter() - begun, usage.ru_maxrss / 1024


if __name__ == "__main__":
    raise SystemExit(main())
