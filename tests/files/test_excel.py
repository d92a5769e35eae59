"""An Explanation as an Excel workbook, read back with openpyxl."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import texplainer as tx
from texplainer.errors import InputError

openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")


def test_the_workbook_holds_every_value_and_no_formula(tmp_path: Path) -> None:
    names = ["=1+1", "a\x07b"]
    values = np.array([[1.5, -2.0], [0.25, np.nan]])
    data = np.array([["=HYPERLINK(1)", 3.0], ["x", None]], dtype=object)
    explanation = tx.Explanation.build(values, data=data, feature_names=names)
    path = explanation.to_excel(tmp_path / "deep" / "values.xlsx")
    book = openpyxl.load_workbook(path)
    head, *lines = book["values"].iter_rows()
    found = [dict(zip([cell.value for cell in head], line, strict=True)) for line in lines]
    assert [line["value"].value for line in found] == [1.5, -2.0, 0.25, None]
    assert [line["feature"].value for line in found] == ["=1+1", "ab"] * 2
    assert found[0]["data"].value == "=HYPERLINK(1)"
    assert not any(cell.data_type == "f" for sheet in book for line in sheet.iter_rows() for cell in line)
    assert [cell.value for cell in book["importance"]["B"]] == ["feature", "ab", "=1+1"]


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    explanation = tx.Explanation.build(np.ones((1, 1)), data=np.ones((1, 1)))
    with pytest.raises(InputError, match=r"ends in \.xlsx"):
        explanation.to_excel(tmp_path / "values.csv")
