"""Categories that a booster stores are used to read text columns; identifiers label the rows."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import texplainer as tx
from texplainer.cli import group


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "order_id": [f"c{i:04}" for i in range(300)],
            "age": rng.integers(18, 80, 300),
            "zip": rng.choice(["08001", "10115", "80331"], 300),
            "job": rng.choice(["pilot", "clerk", "nurse"], 300),
        }
    )
    return frame, frame["age"] / 40 + (frame["job"] == "pilot") + (frame["zip"] == "10115")


def lightgbm(X, y, path):
    lgb = pytest.importorskip("lightgbm")
    model = lgb.LGBMRegressor(n_estimators=20, verbose=-1).fit(X, y)
    model.booster_.save_model(path / "model.txt")
    return model, path / "model.txt"


def xgboost(X, y, path):
    xgb = pytest.importorskip("xgboost")
    if not hasattr(xgb.Booster, "get_categories"):
        pytest.skip("XGBoost stores the categories since 3.1")
    model = xgb.XGBRegressor(n_estimators=20, enable_categorical=True).fit(X, y)
    model.save_model(path / "model.json")
    return model, path / "model.json"


@pytest.mark.parametrize("fit", [lightgbm, xgboost])
def test_a_csv_with_native_categories(fit, tmp_path):
    frame, y = table()
    frame.to_csv(tmp_path / "data.csv", index=False)
    # the model's own order is not the alphabet's
    X = frame.drop(columns="order_id")
    X["job"] = pd.Categorical(X["job"], categories=["pilot", "clerk", "nurse"])
    X["zip"] = X["zip"].astype("category")
    model, path = fit(X, y, tmp_path)
    out = tmp_path / "result.parquet"
    ran = CliRunner().invoke(group, ["explain", str(path), str(tmp_path / "data.csv"), "-o", str(out)])
    assert ran.exit_code == 0, ran.output + str(ran.exception)
    found = tx.Explanation.load(out)
    np.testing.assert_allclose(found.predictions, model.predict(X), rtol=1e-6)
    assert list(found.index[:2]) == ["c0000", "c0001"] and "08001" in set(found.data[:, 1])
    shown = CliRunner().invoke(group, ["explain", str(path), str(tmp_path / "data.csv"), "--row", "3"])
    assert "row 3 (c0003)" in shown.output
    checked = CliRunner().invoke(
        group, ["verify", str(out), "--model", str(path), "--data", str(tmp_path / "data.csv")]
    )
    assert checked.exit_code == 0 and checked.output.startswith("identical"), checked.output


def test_another_column_labels_the_rows(tmp_path):
    frame, y = table()
    frame.rename(columns={"order_id": "person"}).to_csv(tmp_path / "data.csv", index=False)
    X = frame.drop(columns="order_id").astype({"job": "category", "zip": "category"})
    _, path = lightgbm(X, y, tmp_path)
    arguments = ["explain", str(path), str(tmp_path / "data.csv"), "--row", "3"]
    assert "row 3 " in CliRunner().invoke(group, arguments).output
    assert "row 3 (c0003)" in CliRunner().invoke(group, [*arguments, "--id-column", "person"]).output


def test_iris_is_written_in_centimetres(tmp_path):
    ran = CliRunner().invoke(
        group, ["datasets", "iris", "-o", str(tmp_path / "i.csv"), "--model", str(tmp_path / "i.skops")]
    )
    assert ran.exit_code == 0, ran.output
    found = pd.read_csv(tmp_path / "i.csv")["sepal length (cm)"]
    assert found.between(4, 8).all()
    np.testing.assert_array_equal(found, found.round(1))


def test_lines_fit_a_narrow_terminal(tmp_path):
    from rich.console import Console

    from texplainer.cli.picture import draw

    rng = np.random.default_rng(0)
    names = [f"a long name of a column, number {j}" for j in range(4)]
    X = pd.DataFrame(rng.normal(size=(100, 4)) * 1e6, columns=names)
    found = tx.TExplainer(lambda X: np.tanh(X.to_numpy() / 1e6).sum(axis=1), X)(X[:1])
    console = Console(width=80, record=True, file=(tmp_path / "out").open("w"))
    draw(found, 0, 20, console)
    lines = console.export_text().splitlines()
    bars = [line for line in lines if "│" in line]
    assert len(bars) == 4 and max(map(len, bars)) <= 80, lines
    assert any("█" in line for line in bars)
