"""What a run is given: sources of every kind, settings, things that cannot travel; and what it tells."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pytest
from execution_subjects import (
    BLOCK,
    NAMES,
    ROWS,
    by_colour,
    explainer_of,
    parquet_folder,
    results,
    same,
    table,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import texplainer as tx
from texplainer.errors import InputError
from texplainer.execution import manifest, plan
from texplainer.files.sources import RowStream, open_parquet

# ---------------------------------------------------------------- sources


def csv_file(X: pd.DataFrame, path: Path) -> Path:
    X.assign(label=["x"] * len(X)).to_csv(path / "t.csv", index=False, float_format="%.17g")
    return path / "t.csv"


def feather_file(X: pd.DataFrame, path: Path) -> Path:
    feather.write_feather(X, path / "t.feather", chunksize=500)
    return path / "t.feather"


SOURCES = {
    "csv": csv_file,
    "parquet folder": parquet_folder,
    "feather": feather_file,
    "polars": lambda X, path: pl.from_pandas(X),
    "arrow": lambda X, path: pa.Table.from_pandas(X),
    "array": lambda X, path: X.to_numpy(),
    "list of files": lambda X, path: sorted(parquet_folder(X, path).glob("*.parquet")),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_same_rows(name, tmp_path):
    (tmp_path / "in").mkdir()
    source = SOURCES[name](table(), tmp_path / "in")
    tx.run(explainer_of("trees"), table(), tmp_path / "frame", shard_rows=2 * BLOCK)
    assert tx.run(explainer_of("trees"), source, tmp_path / "out", shard_rows=2 * BLOCK).ok
    assert same(results(tmp_path / "out"), results(tmp_path / "frame"))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 990), st.integers(1, 400)), min_size=1, max_size=8))
def test_a_stream_gives_any_rows_in_any_order(tmp_path_factory, wishes):
    folder = tmp_path_factory.mktemp("stream")
    X = table(1000)
    for i, start in enumerate((0, 430)):
        X[start : (430, 1000)[i]].to_parquet(folder / f"{i}.parquet", row_group_size=150, index=False)
    stream = RowStream(open_parquet(sorted(folder.iterdir()), ["b", "a"]))
    for start, count in wishes:
        stop = min(start + count, 1000)
        assert stream.read(start, stop).to_pandas().equals(X[["b", "a"]][start:stop].reset_index(drop=True))


def test_categories_travel(tmp_path):
    X = table(1200).assign(colour=pd.Categorical.from_codes(np.arange(1200) % 3, ["red", "green", "blue"]))
    explainer = tx.TExplainer(by_colour, X[:100])
    X.to_csv(tmp_path / "t.csv", index=False, float_format="%.17g")
    tx.run(explainer, X, tmp_path / "frame")
    tx.run(explainer, tmp_path / "t.csv", tmp_path / "csv")
    assert same(results(tmp_path / "frame"), results(tmp_path / "csv"))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (table()[["a", "b", "c"]], "does not have the columns"),
        ("nowhere.parquet", "does not exist"),
        (np.zeros((5, 3)), "expected a path"),
        (pd.DataFrame(columns=NAMES, dtype=float), "0 rows"),
    ],
)
def test_a_source_that_does_not_fit_is_refused(source, words, tmp_path):
    with pytest.raises(InputError, match=words):
        tx.run(explainer_of("trees"), source, tmp_path)


# ---------------------------------------------------------------- shipping, settings, progress


def test_what_cannot_be_shipped_says_so_before_the_run(tmp_path):
    explainer = tx.TExplainer(lambda X: X[:, 0] ** 2, table(50).to_numpy())
    with pytest.raises(InputError, match=r"<lambda> cannot be sent.*Define the function.*on='serial'"):
        tx.run(explainer, table().to_numpy(), tmp_path / "out", on="processes")
    assert not (tmp_path / "out").exists()
    assert tx.run(explainer, table().to_numpy(), tmp_path / "here").ok


def test_an_open_onnx_session_cannot_be_shipped(tmp_path):
    ort = pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    network = explainer_of("network").predictor.model
    blob = skl2onnx.to_onnx(network, np.zeros((1, 4), np.float32), options={"zipmap": False})
    session = ort.InferenceSession(blob.SerializeToString())
    with pytest.raises(InputError, match=r"InferenceSession cannot be sent.*opens the session"):
        tx.run(tx.TExplainer(session, table(50).to_numpy()), table().to_numpy(), tmp_path, on="processes")


@pytest.mark.parametrize("bad", [0, -5, 2.5, True])
def test_a_bad_shard_size_is_refused(bad, tmp_path):
    with pytest.raises(InputError, match="shard_rows"):
        tx.run(explainer_of("trees"), table(), tmp_path, shard_rows=bad)


def test_other_bad_arguments_are_refused(tmp_path):
    with pytest.raises(InputError, match="expected 'serial'"):
        tx.run(explainer_of("trees"), table(), tmp_path, on="slurm")
    with pytest.raises(InputError, match="expected a TExplainer"):
        tx.run(len, table(), tmp_path)  # type: ignore[arg-type]
    tx.run(explainer_of("trees"), table(), tmp_path / "out")
    with pytest.raises(InputError, match="holds a run"):
        tx.run(explainer_of("trees"), table(), tmp_path / "out", resume=False)
    with pytest.raises(InputError, match="shard_rows= "):
        tx.run(explainer_of("trees"), table(), tmp_path / "out", shard_rows=10**6)
    (tmp_path / "in").mkdir()
    with pytest.raises(InputError, match="source and destination"):
        tx.run(explainer_of("trees"), parquet_folder(table(), tmp_path / "in"), tmp_path / "in")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2GB", 2 * 10**9), ("500 MB", 5 * 10**8), ("1.5k", 1500), ("1GiB", 2**30), (4096, 4096)],
)
def test_memory_is_read(text, expected):
    assert plan.parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "lots", "0", "-2GB", "2 GX"])
def test_a_bad_memory_is_refused(text):
    with pytest.raises(InputError, match="an amount of memory such as"):
        plan.parse_bytes(text)


def test_a_budget_makes_shards_and_batches_smaller(tmp_path):
    report = tx.run(explainer_of("trees"), table(30_000), tmp_path / "a", memory="9MB")
    header = json.loads((tmp_path / "a" / manifest.FILE).read_text().splitlines()[0])
    assert header["plan"]["shard_rows"] == BLOCK and header["plan"]["batch_rows"] == 16384
    assert report.ok
    with pytest.raises(InputError, match="needs at least"):
        tx.run(explainer_of("trees"), table(), tmp_path / "b", memory="100kB")


def test_progress_tells_rows(tmp_path, capsys):
    describe: list[tuple[int, int]] = []
    tx.run(
        explainer_of("trees"),
        table(),
        tmp_path / "a",
        shard_rows=BLOCK,
        progress=lambda *s: describe.append(s),
    )
    assert describe == [(BLOCK, ROWS), (2 * BLOCK, ROWS), (3 * BLOCK, ROWS), (ROWS, ROWS)]
    tx.run(explainer_of("trees"), table(), tmp_path / "b", progress=True)
    shown = capsys.readouterr().err
    assert f"{ROWS:,} of {ROWS:,} rows" in shown and "rows/s" in shown
