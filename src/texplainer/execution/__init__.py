"""Explain tables of any length: out of core, in resumable shards, on one core or on a cluster.

    source ──files.sources──▶ Parquet rows ──plan──▶ shards ──backends──▶ worker ──▶ Parquet
                                                        ▲                            │
                                            manifest ───┴────────────────────────────┘

Rows are independent, so one function, `worker.explain_shard`, does everything that is done at a worker and
the backends (serial, processes, Dask, Ray, Spark) only carry shards to it.
"""

from importlib.util import find_spec

if find_spec("pyarrow") is None:
    raise ImportError("sharded runs need pyarrow, which is not installed; pip install 'texplainer[files]'.")

from texplainer.execution.driver import RunReport, run

__all__ = ["RunReport", "run"]
