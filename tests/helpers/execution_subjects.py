"""What sharded runs are tested on: three explainers, a table, and how two results compare."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.kernel_ridge import KernelRidge
from sklearn.neural_network import MLPClassifier

import texplainer as tx
from texplainer.execution import manifest, plan, worker

NAMES = ["a", "b", "c", "d"]
BLOCK = plan.BLOCKS[True]
ROWS = 3 * BLOCK + 700  # three blocks and a short one


def table(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(seed).normal(size=(rows, len(NAMES))), columns=NAMES)


@functools.cache
def explainer_of(kind: str) -> tx.TExplainer:
    """The three ways a gradient is found: a formula, a tree's own, differences of a black box."""
    X = table(400, seed=1)
    y = np.asarray(X["a"] * X["b"] > 0)
    if kind == "network":
        network = MLPClassifier((16, 16, 16), max_iter=60, random_state=0, learning_rate_init=0.01, tol=1e-2)
        return tx.TExplainer(network.fit(X.to_numpy(), y), X)
    if kind == "trees":
        import xgboost

        return tx.TExplainer(xgboost.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1).fit(X, y), X)
    ridge = KernelRidge(kernel="rbf").fit(X[:60], np.sin(X["a"][:60]))
    return tx.TExplainer(ridge.predict, X)


KINDS = ("network", "trees", "black box")


def results(folder: Path) -> pa.Table:
    parts = sorted(folder.glob("part-*.parquet"))
    found = pa.concat_tables([pq.read_table(part).replace_schema_metadata(None) for part in parts])
    assert found["row"].to_pylist() == list(range(len(found)))  # in order, nothing lost, nothing twice
    return found


def same(one: pa.Table, other: pa.Table) -> bool:
    """Equal to the last bit; NaN equals NaN."""
    return one.schema == other.schema and worker.digest_rows(one) == worker.digest_rows(other)


def records(folder: Path) -> list[worker.ShardRecord]:
    found = manifest.read_manifest(folder)
    assert found is not None
    return found[1]


def by_colour(X: pd.DataFrame) -> np.ndarray:
    return np.sin(X["a"].to_numpy()) + (X["colour"] == "red").to_numpy()


def refuses_mauve(X: pd.DataFrame) -> np.ndarray:
    if (X["colour"] == "mauve").any():
        raise ValueError("mauve is no colour")
    return by_colour(X)


def parquet_folder(X: pd.DataFrame, path: Path) -> Path:
    for i, start in enumerate(range(0, len(X), 5000)):  # row groups and files cut across blocks and shards
        rows = X[start : start + 5000][NAMES[::-1]]
        rows.to_parquet(path / f"{i}.parquet", row_group_size=700, index=False)
    return path
