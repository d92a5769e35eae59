"""A table format: one function, one row in TABLES; the same for a file and for a folder of shards."""

from __future__ import annotations

import model_shelf
import pandas as pd
import pytest

import texplainer as tx
from texplainer.files.tables import TABLES, TableFormat


def semicolons(path, kinds, dialect):
    """Numbers between semicolons, in batches."""
    import pyarrow as pa

    frame = pd.read_csv(path, sep=";")
    yield from pa.Table.from_pandas(frame, preserve_index=False).to_batches(max_chunksize=50)


@pytest.fixture(autouse=True)
def row(job, monkeypatch):
    monkeypatch.setitem(TABLES, ".semi", TableFormat(semicolons))
    model_shelf.table().to_csv("data.semi", sep=";", index=False)


def test_a_new_format_is_explained_into_a_file_and_into_a_folder(job, command):
    assert command("explain", "model.skops", "data.semi", "-o", "result.parquet") == 0
    assert command("explain", "model.skops", "data.semi", "-o", "shards/") == 0
    assert command("explain", "model.skops", "data.csv", "-o", "twin.parquet") == 0
    ours, twin = tx.Explanation.load("result.parquet"), tx.Explanation.load("twin.parquet")
    assert len(ours) == len(model_shelf.table())
    assert (ours.values == twin.values).all()
    assert sum(len(pd.read_parquet(part)) for part in (job / "shards").glob("part-*.parquet")) == len(ours)


def test_an_unknown_format_is_refused_with_the_known_ones(job, command, capsys):
    (job / "data.xlsx").write_text("cells")
    assert command("explain", "model.skops", "data.xlsx", "-o", "result.parquet") == 3
    assert ".semi" in capsys.readouterr().err
