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
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from execution_subjects import (
    BLOCK,
    KINDS,
    NAMES,
    ROWS,
    explainer_of,
    parquet_folder,
    records,
    refuses_mauve,
    results,
    same,
    table,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import texplainer as tx
from texplainer.errors import InputError
from texplainer.execution import manifest, plan, worker
from texplainer.models.libraries import library_of

# ---------------------------------------------------------------- the same values


@pytest.mark.parametrize("kind", KINDS)
def test_values_do_not_depend_on_the_shard_size(kind, tmp_path):
    explainer, X = explainer_of(kind), table()
    reports = [tx.run(explainer, X, tmp_path / str(n), shard_rows=n) for n in (1, BLOCK + 1, 10**6)]
    assert [r.shards for r in reports] == ([4, 2, 1] if explainer.engine.exact else [26, 3, 1])
    assert all(r.ok and r.rows == r.explained == ROWS for r in reports)
    first, second, third = (results(r.destination) for r in reports)
    assert same(first, second) and same(first, third)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_a_plain_loop_over_blocks(kind, tmp_path):
    explainer, X = explainer_of(kind), table()
    tx.run(explainer, X, tmp_path, shard_rows=2 * BLOCK)
    explainer, size = worker.unpacked_explainer(explainer), plan.BLOCKS[explainer.engine.exact]
    with worker.one_thread():
        parts = [explainer(X[i : i + size]) for i in range(0, ROWS, size)]
    found = results(tmp_path)
    for j, name in enumerate(NAMES):
        loop = np.concatenate([part.values[:, j] for part in parts])
        assert np.array_equal(found[f"values/{name}"].to_numpy(), loop)
    predictions = np.concatenate([part.predictions for part in parts])
    assert np.array_equal(found["predictions"].to_numpy(), predictions)
    assert found["stability"].to_pylist() == [v for part in parts for v in part.diagnostics.stability]


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
@given(rows=st.integers(1, 10**7), wish=st.integers(1, 10**6), block=st.sampled_from([512, BLOCK]))
def test_shards_are_whole_blocks_and_cover_every_row_once(rows, wish, block):
    size = plan.checked_rows(wish, block)
    cut = plan.cut_shards(rows, size)
    assert size >= wish and size % block == 0
    assert cut[0].start == 0 and cut[-1].stop == rows
    assert all(a.stop == b.start for a, b in itertools.pairwise(cut))
    assert [s.file for s in cut] == sorted(s.file for s in cut)


@pytest.mark.parametrize("features", [1, 20, 50, 5000])
@pytest.mark.parametrize("block", [512, BLOCK])
def test_shards_of_many_rows_are_no_larger_than_those_of_few(features, block):
    few, many = (plan.default_rows(rows, features, 1, block) for rows in (10**6, 10**9))
    assert few == many and many % block == 0
    assert many * features <= plan.MOST_CELLS or many == block


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
    (tmp_path / f".part-00000003.parquet.{'0' * 32}.part").write_bytes(b"torn")
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
    return tx.TExplainer(explainer_of("trees").predictor.model, table(400, seed=1), attribution="variation")


CHANGES = {
    "the model": (lambda: explainer_of("network"), table),
    "the background": (other_background, table),
    r"attribution= \('auto' -> 'variation'\)": (other_setting, table),
    rf"the data's rows \({ROWS} -> {ROWS + 1}\)": (lambda: explainer_of("trees"), lambda: table(ROWS + 1)),
    f"the data's rows {BLOCK}..{2 * BLOCK}": (
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
    with pytest.raises(InputError, match=r"not _manifest"):
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
        assert plan.bytes_digest(data) == record.sha256 and len(data) == record.bytes
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
        "import pickle, sys, joblib; from texplainer.models.libraries import library_of; "
        "models = pickle.load(open(sys.argv[1], 'rb')); "
        "print([joblib.hash(library_of(m).content(m)) for m in models.values()])"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "models")]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert there == str([joblib.hash(library_of(m).content(m)) for m in models.values()])


def test_the_bytes_between_the_fields_of_nodes_do_not_tell_models_apart():
    nodes = np.dtype([("left", "u1"), ("threshold", "f8")], align=True)
    assert nodes.itemsize > 9
    first, second, third = (
        np.frombuffer(bytes([k]) * 48, dtype=np.uint8).copy().view(nodes) for k in (1, 2, 3)
    )
    for one in (first, second):
        one["left"], one["threshold"] = 5, [0.1, 0.2, 0.3]
    third["left"], third["threshold"] = 5, [0.1, 0.2, 0.4]
    assert first.tobytes() != second.tobytes()
    assert manifest.content_digest([first]) == manifest.content_digest([second])
    assert manifest.content_digest([first]) != manifest.content_digest([third])


def test_a_function_is_known_by_what_it_predicts():
    first, second = (
        tx.TExplainer(functools.partial(np.linalg.norm, ord=p, axis=1), table(50)) for p in (1, 2)
    )
    assert manifest.model_digest(first) != manifest.model_digest(second)
    again = tx.TExplainer(functools.partial(np.linalg.norm, ord=1, axis=1), table(50))
    assert manifest.model_digest(first) == manifest.model_digest(again)


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
    lost = found[found["stability"] == "undefined"]
    assert list(lost["row"]) == [5, 1100, 2000]
    assert "seven" in lost["reason"].iloc[0] and "inf" in lost["reason"].iloc[2]
    assert np.isfinite(found["values/x0"]).sum() == ROWS - 3
    assert tx.run(tx.TExplainer(hates_seven, table(50).to_numpy()), X, tmp_path).code == 1


def test_a_level_the_model_refuses_costs_its_row_only(tmp_path):
    X = table(1500).assign(colour=["red", "green", "blue"] * 500)
    explainer = tx.TExplainer(refuses_mauve, X[:100])
    report = tx.run(explainer, X.assign(colour=X["colour"].where(X.index != 700, "mauve")), tmp_path)
    lost = results(tmp_path).to_pandas().query("stability == 'undefined'")
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


class SecondAttributionFailsOnce:
    """An explainer whose first answer lacks one row of its second attribution."""

    def __init__(self) -> None:
        self.explainer = tx.TExplainer(lambda X: np.tanh(X).sum(axis=1), table(50).to_numpy())
        self.calls = 0

    def __call__(self, rows: pa.Table, progress: bool) -> tx.Explanation:
        self.calls += 1
        found = self.explainer(rows.to_pandas().to_numpy(), attribution=("slope", "shapley"))
        if self.calls == 1:
            found.others["shapley"].arrays["stability"][2] = "undefined"
            found.others["shapley"].arrays["values"][2] = np.nan
        return found


def test_a_row_that_lacks_its_second_attribution_is_tried_again():
    explainer = SecondAttributionFailsOnce()
    layout = SimpleNamespace(labels=False)
    job = worker.ShardJob(explainer, None, "", layout, BLOCK, 1, {})  # type: ignore[arg-type]
    found = worker.explain_block(job, pa.Table.from_pandas(table(5)))
    assert np.isfinite(found["shapley/values"]).all() and explainer.calls == 3  # all, the lost row, all


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


# ---------------------------------------------------------------- identifiers


@pytest.mark.parametrize("kind", [str, int])
def test_the_identifiers_of_rows_are_kept_in_the_shards(kind, tmp_path):
    X = table().assign(key=[kind(7 * i + 10**6) for i in range(ROWS)])
    explainer = tx.TExplainer(explainer_of("trees").predictor.model, X, id_column="key")
    assert tx.run(explainer, X[["key", *NAMES]], tmp_path / "frame", shard_rows=BLOCK).ok
    X.to_parquet(tmp_path / "rows.parquet")
    assert tx.run(explainer, tmp_path / "rows.parquet", tmp_path / "file").ok
    for name in ("frame", "file"):
        found = results(tmp_path / name)
        assert found["index"].to_pylist() == X["key"].tolist()
        assert found["row"].to_pylist() == list(range(ROWS))


def test_a_run_refuses_identifiers_that_are_not_there(tmp_path):
    explainer = tx.TExplainer(
        explainer_of("trees").predictor.model, table().assign(key=range(ROWS)), id_column="key"
    )
    with pytest.raises(InputError, match=r"does not have the columns \['key'\]"):
        tx.run(explainer, table(), tmp_path / "without")
    X = table().assign(key=pd.array([*range(ROWS - 1), None], dtype="Int64"))
    report = tx.run(explainer, X, tmp_path / "missing", shard_rows=BLOCK, retries=0)
    assert "'key' has 1 missing values" in report.failed[-1].error
