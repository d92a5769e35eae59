"""Real clusters of two workers: Dask, Ray and Spark give the bytes of a serial run, also when workers die."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from execution_subjects import BLOCK, KINDS, ROWS, explainer_of, records, results, same, table

import texplainer as tx

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module", autouse=True)
def workers_find_these_tests():
    """Workers import this file's models."""
    with pytest.MonkeyPatch.context() as patch:
        here = str(Path(__file__).parents[2] / "helpers")
        patch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        yield


@pytest.fixture(scope="module")
def dask_client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def ray_cluster():
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield "ray"
    ray.shutdown()


@pytest.fixture(scope="module")
def spark_session():
    pyspark = pytest.importorskip("pyspark.sql")
    session = (
        pyspark.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(params=["dask_client", "ray_cluster", "spark_session"])
def cluster(request) -> Any:
    return request.getfixturevalue(request.param)


# ---------------------------------------------------------------- the same bytes


@pytest.mark.parametrize("kind", KINDS)
def test_a_cluster_writes_the_same_bytes(cluster, kind, tmp_path):
    tx.run(explainer_of(kind), table(), tmp_path / "here", shard_rows=BLOCK)
    report = tx.run(explainer_of(kind), table(), tmp_path / "there", shard_rows=BLOCK, on=cluster, workers=2)
    assert report.ok and report.explained == ROWS, str(report)
    assert same(results(tmp_path / "here"), results(tmp_path / "there"))
    assert {r.sha256 for r in records(tmp_path / "here")} == {r.sha256 for r in records(tmp_path / "there")}


def test_a_run_moves_between_backends(cluster, tmp_path):
    tx.run(explainer_of("trees"), table(), tmp_path, shard_rows=BLOCK)
    expected = results(tmp_path)
    (tmp_path / "part-00000001.parquet").unlink()
    report = tx.run(explainer_of("trees"), table(), tmp_path, on=cluster, workers=2)
    assert report.ok and report.kept == 3 and same(results(tmp_path), expected)


# ---------------------------------------------------------------- their own tables


def test_dask_frames_keep_their_order(dask_client, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(table().assign(label="x"), npartitions=7, sort=False)
    check_source(frame, dask_client, tmp_path)


def test_ray_datasets_keep_their_order(ray_cluster, tmp_path):
    import ray

    parts = [table()[start : start + 2000] for start in range(0, ROWS, 2000)]
    check_source(ray.data.from_pandas(parts), ray_cluster, tmp_path)


def test_spark_frames_keep_their_order(spark_session, tmp_path):
    table().assign(label="x").to_parquet(tmp_path / "t.parquet", index=False)
    check_source(spark_session.read.parquet(f"file://{tmp_path}/t.parquet"), spark_session, tmp_path)


def check_source(source: Any, cluster: Any, folder: Path) -> None:
    tx.run(explainer_of("trees"), table(), folder / "frame", shard_rows=2 * BLOCK)
    assert tx.run(
        explainer_of("trees"), source, folder / "own", shard_rows=2 * BLOCK, on=cluster, workers=2
    ).ok
    assert same(results(folder / "frame"), results(folder / "own"))
    assert tx.run(explainer_of("trees"), source, folder / "own", on=cluster, workers=2).kept == 2


# ---------------------------------------------------------------- once per worker, and when it dies


class Counted:
    """A slow model that leaves a file for every process it arrives in, and for every shard's first call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        (self.folder / f"arrived-{os.getpid()}-{time.time_ns()}").touch()

    def __call__(self, X: np.ndarray) -> np.ndarray:
        (self.folder / f"worked-{os.getpid()}").touch()
        time.sleep(0.02)
        return np.tanh(X).sum(axis=1)


def workers_of(folder: Path, word: str) -> list[int]:
    return [
        int(path.name.split("-")[1])
        for path in folder.glob(f"{word}-*")
        if f"-{os.getpid()}" not in path.name
    ]


def test_the_model_is_shipped_once_per_worker(cluster, tmp_path):
    (tmp_path / "log").mkdir()
    explainer = tx.TExplainer(Counted(tmp_path / "log"), table(60).to_numpy(), step=1e-3)
    report = tx.run(
        explainer, table(12 * 512).to_numpy(), tmp_path / "out", shard_rows=512, on=cluster, workers=2
    )
    assert report.ok and report.shards == 12
    arrived = workers_of(tmp_path / "log", "arrived")
    assert len(arrived) == len(set(arrived)) <= 4, arrived  # Spark may start more Python workers than slots


@pytest.mark.parametrize("name", ["dask_client", "ray_cluster", "spark_session"])
def test_a_worker_killed_in_the_middle_costs_nothing(name, request, tmp_path):
    cluster = request.getfixturevalue(name)
    (tmp_path / "log").mkdir()
    X = table(12 * 512)
    explainer = tx.TExplainer(Counted(tmp_path / "log"), X[:60].to_numpy(), step=1e-3)
    killed: list[int] = []

    def kill() -> None:
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline and not killed:
            busy = [pid for pid in workers_of(tmp_path / "log", "worked") if alive(pid)]
            if busy and list((tmp_path / "out").glob("part-*")):
                os.kill(busy[0], signal.SIGKILL)
                killed.append(busy[0])
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    report = tx.run(explainer, X.to_numpy(), tmp_path / "out", shard_rows=512, on=cluster, workers=2)
    thread.join()
    assert killed and report.ok and report.explained == len(X), str(report)
    tx.run(explainer, X.to_numpy(), tmp_path / "quiet", shard_rows=512)
    assert same(results(tmp_path / "out"), results(tmp_path / "quiet"))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


# ---------------------------------------------------------------- by word and by address


def test_a_word_or_an_address_is_enough(dask_client, ray_cluster, spark_session, tmp_path):
    X: pd.DataFrame = table(1200)
    tx.run(explainer_of("trees"), X, tmp_path / "here")
    for on in (dask_client.scheduler.address, "ray", "spark"):
        folder = tmp_path / on.replace("/", "_")
        assert tx.run(explainer_of("trees"), X, folder, on=on).ok
        assert same(results(folder), results(tmp_path / "here"))
