"""Speed where users feel it: the first call, wide tables, missing cells, memory of many rows.

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
tx.TExplainer(model, X, attribution={reading!r})(X[:2])
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
    explainer(rows[:50])
    times = []
    for _ in range(5):
        began = time.process_time()
        explainer(rows)
        times.append(time.process_time() - began)
    print(sorted(times)[2])
"""
)
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


def alone(script: str, **environment: str) -> list[float]:
    """The numbers a script prints, run in a process of its own."""
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", **environment}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=settings, capture_output=True)
    if done.returncode:
        raise RuntimeError(done.stderr.decode()[-2000:])
    return [float(word) for word in done.stdout.split()]


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
    lines = ["| reading | peak memory, MB | processor seconds |", "|---|---|---|"]
    for reading in ("local", "shares", "effect", "sensitivity"):
        memory, seconds = alone(WIDE.format(reading=reading))
        lines.append(f"| {reading} | {memory:.0f} | {seconds:.1f} |")
    return [*lines, "", "Aim: 600 MB. Before: 13,000 MB and 134 s."]


def missing() -> list[str]:
    whole, holes = alone(MISSING)
    return [
        "| 20,000 rows of a booster | processor seconds |",
        "|---|---|",
        f"| no cell missing | {whole:.2f} |",
        f"| one cell in twenty missing | {holes:.2f} |",
        "",
        "Before: 14 s with missing cells.",
    ]


def memory() -> list[str]:
    lines = ["| 100 trees, 50 columns | 20,000 rows, MB | 200,000 rows, MB | ratio |", "|---|---|---|---|"]
    for name, script in (("in memory, `explainer(X)`", IN_MEMORY), ("`tx.run` from a file", STREAMED)):
        most = []
        for rows in (20_000, 200_000):
            with tempfile.TemporaryDirectory() as folder:
                alone(WRITTEN.format(rows=rows, folder=folder))
                most += alone(script.format(rows=rows, folder=folder))
        lines.append(f"| {name} | {most[0]:.0f} | {most[1]:.0f} | {most[1] / most[0]:.2f} |")
    return [
        *lines,
        "",
        "In memory, what grows is the table and the result, which the caller keeps. Aim: 1.3.",
    ]


PARTS = {
    "The first call": first_call,
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
