"""Sharded runs: the same values however they are cut and carried, and nothing kept that should not be."""

from __future__ import annotations

import functools
import itertools
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge
from sklearn.neural_network import MLPClassifier

import texplainer as tx
from texplainer.errors import InputError
from texplainer.execution import fingerprint, manifest, plan, shards, ship, work
from texplainer.execution.sources import Stream, open_files

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
    return one.schema == other.schema and work.digest_rows(one) == work.digest_rows(other)


def records(folder: Path) -> list[work.Record]:
    found = manifest.read(folder)
    assert found is not None
    return found[1]


# ---------------------------------------------------------------- the same values


@pytest.mark.parametrize("kind", KINDS)
def test_values_do_not_depend_on_the_shard_size(kind, tmp_path):
    explainer, X = explainer_of(kind), table()
    reports = [tx.run(explainer, X, tmp_path / str(n), shard_rows=n) for n in (1, BLOCK + 1, 10**6)]
    assert [r.shards for r in reports] == ([26, 3, 1] if kind == "black box" else [4, 2, 1])
    assert all(r.ok and r.rows == r.explained == ROWS for r in reports)
    first, second, third = (results(r.destination) for r in reports)
    assert same(first, second) and same(first, third)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_a_plain_loop_over_blocks(kind, tmp_path):
    explainer, X = explainer_of(kind), table()
    tx.run(explainer, X, tmp_path, shard_rows=2 * BLOCK)
    explainer, size = ship.rebuilt(explainer), plan.BLOCKS[explainer.engine.exact]
    with work.one_thread():
        parts = [explainer(X[i : i + size]) for i in range(0, ROWS, size)]
    found = results(tmp_path)
    for j, name in enumerate(NAMES):
        loop = np.concatenate([part.values[:, j] for part in parts])
        assert np.array_equal(found[f"values/{name}"].to_numpy(), loop)
    predictions = np.concatenate([part.predictions for part in parts])
    assert np.array_equal(found["predictions"].to_numpy(), predictions)
    assert found["verdict"].to_pylist() == [v for part in parts for v in part.diagnostics.verdict]


def test_processes_write_the_same_bytes(tmp_path):
    for kind in KINDS:
        here, there = tmp_path / kind / "here", tmp_path / kind / "there"
        tx.run(explainer_of(kind), table(), here, shard_rows=BLOCK)
        report = tx.run(explainer_of(kind), table(), there, shard_rows=BLOCK, on="processes", workers=2)
        assert report.ok and same(results(here), results(there))
        assert [r.sha256 for r in records(here)] == sorted(
            (r.sha256 for r in records(there)), key=[r.sha256 for r in records(here)].index
        )


@settings(deadline=None)
@given(rows=st.integers(1, 10**7), wish=st.integers(1, 10**6), block=st.sampled_from([512, 4096]))
def test_shards_are_whole_blocks_and_cover_every_row_once(rows, wish, block):
    size = plan.checked_rows(wish, block)
    cut = plan.cut(rows, size)
    assert size >= wish and size % block == 0
    assert cut[0].start == 0 and cut[-1].stop == rows
    assert all(a.stop == b.start for a, b in itertools.pairwise(cut))
    assert [s.file for s in cut] == sorted(s.file for s in cut)


# ---------------------------------------------------------------- sources


def csv_file(X: pd.DataFrame, path: Path) -> Path:
    X.assign(label=["x"] * len(X)).to_csv(path / "t.csv", index=False, float_format="%.17g")
    return path / "t.csv"


def parquet_folder(X: pd.DataFrame, path: Path) -> Path:
    for i, start in enumerate(range(0, len(X), 5000)):  # row groups and files cut across blocks and shards
        rows = X[start : start + 5000][NAMES[::-1]]
        rows.to_parquet(path / f"{i}.parquet", row_group_size=700, index=False)
    return path


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
    stream = Stream(open_files(sorted(folder.iterdir()), ["b", "a"]))
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


def by_colour(X: pd.DataFrame) -> np.ndarray:
    return np.sin(X["a"].to_numpy()) + (X["colour"] == "red").to_numpy()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (table()[["a", "b", "c"]], "lacks the columns"),
        ("nowhere.parquet", "does not exist"),
        (np.zeros((5, 3)), "expected a path"),
        (pd.DataFrame(columns=NAMES, dtype=float), "0 rows"),
    ],
)
def test_a_source_that_does_not_fit_is_refused(source, words, tmp_path):
    with pytest.raises(InputError, match=words):
        tx.run(explainer_of("trees"), source, tmp_path)


# ---------------------------------------------------------------- resuming


def test_a_finished_run_is_kept_and_a_damaged_shard_is_redone(tmp_path):
    explainer, X = explainer_of("trees"), table()
    tx.run(explainer, X, tmp_path, shard_rows=BLOCK)
    before = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.glob("part-*")}
    assert tx.run(explainer, X, tmp_path).kept == 4
    cut_short, flipped, gone = (tmp_path / f"part-{i:08d}.parquet" for i in (0, 1, 3))
    cut_short.write_bytes(before[cut_short.name][0][:1000])
    flipped.write_bytes(before[flipped.name][0][:500] + b"!" + before[flipped.name][0][501:])
    gone.unlink()
    (tmp_path / ".part-00000003.parquet.0.part").write_bytes(b"torn")
    report = tx.run(explainer, X, tmp_path)
    assert (report.kept, report.explained, report.ok) == (1, ROWS - BLOCK, True)
    after = {p.name: p.read_bytes() for p in tmp_path.glob("part-*")}
    assert after == {name: data for name, (data, _) in before.items()}
    assert (tmp_path / "part-00000002.parquet").stat().st_mtime_ns == before["part-00000002.parquet"][1]
    assert not list(tmp_path.glob(".*"))


def other_background() -> tx.TExplainer:
    old = explainer_of("trees")
    return tx.TExplainer(old.predictor.model, table(400, seed=2))


def other_setting() -> tx.TExplainer:
    return tx.TExplainer(explainer_of("trees").predictor.model, table(400, seed=1), attribution="scaled")


CHANGES = {
    "the model": (lambda: explainer_of("network"), table),
    "the background": (other_background, table),
    r"attribution= \('auto' -> 'scaled'\)": (other_setting, table),
    r"the data's rows \(12988 -> 12989\)": (lambda: explainer_of("trees"), lambda: table(ROWS + 1)),
    r"the data's rows 4096..8192": (
        lambda: explainer_of("trees"),
        lambda: table().mask(np.arange(ROWS)[:, None] == [5000] * 4, 0.5),
    ),
}


@pytest.mark.parametrize("words", CHANGES)
def test_a_change_is_refused_by_name_and_restart_begins_anew(words, tmp_path):
    tx.run(explainer_of("trees"), table(), tmp_path, shard_rows=BLOCK)
    before = {p.name: p.read_bytes() for p in tmp_path.glob("part-*")}
    explainer, X = (make() for make in CHANGES[words])
    with pytest.raises(InputError, match=words):
        tx.run(explainer, X, tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.glob("part-*")} == before
    assert tx.run(explainer, X, tmp_path, restart=True, shard_rows=2 * BLOCK).kept == 0
    assert len(results(tmp_path)) == len(X) and len(list(tmp_path.glob("part-*"))) == 2


def test_files_are_known_by_content_not_by_date(tmp_path):
    (tmp_path / "in").mkdir()
    source = parquet_folder(table(), tmp_path / "in")
    tx.run(explainer_of("trees"), source, tmp_path / "out", shard_rows=BLOCK)
    for file in source.iterdir():
        os.utime(file, (1, 1))
    assert tx.run(explainer_of("trees"), source, tmp_path / "out").kept == 4
    changed = table()
    changed.loc[10, "a"] = -changed.loc[10, "a"]
    parquet_folder(changed, source)
    with pytest.raises(InputError, match=r"the file|rows 0"):
        tx.run(explainer_of("trees"), source, tmp_path / "out")


def test_a_manifest_of_another_run_gives_nothing_away(tmp_path):
    other = table(seed=9)
    tx.run(explainer_of("trees"), table(), tmp_path / "a", shard_rows=BLOCK)
    tx.run(explainer_of("trees"), other, tmp_path / "b", shard_rows=BLOCK)
    expected = results(tmp_path / "a")
    (tmp_path / "a" / manifest.FILE).write_bytes((tmp_path / "b" / manifest.FILE).read_bytes())
    report = tx.run(explainer_of("trees"), table(), tmp_path / "a")
    assert report.kept == 0 and same(results(tmp_path / "a"), expected)
    (tmp_path / "a" / manifest.FILE).write_text("not ours\n")
    with pytest.raises(InputError, match="damaged"):
        tx.run(explainer_of("trees"), table(), tmp_path / "a")
    (tmp_path / "a" / manifest.FILE).unlink()
    with pytest.raises(InputError, match=r"no _manifest"):
        tx.run(explainer_of("trees"), table(), tmp_path / "a")


def test_a_torn_last_line_costs_one_shard(tmp_path):
    tx.run(explainer_of("trees"), table(), tmp_path, shard_rows=BLOCK)
    lines = (tmp_path / manifest.FILE).read_bytes().splitlines(keepends=True)
    (tmp_path / manifest.FILE).write_bytes(b"".join(lines[:4]) + lines[4][:40])
    assert tx.run(explainer_of("trees"), table(), tmp_path).kept == 3


def test_one_run_at_a_time(tmp_path):
    with manifest.alone(tmp_path), pytest.raises(InputError, match="another run"):
        tx.run(explainer_of("trees"), table(), tmp_path)


def test_the_manifest_tells_what_was_done(tmp_path):
    report = tx.run(explainer_of("trees"), table(), tmp_path, shard_rows=2 * BLOCK)
    header = json.loads((tmp_path / manifest.FILE).read_text().splitlines()[0])
    assert header["plan"] == {"rows": ROWS, "block": BLOCK, "shard_rows": 2 * BLOCK, "batch_rows": 16384}
    assert header["base_values"] == explainer_of("trees").background.base.tolist()
    for record in records(tmp_path):
        data = (tmp_path / record.file).read_bytes()
        assert shards.digest(data) == record.sha256 and len(data) == record.bytes
        assert record.engine == report.engine and record.seconds > 0 and record.evaluations > 0
    assert sum(r.rows for r in records(tmp_path)) == ROWS
    assert sum(r.evaluations for r in records(tmp_path)) == report.evaluations


# ---------------------------------------------------------------- fingerprints


def test_models_have_the_same_digest_in_another_process(tmp_path):
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    models = {"torch": net, **{kind: explainer_of(kind).predictor.model for kind in ("network", "trees")}}
    (tmp_path / "models").write_bytes(pickle.dumps(models))
    code = (
        "import pickle, sys, joblib; from texplainer.execution.fingerprint import STATES; "
        "models = pickle.load(open(sys.argv[1], 'rb')); "
        "print([joblib.hash(STATES.get(k, lambda m: m)(m)) for k, m in models.items()])"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "models")]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert there == str([joblib.hash(fingerprint.STATES.get(k, lambda m: m)(m)) for k, m in models.items()])


def test_a_function_is_known_by_what_it_predicts():
    first, second = (
        tx.TExplainer(functools.partial(np.linalg.norm, ord=p, axis=1), table(50)) for p in (1, 2)
    )
    assert fingerprint.model_digest(first) != fingerprint.model_digest(second)
    again = tx.TExplainer(functools.partial(np.linalg.norm, ord=1, axis=1), table(50))
    assert fingerprint.model_digest(first) == fingerprint.model_digest(again)


# ---------------------------------------------------------------- failures


def hates_seven(X: np.ndarray) -> np.ndarray:
    if np.any(X[:, 0] == 7.0):
        raise RuntimeError("seven")
    return X.sum(axis=1)


def test_failing_rows_are_recorded_and_the_others_kept(tmp_path):
    X = table().to_numpy(copy=True)
    X[5, 0], X[1100, 0], X[2000, 1] = 7.0, 7.0, np.inf
    report = tx.run(tx.TExplainer(hates_seven, table(50).to_numpy()), X, tmp_path, shard_rows=BLOCK)
    found = results(tmp_path).to_pandas()
    assert (report.code, report.undefined, report.failed) == (1, 3, ())
    assert "3 rows are undefined" in str(report)
    lost = found[found["verdict"] == "undefined"]
    assert list(lost["row"]) == [5, 1100, 2000]
    assert "seven" in lost["reason"].iloc[0] and "inf" in lost["reason"].iloc[2]
    assert np.isfinite(found["values/x0"]).sum() == ROWS - 3
    assert tx.run(tx.TExplainer(hates_seven, table(50).to_numpy()), X, tmp_path).code == 1


def test_an_unknown_level_costs_its_row_only(tmp_path):
    X = table(1500).assign(colour=["red", "green", "blue"] * 500)
    explainer = tx.TExplainer(by_colour, X[:100])
    report = tx.run(explainer, X.assign(colour=X["colour"].where(X.index != 700, "mauve")), tmp_path)
    lost = results(tmp_path).to_pandas().query("verdict == 'undefined'")
    assert report.undefined == 1 and list(lost["row"]) == [700] and "mauve" in lost["reason"].iloc[0]


def test_blocks_without_a_single_good_row_keep_the_columns(tmp_path):
    X = table().to_numpy(copy=True)
    X[:512, 0], X[512:1024, 2] = 7.0, np.inf
    report = tx.run(tx.TExplainer(hates_seven, table(50).to_numpy()), X, tmp_path, shard_rows=BLOCK)
    assert report.undefined == 1024 and not report.failed
    assert results(tmp_path).schema.names == results(tmp_path).to_pandas().columns.tolist()


class Moody:
    """Fails once on the table's row 1030, when its file says so."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self, X: np.ndarray) -> np.ndarray:
        if np.any(X[:, 0] == table()["a"][1030]) and self.file.exists():
            self.file.unlink()
            raise OSError("try again")
        return np.tanh(X).sum(axis=1)


def test_a_passing_failure_leaves_no_trace(tmp_path):
    explainer = tx.TExplainer(Moody(tmp_path / "mood"), table(50).to_numpy())
    tx.run(explainer, table().to_numpy(), tmp_path / "calm")
    (tmp_path / "mood").touch()
    assert tx.run(explainer, table().to_numpy(), tmp_path / "moody", shard_rows=BLOCK).ok
    assert same(results(tmp_path / "moody"), results(tmp_path / "calm"))


def dies_of_seven(X: np.ndarray) -> np.ndarray:
    if np.any(X[:, 0] == 7.0):
        os.kill(os.getpid(), 9)
    return X.sum(axis=1)


def test_a_shard_that_kills_its_worker_is_given_up_alone(tmp_path):
    X = table(1000).to_numpy(copy=True)
    X[700, 0] = 7.0
    explainer = tx.TExplainer(dies_of_seven, table(50).to_numpy())
    report = tx.run(explainer, X, tmp_path, shard_rows=512, on="processes", workers=2, retries=1)
    assert [r.index for r in report.failed] == [1] and report.code == 1
    assert "Terminated" in report.failed[0].error and report.failed[0].attempts == 2
    assert [r.index for r in records(tmp_path) if not r.error] == [0]


# ---------------------------------------------------------------- shipping, settings, progress


def test_what_cannot_be_shipped_says_so_before_the_run(tmp_path):
    explainer = tx.TExplainer(lambda X: X[:, 0] ** 2, table(50).to_numpy())
    with pytest.raises(InputError, match=r"<lambda> cannot be shipped.*Define the function.*on='serial'"):
        tx.run(explainer, table().to_numpy(), tmp_path / "out", on="processes")
    assert not (tmp_path / "out").exists()
    assert tx.run(explainer, table().to_numpy(), tmp_path / "here").ok


def test_an_open_onnx_session_cannot_be_shipped(tmp_path):
    ort = pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    network = explainer_of("network").predictor.model
    blob = skl2onnx.to_onnx(network, np.zeros((1, 4), np.float32), options={"zipmap": False})
    session = ort.InferenceSession(blob.SerializeToString())
    with pytest.raises(InputError, match=r"InferenceSession cannot be shipped.*opens the session"):
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
    with pytest.raises(InputError, match="no amount of memory"):
        plan.parse_bytes(text)


def test_a_budget_makes_shards_and_batches_smaller(tmp_path):
    report = tx.run(explainer_of("trees"), table(30_000), tmp_path / "a", memory="9MB")
    header = json.loads((tmp_path / "a" / manifest.FILE).read_text().splitlines()[0])
    assert header["plan"]["shard_rows"] == BLOCK and header["plan"]["batch_rows"] == 16384
    assert report.ok
    with pytest.raises(InputError, match="needs at least"):
        tx.run(explainer_of("trees"), table(), tmp_path / "b", memory="100kB")


def test_progress_tells_rows(tmp_path, capsys):
    told: list[tuple[int, int]] = []
    tx.run(
        explainer_of("trees"), table(), tmp_path / "a", shard_rows=BLOCK, progress=lambda *s: told.append(s)
    )
    assert told == [(BLOCK, ROWS), (2 * BLOCK, ROWS), (3 * BLOCK, ROWS), (ROWS, ROWS)]
    tx.run(explainer_of("trees"), table(), tmp_path / "b", progress=True)
    shown = capsys.readouterr().err
    assert "12,988 of 12,988 rows" in shown and "rows/s" in shown
