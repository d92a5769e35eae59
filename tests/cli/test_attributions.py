"""Several attributions in one run and in one result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import model_shelf
import numpy as np
import pytest

import texplainer as tx
from texplainer.cli import main
from texplainer.files import models, results


def run(*words: Any) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    model_shelf.skops(tmp_path)
    model_shelf.table().to_csv(tmp_path / "data.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv"])
def test_a_result_holds_several_attributions_and_verifies(folder: Path, suffix: str) -> None:
    out = f"r{suffix}"
    assert run("explain", "model.skops", "data.csv", "-o", out, "--attribution", "variation,shapley") == 0
    X = model_shelf.table()[model_shelf.NAMES]
    found = results.load_explanation(folder / out)
    for name in ("variation", "shapley"):
        truth = tx.TExplainer(models.load_model("model.skops"), X, attribution=name)(X)
        one = found.with_attribution(name)
        assert one.attribution == name and one.units == truth.units
        np.testing.assert_array_equal(one.values, truth.values)
        np.testing.assert_array_equal(one.arrays["error"], truth.arrays["error"])
    assert run("verify", out, "--model", "model.skops", "--data", "data.csv") == 0


def test_a_result_holds_slopes_and_shapley_values_by_default(folder: Path) -> None:
    assert run("explain", "model.skops", "data.csv", "-o", "r.npz") == 0
    found = results.load_explanation(folder / "r.npz")
    assert (found.attribution, *found.others) == ("slope", "shapley")
    assert run("explain", "model.skops", "data.csv", "-o", "one.npz", "--attribution", "slope") == 0
    assert not results.load_explanation(folder / "one.npz").others


def test_a_folder_of_shards_holds_several_attributions_and_verifies(folder: Path) -> None:
    import pyarrow.parquet as pq

    assert run("explain", "model.skops", "data.csv", "-o", "out/", "--attribution", "slope,variation") == 0
    table = pq.read_table(folder / "out" / "part-00000000.parquet")
    X = model_shelf.table()[model_shelf.NAMES]
    truth = tx.TExplainer(models.load_model("model.skops"), X, attribution="variation")(X)
    first = next(name for name in table.column_names if name.startswith("variation/values/"))
    np.testing.assert_allclose(table[first].to_numpy(), truth.arrays["values"][:, 0, 0], rtol=1e-9)
    assert run("verify", "out", "--model", "model.skops", "--data", "data.csv") == 0


def test_an_unknown_reading_among_several_is_refused(folder: Path, capsys: Any) -> None:
    assert run("explain", "model.skops", "data.csv", "-o", "r.npz", "--attribution", "slope,nope") == 2
    assert "nope" in capsys.readouterr().err


def test_a_row_is_drawn_with_contributions_slopes_and_what_else_is_asked_for(
    folder: Path, capsys: Any
) -> None:
    for asked, heads in (("auto", 2), ("slope,shapley", 2), ("variation", 3)):
        assert run("explain", "model.skops", "data.csv", "--row", "3", "--attribution", asked) == 0
        drawn = capsys.readouterr().out
        head = next(line for line in drawn.splitlines() if line.startswith("feature"))
        assert "contribution" in head and "slope per SD" in head and ("variation" in head) == (heads == 3)


def test_only_contributions_have_a_sum_of_the_others(folder: Path, capsys: Any) -> None:
    X = model_shelf.table()[model_shelf.NAMES]
    truth = tx.TExplainer(models.load_model("model.skops"), X, attribution="shapley")(X[3:4]).values[0]
    assert run("explain", "model.skops", "data.csv", "--row", "3", "--top", "1") == 0
    (others,) = (line.split() for line in capsys.readouterr().out.splitlines() if " other features" in line)
    rest = np.sort(np.abs(truth))[:-1]
    assert len(others) == 5 and len(rest) == int(others[0])
    expected = truth.sum() - truth[np.argmax(np.abs(truth))]
    assert float(others[-1].replace(",", "")) == pytest.approx(expected, rel=0.01)
