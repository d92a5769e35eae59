"""What runs over large tables cost: rows a second on every backend, efficiency, overhead, memory.

    python benchmarks/scale.py                       writes docs/results/scale.md
    python benchmarks/scale.py --rows 100000 --backends serial processes

The table is HIGGS-like: correlated columns of which 28 are the features. Every measurement is a process
of its own. `cpu` is the processor time of the workers a row: unlike the clock it tells also on a busy
machine what a second worker costs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

OUT = Path(__file__).parents[1] / "docs" / "results" / "scale.md"
FEATURES = 28
BACKENDS = {"serial": 1, "processes": 2, "dask": 2, "ray": 2, "spark": 2}
PAPER = {"attribution": "gradient"}
#: the share of --rows each model is given: a black box costs some hundred evaluations a row
SHARE = {"network": 1.0, "trees": 1.0, "black box": 0.02}

ABOUT = """\
28 features, attribution "gradient": 5H-64-NN by its closed form without smoothing, 100 XGBoost trees of
depth 6 by the tree engine, a 32-32 network as a black box. `rows/s, all` counts everything from fitting the
model and starting the workers to the last shard; `steady` counts from the end of the first shards, so that it
tells what a longer run would do. Efficiency compares steady rates. The plain loop writes with pyarrow's
defaults, which cost more than the shards' encoding: hence the negative overheads."""


def write_table(path: Path, rows: int) -> None:
    """Write rows in row groups of 65,536, a piece at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    mix = rng.normal(size=(FEATURES, FEATURES)) / np.sqrt(FEATURES)
    names = [f"f{j}" for j in range(FEATURES)]
    writer = None
    for start in range(0, rows, 65_536):
        cells = rng.normal(size=(min(65_536, rows - start), FEATURES)) @ mix
        table = pa.table({name: cells[:, j] for j, name in enumerate(names)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def explainer_of(kind: str, source: Path):
    """5H-64-NN by its formula, 100 trees by their own engine, a small network as a black box."""
    import pyarrow.parquet as pq
    from sklearn.neural_network import MLPClassifier
    from xgboost import XGBClassifier

    import texplainer as tx

    X = next(pq.ParquetFile(source).iter_batches(4000)).to_pandas()
    y = np.asarray(X["f0"] * X["f1"] + X["f2"] > 0).astype(int)
    if kind == "network":
        network = MLPClassifier((64,) * 5, max_iter=5, random_state=0).fit(X, y)
        return tx.TExplainer(network, X[:500], smoothing=0, **PAPER)
    if kind == "trees":
        trees = XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1).fit(X, y)
        return tx.TExplainer(trees, X[:500], **PAPER)
    small = MLPClassifier((32, 32), max_iter=5, random_state=0).fit(X.to_numpy(), y)
    how = {"feature_names": list(X.columns), "engine": "finite-difference", "scale": "probability"}
    return tx.TExplainer(small.predict_proba, X[:500].to_numpy(), **how, **PAPER)


def plain_loop(kind: str, source: Path, folder: Path) -> dict[str, float]:
    """Read, explain, write: what anyone would write in ten lines."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from texplainer.execution import plan, worker

    explainer = explainer_of(kind, source)
    folder.mkdir(parents=True)
    begun, cpu, rows = time.perf_counter(), time.process_time(), 0
    with worker.one_thread():
        batches = pq.ParquetFile(source).iter_batches(plan.BLOCKS[explainer.engine.exact])
        pieces = []
        for i, batch in enumerate(batches):
            found = worker.explain_quietly(explainer, pa.Table.from_batches([batch]))
            layout = plan.ShardColumns.of(found)
            pieces.append(layout.table(rows, [plan.stored_arrays(found)]))
            rows += len(found)
            if sum(len(p) for p in pieces) >= plan.MOST_ROWS:
                pq.write_table(pa.concat_tables(pieces), folder / f"{i}.parquet")
                pieces = []
        if pieces:
            pq.write_table(pa.concat_tables(pieces), folder / "last.parquet")
    return {
        "seconds": time.perf_counter() - begun,
        "cpu": time.process_time() - cpu,
        "rows": rows,
        "peak": _peak(resource.RUSAGE_SELF),
    }


def measure(kind: str, source: Path, folder: Path, on: str, workers: int) -> dict[str, float]:
    """One run; seconds without starting the workers, the processor time of the shards, peak memory."""
    import texplainer as tx
    from texplainer.execution import manifest

    marks: list[tuple[float, int]] = []
    begun = time.perf_counter()
    report = tx.run(
        explainer_of(kind, source),
        source,
        folder,
        on=on,
        workers=workers,
        progress=lambda done, total: marks.append((time.perf_counter(), done)),
    )
    assert report.ok, str(report)
    found = manifest.read_manifest(folder)
    assert found is not None
    # between the first and the last shard's end: what the starting of workers costs is left out
    first, last = marks[min(workers, len(marks)) - 1], marks[-1]
    steady = (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else report.rows_per_second
    return {
        "seconds": time.perf_counter() - begun,
        "rows": report.rows,
        "steady": steady,
        "cpu": sum(r.cpu for r in found[1]),
        "bytes": sum(r.bytes for r in found[1]),
        "evaluations": report.evaluations,
        "peak": max(r.peak for r in found[1]),
    }


def _peak(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / 1024


def apart(*arguments: str) -> dict[str, float]:
    """Measure in a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--one", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def one(kind: str, source: str, folder: str, on: str, workers: str) -> None:
    warnings.simplefilter("ignore")
    if on == "loop":
        found = plain_loop(kind, Path(source), Path(folder))
    else:
        found = measure(kind, Path(source), Path(folder), on, int(workers))
    print(json.dumps(found))


def study(rows: int, backends: list[str], folder: Path) -> list[str]:
    tables: dict[int, Path] = {}

    def source(count: int) -> str:
        if count not in tables:
            tables[count] = folder / f"rows-{count}.parquet"
            write_table(tables[count], count)
        return str(tables[count])

    lines: list[str] = []
    for kind, share in SHARE.items():
        count = max(int(rows * share), 10_000)
        found = {"loop": apart(kind, source(count), str(folder / f"{kind}-loop"), "loop", "1")}
        runs = [("serial", 1), ("processes", 1), *((b, w) for b, w in BACKENDS.items() if b != "serial")]
        for on, workers in runs:
            if on in backends:
                where = str(folder / f"{kind}-{on}-{workers}")
                found[f"{on}, {workers}"] = apart(kind, source(count), where, on, str(workers))
                print(kind, on, workers, found[f"{on}, {workers}"], flush=True)
        tenth = apart(kind, source(count // 10), str(folder / f"{kind}-tenth"), "serial", "1")
        lines += section(kind, count, found, tenth)
    return lines


def section(kind: str, rows: int, found: dict, tenth: dict) -> list[str]:
    lines = [
        f"## {kind}, {rows:,} rows",
        "",
        "| | seconds | rows/s, all | rows/s, steady | cpu, µs a row | peak MB a worker |",
        "|---|---|---|---|---|---|",
    ]
    for name, f in found.items():
        steady = f.get("steady", f["rows"] / f["seconds"])
        lines.append(
            f"| {'plain loop' if name == 'loop' else name} | {f['seconds']:.1f} | "
            f"{f['rows'] / f['seconds']:,.0f} | {steady:,.0f} | {f['cpu'] / f['rows'] * 1e6:.1f} | "
            f"{f['peak']:.0f} |"
        )
    serial, loop = found["serial, 1"], found["loop"]
    lines += ["", f"- overhead of `run` over the plain loop, cpu: {serial['cpu'] / loop['cpu'] - 1:+.1%}"]
    if "processes, 2" in found:
        single, double = found["processes, 1"], found["processes, 2"]
        lines += [
            f"- efficiency of 2 workers over 1: {double['steady'] / single['steady'] / 2:.0%} by the clock, "
            f"{single['cpu'] / double['cpu']:.0%} by cpu"
        ]
    lines += [
        f"- peak memory at {rows:,} rows over that at {rows // 10:,}: {serial['peak'] / tenth['peak']:.2f}",
        f"- {serial['bytes'] / rows:.0f} bytes and {serial['evaluations'] / rows:.1f} evaluations a row",
        "",
    ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--backends", nargs="+", default=list(BACKENDS))
    parser.add_argument("--output", type=Path, default=OUT)
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(*options.one)
        return
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    from conditions import measured_on

    with tempfile.TemporaryDirectory() as folder:
        body = study(options.rows, options.backends, Path(folder))
    head = [
        "# Runs over large tables",
        "",
        "How fast are tables explained that are larger than memory, and what does `tx.run` cost beside a plain loop?",
        "",
    ]
    foot = [
        "## How",
        "",
        f"`python benchmarks/scale.py --rows {options.rows}`. "
        f"{measured_on('xgboost-cpu', 'pyarrow', 'dask', 'ray', 'pyspark')} With a load above the number of cores the "
        "clock measures the neighbours too, and cpu is the fairer column.",
        "",
        ABOUT,
        "",
    ]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text("\n".join(head + body + foot))
    print(options.output.read_text())


if __name__ == "__main__":
    main()
