"""An exact torch twin of a scikit-learn MLP, so that gradient methods meet the same function.

Float64, one module per activation (DeepLIFT finds non-linearities by their modules; with functional
activations it silently degenerates to Input x Gradient). A binary network ends in the two margins [-z, z], as
`Predictor` has them; a sigmoid of each is then [1-p, p]. Scalers in front of the MLP in a pipeline become a
diagonal layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.explainers.base import needs

ACTIVATIONS = {"relu": "ReLU", "tanh": "Tanh", "logistic": "Sigmoid", "identity": "Identity"}
SCALES = ("log-odds", "probability", "raw")


def torch_network(model: Any, scale: str) -> Any:
    """Build the twin of an MLP, or of a pipeline of scalers and an MLP, on a scale.

    Parameters
    ----------
    model : a fitted MLPClassifier or MLPRegressor, alone or last in a Pipeline. scale : "log-odds" (log-odds,
    of several classes each against the rest), "probability" (through the link) or "raw" (the last layer).

    Raises
    ------
    Unsupported : for any other model.
    """
    torch = needs("torch")
    *scalers, network = [step for _, step in getattr(model, "steps", [("", model)])]
    if not hasattr(network, "coefs_") or getattr(network, "activation", None) not in ACTIVATIONS:
        raise Unsupported(
            f"a {type(network).__name__} is not a network; this method needs a torch module or an MLP."
        )
    layers = [_linear(torch, *_affine(scaler)) for scaler in scalers]
    weights = list(zip(network.coefs_, network.intercepts_, strict=True))
    for weight, bias in weights[:-1]:
        layers += [_linear(torch, weight, bias), getattr(torch.nn, ACTIVATIONS[network.activation])()]
    weight, bias = weights[-1]
    binary = network.out_activation_ == "logistic" and weight.shape[1] == 1
    if binary:
        weight, bias = np.hstack([-weight, weight]), np.hstack([-bias, bias])
    layers.append(_linear(torch, weight, bias))
    if scale == "probability" and network.out_activation_ != "identity":
        softmax = network.out_activation_ == "softmax"
        layers.append(torch.nn.Softmax(dim=1) if softmax else torch.nn.Sigmoid())
    if scale == "log-odds" and network.out_activation_ == "softmax":
        layers.append(_log_odds(torch))
    return torch.nn.Sequential(*layers).double().eval()


def _log_odds(torch: Any) -> Any:
    """Make a layer from the scores of a softmax to log p/(1-p) of each class against the rest."""

    class LogOdds(torch.nn.Module):
        def forward(self, scores: Any) -> Any:
            log_p = scores - scores.logsumexp(dim=1, keepdim=True)
            return log_p - torch.log(-torch.expm1(log_p))

    return LogOdds()


def _linear(torch: Any, weight: np.ndarray, bias: np.ndarray) -> Any:
    """Make a layer x @ weight + bias, (inputs, outputs) and (outputs,)."""
    layer = torch.nn.utils.skip_init(torch.nn.Linear, *weight.shape, dtype=torch.float64)
    with torch.no_grad():  # skip_init: no draw from the global generator
        layer.weight.copy_(torch.from_numpy(np.ascontiguousarray(weight.T, dtype=np.float64)))
        layer.bias.copy_(torch.from_numpy(np.asarray(bias, dtype=np.float64)))
    return layer


def _affine(scaler: Any) -> tuple[np.ndarray, np.ndarray]:
    """Read a scaler as a diagonal weight and a bias."""
    kind = type(scaler).__name__
    if kind == "StandardScaler":
        width = scaler.n_features_in_
        slope = 1 / scaler.scale_ if scaler.with_std else np.ones(width)
        return np.diag(slope), -slope * scaler.mean_ if scaler.with_mean else np.zeros(width)
    if kind == "MinMaxScaler" and not scaler.clip:
        return np.diag(scaler.scale_), scaler.min_
    raise Unsupported(
        f"a {kind} before the network cannot be converted to torch; only StandardScaler is supported."
    )
