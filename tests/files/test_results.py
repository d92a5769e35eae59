"""Saved explanations: round trips, pieces, plain readers, damage."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from texplainer import Explanation
from texplainer.errors import InputError
from texplainer.explanation import fields
from texplainer.explanation.explanation import CategoryEffects
from texplainer.files import results
from texplainer.support import hashing

FULL = [".npz", ".parquet", ".arrow", ".feather"]
SHORT = [".csv", ".jsonl"]


def explanation(rows: int = 7, outputs: int = 2, mixed: bool = True) -> Explanation:
    """One with everything: two outputs, text, categories, a trace, NaN, infinities, odd names."""
    random = np.random.default_rng(0)
    values = random.normal(size=(rows, 3, outputs))
    values[0, 1] = np.nan
    values[1, 0] = -0.0
    data = np.empty((rows, 3), dtype=object)
    data[:, 0] = random.normal(size=rows).tolist()
    data[:, 1] = [None if i == 2 else f"le,vel\n{i % 2}" for i in range(rows)]
    data[:, 2] = list(range(rows))
    if not mixed:
        data = random.normal(size=(rows, 3))
        data[0, 0], data[1, 0] = np.inf, np.nan
    reason = np.array(["", 'a "quoted" reason,\nin two lines', *[""] * (rows - 2)], dtype=object)
    found = Explanation.build(
        values,
        data=data,
        base_values=random.normal(size=outputs),
        predictions=random.normal(size=(rows, outputs)),
        gradient=random.normal(size=values.shape),
        feature_names=("a/b", "c\\", "d"),
        output_names=[f"class {o}" for o in range(outputs)],
        diagnostics={
            "error": random.random(values.shape).astype(np.float32),
            "flags": random.integers(0, 8, (rows, 3)).astype(np.uint8),
            "evaluations": np.arange(rows),
            "trace": random.random((rows, 4)),
            "stability": np.array(["undefined"] + ["stable"] * (rows - 1)),
            "reason": reason,
        },
        scale="log-odds",
        engine="tree",
        attribution="slope",
        units=("per SD", "per SD", "this category"),
        settings={"step": "auto", "width": np.float64(0.5)},
        categories={
            "d": CategoryEffects(("x", "y"), random.random((rows, 2, outputs)), np.array([0.3, 0.7]))
        },
    )
    other = dataclasses.replace(
        found,
        arrays={**found.arrays, "values": -values, "stability": np.array(["stable"] * rows)},
        attribution="shapley",
        engine="walks",
        settings={"step": "auto", "why": "walks"},
        units=("share", "share", "share"),
    )
    return found.with_other(other)


def assert_same(found: Explanation, expected: Explanation, names: Any = None) -> None:
    for name in names or expected.arrays:
        a, b = found.arrays[name], expected.arrays[name]
        assert a.dtype == b.dtype and a.shape == b.shape, name
        assert hashing.canonical_bytes(a) == hashing.canonical_bytes(b), name


@pytest.mark.parametrize("suffix", FULL + SHORT)
@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("outputs", [1, 2])
def test_what_is_saved_is_loaded(tmp_path: Path, suffix: str, mixed: bool, outputs: int) -> None:
    saved = explanation(mixed=mixed, outputs=outputs)
    saved.save(tmp_path / f"result{suffix}")
    loaded = Explanation.load(tmp_path / f"result{suffix}")
    short = [n for n in saved.arrays if n in fields.held(saved.arrays, "short")]
    assert_same(loaded, saved, None if suffix in FULL else short)
    assert loaded.values.shape == saved.values.shape
    for word in ("feature_names", "output_names", "scale", "attribution", "engine", "dropped"):
        assert getattr(loaded, word) == getattr(saved, word)
    assert dict(loaded.settings) == {"step": "auto", "width": 0.5}
    if suffix in FULL:
        assert loaded.categories["d"].levels == ("x", "y")
        assert (loaded.categories["d"].effects == saved.categories["d"].effects).all()
        assert (loaded.categories["d"].frequencies == saved.categories["d"].frequencies).all()


#: what a format does not hold, by design, and why
NOT_HELD = {
    **{(suffix, "live"): "a file has no explainer to ask" for suffix in FULL + SHORT},
    **{(suffix, "positions"): "the rows of a file are numbered from 0" for suffix in FULL + SHORT},
    **{
        (suffix, "categories"): "formats for people hold a row's values, not every level's"
        for suffix in SHORT
    },
}


@pytest.mark.parametrize("suffix", FULL + SHORT)
@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Explanation)])
def test_every_field_survives(tmp_path: Path, suffix: str, field: str) -> None:
    """A field that is added to Explanation fails here until it is saved, or listed above."""
    saved = explanation().with_index(np.array(["ann", "bob", "cy", "di", "ed", "fay", "guy"], dtype=object))
    default = {f.name: f.default for f in dataclasses.fields(Explanation)}[field]
    if field not in ("live", "dropped", "positions"):
        assert getattr(saved, field) != default, f"give the example a {field} of its own"
    saved.save(tmp_path / f"result{suffix}")
    loaded = getattr(Explanation.load(tmp_path / f"result{suffix}"), field)
    if (suffix, field) in NOT_HELD:
        assert not loaded, NOT_HELD[suffix, field]
    else:
        assert_equal_parts(loaded, getattr(saved, field), suffix)


def assert_equal_parts(loaded: Any, saved: Any, suffix: str) -> None:
    """Compare mappings, arrays and dataclasses part by part, in their types."""
    if dataclasses.is_dataclass(saved):
        skipped = {f for s, f in NOT_HELD if s == suffix} if isinstance(saved, Explanation) else set()
        saved, loaded = ({k: v for k, v in vars(one).items() if k not in skipped} for one in (saved, loaded))
    if isinstance(saved, np.ndarray):
        assert loaded.dtype == saved.dtype and loaded.shape == saved.shape
        assert hashing.canonical_bytes(loaded) == hashing.canonical_bytes(saved)
    elif isinstance(saved, dict):
        left_out = (
            set(saved) - set(fields.held(saved, "short")) if suffix in SHORT and "values" in saved else set()
        )
        assert {*loaded} - left_out == {*saved} - left_out
        for name in {*saved} - left_out:
            assert_equal_parts(loaded[name], saved[name], suffix)
    else:
        assert loaded == saved and isinstance(saved, type(loaded))  # np.float64 is a float


@pytest.mark.parametrize("suffix", FULL + SHORT)
def test_every_array_of_an_explainer_survives(tmp_path: Path, suffix: str) -> None:
    """Whatever arrays the attributions and engines make; short formats hold those of `fields.FIELDS`."""
    import texplainer as tx

    X = np.random.default_rng(0).normal(size=(60, 3))
    X[:, 2] = np.arange(60) % 3
    explainer = tx.TExplainer(lambda X: X[:, 0] ** 2 + X[:, 1] * (X[:, 2] == 1), X, categorical=["x2"])
    for name in tx.attributions.table.GENERAL:
        saved = explainer(X[:4], attribution=name)
        saved.save(tmp_path / f"result{suffix}")
        loaded = Explanation.load(tmp_path / f"result{suffix}")
        assert saved.others == {}
        for field in set(vars(saved)) - {"settings"} - {f for s, f in NOT_HELD if s == suffix}:
            assert_equal_parts(getattr(loaded, field), getattr(saved, field), suffix)
        assert len(loaded.units) == 3, "the mark of categories"


@pytest.mark.parametrize("suffix", FULL + SHORT)
def test_one_row_of_an_explanation_keeps_its_shape(tmp_path: Path, suffix: str) -> None:
    one = explanation(mixed=False)[3]
    one.save(tmp_path / f"one{suffix}")
    loaded = results.load_explanation(tmp_path / f"one{suffix}")
    assert loaded.values.shape == (3, 2) and (loaded.values == one.values).all()


@pytest.mark.parametrize("suffix", FULL + SHORT)
def test_base_values_of_each_row_are_kept(tmp_path: Path, suffix: str) -> None:
    own = Explanation.build(
        np.ones((3, 2)), data=np.ones((3, 2)), base_values=np.array([[1.0], [2.0], [3.0]])
    )
    own.save(tmp_path / f"own{suffix}")
    assert results.load_explanation(tmp_path / f"own{suffix}").base_values.tolist() == [1, 2, 3]


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv"])
@given(cuts=st.lists(st.integers(1, 6), max_size=4))
@settings(max_examples=10, deadline=None)
def test_pieces_give_the_file_of_the_whole(tmp_path_factory: Any, suffix: str, cuts: list[int]) -> None:
    folder = tmp_path_factory.mktemp("pieces")
    whole = explanation()
    results.save_explanation(whole, folder / f"whole{suffix}")
    edges = [0, *sorted(set(cuts)), 7]
    with results.ResultWriter(folder / f"pieces{suffix}") as writer:
        for start, end in itertools.pairwise(edges):
            writer.write(whole[start:end])
    a, b = (
        results.read_result(folder / f"{name}{suffix}")[0]["record"]["values"] for name in ("whole", "pieces")
    )
    assert a == b


@given(arrays_of.arrays(np.float64, (4, 2), elements=st.floats(allow_nan=True, allow_infinity=True)))
@settings(max_examples=25, deadline=None)
def test_any_double_survives_every_format(tmp_path_factory: Any, values: np.ndarray) -> None:
    folder = tmp_path_factory.mktemp("doubles")
    for suffix in FULL + SHORT:
        results.save_explanation(Explanation.build(values, data=values), folder / f"x{suffix}")
        assert_same(
            results.load_explanation(folder / f"x{suffix}"),
            Explanation.build(values, data=values),
            ["values", "data"],
        )


def test_a_trace_of_another_length_is_padded(tmp_path: Path) -> None:
    def piece(length: int) -> Explanation:
        return Explanation.build(
            np.ones((2, 1)), data=np.ones((2, 1)), diagnostics={"trace": np.ones((2, length))}
        )

    with results.ResultWriter(tmp_path / "x.parquet") as writer:
        for length in (3, 2, 5):
            writer.write(piece(length))
    trace = results.load_explanation(tmp_path / "x.parquet").arrays["trace"]
    assert trace.shape == (6, 3) and np.isnan(trace).sum() == 2


def test_plain_readers_open_the_files(tmp_path: Path) -> None:
    import pandas as pd
    import pyarrow.feather
    import pyarrow.parquet as pq

    saved = explanation()
    for suffix in (".npz", ".parquet", ".feather", ".csv"):
        results.save_explanation(saved, tmp_path / f"x{suffix}")
    with np.load(tmp_path / "x.npz", allow_pickle=False) as archive:
        assert (archive["gradient"] == saved.gradient).all()
        assert json.loads(archive["header"].tobytes())["format"] == results.FORMAT
    column = "values/d/class 1"
    expected = saved.values[:, 2, 1]
    assert (pq.read_table(tmp_path / "x.parquet")[column].to_numpy() == expected).all()
    assert json.loads(pq.read_metadata(tmp_path / "x.parquet").metadata[b"texplainer"])["scale"] == "log-odds"
    assert (pyarrow.feather.read_table(tmp_path / "x.feather")[column].to_numpy() == expected).all()
    assert (pd.read_csv(tmp_path / "x.csv", float_precision="round_trip")[column] == expected).all()


@pytest.mark.parametrize("version", [1, 99])
@pytest.mark.parametrize("suffix", FULL + SHORT)
def test_another_version_is_refused(
    tmp_path: Path, suffix: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "VERSION", version)
    results.save_explanation(explanation(), tmp_path / f"new{suffix}")
    monkeypatch.undo()
    with pytest.raises(InputError, match=rf"version {version}, written by texplainer .* reads version"):
        results.load_explanation(tmp_path / f"new{suffix}")


@pytest.mark.parametrize("suffix", FULL + SHORT)
@pytest.mark.parametrize("harm", ["empty", "truncated", "noise", "other"])
def test_a_damaged_file_is_refused(tmp_path: Path, suffix: str, harm: str) -> None:
    path = tmp_path / f"result{suffix}"
    results.save_explanation(explanation(rows=50), path)
    whole = path.read_bytes()
    harmed = {
        "empty": b"",
        "truncated": whole[: len(whole) * 2 // 3],
        "noise": np.random.default_rng(0).bytes(500),
        "other": b"PK\x05\x06" + bytes(18),
    }
    path.write_bytes(harmed[harm])
    with pytest.raises(InputError, match="result"):
        results.load_explanation(path)


def test_a_file_is_hashed_by_block_before_its_rows_are_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small Parquet file may unpack to more than the memory: a changed one is refused before that."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "result.parquet"
    results.save_explanation(explanation(rows=50), path)
    header, table = pq.read_metadata(path).metadata, pq.read_table(path)
    many = pa.concat_tables([table.slice(0, 1)] * 20_000).replace_schema_metadata(header)
    pq.write_table(many, path)
    monkeypatch.setattr(results, "KEPT_BYTES", 0)
    monkeypatch.setattr(results, "read_result", lambda _: pytest.fail("all rows were collected"))
    with pytest.raises(InputError, match="was changed after it was saved"):
        results.load_explanation(path)


@pytest.mark.parametrize(("kept", "reads"), [(0, 2), (results.KEPT_BYTES, 1)])
def test_a_result_of_usual_size_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int, reads: int
) -> None:
    saved, opened = explanation(), []
    results.save_explanation(saved, tmp_path / "result.npz")
    open_result = results.open_result
    monkeypatch.setattr(results, "KEPT_BYTES", kept)
    monkeypatch.setattr(results, "open_result", lambda path: opened.append(path) or open_result(path))
    assert_same(results.load_explanation(tmp_path / "result.npz"), saved)
    assert len(opened) == reads


def test_a_result_with_more_cells_than_its_size_can_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "result.parquet"
    results.save_explanation(explanation(rows=50), path)
    header, table = pq.read_metadata(path).metadata, pq.read_table(path)
    with pq.ParquetWriter(path, table.schema.with_metadata(header)) as writer:  # runs of one value
        many = table.take([0] * 200_000).replace_schema_metadata(header)
        for _ in range(20):
            writer.write_table(many, row_group_size=len(many))
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: pytest.fail("it was decompressed"))
    with pytest.raises(InputError, match=r"holds 4,000,000 rows.*It is damaged"):
        results.load_explanation(path)


@pytest.mark.parametrize("suffix", FULL + SHORT)
def test_no_changed_byte_of_a_number_goes_unnoticed(tmp_path: Path, suffix: str) -> None:
    """Flip one bit at many places: either the file is refused or nothing that is loaded changed."""
    path = tmp_path / f"result{suffix}"
    saved = explanation(rows=20, mixed=False)
    results.save_explanation(saved, path)
    whole = path.read_bytes()
    caught = 0
    for at in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            loaded = results.load_explanation(path)
        except InputError:
            caught += 1
        else:
            assert_same(loaded, saved, ["values", "predictions", "data"])
    assert caught > 30


def test_a_changed_header_is_noticed(tmp_path: Path) -> None:
    results.save_explanation(explanation(), tmp_path / "x.csv")
    beside = results.sidecar(tmp_path / "x.csv")
    beside.write_text(beside.read_text().replace('"log-odds"', '"probability"'))
    with pytest.raises(InputError, match="the header"):
        results.load_explanation(tmp_path / "x.csv")
    beside.unlink()
    with pytest.raises(InputError, match="keep the two files together"):
        results.load_explanation(tmp_path / "x.csv")


def test_an_unfinished_file_never_gets_its_name(tmp_path: Path) -> None:
    for suffix in FULL + SHORT:
        with pytest.raises(RuntimeError), results.ResultWriter(tmp_path / f"x{suffix}") as writer:
            writer.write(explanation())
            raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_suffix_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.npz.*\.parquet"):
        results.save_explanation(explanation(), tmp_path / "x.xlsx")


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_tables_without_pyarrow_say_what_to_install(suffix, tmp_path, monkeypatch):
    explanation = Explanation.build(np.ones((2, 2)), data=np.ones((2, 2)))
    monkeypatch.setattr("texplainer.files.results.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs pyarrow.*texplainer\[files\]"):
        explanation.save(tmp_path / f"result{suffix}")
    explanation.save(tmp_path / "result.npz")
