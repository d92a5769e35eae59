"""Wrong arguments meet one sentence with the value and what is expected, never a raw exception."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import texplainer as tx
from texplainer import report
from texplainer.errors import InputError

X = np.random.default_rng(0).normal(size=(50, 3))
MODEL = LogisticRegression().fit(X, X[:, 0] > 0)
WRONG = [
    ("output", [], "at least one output"),
    ("engine", ["tree"], "the name of one engine"),
    ("categorical", {"a": 5}, "a list of columns"),
    ("batch_rows", 1.5, "a whole number of at least 1"),
    ("batch_rows", 0, "a whole number of at least 1"),
    ("batch_rows", "many", "a whole number of at least 1"),
    ("feature_names", 5, "one name per column"),
    ("feature_names", "abc", "one name per column"),
    ("feature_names", [], "one name per column"),
    ("bounds", (np.nan, np.nan), "numbers; use -inf"),
    ("step", True, "a number"),
    ("batch_rows", 0, "at least 1"),
]


@pytest.mark.parametrize(("name", "value", "expected"), WRONG)
def test_wrong_arguments_are_refused_in_words(name, value, expected):
    with pytest.raises(InputError, match=f"^{name}=.* is invalid; expected .*{expected}"):
        tx.TExplainer(MODEL, X, **{name: value})


def test_an_output_is_named_once():
    with pytest.raises(InputError, match=r"output=\[0, 0\] names an output twice"):
        tx.TExplainer(MODEL, X, output=[0, 0])


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [("x0", KeyError, r"rows have numbers. For a feature write explanation\[:, 'x0'\]"),
     (1.5, IndexError, "1.5 is not an index; expected whole numbers")],
)  # fmt: skip
def test_a_wrong_index_of_an_explanation_says_what_is_expected(key, error, words):
    with pytest.raises(error, match=words):
        tx.TExplainer(MODEL, X)(X[:3])[key]


EVALUATION = [
    ("metrics", 5, "names of metrics"),
    ("k", "a", "whole numbers of features"),
    ("k", 0, "whole numbers of features"),
    ("neighbours", 1.5, "at least 1"),
    ("sigma", "a", "a number of at least 0"),
    ("flip", 2.0, "a fraction"),
    ("runs", 0, "at least 1"),
    ("controls", False, "for none"),
    ("seed", "a", "at least 0"),
    ("batch_rows", 0, "at least 1"),
]


@pytest.mark.parametrize(("name", "value", "expected"), EVALUATION)
def test_wrong_arguments_of_an_evaluation_are_refused_in_words(name, value, expected):
    with pytest.raises(InputError, match=f"^{name}=.* is invalid; expected .*{expected}"):
        tx.evaluate(tx.TExplainer(MODEL, X), X[:3], **{name: value})


@pytest.mark.parametrize("subject", [5, None, "text", X, tx.TExplainer(MODEL, X)])
@pytest.mark.parametrize("name", tx.plots.__all__)
def test_a_plot_of_something_else_says_what_it_draws(name, subject):
    pytest.importorskip("matplotlib")
    if name == "ice" and isinstance(subject, tx.TExplainer):
        pytest.skip("plots.ice draws an explainer")
    draw = getattr(tx.plots, name)
    further = (
        [[0.0], "x0"]
        if name == "ice"
        else ["x0"]
        if name in ("dependence", "scatter", "category_effects")
        else []
    )
    with pytest.raises(InputError, match=rf"^plots.{name} got .*; expected .*\. \w+"):
        draw(subject, *further)


@pytest.mark.parametrize("subject", [5, None, [], {"a": 5}])
def test_a_report_of_something_else_says_what_it_shows(subject, tmp_path):
    with pytest.raises(InputError, match="expected an Explanation or an Evaluation"):
        report.write(subject, tmp_path / "page.html")


@pytest.mark.parametrize("explainers", [5, {}, [], {"a": 5}])
def test_an_evaluation_of_no_explainer_says_what_it_takes(explainers):
    with pytest.raises(InputError, match=r"at least one callable.*Pass TExplainers"):
        tx.evaluate(explainers, X)


@pytest.mark.parametrize(
    "use", [lambda p: tx.Explanation.load(p), lambda p: tx.TExplainer(MODEL, X)(X).save(p)]
)
def test_a_path_that_is_none_is_refused(use):
    with pytest.raises(InputError, match="5 is not a path"):
        use(5)
