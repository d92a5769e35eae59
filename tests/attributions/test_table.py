"""The table of attributions, and how an attribution is chosen."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier

from texplainer import Explanation, TExplainer
from texplainer.attributions.table import ATTRIBUTIONS, GENERAL
from texplainer.errors import InputError

X = np.random.default_rng(3).normal(size=(200, 4))
NETWORK = MLPClassifier((8,), solver="lbfgs", max_iter=200, random_state=0, alpha=0.5).fit(
    X, X[:, 0] * X[:, 1] > 0
)


def test_the_default_is_local_and_the_papers_derivative_where_a_step_is_given():
    assert TExplainer(NETWORK, X).attribution == "slope"
    for step in ("paper", 0.1):
        explainer = TExplainer(NETWORK, X, step=step)
        assert explainer.attribution == "gradient" and explainer.engine.width == 0.0
        explanation = explainer(X[:3])
        np.testing.assert_array_equal(explanation.values, explanation.gradient)


def test_a_reading_is_chosen_in_the_constructor_or_at_the_call():
    explainer = TExplainer(NETWORK, X)
    for name in GENERAL:
        asked, made = explainer(X[:5], attribution=name), TExplainer(NETWORK, X, attribution=name)(X[:5])
        np.testing.assert_array_equal(asked.values, made.values)
        assert asked.attribution == made.attribution == name
        assert asked.settings["question"] == ATTRIBUTIONS[name].question
    with pytest.raises(InputError, match="attribution='magic' is unknown; expected 'auto' or one of slope"):
        explainer(X[:1], attribution="magic")
    with pytest.raises(InputError, match="attribution='scaled' is unknown"):
        TExplainer(NETWORK, X, attribution="scaled")


def test_a_live_explanation_has_shares_of_just_its_rows_and_features(tmp_path):
    explanation = TExplainer(NETWORK, X)(X[:20])
    shares = explanation.with_attribution("shapley")
    np.testing.assert_array_equal(shares.values, TExplainer(NETWORK, X, attribution="shapley")(X[:20]).values)
    some = explanation[5:8][:, ["x2", "x0"]].with_attribution("shapley")
    np.testing.assert_allclose(some.values, shares.values[5:8][:, [2, 0]], atol=1e-12)
    one = explanation[3].with_attribution("shapley")
    assert one.values.shape == (4,) and one.base_values + one.values.sum() == pytest.approx(
        float(one.predictions)
    )
    assert shares.with_attribution("shapley") is shares
    explanation.save(tmp_path / "kept.npz")
    for dead in (Explanation.load(tmp_path / "kept.npz"), pickle.loads(pickle.dumps(explanation))):
        with pytest.raises(InputError, match=r"attribution=\('slope', 'shapley'\)"):
            dead.with_attribution("shapley")


def test_attributions_without_slopes_have_no_local_model():
    explanation = TExplainer(NETWORK, X)(X[:5], attribution="variation")
    with pytest.raises(InputError, match="no local model"):
        explanation.surrogate(np.zeros(4))
    assert TExplainer(NETWORK, X)(X[:5]).surrogate(np.zeros(4)).shape == (5,)


def test_a_reading_says_how_it_asked_the_model() -> None:
    from sklearn.ensemble import RandomForestRegressor

    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    forest = RandomForestRegressor(5, random_state=0).fit(X, X[:, 0])
    trees, function = TExplainer(forest, X), TExplainer(lambda rows: np.tanh(rows).sum(axis=1), X)
    assert "thresholds of the trees" in trees(X[:2]).settings["how"]
    assert "exact Shapley values of the trees" in trees(X[:2], attribution="shapley").settings["how"]
    assert "permutations" in str(function(X[:2], attribution="shapley"))
    assert "16 values" in str(function(X[:2], attribution="variation"))
    asked = TExplainer(forest, X, engine="finite-difference", attribution="shapley")(X[:2])
    assert asked.settings["how"].startswith("permutations") and asked.settings["why"] == "asked for"


@pytest.mark.parametrize("name", ATTRIBUTIONS)
def test_an_attribution_is_documented(name):
    docs = Path(__file__).parents[2] / "docs"
    assert f'"{name}"' in TExplainer.__doc__
    assert f'"{name}"' in (docs / "guide.md").read_text(encoding="utf-8")
    assert f"**{name}.**" in (docs / "meaning.md").read_text(encoding="utf-8")
