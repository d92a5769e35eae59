"""Odd arguments, tables and answers: each is taken for what it is, or refused with a sentence."""

import warnings

import numpy as np
import pandas as pd
import pytest

import texplainer as tx
from texplainer.errors import InputError, ModelError, ModelWarning

NAMES = list("abc")
ROWS = np.random.default_rng(0).normal(size=(60, 3))
FRAME = pd.DataFrame(ROWS, columns=NAMES)


def model(table):
    rows = np.asarray(table)
    return rows[:, 0] - 2 * rows[:, 1]


#: arguments of the constructor -> what the error says
REFUSED = {
    "mask of categories": ({"categorical": [False, False, True]}, "is a mask"),
    "numpy mask": ({"categorical": list(np.array([False, True, True]))}, "is a mask"),
    "set of names": ({"feature_names": {"a", "b", "c"}}, "in their order"),
    "mapping of names": ({"feature_names": dict.fromkeys("abc")}, "in their order"),
    "column of names": ({"feature_names": np.array([["a"], ["b"], ["c"]])}, "one name per column"),
    "missing names": ({"feature_names": ["a", None, "c"]}, "one name per column"),
    "tiny smoothing": ({"smoothing": 1e-300}, "not a bandwidth"),
    "vast smoothing": ({"smoothing": 1e300}, "not a bandwidth"),
    "array of steps": ({"step": np.array([0.1, 0.1])}, "'auto', 'paper' or a number"),
    "array of scales": ({"scale": np.array(["auto", "raw"])}, "name of one scale"),
    "array of outputs": ({"output": np.array(["u", "v"])}, "output='u' is unknown"),
    "no outputs": ({"output": np.array([])}, "at least one output"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_argument_is_refused(name):
    arguments, words = REFUSED[name]
    with pytest.raises(InputError, match=words):
        tx.TExplainer(model, ROWS, **arguments)


#: answers of a model to rows -> what the error says
ANSWERS = {
    "masked": (lambda rows: np.ma.masked_where(rows[:, 0] > 0, rows[:, 0]), "expected finite numbers"),
    "without outputs": (lambda rows: np.ones((len(rows), 0)), r"shape \(8, 0\)"),
    "vast": (lambda rows: 1e300 * rows[:, 0], "squares overflow"),
    "complex": (lambda rows: rows[:, 0] + 1j, "expected numbers"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_refused(name):
    function, words = ANSWERS[name]
    with pytest.raises(ModelError, match=words):
        tx.TExplainer(function, ROWS)


#: tables to explain -> what the error says
TABLES = {
    "unequal columns": ({"a": [1, 2], "b": [1], "c": [1, 2]}, "unequal lengths"),
    "two-dimensional columns": ({name: np.ones((2, 2)) for name in NAMES}, r"shape \(2, 2\)"),
    "no columns": ({}, "lacks the columns"),
    "text": ("abc", "passed as a table"),
    "another name": (FRAME.rename(columns={"a": "z"}), "unexpected columns"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_refused(name):
    table, words = TABLES[name]
    with pytest.raises(InputError, match=words):
        tx.TExplainer(model, FRAME)(table)


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "sparse", "with gradient", "meta"])
def test_tensors_are_read_or_refused(kind):
    torch = pytest.importorskip("torch")
    rows = torch.tensor(ROWS[:4], dtype=getattr(torch, kind) if "float" in kind else torch.float64)
    explainer = tx.TExplainer(model, ROWS)
    if kind == "meta":
        with pytest.raises(InputError, match="holds no values"):
            explainer(rows.to("meta"))
        return
    given = {"sparse": rows.to_sparse(), "with gradient": rows.clone().requires_grad_()}.get(kind, rows)
    assert np.array_equal(explainer(given).data, rows.double().numpy())


@pytest.mark.parametrize(
    "names", [np.array(NAMES), pd.Index(NAMES), tuple(NAMES)], ids=["array", "index", "tuple"]
)
def test_names_may_be_any_ordered_list(names):
    assert tx.TExplainer(model, ROWS, feature_names=names).schema.names == ("a", "b", "c")


def test_columns_are_matched_by_name_whenever_both_sides_have_names():
    """Names come from the background, from `feature_names` or from the model."""
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression().fit(FRAME, FRAME.a > 0)
    mixed = FRAME[["c", "a", "b"]][:5]
    explainers = [
        tx.TExplainer(model, FRAME),
        tx.TExplainer(model, ROWS, feature_names=NAMES),
        tx.TExplainer(fitted, ROWS),
    ]
    for explainer in explainers:
        for table in (mixed, mixed.to_dict("list")):
            found = explainer(table)
            assert np.array_equal(found.data, ROWS[:5])
            assert np.allclose(found.predictions, explainer(FRAME[:5]).predictions)
    assert np.array_equal(
        tx.TExplainer(model, ROWS)({"x2": [3.0], "x0": [1.0], "x1": [2.0]}).data, [[1, 2, 3]]
    )


def test_names_in_another_order_are_not_new_names():
    with pytest.raises(InputError, match="in another order"):
        tx.TExplainer(model, FRAME, feature_names=["b", "a", "c"])


def test_a_lightgbm_model_with_columns_in_another_order_is_reported():
    lightgbm = pytest.importorskip("lightgbm")
    fitted = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1).fit(FRAME, model(FRAME))
    with pytest.warns(ModelWarning, match="takes columns by position"):
        tx.TExplainer(fitted, FRAME[["c", "a", "b"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        tx.TExplainer(fitted, FRAME)


#: models whose answer to a row depends on the other rows
BATCHES = {
    "standardised": lambda rows: ((rows - rows.mean(axis=0)) / (1 + rows.std(axis=0)))[:, 0],
    "ranks": lambda rows: rows[:, 0].argsort().argsort() / len(rows),
    "softmax over the rows": lambda rows: np.exp(rows[:, 0]) / np.exp(rows[:, 0]).sum(),
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_model_that_depends_on_its_batch_is_reported_and_marked(name):
    with pytest.warns(ModelWarning, match="for a row alone"):
        explainer = tx.TExplainer(BATCHES[name], ROWS)
    assert explainer(ROWS[:2]).settings["row_by_row"] is False
    assert "row_by_row" not in tx.TExplainer(model, ROWS)(ROWS[:2]).settings


def test_missing_labels_are_refused():
    from sklearn.linear_model import LinearRegression

    frame = FRAME.assign(c=["u", "v", "w"] * 20)
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    encode = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    fitted = make_pipeline(encode, LinearRegression()).fit(frame, FRAME.a)
    with pytest.raises(InputError, match="1 of 60 labels of y are missing"):
        tx.TExplainer(tx.Refitted(fitted, frame, FRAME.a.where(FRAME.index != 3)), frame)


def test_an_unknown_attribution_of_an_explanation_is_named():
    found = tx.TExplainer(model, FRAME)(FRAME[:2])
    with pytest.raises(InputError, match="'shap' is unknown"):
        found.with_attribution("shap")


def test_no_rows_are_an_empty_frame():
    found = tx.TExplainer(model, FRAME)(FRAME[:2])
    assert found[:0].to_frame().columns.tolist() == found.to_frame().columns.tolist()


class MissingLabel:
    """One of its classes is NaN."""

    classes_ = np.array([0.0, 1.0, np.nan])

    def predict_proba(self, rows):
        scores = np.exp(np.asarray(rows))
        return scores / scores.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("output", ["nan", np.nan, 2])
def test_a_class_that_is_nan_is_chosen_by_its_name(output):
    found = tx.TExplainer(MissingLabel(), ROWS, output=output, scale="probability")(ROWS[:4])
    assert found.output_names == ("nan",)
    np.testing.assert_allclose(np.ravel(found.predictions), MissingLabel().predict_proba(ROWS[:4])[:, 2])
