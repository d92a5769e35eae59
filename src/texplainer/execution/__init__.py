"""Explain tables of any length: out of core, in resumable shards, on one core or on a cluster.

    source ──sources/spool──▶ Parquet rows ──plan──▶ shards ──mappers──▶ work ──shards──▶ Parquet
                                                        ▲                                    │
                                  manifest, fingerprint ┴────────────────────────────────────┘

Rows are independent, so one function, `work.explain_shard`, does everything that is done at a worker and
the backends (serial, processes, Dask, Ray, Spark) only carry shards to it.
"""

from texplainer.execution.driver import Report, run

__all__ = ["Report", "run"]
