"""Captum's gradient methods on a torch network, or on the exact torch twin of a scikit-learn MLP.

Integrated Gradients, Input x Gradient, DeepLIFT, LRP and the plain gradient (Saliency) are lines of `METHODS`. The
logit is explained by default, as in the paper. Two methods draw samples, seeded row by row. SmoothGrad (Smilkov
et al., 2017) averages the gradient over noise around x; its authors take noise of 10 to 20% of the inputs' range and 50
samples, Captum's default is noise of 1 and 5 samples. Gradient SHAP (Lundberg and Lee, 2017; Erion et al., 2021)
averages gradients at random places between x and random background rows, times their difference; Captum's
default is 5 samples.

The twin is in float64, with one module per activation (DeepLIFT finds non-linearities by their modules; with
functional activations it silently degenerates to Input x Gradient). A binary network ends in the two log-odds
[-z, z], as `Predictor` has them; a sigmoid of each is then [1-p, p]. Scalers in front of the MLP in a pipeline become
a diagonal layer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.explainers.base import (
    SHARES,
    SLOPE,
    Counter,
    OtherExplainer,
    Task,
    evenly_spaced,
    needs,
    rebuildable,
    row_by_row,
    task_of,
)
from texplainer.models.libraries.torch import evaluation_copy
from texplainer.types import Array

#: Integrated Gradients: pieces of the path and Gauss nodes in each (together about the usual 50 steps), how
#: often a piece may be halved, and the completeness error aimed at.
PIECES, NODES, DEPTH, TOLERANCE = 16, 3, 14, 1e-3


@dataclass(frozen=True)
class Method:
    """A Captum method: its class, what a value means, its gradient evaluations per row, how to call it."""

    label: str
    kind: str
    attribution: str
    cost: int
    call: Callable[[Any, Any, Any, int | None], Any]  # (method, rows, baseline, target) -> tensor


@dataclass(frozen=True)
class Differentiable:
    """One output of a torch network, ready for Captum."""

    task: Task
    network: Any
    target: int | None  # None for a network that returns one number per row
    scale: str

    @property
    def dtype(self) -> Any:
        """The float type of its weights."""
        return next(self.network.parameters()).dtype

    def tensor(self, rows: Array, *, differentiable: bool = False) -> Any:
        """Rows as the network takes them."""
        return needs("torch").tensor(rows, dtype=self.dtype, requires_grad=differentiable)

    def predict(self, rows: Array) -> Array:
        """Call the explained output, (rows,)."""
        with needs("torch").no_grad():
            outputs = self.network(self.tensor(rows)).double().numpy()
        return outputs if self.target is None else outputs[:, self.target]


def differentiable(
    model: Any, background: Any, scale: str, layers: bool = False, **choice: Any
) -> Differentiable:
    """Find the network to differentiate; `layers` for methods that must know every layer's rule."""
    torch = needs("torch")
    task = task_of(model, background, **choice)
    network, scale = _network(torch, task, scale, layers)
    with torch.no_grad():
        probe = network(torch.tensor(task.background.rows[:1], dtype=next(network.parameters()).dtype))
    return Differentiable(task, network, task.output if probe.ndim == 2 else None, scale)


@rebuildable
def captum(
    model: Any, background: Any, *, method: str, scale: str = "log-odds", baseline: Any = 0.0, **choice: Any
) -> OtherExplainer:
    """Explain with one of Captum's methods.

    Parameters
    ----------
    method : one of `METHODS`.
    scale : "log-odds" (the logit) or "probability"; a regressor's or a raw network's output as it is.
    baseline : where contributions start: a number, one per feature, or "mean" (of the background).
    **choice : `output`, `feature_names`, as for TExplainer.
    """
    rule = METHODS[method]
    library = needs("captum.attr")
    subject = differentiable(model, background, scale, method in ("deeplift", "lrp"), **choice)
    task = subject.task
    _check_modules(needs("torch"), subject.network, method)
    explainer = getattr(library, rule.kind)(subject.network)
    start = task.background.mean if isinstance(baseline, str) else baseline
    start = subject.tensor(np.broadcast_to(start, (1, task.predictor.schema.width)).copy())

    def attribute(rows: Array) -> tuple[Array, Array]:
        table = subject.tensor(rows, differentiable=True)
        with quiet_hooks():
            values = rule.call(explainer, table, start.expand(len(rows), -1), subject.target)
        values, cost = values if isinstance(values, tuple) else (values, np.full(len(rows), rule.cost))
        return values.detach().double().numpy(), cost

    try_one_row(attribute, task, rule.label)
    settings = {
        "method": method,
        "baseline": baseline if isinstance(baseline, str | int | float) else "given",
    }
    return OtherExplainer(
        rule.label, task, attribute, rule.attribution, settings=settings, predict=subject.predict,
        scale=subject.scale,
    )  # fmt: skip


@contextmanager
def quiet_hooks() -> Iterator[None]:
    """Silence Captum's warnings about hooks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="captum")
        warnings.filterwarnings("ignore", category=UserWarning, message=".*hook.*")
        yield


def _integrate(method: Any, rows: Any, baseline: Any, target: int | None) -> tuple[Any, Array]:
    """Integrate along the path in pieces, halving those that do not add up; (values, evaluations).

    Integrated Gradients of a path are the sum of those of its pieces. Captum's fifty steps over the whole
    path miss up to 0.2 of the logit of a ReLU network, whose gradient jumps along the path; pieces between
    jumps are exact, so only the pieces with a jump are refined.
    """
    rows = rows.detach()
    path, count = rows - baseline, len(rows)
    values, cost = 0.0 * rows, np.zeros(count)
    row = np.repeat(np.arange(count), PIECES)
    start, width = np.tile(np.arange(PIECES) / PIECES, count), 1 / PIECES
    for depth in range(DEPTH + 1):
        low, high = (rows.new_tensor(t)[:, None] for t in (start, start + width))
        part, delta = method.attribute(
            baseline[row] + high * path[row], baseline[row] + low * path[row], target=target, n_steps=NODES,
            internal_batch_size=8192, return_convergence_delta=True,
        )  # fmt: skip
        cost += NODES * np.bincount(row, minlength=count)
        open_ = (np.abs(delta.detach().numpy()) > TOLERANCE / (2 * PIECES)) & (depth < DEPTH)
        values.index_add_(0, rows.new_tensor(row[~open_]).long(), part.detach()[~open_])
        row, width = np.repeat(row[open_], 2), width / 2
        start = np.repeat(start[open_], 2) + np.tile([0.0, width], open_.sum())
        if not len(row):
            break
    return values, cost


def _of_rows(method: Any, rows: Any, baseline: Any, target: int | None) -> Any:
    return method.attribute(rows, target=target)


def _from_baseline(method: Any, rows: Any, baseline: Any, target: int | None) -> Any:
    return method.attribute(rows, baseline, target=target)


def _signed(method: Any, rows: Any, baseline: Any, target: int | None) -> Any:
    return method.attribute(rows, target=target, abs=False)


METHODS = {
    "integrated_gradients": Method(
        "Integrated Gradients", "IntegratedGradients", SHARES, PIECES * NODES, _integrate
    ),
    "input_x_gradient": Method("Input x Gradient", "InputXGradient", SHARES, 1, _of_rows),
    "deeplift": Method("DeepLIFT", "DeepLift", SHARES, 2, _from_baseline),
    "lrp": Method("LRP", "LRP", SHARES, 1, _of_rows),
    "gradient": Method("Gradient", "Saliency", SLOPE, 1, _signed),
    "saliency": Method("Saliency", "Saliency", SLOPE, 1, _of_rows),
}


def _network(torch: Any, task: Task, scale: str, layers: bool) -> tuple[Any, str]:
    """Find the torch network to differentiate, and the scale its outputs are on."""
    predictor = task.predictor
    if predictor.kind != "torch":
        scale = "raw" if predictor.task == "regression" else scale
        if layers and scale == "log-odds" and len(predictor.all_names) > 2:
            scale = "raw"  # the log-odds of one class against several are not a layer that such a method has a rule for
        return torch_network(predictor.model, scale), scale
    if scale == "probability":
        link = torch.nn.Softmax(dim=1) if len(predictor.all_names) > 1 else torch.nn.Sigmoid()
        return torch.nn.Sequential(evaluation_copy(predictor.model), link).eval(), scale
    return evaluation_copy(predictor.model), "raw"


def _check_modules(torch: Any, network: Any, method: str) -> None:
    """Refuse DeepLIFT where it would silently be Input x Gradient."""
    leaves = [m for m in network.modules() if not list(m.children())]
    plain = (torch.nn.Linear, torch.nn.Identity, torch.nn.Flatten)
    if method == "deeplift" and len(leaves) > 1 and all(isinstance(m, plain) for m in leaves):
        raise Unsupported(
            "the network does not register activations as modules: DeepLIFT would silently equal Input x "
            "Gradient. Define activations as modules such as torch.nn.ReLU(), one for each use."
        )


def try_one_row(attribute: Callable[[Array], tuple[Array, Array]], task: Task, label: str) -> None:
    """Explain one background row, so that unsupported networks fail early."""
    try:
        attribute(task.background.rows[:1])
    except Exception as error:
        raise Unsupported(f"{label} cannot explain this network: {error}") from error


@rebuildable
def smoothgrad(
    model: Any,
    background: Any,
    *,
    scale: str = "log-odds",
    noise: float = 0.15,
    samples: int = 50,
    seed: int | None = 0,
    **choice: Any,
) -> OtherExplainer:
    """Explain with SmoothGrad: Captum's NoiseTunnel around the plain gradient.

    Parameters
    ----------
    scale : "log-odds" (the logit) or "probability".
    noise : standard deviation of the noise, as a fraction of each feature's range in the background.
    samples : gradients averaged per row.
    seed : each row starts from it; None leaves the draws to torch's global generator.
    **choice : `output`, `feature_names`, as for TExplainer.
    """
    library = needs("captum.attr")
    subject = differentiable(model, background, scale, **choice)
    width = np.ptp(subject.task.background.rows, axis=0)
    width = subject.tensor(np.where(width > 0, width, 1.0))
    # Captum has one noise for all features: the gradient is taken in units of each feature's range
    tunnel = library.NoiseTunnel(library.Saliency(lambda units: subject.network(units * width)))

    def one(row: Array) -> Any:
        units = (subject.tensor(row[None]) / width).requires_grad_()
        found = tunnel.attribute(
            units, nt_type="smoothgrad", nt_samples=samples, stdevs=noise, target=subject.target, abs=False
        )
        return found / width

    settings = {"method": "smoothgrad", "noise": noise, "samples": samples, "seed": seed}
    return _other("SmoothGrad", subject, one, SLOPE, settings)


@rebuildable
def gradient_shap(
    model: Any,
    background: Any,
    *,
    scale: str = "log-odds",
    samples: int = 200,
    references: int = 100,
    seed: int | None = 0,
    **choice: Any,
) -> OtherExplainer:
    """Explain with Captum's Gradient SHAP against rows of the background, at most `references` of them.

    The other parameters are those of `smoothgrad`.
    """
    library = needs("captum.attr")
    subject = differentiable(model, background, scale, **choice)
    rows = subject.tensor(evenly_spaced(subject.task.background.rows, references))
    explainer = library.GradientShap(subject.network)

    def one(row: Array) -> Any:
        table = subject.tensor(row[None], differentiable=True)
        return explainer.attribute(table, rows, n_samples=samples, target=subject.target)

    settings = {"method": "gradient_shap", "samples": samples, "references": len(rows), "seed": seed}
    return _other("Gradient SHAP", subject, one, SHARES, settings)


def _other(
    name: str,
    subject: Differentiable,
    one: Callable[[Array], Any],
    attribution: str,
    settings: dict[str, Any],
) -> OtherExplainer:
    counter = Counter(subject.predict)

    def values(row: Array) -> Array:
        counter.rows += settings["samples"]
        with quiet_hooks():
            return one(row).detach().double().numpy()[0]

    attribute = row_by_row(values, counter, settings["seed"])
    try_one_row(attribute, subject.task, name)
    return OtherExplainer(
        name, subject.task, attribute, attribution, settings=settings, predict=subject.predict,
        scale=subject.scale,
    )  # fmt: skip


ACTIVATIONS = {"relu": "ReLU", "tanh": "Tanh", "logistic": "Sigmoid", "identity": "Identity"}
SCALES = ("log-odds", "probability", "raw")


def torch_network(model: Any, scale: str) -> Any:
    """Build the twin of an MLP, or of a pipeline of scalers and an MLP, on a scale.

    Parameters
    ----------
    model : a fitted MLPClassifier or MLPRegressor, alone or last in a Pipeline.
    scale : "log-odds" (of several classes each against the rest), "probability" (through the link) or "raw" (the
        last layer).

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
