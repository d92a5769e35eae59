"""Every engine of the table keeps the same contract, on real fitted models, outputs and scales.

An exact engine agrees with finite differences within the latter's own error bound; every engine gives
arrays of the promised shapes, says why it was chosen, and gives a row the same answer whatever else is in the batch.
A new line in `ENGINES` needs a line in `MODELS` here.
"""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from texplainer import TExplainer
from texplainer.errors import EngineWarning, InputError
from texplainer.gradients import choose as choose_module
from texplainer.gradients.choose import ENGINES, NEEDS, choose
from texplainer.gradients.engine import Settings
from texplainer.models import predictor as prediction
from texplainer.tables import schema as frames

X = np.random.default_rng(2).normal(size=(150, 4)) * [1.0, 5.0, 0.1, 1.0]
Z = X / [1.0, 5.0, 0.1, 1.0]
THREE = np.digitize(Z[:, 0] + Z[:, 1] * Z[:, 2], [-0.7, 0.7])
NET = {"hidden_layer_sizes": (12,), "activation": "tanh", "solver": "lbfgs", "alpha": 0.1, "tol": 1e-3}


def network(classes):
    return make_pipeline(StandardScaler(), MLPClassifier(**NET, max_iter=500, random_state=0)).fit(X, classes)


def torch_network():
    torch = pytest.importorskip("torch")
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        layers = [torch.nn.Linear(4, 12), torch.nn.Tanh(), torch.nn.Linear(12, 3)]
        return torch.nn.Sequential(*layers).double()


def forest():
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(10, random_state=0, max_depth=4).fit(X, THREE)


#: engine -> models it fits, each with the scales it has
MODELS = {
    "closed-form": [
        (lambda: network(THREE), ("probability", "log-odds")),
        (lambda: network(THREE > 1), ("probability", "log-odds")),
        (lambda: LogisticRegression(max_iter=500).fit(Z, THREE), ("probability", "log-odds")),
    ],
    "autodiff": [(torch_network, ("raw", "probability", "log-odds"))],
    "tree": [(forest, ("probability",))],
    "finite-difference": [(lambda: lambda rows: np.sin(rows[:, :2]), ("raw",))],
}
CASES = [(e, make, s) for e, models in MODELS.items() for make, scales in models for s in scales]


def _predictor(model, scale, output="all"):
    schema, rows = frames.learn(X)
    return prediction.adapt(model, schema, rows[:8], output=output, scale=scale)


def test_every_engine_has_a_model():
    assert set(MODELS) == set(ENGINES)


@pytest.mark.parametrize(("engine", "make", "scale"), CASES)
def test_contract(engine, make, scale):
    predictor = _predictor(make(), scale)
    built = choose(predictor, X, engine, Settings(bandwidth=0 if engine != "tree" else 0.25))
    assert built.name == engine and built.why == "asked for"
    rows = X[:24]
    found = built.gradient(rows)
    shape = (*rows.shape, len(predictor.outputs))
    assert found.values.shape == found.error.shape == shape
    assert found.step.shape == found.flags.shape == rows.shape and found.evaluations.shape == (24,)
    assert found.flags.dtype == np.uint8 and np.all(found.evaluations >= 0)
    assert np.isfinite(found.values).all() and np.all(found.error[np.isfinite(found.error)] >= 0)
    alone = built.gradient(rows[5:6])
    np.testing.assert_allclose(alone.values[0], found.values[5], rtol=1e-9, atol=1e-12)
    if scale == "probability":
        np.testing.assert_allclose(found.values.sum(axis=2), 0.0, atol=1e-6 * np.abs(found.values).max())
    if engine in ("closed-form", "autodiff"):
        twin = choose(predictor, X, "finite-difference", Settings(bandwidth=0)).gradient(rows)
        # log-odds taken from a probability lose digits as it nears 0 or 1: the model's doing, not the engine's
        clear = np.abs(predictor(rows)).max(axis=1) < 8
        gap = np.abs(found.values - twin.values)[clear]
        twin, found = replace(twin, error=twin.error[clear]), replace(found, error=found.error[clear])
        assert np.mean(gap <= twin.error + found.error) > 0.99
        assert np.all(gap <= 5 * twin.error + found.error + 1e-9)


@pytest.mark.parametrize(("engine", "make", "scale"), CASES[:1] + CASES[-2:])
def test_one_output_is_a_column_of_all(engine, make, scale):
    model, wish = make(), Settings(bandwidth=0 if engine != "tree" else 0.25)
    every = choose(_predictor(model, scale), X, engine, wish).gradient(X[:8]).values
    one = choose(_predictor(model, scale, output=1), X, engine, wish).gradient(X[:8]).values
    np.testing.assert_allclose(one[:, :, 0], every[:, :, 1], rtol=1e-6, atol=1e-10)


def test_auto_takes_the_cheapest_exact_engine_and_says_why():
    explainer = TExplainer(network(THREE > 1), X)
    assert explainer.engine.name == "closed-form" and "formula" in explainer.engine.at_point.how
    assert explainer(X[:2]).engine == "closed-form"
    assert "one feature at a time" in explainer(X[:2]).settings["how"]
    assert "formula" in explainer(X[:2], attribution="gradient").settings["how"]
    black = TExplainer(lambda rows: rows[:, 0] ** 2, X)
    assert black.engine.name == "finite-difference"
    assert "closed-form: the model is not from scikit-learn" in black.engine.why
    found = black(X[:2])
    assert "  engine       finite-difference: differences of predictions, one feature at a time\n" in str(
        found
    )
    assert found.settings["why"].startswith("closed-form: ")
    assert "not tree: the model is not a tree ensemble." in black.engine_report().splitlines()


@pytest.mark.parametrize("engine", ["closed-form", "autodiff", "tree"])
def test_an_engine_that_cannot_says_why(engine):
    with pytest.raises(
        InputError, match=rf"engine='{engine}' cannot explain this function: .* engine='auto'"
    ):
        TExplainer(lambda rows: rows[:, 0], X, engine=engine)


def test_an_engine_of_other_libraries_is_not_built_and_has_its_reason(monkeypatch):
    import texplainer.gradients.closed_form.engine as closed_form
    import texplainer.gradients.trees.engine as trees

    def never(*arguments):
        raise AssertionError("built for a model that cannot have it")

    for module in (closed_form, trees):
        monkeypatch.setattr(module, "build", never)
    lines = TExplainer(lambda rows: rows[:, 0], X).engine_report().splitlines()
    assert [line for line in lines if line.startswith("not ")] == [
        f"not {name}: {reason}" for name, reason in NEEDS.items()
    ]


def test_a_missing_package_is_named_and_the_model_is_explained_without_it(monkeypatch):
    def without_trees(name):
        if "trees" in name:
            raise ModuleNotFoundError("No module named 'numba'", name="numba")
        return import_module(name)

    monkeypatch.setattr(choose_module, "import_module", without_trees)
    with pytest.warns(EngineWarning, match="the tree engine needs the package 'numba'"):
        built = choose(_predictor(forest(), "probability"), X, "auto", Settings())
    assert built.name == "finite-difference" and "needs the package 'numba'" in built.why


def test_an_unknown_engine_is_named():
    with pytest.raises(InputError, match="engine='magic' is unknown"):
        TExplainer(lambda rows: rows[:, 0], X, engine="magic")
