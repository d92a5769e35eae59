"""Rows as other libraries hand them over: records, tensors with gradients, shap's maskers."""

import numpy as np
import pandas as pd
import pytest

import texplainer as tx
from texplainer.errors import InputError


def frame():
    return pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])


def model(table):
    return np.asarray(table["a"] if hasattr(table, "columns") else table[:, 0]) * 2.0


WRAPPED = {
    "list of dicts": lambda f: f.to_dict("records"),
    "structured array": lambda f: f.to_records(index=False),
    "dict of lists": lambda f: f.to_dict("list"),
    "Series": lambda f: f.iloc[0],
}


@pytest.mark.parametrize("kind", WRAPPED)
def test_rows_of_any_kind_are_explained(kind):
    X = frame()
    explainer = tx.TExplainer(model, X)
    found = explainer(WRAPPED[kind](X[:4]))
    np.testing.assert_allclose(found.values, explainer(X[: len(found.values)]).values)


def test_tensors_with_gradients():
    torch = pytest.importorskip("torch")
    X = frame().to_numpy()
    explainer = tx.TExplainer(lambda t: t[:, 0], torch.tensor(X, requires_grad=True))
    assert explainer(torch.tensor(X[:2], requires_grad=True)).values.shape == (2, 2)


def test_maskers_are_backgrounds_and_kmeans_is_refused_in_words():
    shap = pytest.importorskip("shap")
    X = frame().to_numpy()
    explainer = tx.TExplainer(lambda t: t[:, 0], shap.maskers.Independent(X))
    assert len(explainer.background.rows) == 60
    with pytest.raises(InputError, match="weighted centres"):
        tx.TExplainer(lambda t: t[:, 0], shap.kmeans(X, 3))


def test_records_with_other_columns_are_named():
    with pytest.raises(InputError, match="row 1 has the columns"):
        tx.TExplainer(model, [{"a": 1.0, "b": 2.0}, {"a": 1.0}])


def test_the_engine_report_gives_a_line_for_every_engine():
    found = tx.TExplainer(model, frame()).engine_report().splitlines()
    assert found[0].startswith("finite-difference: ") and len(found) == 4
    assert sum(line.startswith("not ") for line in found) == 3


def test_the_printed_explainer_has_one_short_line_for_its_engine():
    explainer = tx.TExplainer(model, frame())
    lines = [line for line in str(explainer).splitlines() if line.startswith("  engine")]
    assert len(lines) == 1 and len(lines[0]) <= 110 and ";" not in lines[0], lines
    assert explainer.engine_report().splitlines()[0] in lines[0]
    assert "closed-form: " in explainer.engine.why
