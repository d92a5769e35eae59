"""Recourse: verified by the model, inside its limits, small, deterministic; and the sentences for bad input."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import texplainer as tx
from texplainer.errors import InputError

TUMOURS = load_breast_cancer(as_frame=True)
MODELS = {
    "linear": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "boosted": lambda: HistGradientBoostingClassifier(max_iter=40, random_state=0),
    "forest": lambda: RandomForestClassifier(30, random_state=0),
    "network": lambda: make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=300, random_state=0)),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    X, y = TUMOURS.data.iloc[:, :8], np.array(["malignant", "benign"])[TUMOURS.target]
    model = MODELS[request.param]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the network has not converged
        model.fit(X[:400], y[:400])
    return model, tx.TExplainer(model, X[:200]), X


def test_every_proposal_is_verified_and_inside_its_limits(fitted):
    model, explainer, X = fitted
    rows = X[400:][model.predict(X[400:]) == "malignant"].iloc[:4]
    low, high = X[:200].min(), X[:200].max()
    for i in range(len(rows)):
        row = rows.iloc[[i]]
        found = explainer.recourse(
            row,
            "benign",
            fixed=["mean radius"],
            ranges={"mean texture": (12, None)},
            monotone={"mean area": "down"},
        )
        assert found.found
        assert (model.predict(found.rows) == "benign").all()
        assert found.predictions == pytest.approx(
            model.predict_proba(found.rows)[:, list(model.classes_).index("benign")]
        )
        own = row.iloc[0]
        for n, changes in enumerate(found.changes):
            proposed = found.rows.iloc[n]
            assert 1 <= len(changes) <= 3
            assert {c.feature for c in changes} == {c for c in X if proposed[c] != own[c]}
            assert proposed["mean radius"] == own["mean radius"]
            assert proposed["mean area"] <= own["mean area"]
            for change in changes:
                assert low[change.feature] <= change.after <= high[change.feature]
                sd = explainer.background.sigma[list(X).index(change.feature)]
                assert change.sds == pytest.approx(abs(change.after - change.before) / sd)
                if change.feature == "mean texture":
                    assert change.after >= 12
        sets = [{c.feature for c in changes} for changes in found.changes]
        assert len({frozenset(s) for s in sets}) == len(sets)


def test_the_same_answer_every_time(fitted):
    _, explainer, X = fitted
    wanted = "malignant" if explainer.predictor.everything(X[:1].to_numpy())[0].argmax() == 0 else "benign"
    one, two = (explainer.recourse(X[:1], wanted, count=2) for _ in range(2))
    assert repr(one) == repr(two)


def test_what_is_called_robust_survives_small_moves(fitted):
    model, explainer, X = fitted
    rows = X[400:][model.predict(X[400:]) == "malignant"].iloc[:2]
    random = np.random.default_rng(0)
    for i in range(len(rows)):
        found = explainer.recourse(rows.iloc[[i]], "benign")
        for n in np.nonzero(found.robust)[0]:
            for j, name in enumerate(X):
                for sign in (-1, 1):
                    moved = found.rows.iloc[[n]].copy()
                    moved[name] += sign * 0.05 * explainer.background.sigma[j]
                    assert model.predict(moved)[0] == "benign"
            signs = random.choice([-1, 1], size=(50, X.shape[1]))
            moved = found.rows.iloc[[n]].to_numpy() + 0.05 * signs * explainer.background.sigma
            assert np.mean(model.predict(pd.DataFrame(moved, columns=X.columns)) == "benign") > 0.9


def test_a_linear_model_gets_the_smallest_change():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(300, 4)), columns=list("abcd"))
    weights = np.array([3.0, -2.0, 1.0, 0.0])
    model = LinearRegression().fit(X, X.to_numpy() @ weights)
    explainer = tx.TExplainer(model, X)
    row = pd.DataFrame([[0.0, 0.0, 0.0, 0.0]], columns=list("abcd"))
    found = explainer.recourse(row, (">=", 2.0), count=3)
    assert [c.feature for c in found.changes[0]] == ["a"]  # the most gain per SD
    exact = 2.0 / 3 / explainer.background.sigma[0]
    assert found.changes[0][0].sds == pytest.approx(exact, rel=0.25)  # and the way that 5% moves may undo
    assert found.changes[0][0].sds >= exact * (1 - 1e-6)
    assert "d" not in set(found.to_frame()["feature"])
    assert found.robust.all()


def test_brute_force_finds_nothing_much_smaller():
    """On two discrete columns and a tree the smallest change is known by trying all of them."""
    random = np.random.default_rng(1)
    X = pd.DataFrame(random.integers(0, 9, size=(400, 3)).astype(float), columns=["p", "q", "r"])
    y = np.where(X["p"] * X["q"] + X["r"] > 20, "yes", "no")
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(X, y)
    explainer = tx.TExplainer(model, X)
    row = pd.DataFrame([[2.0, 3.0, 1.0]], columns=X.columns)
    grid = pd.DataFrame(
        [(p, q, r) for p in range(9) for q in range(9) for r in range(9)], columns=X.columns, dtype=float
    )
    cost = (np.abs(grid - row.iloc[0]) / explainer.background.sigma).sum(axis=1)
    best = cost[model.predict(grid) == "yes"].min()
    found = explainer.recourse(row, "yes")
    total = sum(c.sds for c in found.changes[0])
    assert total <= 1.15 * best
    assert all(c.after in range(9) for changes in found.changes for c in changes)  # observed values only


def test_categories_are_switched_and_kept_to_what_is_allowed():
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": random.integers(20, 60, 300), "plan": random.choice(["basic", "plus", "pro"], 300)}
    )
    gain = {"basic": 0.0, "plus": 2.0, "pro": 4.0}

    def model(frame):
        return frame["plan"].astype(str).map(gain).astype(float) + 0.0 * frame["age"]

    explainer = tx.TExplainer(model, table)
    row = {"age": 40, "plan": "basic"}
    found = explainer.recourse(row, (">=", 1.0))
    assert [c.after for changes in found.changes for c in changes] == ["plus"] or found.rows["plan"][
        0
    ] in gain
    only = explainer.recourse(row, (">=", 1.0), ranges={"plan": ["pro"]})
    (change,) = only.changes[0]
    assert (change.before, change.after, change.sds, change.switch) == ("basic", "pro", 1.0, True)
    assert "basic → pro" in repr(only)


def test_integer_columns_stay_integers():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"income": random.integers(0, 500, 300), "rate": random.normal(size=300)})
    explainer = tx.TExplainer(lambda t: t["income"] / 100.0 + t["rate"], table)
    found = explainer.recourse(table[:1], (">=", 6.0), actionable=["income", "rate"])
    assert found.rows["income"].dtype == table["income"].dtype
    assert (found.rows["income"] == found.rows["income"].round()).all()


@pytest.mark.parametrize("step", [1, 0.1])
def test_a_limit_between_two_values_of_a_column_is_not_proposed(step):
    X = pd.DataFrame({"amount": np.arange(100) * step})
    explainer = tx.TExplainer(lambda table: table["amount"].to_numpy(float), X)
    found = explainer.recourse(X[:1], (">=", 95 * step), ranges={"amount": (-0.5 * step, 60.5 * step)})
    assert not found.found and found.rows["amount"].iloc[0] == pytest.approx(60 * step, rel=1e-12)
    assert found.rows.dtypes.equals(X.dtypes)


def test_a_column_keeps_its_decimals_and_its_direction():
    X = pd.DataFrame(np.random.default_rng(0).normal(100, 30, size=(300, 2)).round(1), columns=["a", "b"])
    explainer = tx.TExplainer(lambda t: -((t["a"] - 100) ** 2) - 0.0 * t["b"], X)
    row = pd.DataFrame({"a": [130.0], "b": [100.0]})
    near = explainer.recourse(row, (">=", -101.7), actionable=["a"]).changes[0][0].after
    assert near == round(near, 1)
    assert 100 < near <= 100 + np.sqrt(101.7)
    assert not explainer.recourse(row, (">=", -101.7), actionable=["a"], monotone={"a": "up"}).found


def test_none_found_shows_the_nearest():
    X = np.random.default_rng(0).uniform(-1, 1, size=(100, 2))
    explainer = tx.TExplainer(lambda rows: rows[:, 0] + 0.1 * rows[:, 1], X)
    found = explainer.recourse([0.0, 0.0], (">=", 50.0))
    assert not found.found
    assert len(found.rows) == 1
    assert found.predictions[0] == pytest.approx(X[:, 0].max() + 0.1 * X[:, 1].max(), rel=0.02)
    assert "none found" in repr(found)


def test_a_number_is_reached_from_the_side_the_row_is_on():
    X = np.random.default_rng(0).normal(size=(200, 2))
    explainer = tx.TExplainer(lambda rows: rows[:, 0], X)
    assert explainer.recourse([0.0, 0.0], 1.0).predictions.min() >= 1.0
    assert explainer.recourse([2.0, 0.0], 1.0).predictions.max() <= 1.0
    assert explainer.recourse([0.0, 0.0], 1.0, margin=0.25).predictions.min() >= 1.25


def test_probabilities_are_the_unit_on_the_log_odds_scale():
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    explainer = tx.TExplainer(model, X)
    assert explainer.predictor.scale == "log-odds"
    row = X[np.argmin(model.predict_proba(X)[:, 1])]
    found = explainer.recourse(row, 0.7)
    assert found.predictions == pytest.approx(model.predict_proba(found.rows)[:, 1])
    assert found.predictions.min() >= 0.7


def test_several_classes_are_reached_by_their_label():
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True, as_frame=True)
    model = LogisticRegression(max_iter=1000).fit(X, y)
    found = tx.TExplainer(model, X).recourse(X[:1], 2)
    assert found.found
    assert (model.predict(found.rows) == 2).all()
    with pytest.raises(InputError, match="one explained output"):
        tx.TExplainer(model, X).recourse(X[:1], 0.5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"actionable": ["aa"]}, "actionable names the feature 'aa'"),
        ({"fixed": ["c"]}, "fixed names the feature 'c'"),
        ({"fixed": ["a", "b"]}, "nothing is actionable: every feature is fixed"),
        ({"actionable": []}, "nothing is actionable"),
        ({"actionable": ["a"], "ranges": {"a": (5, 2)}}, "is empty: low 5 is above high 2"),
        ({"ranges": {"a": (100, 200)}}, "lies outside the data's range"),
        ({"ranges": {"a": 3}}, r"expected \(low, high\)"),
        ({"ranges": {"a": (np.nan, 3)}}, r"expected \(low, high\)"),
        ({"ranges": {"b": (5, 2)}, "row": [0.0, np.nan]}, "is empty: low 5 is above high 2"),
        (
            {"actionable": "b", "row": [0.0, np.nan]},
            r"no other value is allowed for b \(missing in this row\)",
        ),
        ({"ranges": [("a", 1)]}, "ranges is a list; expected a mapping"),
        ({"monotone": "up"}, "monotone is 'up'; expected a mapping"),
        ({"fixed": 5}, "fixed names the feature 5"),
        ({"ranges": {"a": (0, 1)}, "fixed": ["a"]}, "which is fixed"),
        ({"monotone": {"a": "sideways"}}, "expected 'up' or 'down'"),
        ({"max_changes": 0}, "max_changes=0"),
        ({"count": True}, "count=True"),
        ({"margin": -1}, "margin=-1"),
        ({"target": (">=", -9.0)}, "already met"),
        ({"target": (">=", -9.0), "fixed": ["z"]}, "fixed names the feature 'z'"),
        ({"target": ("!", 1.0)}, "expected an operator"),
        ({"target": "blue"}, "target='blue' is not a target"),
        ({"row": [[0.0, 0.0], [1.0, 1.0]]}, "row holds 2 rows"),
        ({"row": [0.0, 0.0, 0.0]}, "3 columns; expected 2"),
    ],
)
def test_bad_input_gets_a_sentence(words, message):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["a", "b"])
    explainer = tx.TExplainer(lambda t: t["a"] + t["b"].fillna(0.0), X)
    given = {"row": [0.0, 0.0], "target": (">=", 1.0), **words}
    with pytest.raises(InputError, match=message):
        explainer.recourse(given.pop("row"), given.pop("target"), **given)


def test_a_row_with_a_missing_cell_keeps_it():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(300, 3)), columns=list("abc"))
    X.iloc[::7, 0] = np.nan
    model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(X, X["b"] + X["c"] > 0)
    row = pd.DataFrame([[np.nan, -1.0, -0.5]], columns=list("abc"))
    found = tx.TExplainer(model, X).recourse(row, True)
    assert found.found
    assert found.rows["a"].isna().all()


def test_it_prints_and_has_html_with_escaped_names():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["<b>x</b>", "y"])
    found = tx.TExplainer(lambda t: t["<b>x</b>"] + 0 * t["y"], X).recourse([0.0, 0.0], 1.0)
    assert "<b>" not in found._repr_html_()
    assert "SD" in repr(found)
    assert list(found.to_frame().columns) == [
        "proposal",
        "feature",
        "from",
        "to",
        "sds",
        "prediction",
        "robust",
    ]


DATA = Path(os.environ.get("TEXPLAINER_DATA") or Path(__file__).parents[3] / "shared" / "data")
CHURN = DATA / "mlc_churn.csv"


def customers():
    """Customers of whom those with many calls to the service or high charges leave."""
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "account_length": random.integers(1, 240, 4400),
            "total_day_charge": random.normal(30, 9, 4400).round(2),
            "total_eve_charge": random.normal(17, 4, 4400).round(2),
            "number_customer_service_calls": random.poisson(1.6, 4400),
        }
    )
    pressure = table["total_day_charge"] / 9 + table["number_customer_service_calls"]
    return table.assign(churn=np.where(pressure + random.normal(size=4400) / 4 > 7, "yes", "no"))


@pytest.mark.parametrize(
    "read",
    [
        customers,
        pytest.param(
            lambda: pd.read_csv(CHURN),
            marks=pytest.mark.skipif(not CHURN.exists(), reason="the churn data is not on this machine"),
        ),
    ],
    ids=["generated", "real"],
)
def test_churn_customers_can_be_kept(read):
    table = read()
    numbers = table.select_dtypes("number")
    model = HistGradientBoostingClassifier(max_iter=50, random_state=0).fit(
        numbers[:4000], table["churn"][:4000]
    )
    explainer = tx.TExplainer(model, numbers[:300])
    leaving = numbers[4000:][model.predict(numbers[4000:]) == "yes"].iloc[:5]
    for i in range(len(leaving)):
        found = explainer.recourse(leaving.iloc[[i]], "no", fixed=["account_length"])
        assert found.found
        assert (model.predict(found.rows) == "no").all()
        assert (found.rows["account_length"] == leaving["account_length"].iloc[i]).all()
