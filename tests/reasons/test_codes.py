"""Reason codes: ranked by contribution, ties by bounds, exclusions counted, groups summed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from plot_subjects import loaded, made
from sklearn.linear_model import LogisticRegression

import texplainer as tx
from texplainer.errors import InputError
from texplainer.explanation.explanation import Explanation
from texplainer.reasons.codes import shared_ranks

NAMES = ("a", "b", "c", "d")


def explained(values, error=0.0, **words):
    values = np.atleast_2d(np.asarray(values, dtype=float))
    return Explanation.build(
        values,
        data=np.arange(values.size).reshape(values.shape),
        base_values=0.5,
        predictions=0.5 + values.sum(axis=1, keepdims=True),
        feature_names=NAMES[: values.shape[1]],
        diagnostics={"error": np.broadcast_to(error, values.shape)[:, :, None]},
        attribution="shapley",
        **words,
    )


def slow_ranks(sizes, bounds):
    """Ranks by the definition: connected groups of overlapping intervals."""
    n = len(sizes)
    group = list(range(n))
    for _ in range(n):
        for i in range(n):
            for j in range(n):
                if abs(sizes[i] - sizes[j]) <= bounds[i] + bounds[j]:
                    group[i] = group[j] = min(group[i], group[j])
    return [min(i for i in range(n) if group[i] == group[k]) + 1 for k in range(n)]


@pytest.mark.parametrize("seed", range(20))
def test_ranks_are_those_of_the_definition(seed):
    random = np.random.default_rng(seed)
    sizes = -np.sort(-random.exponential(size=7))
    bounds = random.exponential(0.1, size=7)
    assert shared_ranks(sizes, bounds).tolist() == slow_ranks(sizes, bounds)


def test_reasons_are_the_largest_adverse_contributions():
    (row,) = explained([0.1, -2.0, 3.0, 1.0]).reasons(k=2)
    assert [(r.rank, r.feature, r.contribution) for r in row.reasons] == [(1, "c", 3.0), (2, "d", 1.0)]
    (down,) = explained([0.1, -2.0, 3.0, 1.0]).reasons(toward="down")
    assert [r.feature for r in down.reasons] == ["b"]


def test_everything_adds_up_to_the_prediction():
    explanation = made(attribution="slope")
    found = explanation.reasons(k=2, exclude=["income"])
    for row in found:
        total = row.base + row.excluded + row.rest + sum(r.contribution for r in row.reasons)
        assert total == pytest.approx(row.prediction)


def test_a_linear_model_gives_its_own_contributions():
    random = np.random.default_rng(0)
    background = pd.DataFrame(random.normal(size=(300, 3)), columns=["x", "y", "z"])
    explainer = tx.TExplainer(lambda t: 2 * t["x"] - 3 * t["y"] + 0 * t["z"], background)
    row = pd.DataFrame({"x": [2.0], "y": [-1.0], "z": [5.0]}, index=["Ann"])
    (one,) = explainer(row).reasons()
    mean = background.mean()
    expected = {"y": -3 * (-1 - mean["y"]), "x": 2 * (2 - mean["x"])}
    ordered = sorted(expected, key=lambda name: -expected[name])
    assert [r.feature for r in one.reasons] == ordered  # z, which the model ignores, is not a reason
    assert [r.contribution for r in one.reasons] == pytest.approx(
        [expected[name] for name in ordered], abs=1e-6
    )
    assert [r.reference for r in one.reasons] == pytest.approx([mean[name] for name in ordered])
    assert one.row == "Ann"


def test_contributions_that_bounds_cannot_order_share_a_rank():
    (row,) = explained([1.0, 0.95, 0.2, 0.9], [0.05, 0.02, 0.01, 0.1]).reasons(k=2)
    assert [(r.rank, r.tied) for r in row.reasons] == [(1, True), (1, True)]
    assert row.also == ("d",)
    assert "tied with the last reason and not listed: d" in repr(
        explained([1.0, 0.95, 0.2, 0.9], 0.06).reasons(k=2)
    )


def test_a_bound_that_reaches_zero_is_reported():
    (row,) = explained([1.0, 0.1, 0.0, 0.0], [0.01, 0.3, 0.0, 0.0]).reasons()
    assert [r.certain for r in row.reasons] == [True, False]


def test_excluded_features_never_appear_and_are_counted():
    found = explained([5.0, 1.0, 2.0, -1.0], 0.25).reasons(exclude=["a", "d"])
    assert set(found.to_frame()["feature"]) == {"b", "c"}
    assert found[0].excluded == pytest.approx(4.0)
    assert found[0].excluded_bound == pytest.approx(0.5)
    assert "excluded features (a, d) together +4.00" in repr(found)


def test_a_group_is_summed_with_its_bounds():
    (row,) = explained([1.0, 2.0, 2.5, -4.0], 0.1).reasons(group={"pair": ["a", "b"], "both": ["c", "d"]})
    assert [(r.feature, r.contribution, r.value) for r in row.reasons] == [("pair", 3.0, "a 0, b 1")]
    assert row.reasons[0].bound == pytest.approx(0.2)


def test_phrases_are_filled_in_and_other_braces_stay():
    phrases = {"a": "Only {value} years {odd} ({reference} usual)"}
    reference = pd.DataFrame({"a": [4, 6], "b": [0, 0]})
    (row,) = explained([1.0, 0.0]).reasons(phrases=phrases, reference=reference)
    assert row.reasons[0].phrase == "Only 0 years {odd} (5 usual)"


def test_a_missing_value_does_not_get_the_phrase_of_a_value():
    explanation = explained([1.0, 2.0])
    data = np.array([[np.nan, 1.0]])
    found = replace(explanation, arrays={**explanation.arrays, "data": data}).reasons(
        phrases={"a": "Income too low", "b": "Many debts"}
    )
    assert found.to_frame()["phrase"].tolist() == ["Many debts", "No value given for a"]


def test_the_reference_of_a_category_is_the_most_frequent_one():
    reference = pd.DataFrame({"a": ["x", "y", "y", None], "b": [1.0, 2.0, np.nan, 3.0]})
    (row,) = explained([1.0, 2.0]).reasons(reference=reference)
    assert {r.feature: r.reference for r in row.reasons} == {"a": "y", "b": 2.0}


def test_the_frame_has_its_columns_also_without_reasons():
    columns = ["row", "rank", "feature", "value", "contribution", "bound", "phrase"]
    assert list(explained([1.0, 2.0]).reasons().to_frame().columns) == columns
    assert list(explained([-1.0, -2.0]).reasons().to_frame().columns) == columns
    assert "no feature pushed" in repr(explained([-1.0, -2.0]).reasons())


def test_a_class_is_a_direction():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 2))
    y = np.where(X[:, 0] + 0.1 * random.normal(size=200) > 0, "good", "bad")
    explanation = tx.TExplainer(LogisticRegression().fit(X, y), X)(X[:20])
    assert explanation.output_names == ("good",)
    pushed = explanation.reasons(toward="bad")
    assert pushed.toward == "down"
    assert (pushed.to_frame()["contribution"] < 0).all()
    assert (explanation.reasons(toward="good").to_frame()["contribution"] > 0).all()
    with pytest.raises(InputError, match="one of good, bad"):
        explanation.reasons(toward="ugly")


@pytest.mark.parametrize("output", ["up", "down"])
def test_classes_called_up_and_down_are_classes(output):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 2))
    model = LogisticRegression().fit(X, np.where(X[:, 0] > 0, "up", "down"))
    explanation = tx.TExplainer(model, X, output=output)(X[:20])
    for name in ("up", "down"):
        assert explanation.reasons(toward=name).toward == ("up" if name == output else "down")


def test_one_of_several_outputs_is_picked_by_name():
    explanation = made(outputs=("yes", "no"))
    with pytest.raises(InputError, match="toward='yes'"):
        explanation.reasons()
    assert explanation.reasons(toward="no").output == "no"


def test_a_loaded_explanation_says_how_to_get_contributions(tmp_path):
    with pytest.raises(InputError, match=r"explainer\(X, attribution='shapley'\)"):
        loaded(made(attribution="slope")).reasons()
    live = made()
    live.save(tmp_path / "kept.npz")
    again = Explanation.load(tmp_path / "kept.npz").reasons()
    assert again.to_frame().equals(live.reasons().to_frame())
    assert again[0].reasons[0].reference is None


def test_a_row_that_could_not_be_explained_has_a_note():
    explanation = explained([[1.0, 2.0], [np.nan, np.nan]])
    arrays = {**explanation.arrays, "reason": np.array(["", "it holds inf"], dtype=object)}
    found = replace(explanation, arrays=arrays).reasons()
    assert found[1].reasons == ()
    assert "undefined: it holds inf" in repr(found)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"k": 0}, "k=0 is not a number of reasons"),
        ({"exclude": ["aa"]}, "exclude names the feature 'aa'"),
        ({"phrases": {"bb": "x"}}, "phrases has the key 'bb'"),
        ({"phrases": {"b": 3}}, "expected a text"),
        ({"phrases": ["b"]}, "phrases is a list; expected a mapping"),
        ({"group": ["b"]}, "group is a list; expected a mapping"),
        ({"exclude": 3}, "exclude names the feature 3"),
        ({"group": {"g": ["a"]}, "exclude": ["a"]}, "by group 'g' and by exclude"),
        ({"group": {"b": ["a"]}}, "has the name of a feature"),
        ({"reference": pd.DataFrame({"a": [1]})}, "reference lacks the column 'b'"),
        ({"reference": np.zeros((2, 3))}, "reference has 3 columns"),
    ],
)
def test_bad_arguments_get_a_sentence(words, message):
    with pytest.raises(InputError, match=message):
        explained([1.0, 2.0]).reasons(**words)


def test_hostile_names_are_escaped_in_html():
    explanation = replace(explained([1.0, 2.0]), feature_names=("<script>x</script>", "b"))
    html = explanation.reasons(phrases={"b": "<b>bold</b>"})._repr_html_()
    assert "<script>" not in html
    assert "<b>" not in html
    assert "&lt;b&gt;bold" in html


DATA = Path(os.environ.get("TEXPLAINER_DATA") or Path(__file__).parents[3] / "shared" / "data")
CREDIT = DATA / "credit_data.csv"


def applicants():
    """Applicants with ages, skewed incomes and amounts, of whom those with much debt are rejected."""
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "Age": random.integers(18, 70, 3600),
            "Income": random.lognormal(5, 0.5, 3600).round(),
            "Amount": random.lognormal(6.8, 0.5, 3600).round(),
            "Seniority": random.integers(0, 40, 3600),
        }
    )
    debt = table["Amount"] / table["Income"] - 0.1 * table["Seniority"] + random.normal(size=3600)
    return table.assign(Status=np.where(debt > 6, "bad", "good"))


@pytest.mark.parametrize(
    "read",
    [
        applicants,
        pytest.param(
            lambda: pd.read_csv(CREDIT).dropna(),
            marks=pytest.mark.skipif(not CREDIT.exists(), reason="the credit data is not on this machine"),
        ),
    ],
    ids=["generated", "real"],
)
def test_reasons_of_rejected_applicants_differ_from_typical_ones(read):
    from sklearn.ensemble import HistGradientBoostingClassifier

    table = read()
    numbers = table.select_dtypes("number").astype(float)
    model = HistGradientBoostingClassifier(max_iter=50, random_state=0).fit(
        numbers[:3000], table["Status"][:3000]
    )
    rejected = numbers[3000:][model.predict(numbers[3000:]) == "bad"][:10]
    found = tx.TExplainer(model, numbers[:200])(rejected).reasons(toward="bad", exclude=["Age"])
    assert len(found) == len(rejected)
    assert "Age" not in set(found.to_frame()["feature"])
    assert all(row.reasons and row.prediction < row.base for row in found)


def test_a_reason_says_where_its_value_lies():
    reference = pd.DataFrame({"a": [2.0, 4.0], "b": ["x", "x"], "c": [1.0, 1.0]})
    values = np.array([[3.0, 2.0, 1.0]])
    rows = np.array([[9.0, "y", None]], dtype=object)
    explanation = Explanation.build(values, data=rows, feature_names=list("abc"), attribution="shapley")
    printed = repr(explanation.reasons(reference=reference, phrases={"a": "Too much"}))
    assert "Too much  a = 9, above the typical 3" in printed
    assert "y, typical x" in printed and "missing, typical 1" in printed
    same = replace(
        explanation, arrays={**explanation.arrays, "data": np.array([[3.0, "x", 1.0]], dtype=object)}
    )
    assert "x, as is typical" in repr(same.reasons(reference=reference))
