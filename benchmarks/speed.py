"""Speed where users feel it: the first call, the command line, wide tables, missing cells, memory.

    python benchmarks/speed.py              writes docs/results/speed.md

Every figure is taken in a process of its own: processor seconds beyond importing the libraries, medians of
five where a call is repeated, or the most memory the process held. "Before" is version 0.1.0, as its users
reported it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

OUT = Path(__file__).parents[1] / "docs" / "results" / "speed.md"
BOOSTER = """
import numpy as np, xgboost
random = np.random.default_rng(0)
X = random.normal(size=({rows}, {width}))
y = X[:4000, 0] * X[:4000, 1]
model = xgboost.XGBRegressor(n_estimators={trees}, max_depth=6, n_jobs=1).fit(X[:4000], y)
"""
FIRST_CALL = (
    BOOSTER.format(rows=500, width=20, trees=100)
    + """
import time, shap, texplainer as tx
began = time.process_time()
tx.TExplainer(model, X[:200])(X[:100])
print(time.process_time() - began)
"""
)
WIDE = """
import resource, time, numpy as np, texplainer as tx
random = np.random.default_rng(0)
w = random.normal(size=5000) / 70
X = random.normal(size=(60, 5000))
model = lambda rows: np.tanh(rows @ w)
began = time.process_time()
tx.TExplainer(model, X, attribution={attribution!r})(X[:2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, time.process_time() - began)
"""
MISSING = (
    BOOSTER.format(rows=24_000, width=20, trees=100)
    + """
import time, texplainer as tx
holes = X.copy()
holes[random.random(X.shape) < 0.05] = np.nan
model = xgboost.XGBRegressor(n_estimators=100, max_depth=6, n_jobs=1).fit(holes[:4000], y)
explainer = tx.TExplainer(model, holes[:300])
for rows in (X[4000:], holes[4000:]):
    rows = np.ascontiguousarray(rows)
    for call in (explainer, model.predict):
        call(rows[:50])
        times = []
        for _ in range(5):
            began = time.process_time()
            call(rows)
            times.append(time.process_time() - began)
        print(sorted(times)[2])
e = explainer(rows)
whole = explainer(X[4000:])
print(np.isnan(rows).sum(), e.diagnostics.evaluations.sum() - whole.diagnostics.evaluations.sum())
"""
)
SAVED = (
    BOOSTER.format(rows=4000, width="{width}", trees=100)
    + """
model.save_model({folder!r} + "/model.json")
with open({folder!r} + "/rows.csv", "w") as file:
    print(",".join(f"x{{j}}" for j in range({width})), file=file)
    np.savetxt(file, X[:100], delimiter=",")
"""
)
COMMAND = """
import resource, sys
from texplainer.cli import main
try:
    main(["explain", "{folder}/model.json", "{folder}/{table}", "-o", "{folder}/result.parquet"])
except SystemExit as left:
    used = resource.getrusage(resource.RUSAGE_SELF)
    sys.stdout = sys.__stdout__
    print("measured", used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
    sys.exit(left.code)
"""
IMPORTED = """
import resource, xgboost
used = resource.getrusage(resource.RUSAGE_SELF)
print("measured", used.ru_utime + used.ru_stime)
"""
WRITTEN = """
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
X = np.random.default_rng(0).normal(size=({rows}, 50))
table = pa.table({{f"x{{j}}": X[:, j] for j in range(50)}})
pq.write_table(table, {folder!r} + "/t.parquet", row_group_size=5000)
"""
IN_MEMORY = (
    BOOSTER.format(rows="{rows}", width=50, trees=100)
    + """
import resource, texplainer as tx
tx.TExplainer(model, X[:300])(X)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
)
STREAMED = (
    BOOSTER.format(rows=4000, width=50, trees=100)
    + """
import resource, texplainer as tx
explainer = tx.TExplainer(model, X[:300])
tx.run(explainer, {folder!r} + "/t.parquet", {folder!r} + "/out", progress=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
)

IN_MEMORY_NEEDS = (
    "Aim: 1.3. In memory it cannot be met: the caller's own table grows by 69 MB and the result's arrays",
    "(values, gradient, error bounds, data: 69 MB each; steps and flags: 43 MB) with it, nothing else: a",
    "table and its values alone, in any library, would give 1.4. Longer tables go through a file.",
)


def alone(script: str, **environment: str) -> list[float]:
    """The numbers a script prints, run in a process of its own."""
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", **environment}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=settings, capture_output=True)
    if done.returncode:
        raise RuntimeError(done.stderr.decode()[-2000:])
    return [float(word) for word in done.stdout.decode().rpartition("measured")[2].split()]


def first_call() -> list[str]:
    with tempfile.TemporaryDirectory() as cache:
        fresh = alone(FIRST_CALL, NUMBA_CACHE_DIR=cache, XDG_CACHE_HOME=cache)[0]
        second = statistics.median(
            alone(FIRST_CALL, NUMBA_CACHE_DIR=cache, XDG_CACHE_HOME=cache)[0] for _ in range(5)
        )
    return [
        "| first explanation of 100 trees, processor seconds | before | now | aim |",
        "|---|---|---|---|",
        f"| fresh cache, fresh process | 20 | {fresh:.1f} | 4 |",
        f"| second process | | {second:.2f} | 0.5 |",
    ]


def wide() -> list[str]:
    lines = ["| attribution | peak memory, MB | processor seconds |", "|---|---|---|"]
    for spec in ("slope", "shapley", "variation", "gradient"):
        memory, seconds = alone(WIDE.format(spec=spec))
        lines.append(f"| {spec} | {memory:.0f} | {seconds:.1f} |")
    return [*lines, "", "Aim: 600 MB. Before: 13,000 MB and 134 s."]


def missing() -> list[str]:
    whole, own, holes, own_holes, cells, more = alone(MISSING)
    return [
        "| 20,000 rows of a booster | processor seconds | the model's own prediction |",
        "|---|---|---|",
        f"| no cell missing | {whole:.2f} | {own:.3f} |",
        f"| one cell in twenty missing | {holes:.2f} | {own_holes:.3f} |",
        "",
        "Before: 14 s with missing cells. A missing cell is a level of its own, compared with 16 values",
        f"of its column in one walk of the trees, without predictions ({more / cells:.0f} a cell). Of the",
        f"difference {2 * (own_holes - own):.2f} s are the model's: it is asked twice a row and is "
        f"{own_holes / own:.1f} times slower on such rows.",
    ]


def command() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        alone(SAVED.format(folder=folder, width=20))
        explain = COMMAND.format(folder=folder, table="rows.csv")
        alone(explain)  # fills the cache
        took, bare = (statistics.median(alone(script)[0] for _ in range(5)) for script in (explain, IMPORTED))
    return [
        "| processor seconds of the whole process | measured | aim |",
        "|---|---|---|",
        f"| `python -c 'import xgboost'` | {bare:.2f} | |",
        f"| `texplainer explain`, 100 rows of a booster, warm cache | {took:.2f} | |",
        f"| beyond it | {took - bare:.2f} | 1.5 |",
    ]


def memory() -> list[str]:
    lines = ["| 100 trees, 50 columns | 20,000 rows, MB | 200,000 rows, MB | ratio |", "|---|---|---|---|"]
    for name, script in (
        ("in memory, `explainer(X)`", IN_MEMORY),
        ("`tx.run` from a file", STREAMED),
        ("`texplainer explain` to a file", COMMAND),
    ):
        most = []
        for rows in (20_000, 200_000):
            with tempfile.TemporaryDirectory() as folder:
                alone(WRITTEN.format(rows=rows, folder=folder))
                alone(SAVED.format(folder=folder, width=50))
                most.append(alone(script.format(rows=rows, folder=folder, table="t.parquet"))[-1])
        lines.append(f"| {name} | {most[0]:.0f} | {most[1]:.0f} | {most[1] / most[0]:.2f} |")
    return [*lines, "", *IN_MEMORY_NEEDS]


PARTS = {
    "The first call": first_call,
    "The command line": command,
    "5,000 features, two rows, a function of numpy": wide,
    "Missing cells": missing,
    "Memory": memory,
}


def main() -> None:
    text = ["# Speed where users feel it", "", *(__doc__ or "").split("\n")[4:]]
    for title, part in PARTS.items():
        text += [f"## {title}", "", *part(), ""]
        print("\n".join(text[-8:]), flush=True)
    text += [f"Made by `python benchmarks/speed.py`, load {os.getloadavg()[0]:.1f}."]
    OUT.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
