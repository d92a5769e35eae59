"""Steps inside networks are found, and only steps; the slopes are then those of the same function."""

import numpy as np
import pytest

import texplainer as tx
from texplainer.gradients import autodiff
from texplainer.gradients.engine import Settings
from texplainer.models import predictor as prediction
from texplainer.tables import schema as tables

torch = pytest.importorskip("torch")


class Net(torch.nn.Module):
    """tanh(x0) plus a function of x1, in float64."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))

    def forward(self, x):
        return (self.weight * torch.tanh(x[:, 0]) + self.function(x[:, 1]))[:, None]


TABLE = torch.linspace(0, 3, 64, dtype=torch.float64) ** 2
STEPS = {
    "threshold": lambda x: 2.0 * (x > 0),
    "small threshold": lambda x: 0.05 * (x > 0.5),
    "round": torch.round,
    "fine round": lambda x: torch.round(1000 * x) / 1000,
    "floor": lambda x: 0.1 * torch.floor(3 * x),
    "embedding of bins": lambda x: TABLE[((x + 8) * 4).long().clamp(0, 63)],
    "where": lambda x: torch.where(x > 1, 1.0, 0.2 * x),
    "detached below": lambda x: torch.where(x > 0, x, x.detach()),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_network_with_steps_is_explained_by_differences(name):
    X = np.random.default_rng(0).normal(size=(200, 3))
    net = Net(STEPS[name])
    explainer = tx.TExplainer(net, X)
    assert explainer.engine.name == "finite-difference"
    assert (
        "steps that its derivative does not contain" in explainer.engine.why
        and "x1 =" in explainer.engine.why
    )
    twin = tx.TExplainer(lambda rows: net(torch.as_tensor(rows)).detach().numpy()[:, 0], X)
    found, expected = explainer(X[:20]), twin(X[:20])
    gap = np.abs(np.ravel(found.values) - np.ravel(expected.values))
    assert np.all(gap <= np.ravel(found.diagnostics["error"] + expected.diagnostics["error"]))


class Between(torch.nn.Module):
    """Two layers with a function in between, through which every way leads."""

    def __init__(self, function):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = torch.nn.Linear(3, 8).double(), torch.nn.Linear(8, 1).double()
        self.function = function

    def forward(self, x):
        return self.last(self.function(self.first(x)))


@pytest.mark.parametrize(
    "function",
    [
        lambda z: (z > 0).double(),
        lambda z: torch.nn.functional.one_hot(z.argmax(dim=1), 8).double(),
        lambda z: torch.tanh(z.detach()),
    ],
    ids=["threshold", "argmax", "detached"],
)
def test_a_network_without_any_derivative_is_explained_by_differences(function):
    X = np.random.default_rng(0).normal(size=(200, 3))
    net = Between(function)
    explainer = tx.TExplainer(net, X)
    assert explainer.engine.name == "finite-difference"
    twin = tx.TExplainer(lambda rows: net(torch.as_tensor(rows)).detach().numpy()[:, 0], X)
    found, expected = explainer(X[:20]), twin(X[:20])
    gap = np.abs(np.ravel(found.values) - np.ravel(expected.values))
    assert np.all(gap <= np.ravel(found.diagnostics["error"] + expected.diagnostics["error"]))


def test_a_step_in_jax_is_found():
    jax = pytest.importorskip("jax")

    X = np.random.default_rng(0).normal(size=(200, 2))
    why = tx.TExplainer(jax.jit(lambda x: jax.numpy.tanh(x[:, 0]) + 2 * (x[:, 1] > 0)), X).engine.why
    assert "steps that its derivative does not contain" in why


def test_an_engine_that_misses_steps_is_refused_by_name():
    X = np.random.default_rng(0).normal(size=(200, 3))
    with pytest.raises(tx.errors.InputError, match=r"engine='autodiff' cannot explain this Net.* x1 = "):
        tx.TExplainer(Net(STEPS["threshold"]), X, engine="autodiff")


@pytest.mark.parametrize("activation", ["ReLU", "Tanh", "Hardtanh", "LeakyReLU", "GELU"])
@pytest.mark.parametrize("gain", [1.0, 3.0, 8.0])
def test_ordinary_networks_have_no_steps(activation, gain):
    for seed in range(4):
        X = np.random.default_rng(seed).standard_t(4, size=(200, 10))
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            unit = getattr(torch.nn, activation)
            layers = [
                torch.nn.Linear(10, 64),
                unit(),
                torch.nn.Linear(64, 64),
                unit(),
                torch.nn.Linear(64, 2),
            ]
            net = torch.nn.Sequential(*layers).to(torch.float64 if seed % 2 else torch.float32)
        with torch.no_grad():
            for weights in net.parameters():
                weights *= gain
        schema, rows = tables.learn(X)
        predictor = prediction.adapt(net, schema, rows[:8], output="all", scale="raw")
        assert autodiff.build(predictor, X, Settings()).name == "autodiff"


def test_an_embedding_of_a_declared_category_is_not_a_step():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.integers(0, 5, 200)])
    explainer = tx.TExplainer(Net(lambda x: TABLE[x.long() * 9]), X, categorical=["x1"])
    assert explainer.engine.name == "autodiff"
