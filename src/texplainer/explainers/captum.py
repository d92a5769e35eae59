"""Captum's gradient methods on a torch network, or on the exact torch twin of a scikit-learn MLP.

Integrated Gradients, Input x Gradient, DeepLIFT, LRP, and the plain gradient (Saliency). The logit is
explained by default, as in the paper. `METHODS` holds one line per method; those that draw samples are in
captum_sampling.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.explainers.base import SHARES, SLOPE, OtherExplainer, Task, needs, rebuildable, task_of
from texplainer.explainers.torch_mlp import torch_network
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


METHODS = {
    "integrated_gradients": Method(
        "Integrated Gradients",
        "IntegratedGradients",
        SHARES,
        PIECES * NODES,
        lambda method, rows, baseline, target: _integrate(method, rows, baseline, target),
    ),
    "input_x_gradient": Method(
        "Input x Gradient",
        "InputXGradient",
        SHARES,
        1,
        lambda method, rows, baseline, target: method.attribute(rows, target=target),
    ),
    "deeplift": Method(
        "DeepLIFT",
        "DeepLift",
        SHARES,
        2,
        lambda method, rows, baseline, target: method.attribute(rows, baseline, target=target),
    ),
    "lrp": Method(
        "LRP",
        "LRP",
        SHARES,
        1,
        lambda method, rows, baseline, target: method.attribute(rows, target=target),
    ),
    "gradient": Method(
        "Gradient",
        "Saliency",
        SLOPE,
        1,
        lambda method, rows, baseline, target: method.attribute(rows, target=target, abs=False),
    ),
    "saliency": Method(
        "Saliency",
        "Saliency",
        SLOPE,
        1,
        lambda method, rows, baseline, target: method.attribute(rows, target=target, abs=True),
    ),
}


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
    path miss up to 0.2 of the logit of a ReLU network, whose gradient jumps along the way; pieces between
    jumps are exact, so only the pieces with a jump are refined.
    """
    rows = rows.detach()
    way, count = rows - baseline, len(rows)
    values, cost = 0.0 * rows, np.zeros(count)
    row = np.repeat(np.arange(count), PIECES)
    start, width = np.tile(np.arange(PIECES) / PIECES, count), 1 / PIECES
    for depth in range(DEPTH + 1):
        low, high = (rows.new_tensor(t)[:, None] for t in (start, start + width))
        part, delta = method.attribute(
            baseline[row] + high * way[row], baseline[row] + low * way[row], target=target, n_steps=NODES,
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


def _network(torch: Any, task: Task, scale: str, layers: bool) -> tuple[Any, str]:
    """Find the torch network to differentiate, and the scale its outputs are on."""
    predictor = task.predictor
    if predictor.kind != "torch":
        scale = "raw" if predictor.task == "regression" else scale
        if layers and scale == "log-odds" and len(predictor.all_names) > 2:
            scale = (
                "raw"  # the log-odds of one class against several are no layer such a method has a rule for
            )
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
