"""The command line refuses what would destroy, mislead or collide, and says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import model_shelf
import pytest

from texplainer.cli import main
from texplainer.files import results

MODEL = """
import sys, time
from pathlib import Path

def leaving(table):
    sys.exit(0)

def slow(table):
    time.sleep(float(Path("seconds").read_text()))
    return table.to_numpy(dtype=float).sum(axis=1)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    model_shelf.skops(tmp_path)
    model_shelf.table().to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "hostile_model.py").write_text(MODEL)
    (tmp_path / "seconds").write_text("0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def run(*words: Any) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def said(capsys: Any) -> str:
    return capsys.readouterr().err


OVERWRITING = {
    "the data": ("data.csv",),
    "the data by another path": ("../{here}/data.csv",),
    "the data by a link": ("link.csv",),
    "the model": ("model.skops",),
    "the background": ("data.parquet", "--background", "data.parquet"),
    "the header beside the result": ("side.csv", "--background", "side.csv.json"),
}


@pytest.mark.parametrize("case", OVERWRITING)
def test_an_output_that_is_an_input_is_refused(folder: Path, case: str, capsys: Any) -> None:
    (folder / "link.csv").symlink_to(folder / "data.csv")
    model_shelf.table().to_parquet(folder / "data.parquet", index=False)
    (folder / "side.csv.json").write_text("{}")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    out, *more = (word.format(here=folder.name) for word in OVERWRITING[case])
    assert run("explain", "model.skops", "data.csv", "-o", out, *more) == 3
    assert "is read by this command" in said(capsys)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_other_commands_do_not_overwrite_their_input_either(folder: Path, capsys: Any) -> None:
    assert run("explain", "model.skops", "data.csv", "-o", "r.npz") == 0
    before = (folder / "r.npz").read_bytes()
    assert run("report", "r.npz", "-o", "r.npz") == 3
    assert run("verify", "r.npz", "--model", "model.skops", "--data", "data.csv", "-o", "r.npz") == 3
    assert (folder / "r.npz").read_bytes() == before


def test_a_second_run_into_the_same_file_is_refused(folder: Path, capsys: Any) -> None:
    (folder / "seconds").write_text("0.3")
    words = [sys.executable, "-m", "texplainer", "explain", "hostile_model:slow", "data.csv"]
    options = ["--drop", "kind", "--step", "0.01"] if "kind" in model_shelf.table() else ["--step", "0.01"]
    first = subprocess.Popen([*words, *options, "-o", "r.csv"], stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(folder)])})  # fmt: skip
    part = folder / ".r.csv.lock"
    deadline = time.monotonic() + 120
    while not part.exists() and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert part.exists(), first.communicate()[1]
    assert run("explain", "model.skops", "data.csv", "-o", "r.csv") == 3
    assert "another run is writing" in said(capsys)
    assert first.wait(120) == 0 and not part.exists()
    assert results.load_explanation(folder / "r.csv").settings["model"] == "function"


def test_a_file_left_by_a_killed_run_is_no_obstacle(folder: Path) -> None:
    (folder / ".r.parquet.part").write_bytes(b"torn")
    assert run("explain", "model.skops", "data.csv", "-o", "r.parquet") == 0
    assert len(results.load_explanation(folder / "r.parquet")) == len(model_shelf.table())


def test_a_model_that_leaves_is_reported(folder: Path, capsys: Any) -> None:
    assert run("explain", "hostile_model:leaving", "data.csv", "-o", "r.csv") == 4
    assert "SystemExit" in said(capsys) and not (folder / "r.csv").exists()


def test_a_module_that_leaves_when_imported_is_reported(folder: Path, capsys: Any) -> None:
    (folder / "leaves_at_once.py").write_text("import sys\nsys.exit(0)\n")
    assert run("explain", "leaves_at_once:model", "data.csv", "-o", "r.csv") == 3
    assert "SystemExit" in said(capsys)


def test_semicolons_and_decimal_commas_are_noticed_and_read_when_said(folder: Path, capsys: Any) -> None:
    assert run("explain", "model.skops", "data.csv", "-o", "truth.npz") == 0
    model_shelf.table().to_csv(folder / "de.csv", index=False, sep=";", decimal=",")
    assert run("explain", "model.skops", "de.csv", "-o", "r.npz") == 3
    assert "--separator ';'" in said(capsys)
    assert run("explain", "model.skops", "de.csv", "-o", "r.npz", "--separator", ";") == 3
    assert "--decimal ," in said(capsys)
    dialect = ("--separator", ";", "--decimal", ",")
    assert run("explain", "model.skops", "de.csv", "-o", "r.npz", *dialect) == 0
    truth, found = (results.load_explanation(folder / name) for name in ("truth.npz", "r.npz"))
    assert (truth.values == found.values).all()
    assert run("explain", "model.skops", "de.csv", "-o", "shards/", *dialect) == 0
    assert run("verify", "r.npz", "--model", "model.skops", "--data", "de.csv") == 0


#: the words of a command -> what it answers instead of doing something else
REFUSED = {
    "an empty output": (["explain", "model.skops", "data.csv", "-o", ""], "given to -o is empty"),
    "an empty table": (["explain", "model.skops", "", "-o", "r.csv"], "path of a file is empty"),
    "a folder as background": (
        ["explain", "model.skops", "data.csv", "-o", "r.csv", "--background", "."],
        "is a folder; expected a file",
    ),
    "a feature to drop": (
        ["explain", "model.skops", "data.csv", "-o", "r.csv", "--drop", "{feature}"],
        "it cannot be dropped",
    ),
    "one mark for two": (
        ["explain", "model.skops", "data.csv", "-o", "r.csv", "--separator", ",", "--decimal", ","],
        "are both ','",
    ),
    "another encoding": (["explain", "model.skops", "latin.csv", "-o", "r.csv"], "is not in UTF-8"),
    "no place to write": (
        ["explain", "model.skops", "data.csv", "-o", "data.csv/r.csv"],
        "data.csv cannot be used: ",
    ),
    "a missing key": (
        ["explain", "model.skops", "data.csv", "-o", "r.csv", "--sign", "no.pem"],
        "no.pem cannot be used: No such file",
    ),
    "a row beyond the table": (
        ["explain", "model.skops", "data.csv", "--row", "1" + "0" * 30],
        "rows, counted from 0",
    ),
    "a negative row": (["explain", "model.skops", "data.csv", "--row", "-1"], "not in the range"),
    "a page over a table": (["report", "r.npz", "-o", "data.csv"], "expected .html"),
    "a folder as result": (["report", "."], "is a folder; expected a file"),
    "an unknown data set": (["datasets", "nope"], "unknown data set 'nope'"),
    **{
        f"a tolerance of {number}": (
            ["verify", "r.npz", "--model", "model.skops", "--data", "data.csv", "--tolerance", number],
            "expected a number of at least 0",
        )
        for number in ("nan", "-1", "inf")
    },
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_odd_command_is_refused_in_a_sentence(folder: Path, case: str, capsys: Any) -> None:
    words, expected = REFUSED[case]
    (folder / "latin.csv").write_bytes("a,b\n\xe9,\xe9\n".encode("latin-1"))
    if "r.npz" in words:
        assert run("explain", "model.skops", "data.csv", "-o", "r.npz") == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    feature = model_shelf.table().columns[0]
    assert run(*(word.format(feature=feature) for word in words)) in (2, 3)
    answer = said(capsys)
    assert expected in answer and "Traceback" not in answer
    assert before == {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("name", ["donn\u00e9es \u6570\u636e.csv", "-data.csv", "DATA.CSV", "a b.csv"])
def test_any_name_of_a_file_is_read_and_written(folder: Path, name: str) -> None:
    (folder / name).write_bytes((folder / "data.csv").read_bytes())
    out = f"r {name}".replace("CSV", "csv")
    assert run("explain", "-o", out, "--", "model.skops", name) == 0
    assert len(results.load_explanation(folder / out)) == len(model_shelf.table())
