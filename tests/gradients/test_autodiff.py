"""Autodiff against finite differences and against each other; models are left as found."""

import os
import subprocess
import sys

import numpy as np
import pytest

from texplainer.errors import InputError, Unsupported
from texplainer.gradients import autodiff, finite_difference
from texplainer.gradients.choose import choose
from texplainer.gradients.engine import Settings
from texplainer.models import predictor as prediction
from texplainer.tables import schema as frames

torch = pytest.importorskip("torch")
X = np.random.default_rng(3).normal(size=(60, 5))


def network(outputs=3, dtype=torch.float64, activation=torch.nn.Tanh):
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        layers = [torch.nn.Linear(5, 16), activation(), torch.nn.BatchNorm1d(16), torch.nn.Dropout(0.5)]
        net = torch.nn.Sequential(*layers, torch.nn.Linear(16, outputs)).to(dtype)
        net[2].running_mean += 0.3
    return net


def predictor_of(model, scale="raw", output="all"):
    schema, rows = frames.learn(X)
    return prediction.adapt(model, schema, rows[:8], output=output, scale=scale)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("scale", ["raw", "log-odds", "probability"])
def test_torch_agrees_with_finite_differences(dtype, outputs, scale):
    predictor = predictor_of(network(outputs, dtype), scale)
    exact = autodiff.build(predictor, X, Settings()).gradient(X)
    twin = finite_difference.build(predictor, X, Settings()).gradient(X)
    assert np.mean(np.abs(exact.values - twin.values) <= 2 * twin.error + exact.error) > 0.97
    size = np.linalg.norm(exact.values)
    assert np.linalg.norm(exact.values - twin.values) < (1e-6 if dtype == torch.float64 else 1e-2) * size


def test_float32_error_bound_covers_the_float64_twin():
    wide = network(3, torch.float64)
    narrow = network(3, torch.float32)
    narrow.load_state_dict({k: v.to(torch.float32) for k, v in wide.state_dict().items()})
    wide.load_state_dict({k: v.double() for k, v in narrow.state_dict().items()})
    rows = X.astype(np.float32).astype(float)
    found = autodiff.build(predictor_of(narrow), X, Settings()).gradient(rows)
    truth = autodiff.build(predictor_of(wide), X, Settings()).gradient(rows)
    gap = np.abs(found.values - truth.values)
    assert np.all(gap <= found.error) and gap.max() > truth.error.max()


def test_a_torch_model_is_left_as_found():
    net = network()
    net.train()
    net[3].eval()  # a mix of modes must survive
    next(net.parameters()).requires_grad_(False)
    net[4].weight.grad = torch.full_like(net[4].weight, 7.0)
    modes = [m.training for m in net.modules()]
    state = {k: v.clone() for k, v in net.state_dict().items()}
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    with torch.inference_mode():
        autodiff.build(predictor_of(net), X, Settings()).gradient(X)
    assert torch.equal(before, torch.random.get_rng_state())
    assert [m.training for m in net.modules()] == modes
    assert all(torch.equal(v, state[k]) for k, v in net.state_dict().items())
    assert torch.all(net[4].weight.grad == 7.0) and net[0].bias.grad is None
    assert not next(net.parameters()).requires_grad


def test_a_row_alone_and_in_a_batch():
    """torch sums a row's products in an order that may depend on its place: equal within the error bound."""
    gradient = autodiff.build(predictor_of(network(dtype=torch.float32)), X, Settings()).gradient
    together = gradient(np.tile(X, (10, 1)))
    np.testing.assert_array_equal(gradient(X).values, together.values[:60])  # the same places, the same bits
    for i in (0, 31, 59):
        alone = gradient(X[i : i + 1]).values[0]
        assert np.all(np.abs(alone - together.values[i]) <= together.error[i])


class _Rounding(torch.nn.Module):
    """Steps in front of a line: autograd's derivative of round() is 0, the model's slope is not."""

    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(5, 1).double()

    def forward(self, x):
        return self.line(torch.round(x * 1e6) / 1e6)


class _Detached(_Rounding):
    def forward(self, x):
        return self.line(x.detach()).detach()


class _Underivable(_Rounding):
    """An operation without a derivative: only the reverse pass fails."""

    def forward(self, x):
        return self.line(x) + torch.heaviside(x[:, :1], torch.zeros(1, dtype=x.dtype))


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (_Rounding, "contradicts"),
        (_Detached, "differentiable operations"),
        (_Underivable, "reverse pass failed.*heaviside is not implemented"),
    ],
)
def test_derivatives_that_are_not_the_models_are_refused(broken, why):
    predictor = predictor_of(broken())
    with pytest.raises(Unsupported, match=why):
        autodiff.build(predictor, X, Settings())
    assert choose(predictor, X, "auto", Settings(bandwidth=0)).name == "finite-difference"


def test_other_models_are_refused_with_the_reason():
    with pytest.raises(InputError, match="not a torch, JAX or Keras model"):
        choose(predictor_of(lambda rows: rows[:, 0]), X, "autodiff", Settings())


@pytest.mark.parametrize("jitted", [True, False])
@pytest.mark.parametrize("scale", ["raw", "probability"])
def test_jax_functions(jitted, scale):
    jax = pytest.importorskip("jax")
    if not jitted and scale != "raw":
        pytest.skip("a plain function has only its raw outputs")
    weights = np.random.default_rng([3, 3]).normal(size=(5, 2)).astype(np.float32).astype(float)
    rows = X.astype(np.float32).astype(float)
    scope = {"jnp": jax.numpy, "weights": weights}
    plain = eval(
        "lambda x: 2 * jnp.tanh(x @ jnp.asarray(weights))", scope
    )  # as in a user's module that imports jax
    predictor = predictor_of(jax.jit(plain) if jitted else plain, scale)
    exact = autodiff.build(predictor, X, Settings()).gradient(rows)
    if scale == "raw":
        truth = 2 * (1 - np.tanh(rows @ weights) ** 2)[:, None, :] * weights
        assert np.all(np.abs(exact.values - truth) <= exact.error)
    twin = finite_difference.build(predictor, X, Settings()).gradient(rows)
    assert np.linalg.norm(exact.values - twin.values) < 1e-2 * np.linalg.norm(exact.values)


KERAS = """
import numpy as np, keras
from texplainer.errors import InputError, ModelError
from texplainer.gradients import autodiff
from texplainer.gradients.engine import Settings
from texplainer.gradients import finite_difference
from texplainer.models import predictor as models
from texplainer.tables import schema as tables
keras.utils.set_random_seed(0)
rows = np.random.default_rng(0).normal(size=(40, 4))
layers = [keras.layers.Input((4,)), keras.layers.Dense(8, "tanh"), keras.layers.BatchNormalization()]
model = keras.Sequential([*layers, keras.layers.Dropout(0.5), keras.layers.Dense(2)])
schema, read = tables.learn(rows)
try:
    models.adapt(model, schema, read[:8])
except ModelError as error:
    print("skip:", error); raise SystemExit
for scale in ("raw", "probability"):
    predictor = models.adapt(model, schema, read[:8], output="all", scale=scale)
    exact = autodiff.build(predictor, read, Settings())
    found, twin = exact.gradient(read), finite_difference.build(predictor, read, Settings()).gradient(read)
    assert np.linalg.norm(found.values - twin.values) < 1e-2 * np.linalg.norm(found.values)
print(exact.how)
"""


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_keras(backend):
    """In a process of its own: a Keras backend is chosen once, at import."""
    pytest.importorskip("keras")
    pytest.importorskip(backend)
    environment = {**os.environ, "KERAS_BACKEND": backend}
    done = subprocess.run([sys.executable, "-c", KERAS], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    if done.stdout.startswith("skip:"):
        pytest.skip(f"the Keras adapter does not take this backend yet: {done.stdout}")
    assert "Keras through" in done.stdout
