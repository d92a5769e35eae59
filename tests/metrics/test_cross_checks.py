"""The same inputs through Captum and Quantus: equal to 1e-6 under the same convention."""

import itertools

import numpy as np
import pytest

from texplainer.metrics.scores import complexity, faithfulness, stability

torch = pytest.importorskip("torch")

ROWS, NEIGHBOURS, FEATURES = 4, 6, 5
# Quantus rounds rows to single precision: multiples of 2**-16 survive it.
X = np.round(np.random.default_rng(0).normal(size=(ROWS, FEATURES)) * 2**16) / 2**16
OFFSETS = (
    np.round(0.05 * np.random.default_rng([0, 2]).normal(size=(NEIGHBOURS, ROWS, FEATURES)) * 2**16) / 2**16
)
NEAR = np.swapaxes(X + OFFSETS, 0, 1)
VALID = np.ones((ROWS, NEIGHBOURS), bool)


class Flat(torch.nn.Module):
    def forward(self, rows):
        return rows.double().flatten(1)


@pytest.fixture(scope="module")
def network():
    layers = Flat(), torch.nn.Linear(FEATURES, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers[1].reset_parameters(), layers[3].reset_parameters()
    return torch.nn.Sequential(*layers).double().eval()


def gradients(network, rows):
    rows = torch.tensor(np.asarray(rows), dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(network(rows)[:, 1].sum(), rows)
    return slope


def logits(network, rows):
    with torch.no_grad():
        return network(torch.tensor(rows)).numpy()


def explain(network, rows):
    flat = rows.reshape(-1, FEATURES)
    return gradients(network, flat).numpy().reshape(rows.shape)


@pytest.mark.parametrize("convention", ["plain", "rescaled"])
def test_captum_infidelity(network, convention):
    captum = pytest.importorskip("captum.metrics")
    steps = np.swapaxes(OFFSETS, 0, 1)  # (rows, perturbations, features)

    def perturb(inputs):
        move = torch.tensor(steps.reshape(-1, FEATURES))
        return move, inputs - move

    theirs = captum.infidelity(
        network, perturb, torch.tensor(X), gradients(network, X), target=1, n_perturb_samples=NEIGHBOURS,
        normalize=convention == "rescaled",
    )  # fmt: skip
    response = logits(network, X)[:, 1:] - logits(network, (X[:, None] - steps).reshape(-1, FEATURES))[
        :, 1
    ].reshape(ROWS, -1)
    expected = np.einsum("rf,rdf->rd", explain(network, X), steps)
    ours = faithfulness.infidelity(expected, response, convention=convention)
    assert ours == pytest.approx(theirs.numpy(), abs=1e-12, rel=1e-6)


def test_captum_sensitivity_max(network):
    captum = pytest.importorskip("captum.metrics")

    def attribute(inputs):
        if isinstance(inputs, tuple):  # Captum wants back the kind it gives
            return tuple(attribute(one) for one in inputs)
        with torch.enable_grad():
            return gradients(network, inputs.detach().numpy())

    theirs = captum.sensitivity_max(
        attribute,
        torch.tensor(X),
        lambda _: torch.tensor(NEAR.reshape(-1, FEATURES)),
        n_perturb_samples=NEIGHBOURS,
    )
    ours = stability.max_sensitivity(explain(network, X), explain(network, NEAR), VALID)["max"]
    assert ours == pytest.approx(theirs.numpy(), rel=1e-6)


@pytest.fixture(scope="module")
def quantus():
    return pytest.importorskip("quantus")


def quantus_inputs(network, shape=(ROWS, FEATURES)):
    return {
        "model": network,
        "x_batch": X.reshape(shape).copy(),
        "y_batch": np.ones(ROWS, dtype=int),
        "a_batch": explain(network, X).reshape(shape),
        "explain_func": lambda model, inputs, targets, **_: explain(network, np.asarray(inputs)),
    }


def moves():
    """The neighbours in turn, as Quantus asks for them."""
    turn = itertools.cycle(OFFSETS)
    return lambda arr, indices, **_: arr + next(turn)


RELATIVE = {
    "RelativeInputStability": (stability.relative_input_stability, lambda n: (X, NEAR)),
    "RelativeOutputStability": (
        stability.relative_output_stability,
        lambda n: (logits(n, X), logits(n, NEAR.reshape(-1, FEATURES)).reshape(ROWS, NEIGHBOURS, 2)),
    ),
}


@pytest.mark.parametrize("name", RELATIVE)
def test_quantus_relative_stability(network, quantus, name):
    ours, basis = RELATIVE[name]
    metric = getattr(quantus, name)(
        nr_samples=NEIGHBOURS,
        perturb_func=moves(),
        return_nan_when_prediction_changes=False,
        disable_warnings=True,
    )
    theirs = metric(**quantus_inputs(network), softmax=False)
    mine = ours(explain(network, X), explain(network, NEAR), *basis(network), VALID, convention="quantus")
    assert mine["max"] == pytest.approx(np.asarray(theirs), rel=1e-6)


def test_quantus_local_lipschitz(network, quantus):
    metric = quantus.LocalLipschitzEstimate(
        nr_samples=NEIGHBOURS, perturb_func=moves(), normalise=False, disable_warnings=True
    )
    theirs = metric(**quantus_inputs(network), softmax=False)
    mine = stability.local_lipschitz(explain(network, X), explain(network, NEAR), X, NEAR, VALID)
    assert mine == pytest.approx(np.asarray(theirs), rel=1e-6)


def test_quantus_sparseness_and_complexity(network, quantus):
    for name, mine in (("Sparseness", complexity.sparseness), ("Complexity", complexity.complexity)):
        metric = getattr(quantus, name)(abs=True, normalise=False, disable_warnings=True)
        theirs = metric(**quantus_inputs(network))
        # Quantus adds 1e-7 to each attribution (sparseness) and 1e-12 inside the logarithm (complexity).
        assert mine(explain(network, X)) == pytest.approx(np.asarray(theirs), rel=1e-6, abs=1e-6)


def test_quantus_faithfulness_correlation(network, quantus):
    chosen: list[np.ndarray] = []

    def zero(arr, indices, **_):
        out = arr.copy()
        np.put_along_axis(out, indices, 0.0, axis=1)
        chosen.append(indices)
        return out

    state = np.random.get_state()
    np.random.seed(0)  # Quantus draws its subsets from numpy's global generator
    metric = quantus.FaithfulnessCorrelation(
        nr_runs=30,
        subset_size=2,
        perturb_func=zero,
        normalise=False,
        return_aggregate=False,
        disable_warnings=True,
    )
    # a channel axis, because Quantus refuses subsets of two features of a flat table
    theirs = metric(**quantus_inputs(network, (ROWS, 1, FEATURES)), softmax=False, channel_first=True)
    np.random.set_state(state)
    removed = np.zeros((30, ROWS, FEATURES), bool)
    for one, indices in zip(removed, chosen, strict=True):
        np.put_along_axis(one, indices, True, axis=1)
    mine = faithfulness.faithfulness_correlation(
        explain(network, X), X, logits(network, X)[:, 1], lambda rows: logits(network, rows)[:, 1],
        np.zeros((1, 1, FEATURES)), np.arange(FEATURES), removed,
    )  # fmt: skip
    assert mine == pytest.approx(np.asarray(theirs), rel=1e-6)
