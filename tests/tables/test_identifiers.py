"""The column that identifies the rows: left out of the features, kept as the rows' labels."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression

import texplainer as tx
from texplainer.errors import BackgroundWarning, InputError
from texplainer.tables.native import is_identifier

KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
    "mapping": lambda frame: {name: frame[name].to_numpy() for name in frame},
    "records": lambda frame: frame.to_dict("records"),
}


def table(name="customer_id"):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 2)), columns=["age", "income"])
    frame.insert(1, name, [f"c{i:03}" for i in range(120)])
    return frame


def fitted():
    X = table()[["age", "income"]]
    return LinearRegression().fit(X, X["age"] - 2 * X["income"])


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_identifier_is_left_out_with_a_warning_and_labels_the_rows(kind):
    made, plain = KINDS[kind](table()), table()[["age", "income"]]
    model = fitted()
    with pytest.warns(BackgroundWarning, match=r"'customer_id'.*left out"):
        explainer = tx.TExplainer(model, made)
    with pytest.warns(BackgroundWarning, match="id_column='customer_id'"):
        found = explainer(made)
    assert list(found.index[:3]) == ["c000", "c001", "c002"]
    np.testing.assert_array_equal(found.values, tx.TExplainer(model, plain)(plain).values)


@pytest.mark.parametrize("kind", KINDS)
def test_a_declared_identifier_may_have_any_name_and_gives_no_warning(kind):
    made = KINDS[kind](table("person"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explainer = tx.TExplainer(fitted(), made, id_column="person")
        found = explainer(made)
    assert list(found.index[-2:]) == ["c118", "c119"] and found.feature_names == ("age", "income")
    assert "c118" in str(found[118])


def test_a_function_of_a_frame_does_not_see_the_declared_identifier():
    def predict(X):
        assert list(X.columns) == ["age", "income"]
        return X["age"].to_numpy()

    explainer = tx.TExplainer(predict, table(), id_column="customer_id")
    assert explainer(table()).index[5] == "c005"


def test_the_identifier_may_be_named_when_rows_are_explained():
    explainer = tx.TExplainer(fitted(), table()[["age", "income"]])
    found = explainer(table("person"), id_column="person")
    assert found.index[7] == "c007"
    with pytest.raises(InputError, match=r"unexpected columns .*id_column='person'"):
        explainer(table("person"))


def test_a_column_the_model_uses_labels_the_rows_and_stays_a_feature():
    frame = table()[["age", "income"]]
    found = tx.TExplainer(fitted(), frame)(frame, id_column="age")
    assert found.index[3] == frame["age"][3] and found.feature_names == ("age", "income")


def test_one_row_with_its_identifier():
    explainer = tx.TExplainer(fitted(), table(), id_column="customer_id")
    assert explainer(table().iloc[4]).index[0] == "c004"
    proposal = explainer.recourse(table().iloc[[4]], (">=", 3.0))
    assert proposal.found


def test_identifiers_are_saved_reported_and_explored(tmp_path):
    pytest.importorskip("starlette", reason="the explorer needs starlette")
    from texplainer import report
    from texplainer.app.workbench import Workbench

    explainer = tx.TExplainer(fitted(), table(), id_column="customer_id")
    found = explainer(table())
    for suffix in ("parquet", "npz", "csv"):
        found.save(tmp_path / f"r.{suffix}")
    assert tx.Explanation.load(tmp_path / "r.parquet").index[9] == "c009"
    assert "c009" in (tmp_path / "r.csv").read_text()
    report.write(found, tmp_path / "r.html")
    assert "c009" in (tmp_path / "r.html").read_text()
    bench = Workbench(explainer, table())
    assert bench.labels[9] == "c009" and bench.rows.shape == (120, 2)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        *[
            (name, True)
            for name in ("id", "ID", "customer_id", "orderId", "SK_ID_CURR", "uuid", "Unnamed: 0")
        ],
        *[(name, False) for name in ("paid", "valid", "humid", "idle", "age", "width", "Covid")],
    ],
)
def test_names_that_say_so(name, answer):
    assert is_identifier(name) is answer
