"""The real command, on files of the real libraries: the values of the Python API, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import model_shelf
import numpy as np
import pandas as pd
import pytest

import texplainer as tx
from texplainer.files import results, survey

COMMAND = str(Path(sys.executable).with_name("texplainer"))


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("shelf")
    return folder, model_shelf.fill(folder)


def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *words], cwd=folder, capture_output=True, text=True, env=os.environ | {"COLUMNS": "80"}
    )


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", model_shelf.SHELF)
def test_every_model_format_gives_the_values_of_the_python_api(shelf: Any, name: str) -> None:
    """In a process of its own each, for the whole way from the shell to the file."""
    folder, models = shelf
    extra = model_shelf.SHELF[name][1]
    out = f"{name.replace(':', '_')}.parquet"
    done = call(folder, "explain", name, "data.csv", "-o", out, *extra)
    assert done.returncode == 0, done.stderr
    loaded = results.load_explanation(folder / out)
    X = pd.read_csv(folder / "data.csv")[model_shelf.NAMES]
    picks = survey.sample_rows(survey.survey(folder / "data.csv"), model_shelf.NAMES)
    expected = tx.TExplainer(models[name], X.iloc[picks])(X)
    for array in ("values", "predictions", "gradient", "error", "data", "base_values"):
        assert same_bits(loaded.arrays[array], expected.arrays[array]), array
    assert loaded.feature_names == tuple(model_shelf.NAMES)
    assert (loaded.arrays["stability"] == expected.arrays["stability"]).all()
    assert ("pickle" in done.stderr) == name.endswith((".pkl", ".joblib"))


@pytest.mark.parametrize("data", ["data.csv", "data.parquet", "data.arrow", "data.jsonl"])
@pytest.mark.parametrize("out", ["npz", "parquet", "arrow", "feather", "csv", "jsonl"])
def test_every_table_format_in_and_out_gives_the_same_values(
    shelf: Any, data: str, out: str, tmp_path: Path, capfd: Any
) -> None:
    folder, models = shelf
    result = tmp_path / f"result.{out}"
    run(["explain", str(folder / "model.skops"), str(folder / data), "-o", str(result)])
    X = model_shelf.features()[0]
    expected = tx.TExplainer(models["model.skops"], X)(X)
    loaded = results.load_explanation(result)
    assert same_bits(loaded.values, expected.values)
    assert same_bits(loaded.predictions, expected.predictions)


def test_text_columns_are_categories_as_in_python(tmp_path: Path, capfd: Any) -> None:
    import skops.io
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X, y = model_shelf.features()
    X = X.assign(kind=np.where(X["age"] > 0, "new", "old"))
    X.loc[3, "kind"] = "rare"
    columns = make_column_transformer((StandardScaler(), model_shelf.NAMES), (OneHotEncoder(), ["kind"]))
    model = make_pipeline(columns, LogisticRegression()).fit(X, y)
    skops.io.dump(model, tmp_path / "model.skops")
    X.assign(target=y).to_csv(tmp_path / "data.csv", index=False)
    words = [
        "explain",
        str(tmp_path / "model.skops"),
        str(tmp_path / "data.csv"),
        "-o",
        str(tmp_path / "x.parquet"),
    ]
    assert run(words) == 0
    expected = tx.TExplainer(model, X)(X)
    loaded = results.load_explanation(tmp_path / "x.parquet")
    assert same_bits(loaded.values, expected.values)
    assert loaded.data.tolist() == expected.data.tolist()
    assert loaded.categories["kind"].levels == expected.categories["kind"].levels == ("new", "old", "rare")
    assert same_bits(loaded.categories["kind"].effects, expected.categories["kind"].effects)


@pytest.mark.parametrize("engine", ["auto", "finite-difference"])
def test_streaming_in_many_blocks_changes_no_bit(shelf: Any, tmp_path: Path, engine: str, capfd: Any) -> None:
    folder, models = shelf
    words = ["explain", str(folder / "model.skops"), str(folder / "data.csv"), "-o", str(tmp_path / "x.npz")]
    assert run([*words, "--engine", engine, "--batch-rows", "64"]) == 0
    X = model_shelf.features()[0]
    whole = tx.TExplainer(models["model.skops"], X, engine=engine, batch_rows=64)
    assert whole.block_rows <= 64 < len(X)
    expected = whole(X)
    for name, array in results.load_explanation(tmp_path / "x.npz").arrays.items():
        assert array.dtype == expected.arrays[name].dtype
        assert array.tolist() == expected.arrays[name].tolist() or same_bits(array, expected.arrays[name]), (
            name
        )


def run(words: list[str]) -> int:
    """The command in this process, for the many small cases."""
    from texplainer.cli import main

    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)
