"""Missing cells, labels of rows and levels nobody has met: kept, saved, and no trouble for other rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import texplainer as tx
from texplainer.errors import InputError, LazyTableWarning, UndefinedRowsWarning
from texplainer.files.formats import FORMATS

ROWS = 90
A = np.random.default_rng(0).normal(size=ROWS)
GAPS = np.random.default_rng([0, 2]).random(ROWS) < 0.2
GAPS[0] = True
COLOUR = np.array(["red", "blue", "grey"], dtype=object)[np.random.default_rng([0, 3]).integers(0, 3, ROWS)]
WITH_GAPS = [None if gap else c for gap, c in zip(GAPS, COLOUR, strict=True)]
TARGET = (A + (COLOUR == "red") > 0).astype(int)

KINDS = {
    "None": lambda: pd.Series(WITH_GAPS, dtype=object),
    "NaN": lambda: pd.Series([np.nan if c is None else c for c in WITH_GAPS], dtype=object),
    "NA": lambda: pd.Series(WITH_GAPS, dtype="string"),
    "category": lambda: pd.Series(pd.Categorical(WITH_GAPS)),
    "boolean": lambda: pd.Series([None if c is None else c == "red" for c in WITH_GAPS], dtype="boolean"),
}


def frame(kind="None"):
    return pd.DataFrame({"a": A, "b": -A, "colour": KINDS[kind]()})


def colour_or_not(table):
    cells = [None if pd.isna(c) else c for c in table["colour"].tolist()]
    return table["a"].to_numpy() + np.array([0.5 if c is None else float(c in ("red", True)) for c in cells])


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_missing_levels_are_saved_in_every_format(kind, suffix, tmp_path):
    table = frame(kind)
    explanation = tx.TExplainer(colour_or_not, table)(table.head(8))
    path = tmp_path / f"result{suffix}"
    explanation.save(path)
    back = tx.Explanation.load(path)
    np.testing.assert_array_equal(back.values, explanation.values)
    found, own = back.data[:, 2].tolist(), explanation.data[:, 2].tolist()
    assert [pd.isna(c) for c in found] == list(GAPS[:8])
    assert [c for c in found if not pd.isna(c)] == [c for c in own if not pd.isna(c)]


@pytest.mark.parametrize("labels", [list("pqrs"), [10, 20, 30, 40], pd.date_range("2021-01-01", periods=4)])
def test_rows_keep_their_labels(labels, tmp_path):
    table = frame()
    explanation = tx.TExplainer(colour_or_not, table)(table.head(4).set_axis(labels, axis=0))
    assert explanation.index.tolist() == list(labels)
    assert explanation[1:3].to_frame().index.unique().tolist() == list(labels[1:3])
    assert explanation.with_attribution("shapley").to_frame().index.tolist() == [
        label for label in labels for _ in range(3)
    ]
    for suffix in FORMATS:
        explanation.save(tmp_path / f"result{suffix}")
        back = tx.Explanation.load(tmp_path / f"result{suffix}")
        assert [str(label) for label in back.index] == [str(label) for label in labels]


def test_rows_without_labels_are_counted():
    table = frame()
    explanation = tx.TExplainer(colour_or_not, table)(table.head(4))
    assert explanation.index.tolist() == [0, 1, 2, 3]
    assert "index" not in explanation.arrays


def encoded(unknown):
    first = make_column_transformer(
        (OneHotEncoder(handle_unknown=unknown), ["colour"]), remainder="passthrough"
    )
    return make_pipeline(first, LogisticRegression())


@pytest.mark.parametrize("ordered", [False, True])
def test_a_level_outside_a_category_dtype_concerns_its_row_alone(ordered):
    table = frame().assign(colour=pd.Categorical(COLOUR, ordered=ordered))
    rows = table.head(4).assign(colour=pd.Categorical(["red", "pink", "blue", "grey"]))
    with pytest.warns(UndefinedRowsWarning, match="pink"):
        strict = tx.TExplainer(encoded("error").fit(table, TARGET), table)(rows)
    assert strict.diagnostics.stability.tolist().count("undefined") == 1
    assert strict.diagnostics.stability[1] == "undefined"
    model = encoded("ignore").fit(table, TARGET)
    mild = tx.TExplainer(model, table, scale="probability")(rows)
    assert "undefined" not in mild.diagnostics.stability
    np.testing.assert_allclose(mild.predictions, model.predict_proba(rows)[:, 1])
    assert mild.data[:, 2].tolist() == ["red", "pink", "blue", "grey"]


def test_a_polars_enum_takes_a_further_level():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame(
        {"a": A, "colour": pl.Series(COLOUR.tolist(), dtype=pl.Enum(["red", "blue", "grey"]))}
    )
    rows = pl.DataFrame({"a": [0.0, 1.0], "colour": ["pink", "red"]})
    explainer = tx.TExplainer(lambda t: t["a"].to_numpy() + (t["colour"] == "red").to_numpy(), table)
    np.testing.assert_allclose(explainer(rows).predictions, [0.0, 2.0])


def test_a_lazy_frame_is_collected_with_a_word():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"a": A, "b": -A})
    with pytest.warns(LazyTableWarning, match="LazyFrame") as said:
        explainer = tx.TExplainer(lambda t: t["a"].to_numpy(), table.lazy())
    assert len(said) == 1
    with pytest.warns(LazyTableWarning) as said:
        explanation = explainer(table.lazy().head(3))
    assert len(said) == 1
    np.testing.assert_array_equal(explanation.data, table.head(3).to_numpy())
    with pytest.warns(LazyTableWarning) as said:
        explainer(table.lazy().head(3).with_columns(key=pl.lit(1)), id_column="key")
    assert len(said) == 1


@pytest.mark.parametrize("dtype", ["object", "category"])
def test_histogram_boosting_of_texts_is_read_as_trees(dtype):
    table = frame().assign(colour=pd.Series(COLOUR, dtype=dtype))
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features=["colour"]).fit(table, TARGET)
    assert tx.TExplainer(model, table).engine.name == "tree"


def test_missing_texts_have_neighbours_and_lime_explains_them():
    pytest.importorskip("lime")
    table = frame()
    model = encoded("ignore").fit(table, TARGET)
    rows = table[GAPS].head(3)
    found = tx.evaluate(
        {"ours": tx.TExplainer(model, table), "lime": tx.explainers.lime(model, table, samples=200)},
        rows,
        metrics=["RIS"],
        controls=(),
    )
    assert not found.notes or "neighbours" not in " ".join(map(str, found.notes))
    lime = tx.explainers.lime(model, table, samples=200)(rows)
    assert np.isfinite(lime.values).all()
    assert np.abs(lime.values[:, 0]).min() > 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda e, t: e(t.rename(columns={"colour": "color"})),
        lambda e, t: e(t.head(3))[:, "Colour"],
        lambda e, t: e(t.head(3)).cohorts("colur"),
        lambda e, t: tx.plots.dependence(e(t.head(3)), "colours"),
        lambda e, t: tx.TExplainer(colour_or_not, t, categorical=["color"]),
    ],
)
def test_an_unknown_name_names_what_was_meant(ask):
    table = frame()
    with pytest.raises((InputError, KeyError), match=r"Did you mean '(colour|color)'"):
        ask(tx.TExplainer(colour_or_not, table), table)
