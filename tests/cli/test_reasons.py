"""`texplainer reasons`: the same reasons as in Python, printed or written, and one line for a mistake."""

from __future__ import annotations

import json

import model_shelf
import pandas as pd
import pytest

import texplainer as tx
from texplainer.cli import main
from texplainer.files import models


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("reasons")
    model_shelf.skops(path)
    model_shelf.table().to_csv(path / "data.csv", index=False)
    return path


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def run(*words):
    with pytest.raises(SystemExit) as left:
        main(["reasons", *words])
    return int(left.value.code or 0)


def model_file(folder):
    return next(path.name for path in sorted(folder.iterdir()) if path.suffix == ".skops")


def test_the_file_holds_the_reasons_of_all_rows(folder, capsys):
    name = model_file(folder)
    assert run(name, "data.csv", "--background", "data.csv", "-o", "out.csv", "-k", "2") == 0
    model = models.load_model(name, None)
    table = pd.read_csv("data.csv")
    used = table[list(model.feature_names_in_)] if hasattr(model, "feature_names_in_") else table
    expected = tx.TExplainer(model, used)(used, attribution="shapley").reasons(k=2).to_frame()
    written = pd.read_csv("out.csv")
    assert written["feature"].tolist() == expected["feature"].tolist()
    assert written["contribution"].tolist() == pytest.approx(expected["contribution"].tolist())


def test_a_row_is_printed_with_its_phrases(folder, capsys):
    phrases = {name: f"because of {name}" for name in pd.read_csv("data.csv").columns if name != "target"}
    (folder / "phrases.json").write_text(json.dumps(phrases))
    (folder / "phrases.csv").write_text(
        "feature,phrase\n" + "\n".join(f"{k},{v}" for k, v in phrases.items())
    )
    printed = []
    for file in ("phrases.json", "phrases.csv"):
        assert run(model_file(folder), "data.csv", "--row", "3", "--phrases", file) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "row 3:" in printed[0]
    assert "because of" in printed[0]


def test_an_identifier_column_labels_the_rows(folder, capsys):
    table = pd.read_csv("data.csv")
    table.insert(0, "customer_id", [f"C{i}" for i in range(len(table))])
    table.to_csv("named.csv", index=False)
    words = (model_file(folder), "named.csv", "--background", "data.csv")
    assert run(*words, "--row", "3", "--row", "2", "--row", "3") == 0
    printed = capsys.readouterr().out
    assert printed.index("row 2 (C2):") < printed.index("row 3 (C3):") and printed.count("row 3 (C3)") == 1
    assert run(*words, "-o", "named.parquet") == 0
    assert set(pd.read_parquet("named.parquet")["row"]) <= set(table["customer_id"])


def test_rows_far_apart_are_printed_in_their_order(folder, capsys):
    pd.concat([pd.read_csv("data.csv")] * 100, ignore_index=True).iloc[:9000].to_csv("long.csv", index=False)
    words = (model_file(folder), "long.csv", "--background", "data.csv")
    assert run(*words, "--row", "8500", "--row", "1") == 0
    printed = capsys.readouterr().out
    assert printed.index("row 1:") < printed.index("row 8500:")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--row", "99999"], 3, "counted from 0"),
        (["--exclude", "nobody"], 3, "exclude names the feature 'nobody'"),
        (["--group", "x"], 2, "NAME=COLUMN,COLUMN"),
        (["--attribution", "slope"], 2, "leave --attribution out"),
        (["-o", "out.xls"], 2, "expected a file named .csv"),
        (["-o", "out.csv", "--row", "1"], 2, "leave one of them out"),
        (["--phrases", "data.csv"], 3, "expected two columns"),
    ],
)
def test_a_mistake_is_one_line(folder, capsys, words, code, message):
    assert run(model_file(folder), "data.csv", *words) == code
    assert message in capsys.readouterr().err
