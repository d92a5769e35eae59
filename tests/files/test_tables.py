"""One table of readers: every format to a file and to a folder alike, and a new one by one row."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import model_shelf
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from texplainer.cli import main
from texplainer.errors import InputError
from texplainer.files import results, sources, survey, tables


def to_json_lines(frame: pd.DataFrame, path: Path) -> None:
    path.write_text("\n".join(json.dumps(record) for record in frame.to_dict("records")))


def to_stream(frame: pd.DataFrame, path: Path) -> None:
    table = pa.Table.from_pandas(frame)
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    ".csv": lambda frame, path: frame.to_csv(path, index=False),
    ".csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    ".tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    ".tsv.gz": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    ".jsonl": to_json_lines,
    ".parquet": lambda frame, path: frame.to_parquet(path, index=False),
    ".arrow": lambda frame, path: frame.to_feather(path),
    ".feather": lambda frame, path: frame.to_feather(path),
    ".ipc": to_stream,
}


def explain(*words: Any) -> int:
    with pytest.raises(SystemExit) as left:
        main(["explain", *(str(word) for word in words)])
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("formats")
    model_shelf.skops(path)
    model_shelf.table().to_csv(path / "table.csv", index=False)
    assert explain(path / "model.skops", path / "table.csv", "-o", path / "truth.npz") == 0
    return path


def explained(folder: Path, data: Path, out: Path) -> tuple[np.ndarray, np.ndarray]:
    """The values of a table explained to a file and to a folder."""
    assert explain(folder / "model.skops", data, "-o", out / "one.npz") == 0
    assert explain(folder / "model.skops", data, "-o", f"{out / 'many'}/") == 0
    many = pq.read_table(sorted((out / "many").glob("part-*.parquet"))).to_pandas()
    one = results.load_explanation(out / "one.npz").values
    return one, many[[f"values/{name}" for name in model_shelf.NAMES]].to_numpy()


def test_every_format_has_its_writer_here() -> None:
    assert list(WRITERS) == list(tables.TABLES)


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_format_is_explained_to_a_file_and_to_a_folder(
    folder: Path, tmp_path: Path, suffix: str
) -> None:
    WRITERS[suffix](model_shelf.table(), tmp_path / f"t{suffix}")
    truth = results.load_explanation(folder / "truth.npz").values
    for found in explained(folder, tmp_path / f"t{suffix}", tmp_path):
        np.testing.assert_allclose(found, truth, rtol=1e-9, atol=1e-12)


def test_a_new_format_is_one_row(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def backwards(path: Path, kinds: tables.Kinds | None, dialect: tables.Dialect) -> Iterator[Any]:
        """A table in JSON whose text is written from right to left."""
        yield pa.RecordBatch.from_pydict(json.loads(path.read_text()[::-1]))

    monkeypatch.setitem(tables.TABLES, ".nosj", tables.TableFormat(backwards))
    content = json.dumps(model_shelf.table().to_dict("list"))
    (tmp_path / "t.nosj").write_text(content[::-1])
    truth = results.load_explanation(folder / "truth.npz").values
    for found in explained(folder, tmp_path / "t.nosj", tmp_path):
        np.testing.assert_allclose(found, truth, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("a;b\n1,5;2\n2,5;3\n", "--separator ';'"),
        ("a|b\n1|2\n2|3\n", r"--separator '\|'"),
        ("a\tb\n1\t2\n2\t3\n", "--separator 'tab'"),
        ('a,b\n"1,5",2\n"2,5",3\n', "'1,5'; its numbers have decimal commas; pass --decimal ,"),
        ("a,b\n1 000,2\n20,3\n", "'1 000'; its numbers have thousands separators"),
        ('a,b\n"1,000,000",2\n20,3\n', "thousands separators"),
        ('a,b\n1,"x\n2,y\n3,z\n', "a quotation mark is not closed"),
        ('a,b\n1,"x\n' + "2,y\n" * 5000, "a quotation mark"),
    ],
)
def test_a_table_in_another_dialect_is_refused_with_the_remedy(
    tmp_path: Path, content: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "BLOCK_BYTES", 2000)
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(InputError, match=word):
        survey.survey(tmp_path / "t.csv")
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write(content)
    with pytest.raises(InputError, match=word):
        survey.survey(tmp_path / "t.csv.gz")


def test_a_dialect_that_is_said_is_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b\n1,5;2\n;3,25\n")
    found = survey.survey(tmp_path / "t.csv", tables.Dialect(";", ","))
    assert found.kinds == {"a": "number", "b": "number"}
    piece = next(survey.pieces(found, ["a", "b"], 10))
    np.testing.assert_array_equal(piece.to_numpy(), [[1.5, 2.0], [np.nan, 3.25]])


@pytest.mark.parametrize(
    ("content", "kinds"),
    [
        ('a,b\n1,"x\ny"\n20,3\n', {"a": "number", "b": "text"}),  # a cell of two lines is closed
        ("a\n1\n2\n", {"a": "number"}),
        ("size\n5' 10\"\n6' 1\"\n5' 2\"\n", {"size": "text"}),  # quotation marks inside a cell
        ("when,b\n1 000 x,2\n20,3\n", {"when": "text", "b": "number"}),
    ],
)
def test_odd_texts_that_are_no_numbers_are_read(tmp_path: Path, content: str, kinds: dict[str, str]) -> None:
    (tmp_path / "t.csv").write_text(content)
    assert survey.survey(tmp_path / "t.csv").kinds == kinds


def test_a_long_parquet_table_is_streamed_and_not_kept(tmp_path):
    """Row groups are held one after the other: Arrow's peak stays far below the table's size."""
    columns = np.random.default_rng(0).normal(size=(20, 200_000))
    table = pa.table({f"x{j}": cells for j, cells in enumerate(columns)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=5000)
    code = """
import sys, pyarrow as pa
from pathlib import Path
from texplainer.files import tables
print(sum(len(b) for b in tables.read_blocks(Path(sys.argv[1]))), pa.default_memory_pool().max_memory())
"""
    words = [sys.executable, "-c", code, str(tmp_path / "t.parquet")]
    rows, peak = map(int, subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())
    assert rows == 200_000
    assert peak < columns.nbytes / 2


@pytest.mark.parametrize("read", ["blocks", "source", "shard", "result"])
def test_a_parquet_bomb_is_refused_before_it_is_decompressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    path = tmp_path / "bomb.parquet"
    zeros = pa.table({"values": np.zeros(2**22)})
    with pq.ParquetWriter(path, zeros.schema, compression="zstd", use_dictionary=False) as writer:
        for _ in range(40):
            writer.write_table(zeros, row_group_size=2**22)
    assert path.stat().st_size < 10**6  # and 1.3 GB unpacked
    for reader in ("iter_batches", "read", "read_row_group"):
        monkeypatch.setattr(pq.ParquetFile, reader, lambda *_, **__: pytest.fail("it was decompressed"))
    monkeypatch.setattr(pq, "read_table", lambda *_, **__: pytest.fail("it was decompressed"))
    ways = {
        "blocks": lambda: list(tables.read_blocks(path)),
        "source": lambda: sources.open_parquet([path], None),
        "shard": lambda: sources.read_shard(path),
        "result": lambda: results.load_explanation(path),
    }
    with pytest.raises(InputError, match=r"would decompress to 1,3\d\d,\d+,\d+ bytes"):
        ways[read]()
