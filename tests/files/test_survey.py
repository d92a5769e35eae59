"""Tables on disk in pieces: whatever the format and the cut, the rows of the file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texplainer.errors import InputError
from texplainer.files import survey, tables

ROWS = 300
SUFFIXES = [".csv", ".parquet", ".arrow", ".jsonl"]


def frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    out = pd.DataFrame({"x": random.normal(size=ROWS), "count": np.arange(ROWS), "late": [1.0] * ROWS})
    out["gap"] = np.where(np.arange(ROWS) == 5, np.nan, random.random(ROWS))
    out["kind"] = np.where(np.arange(ROWS) == 123, "rare", np.where(out.x > 0, "up", "down"))
    out["yes"] = out.x > 0
    out.loc[ROWS - 1, "late"] = 1.5
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables")
    table = frame()
    table.to_csv(path / "t.csv", index=False)
    table.to_parquet(path / "t.parquet", index=False, row_group_size=37)
    table.to_feather(path / "t.arrow", chunksize=41)
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    (path / "t.jsonl").write_text("\n".join(json.dumps(r) for r in records))
    return path


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many blocks in a small file."""
    monkeypatch.setattr(tables, "BLOCK_BYTES", 2000)
    monkeypatch.setattr(tables, "BLOCK_ROWS", 50)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(rows=st.integers(1, 400))
@settings(max_examples=8, deadline=None)
def test_pieces_are_the_table_in_equal_parts(folder: Path, suffix: str, rows: int) -> None:
    found = survey.survey(folder / f"t{suffix}")
    parts = list(survey.pieces(found, found.names, rows))
    assert [len(p) for p in parts[:-1]] == [rows] * (len(parts) - 1)
    joined = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(joined, frame(), check_dtype=False, check_exact=True)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_survey_sees_types_rows_and_levels(folder: Path, suffix: str) -> None:
    found = survey.survey(folder / f"t{suffix}")
    assert found.rows == ROWS and found.names == tuple(frame().columns)
    assert dict(zip(found.names, found.types, strict=True)) == {
        "x": "number", "count": "number", "late": "number", "gap": "number", "kind": "text", "yes": "bool",
    }  # fmt: skip
    assert 123 in found.firsts["kind"] and len(found.firsts["kind"]) == 3


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_sample_is_the_same_in_every_format_and_shows_every_level(folder: Path, suffix: str) -> None:
    found = survey.survey(folder / f"t{suffix}")
    picks = survey.sample_rows(found, found.names, most=20)
    assert 20 <= len(picks) <= 23 and picks == survey.sample_rows(
        survey.survey(folder / "t.csv"), found.names, 20
    )
    taken = survey.take_rows(found, found.names, picks)
    assert set(taken["kind"]) == {"up", "down", "rare"}
    assert taken["count"].tolist() == picks
    assert 123 not in survey.sample_rows(found, ["x"], 20)


def test_a_number_that_turns_into_text_late_is_text_from_the_start(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 2000 + "1,word\n")
    found = survey.survey(tmp_path / "t.csv")
    assert found.types == ("number", "text")
    assert next(survey.pieces(found, ["b"], 10))["b"].tolist() == ["2"] * 10


def test_numbers_may_have_blanks_and_gaps(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n 1 , 2\nNA,\n3,nan\n")
    found = survey.survey(tmp_path / "t.csv")
    assert found.types == ("number", "number")
    piece = next(survey.pieces(found, ["a", "b"], 10))
    np.testing.assert_array_equal(piece.to_numpy(), [[1, 2], [np.nan, np.nan], [3, np.nan]])


def test_columns_are_the_models_or_all_but_the_dropped(folder: Path) -> None:
    found = survey.survey(folder / "t.csv")
    assert survey.columns_for(found, ["gap", "x"]) == ("gap", "x")
    assert survey.columns_for(found, None, ["kind", "yes"]) == ("x", "count", "late", "gap")
    with pytest.raises(InputError, match="does not have the model's columns 'z'"):
        survey.columns_for(found, ["x", "z"])
    with pytest.raises(InputError, match="does not have a column 'z' to drop"):
        survey.columns_for(found, None, ["z"])


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("t.csv", b"a,b\n1,2\n3\n", "damaged"),
        ("t.csv", b"a,a\n1,2\n", "twice"),
        ("t.csv", b"a,b\n", "no rows"),
        ("t.csv", b"\xff\xfe\x00\x01", "damaged"),
        ("t.jsonl", b'{"a": 1}\n{"b": 1}\n', "line 2"),
        ("t.jsonl", b'{"a": 1}\n{"a": 1', "damaged"),
        ("t.jsonl", b'{"a": [1]}\n', "lists"),
        ("t.jsonl", b"[1, 2]\n", "line 1"),
        ("t.parquet", b"PAR1 no PAR1", "damaged"),
        ("t.arrow", b"ARROW1 no", "damaged"),
        ("t.xlsx", b"x", ".parquet"),
    ],
)
def test_a_damaged_table_is_refused_in_one_line(tmp_path: Path, name: str, content: bytes, word: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=word) as refusal:
        survey.survey(tmp_path / name)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".jsonl"])
def test_a_truncated_table_is_refused(folder: Path, tmp_path: Path, suffix: str) -> None:
    whole = (folder / f"t{suffix}").read_bytes()
    (tmp_path / f"t{suffix}").write_bytes(whole[: len(whole) * 2 // 3])
    with pytest.raises(InputError, match="damaged"):
        survey.survey(tmp_path / f"t{suffix}")
