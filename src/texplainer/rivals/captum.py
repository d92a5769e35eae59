"""Captum's gradient methods on a torch network, or on the exact torch twin of a scikit-learn MLP.

Integrated Gradients, Input x Gradient, DeepLIFT, LRP, and the plain gradient (Saliency). The logit is
explained by default, as in the paper. `METHODS` holds one line per method.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.signatures import Array

from .rival import Rival, Task, needs, task_of
from .twin import twin

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
        "contribution",
        PIECES * NODES,
        lambda method, rows, baseline, target: _integrate(method, rows, baseline, target),
    ),
    "input_x_gradient": Method(
        "Input x Gradient",
        "InputXGradient",
        "contribution",
        1,
        lambda method, rows, baseline, target: method.attribute(rows, target=target),
    ),
    "deeplift": Method(
        "DeepLIFT",
        "DeepLift",
        "contribution",
        2,
        lambda method, rows, baseline, target: method.attribute(rows, baseline, target=target),
    ),
    "lrp": Method(
        "LRP",
        "LRP",
        "contribution",
        1,
        lambda method, rows, baseline, target: method.attribute(rows, target=target),
    ),
    "gradient": Method(
        "Gradient",
        "Saliency",
        "sensitivity",
        1,
        lambda method, rows, baseline, target: method.attribute(rows, target=target, abs=False),
    ),
    "saliency": Method(
        "Saliency",
        "Saliency",
        "sensitivity",
        1,
        lambda method, rows, baseline, target: method.attribute(rows, target=target, abs=True),
    ),
}


def captum(
    model: Any, background: Any, *, method: str, scale: str = "margin", baseline: Any = 0.0, **choice: Any
) -> Rival:
    """Explain with one of Captum's methods.

    Parameters
    ----------
    method : one of `METHODS`.
    scale : "margin" (the logit) or "probability"; a regressor's or a raw network's output as it is.
    baseline : where contributions start: a number, one per feature, or "mean" (of the background).
    **choice : `output`, `feature_names`, as for TExplainer.
    """
    rule = METHODS[method]
    library = needs("captum.attr")
    torch = needs("torch")
    task = task_of(model, background, **choice)
    network, scale = _network(torch, task, scale)
    _check_modules(torch, network, method)
    target = _target(torch, network, task)
    explainer = getattr(library, rule.kind)(network)
    start = task.background.mean if isinstance(baseline, str) else baseline
    width = task.predictor.schema.width
    start = torch.tensor(np.broadcast_to(start, (1, width)).copy(), dtype=_dtype(network))

    def attribute(rows: Array) -> tuple[Array, Array]:
        table = torch.tensor(rows, dtype=_dtype(network), requires_grad=True)
        with warnings.catch_warnings():  # Captum announces the hooks it sets and removes again
            warnings.filterwarnings("ignore", category=UserWarning, module="captum")
            warnings.filterwarnings("ignore", category=UserWarning, message=".*hook.*")
            values = rule.call(explainer, table, start.expand(len(rows), -1), target)
        values, cost = values if isinstance(values, tuple) else (values, np.full(len(rows), rule.cost))
        return values.detach().double().numpy(), cost

    def predict(rows: Array) -> Array:
        with torch.no_grad():
            outputs = network(torch.tensor(rows, dtype=_dtype(network))).double().numpy()
        return outputs if target is None else outputs[:, target]

    _try(attribute, task, rule.label)
    settings = {
        "method": method,
        "baseline": baseline if isinstance(baseline, str | int | float) else "given",
    }
    return Rival(
        rule.label, task, attribute, rule.attribution, settings=settings, predict=predict, scale=scale
    )


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


def _network(torch: Any, task: Task, scale: str) -> tuple[Any, str]:
    """Find the torch network to differentiate, and the scale its outputs are on."""
    predictor = task.predictor
    if predictor.kind != "torch":
        scale = "raw" if predictor.task == "regression" else scale
        return twin(predictor.model, scale), scale
    if scale == "probability":
        link = torch.nn.Softmax(dim=1) if len(predictor.all_names) > 1 else torch.nn.Sigmoid()
        return torch.nn.Sequential(predictor.model, link).eval(), scale
    return predictor.model.eval(), "raw"


def _target(torch: Any, network: Any, task: Task) -> int | None:
    """Index of the explained output; None for a network that returns one number per row."""
    with torch.no_grad():
        probe = network(torch.tensor(task.background.rows[:1], dtype=_dtype(network)))
    return task.output if probe.ndim == 2 else None


def _dtype(network: Any) -> Any:
    return next(network.parameters()).dtype


def _check_modules(torch: Any, network: Any, method: str) -> None:
    """Refuse DeepLIFT where it would silently be Input x Gradient."""
    leaves = [m for m in network.modules() if not list(m.children())]
    plain = (torch.nn.Linear, torch.nn.Identity, torch.nn.Flatten)
    if method == "deeplift" and len(leaves) > 1 and all(isinstance(m, plain) for m in leaves):
        raise Unsupported(
            "the network registers no activation as a module: DeepLIFT would silently be Input x Gradient; "
            "write torch.nn.ReLU() and the like as modules, one for each use."
        )


def _try(attribute: Callable[[Array], tuple[Array, Array]], task: Task, label: str) -> None:
    """Explain one background row now: what a method cannot do is said before an hour's run, not after."""
    try:
        attribute(task.background.rows[:1])
    except Exception as error:
        raise Unsupported(f"{label} cannot explain this network: {error}") from error
