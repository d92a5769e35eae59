"""A backend: one file in execution/backends/, one line in BACKENDS."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import texplainer as tx
from texplainer.execution.backends.table import BACKENDS

FILE = '''
from texplainer.execution.backends.local import SERIAL
from texplainer.execution.backends.table import Backend

def backwards(order, shards):
    """The last shard first."""
    yield from SERIAL.map(order, list(shards)[::-1])

BACKEND = Backend(backwards, lambda on, wish: 1, ships=False)
'''


@pytest.fixture(autouse=True)
def line(add_file, monkeypatch):
    add_file("texplainer.execution.backends", "backwards", FILE)
    monkeypatch.setitem(BACKENDS, ("backwards",), ("backwards:BACKEND", "files"))


def test_a_new_backend_runs_and_changes_no_value(tmp_path):
    X = np.random.default_rng(0).normal(size=(2000, 3))
    explainer = tx.TExplainer(lambda rows: rows[:, 0] * rows[:, 1], X[:100])
    for on in ("serial", "backwards"):
        report = tx.run(explainer, X, tmp_path / on, on=on, shard_rows=512)
        assert report.code == 0
    parts = [
        [pd.read_parquet(p) for p in sorted((tmp_path / on).glob("part-*"))] for on in ("serial", "backwards")
    ]
    assert len(parts[0]) > 1
    for one, other in zip(*parts, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def test_the_command_line_knows_it(job, command):
    assert command("explain", "model.skops", "data.csv", "-o", "shards/", "--on", "backwards") == 0
    assert list((job / "shards").glob("part-*.parquet"))
