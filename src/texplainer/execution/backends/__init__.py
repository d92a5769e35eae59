"""Where shards are carried out: here, in processes, on Dask, Ray or Spark."""
