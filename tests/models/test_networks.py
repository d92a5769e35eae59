"""Networks that end in a sigmoid or a softmax give probabilities, and are not squashed twice."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import logit, softmax

import texplainer as tx
from texplainer.errors import InputError

torch = pytest.importorskip("torch")
X = np.random.default_rng(0).normal(size=(60, 3))


def layers(outputs):
    generator = torch.Generator().manual_seed(0)
    made = [torch.nn.Linear(3, 6), torch.nn.Tanh(), torch.nn.Linear(6, outputs)]
    for layer in made:
        for weight in layer.parameters():
            weight.data = torch.randn(weight.shape, generator=generator)
    return made


class Functional(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(*layers(1))

    def forward(self, x):
        return torch.sigmoid(self.net(x)).squeeze(-1)


class TwoInputs(torch.nn.Module):
    def forward(self, x, z):
        return x + z


def answer(model, rows):
    with torch.no_grad():
        return model(torch.as_tensor(rows, dtype=torch.float64)).numpy()


def test_a_sigmoid_at_the_end_is_recognised():
    model = torch.nn.Sequential(*layers(1), torch.nn.Sigmoid()).double()
    p = answer(model, X)[:, 0]
    found = tx.TExplainer(model, X, scale="probability")
    np.testing.assert_allclose(found(X[:5]).predictions, p[:5])
    explainer = tx.TExplainer(model, X)
    assert explainer.predictor.scale == "log-odds" and explainer.engine.name == "autodiff"
    np.testing.assert_allclose(explainer(X[:5]).predictions, logit(p[:5]), rtol=1e-6)
    far = explainer(1e4 * X[:5])  # where the probability itself is 0 or 1
    assert np.all(np.isfinite(np.asarray(far.predictions)))


def test_a_softmax_at_the_end_is_recognised():
    model = torch.nn.Sequential(*layers(3), torch.nn.Softmax(dim=1)).double()
    p = answer(model, X)
    np.testing.assert_allclose(tx.TExplainer(model, X, scale="probability")(X[:5]).predictions, p[:5])
    np.testing.assert_allclose(tx.TExplainer(model, X)(X[:5]).predictions, logit(p[:5]), rtol=1e-6)


def test_a_functional_sigmoid_is_recognised_too():
    model = Functional().double()
    explainer = tx.TExplainer(model, X)
    assert explainer.predictor.scale == "probability" and explainer.engine.name == "autodiff"
    np.testing.assert_allclose(explainer(X[:5]).predictions, answer(model, X[:5]))


def test_scores_stay_scores():
    model = torch.nn.Sequential(*layers(2)).double()
    assert tx.TExplainer(model, X).predictor.scale == "raw"
    found = tx.TExplainer(model, X, scale="probability", output="all")(X[:5]).predictions
    np.testing.assert_allclose(found, softmax(answer(model, X[:5]), axis=1))


def test_a_frame_that_numpy_sees_read_only_is_explained_without_a_warning():
    pd = pytest.importorskip("pandas")
    torch.set_warn_always(True)  # once per process otherwise
    try:
        X = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)), columns=list("abc"))
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            tx.TExplainer(torch.nn.Linear(3, 1), X)(X[:5])
        assert not [str(warning.message) for warning in found]
    finally:
        torch.set_warn_always(False)


def test_bfloat16_is_explained():
    model = torch.nn.Sequential(*layers(1)).to(torch.bfloat16)
    assert np.all(np.isfinite(tx.TExplainer(model, X)(X[:3]).values))


def test_several_inputs_are_refused_with_the_remedy():
    with pytest.raises(InputError, match=r"takes 2 inputs \(x, z\); expected one.*Wrap it"):
        tx.TExplainer(TwoInputs(), X)
