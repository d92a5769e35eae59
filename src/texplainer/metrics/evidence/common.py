"""Evidence that is the same for every explainer of a run: rows, neighbours, masks, the model's answers.

`gather` sets it up from the arguments of `evaluate`. Each piece is computed once, and only when a chosen metric
asks for it (table.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texplainer.background.summary import robust_sd
from texplainer.errors import InputError, Unsupported
from texplainer.metrics.evidence import perturbations
from texplainer.metrics.evidence.features import Features, describe_features
from texplainer.metrics.evidence.perturbations import Neighbourhood, neighbourhood
from texplainer.models import predictor as prediction
from texplainer.models.perceptron import Layers
from texplainer.models.predictor import Predictor
from texplainer.tables import schema as frames
from texplainer.tables.schema import Schema
from texplainer.types import Array

DRAWS = 32  # perturbations of infidelity
SUBSETS = 50  # of faithfulness correlation
SMALL = 0.1  # infidelity's small steps, in SDs


@dataclass(frozen=True)
class EvaluationSettings:
    """The settings of a run, the same for every explainer."""

    k: tuple[int, ...]
    neighbours: int
    sigma: float
    flip: float
    max_distance: float
    mask: str
    runs: int
    seed: int
    batch_rows: int
    neighbourhood: str = "nearest"


@dataclass
class Clock:
    """Seconds spent in the explainers and in the model."""

    explain: float = 0.0
    model: float = 0.0


@dataclass
class CommonEvidence:
    """Evidence that is the same for every explainer."""

    rows: Array  # (rows, columns) of the table the model eats
    background: Array
    schema: Schema
    features: Features
    predictors: dict[str, Predictor]
    model: Any
    output: int
    settings: EvaluationSettings
    truth: Array | None = None
    clock: Clock = field(default_factory=Clock)
    measured_effects: dict[tuple[str, float], Array] = field(default_factory=dict)  # (scale, radius)
    _filled: dict[str, Array] = field(default_factory=dict)

    @property
    def main(self) -> Predictor:
        """The model on the scale used for removal metrics: probabilities, if it has them."""
        return self.predictors["main"]

    def everything(self, rows: Array, scale: str = "main") -> Array:
        """Predict all outputs on a scale; timed, empty tables allowed."""
        if not len(rows):
            return np.empty((0, len(self.main.all_names)))
        predictor = self._on(scale)
        began = time.perf_counter()
        try:
            return predictor.everything(rows)
        finally:
            self.clock.model += time.perf_counter() - began

    def _on(self, scale: str) -> Predictor:
        if scale not in self.predictors:
            try:
                self.predictors[scale] = prediction.adapt(
                    self.model, self.schema, self.background[:8], output=self.output, scale=scale
                )
            except InputError as error:
                raise Unsupported(str(error)) from None
        return self.predictors[scale]

    def classify(self, rows: Array) -> NDArray[np.int_]:
        """Predict the class of each row; a regressor has one class."""
        outputs = self.everything(rows)
        return outputs.argmax(axis=1) if self.main.task == "classification" else np.zeros(len(rows), int)

    def predict(self, rows: Array) -> Array:
        """Predict the explained output on the main scale, (rows,)."""
        return self.everything(rows)[:, self.output]

    # ---------------------------------------------------------------- pieces of evidence

    @cached_property
    def hood(self) -> Neighbourhood:
        """The neighbours of every row, drawn once."""
        asked = self.settings
        return neighbourhood(
            self.rows, self.classify, self.background, self.features, neighbours=asked.neighbours,
            convention=asked.neighbourhood,
            sigma=asked.sigma, flip_share=asked.flip, max_distance=asked.max_distance, seed=asked.seed,
        )  # fmt: skip

    def _at_neighbours(self, function: Callable[[Array], Array]) -> Array:
        """Apply a function of rows to all neighbours that exist: (rows, neighbours, ...), NaN elsewhere."""
        found = function(self.hood.rows[self.hood.valid])
        out = np.full((*self.hood.valid.shape, *found.shape[1:]), np.nan)
        out[self.hood.valid] = found
        return out

    @property
    def near_rows(self) -> Array:
        """The neighbours, (rows, neighbours, columns)."""
        return self.hood.rows

    @property
    def top(self) -> float:
        """What an output and its opposite add up to."""
        return 1.0 if self.main.scale == "probability" else 0.0

    @cached_property
    def outputs(self) -> Array:
        """All outputs on the main scale, (rows, outputs)."""
        return self.everything(self.rows)

    @cached_property
    def near_outputs(self) -> Array:
        """The same at the neighbours, (rows, neighbours, outputs)."""
        return self._at_neighbours(self.everything)

    @cached_property
    def outputs_sd(self) -> Array:
        """Standard deviation of each output over the background."""
        return robust_sd(self.everything(self.background))

    @cached_property
    def log_odds(self) -> Array:
        """All outputs as log-odds; a regressor has one scale."""
        scale = "log-odds" if self.main.task == "classification" else "main"
        return self.everything(self.rows, scale)

    @cached_property
    def near_log_odds(self) -> Array:
        """The same at the neighbours."""
        scale = "log-odds" if self.main.task == "classification" else "main"
        return self._at_neighbours(lambda rows: self.everything(rows, scale))

    @cached_property
    def hidden(self) -> Array:
        """The last hidden layer, (rows, units)."""
        return hidden_of(self.model)(self.main.schema.write(self.rows))

    @cached_property
    def near_hidden(self) -> Array:
        """The same at the neighbours."""
        layer = hidden_of(self.model)
        return self._at_neighbours(lambda rows: layer(self.main.schema.write(rows)))

    @cached_property
    def prediction(self) -> Array:
        """The explained output, (rows,)."""
        return self.outputs[:, self.output]

    @cached_property
    def labels(self) -> NDArray[np.int_]:
        """The predicted class, (rows,)."""
        return self.classify(self.rows)

    @cached_property
    def sd(self) -> Array:
        """Standard deviation of each column over the background."""
        return robust_sd(self.background)

    @cached_property
    def baseline(self) -> Array:
        """Mean of each column over the background."""
        return self.background.mean(axis=0)

    @cached_property
    def ties(self) -> Array:
        """Random keys that order equal attributions, (rows, features)."""
        return np.random.default_rng([self.settings.seed, 10]).random(
            (len(self.rows), len(self.features.names))
        )

    @cached_property
    def direction(self) -> Array:
        """+1 if the explained output is the row's predicted class, otherwise -1."""
        if self.main.task == "classification":
            return np.where(self.labels == self.output, 1.0, -1.0)
        gone = np.broadcast_to(self.fills().mean(axis=0), self.rows.shape)
        return np.where(self.prediction >= self.predict(gone), 1.0, -1.0)

    def fills(self, mask: str = "") -> Array:
        """Replacement values of removed features under a mask, drawn once; the run's mask by default."""
        mask = mask or self.settings.mask
        if mask not in self._filled:
            draw = perturbations.MASKS[mask]
            self._filled[mask] = draw(
                self.rows, self.background, self.features, self.settings.sigma, self.settings.seed
            )
        return self._filled[mask]

    @cached_property
    def subsets(self) -> NDArray[np.bool_]:
        """Random subsets of a quarter of the features, (subsets, rows, features)."""
        features = len(self.features.names)
        size = max(1, features // 4)
        order = np.random.default_rng([self.settings.seed, 11]).random((SUBSETS, len(self.rows), features))
        return np.argsort(np.argsort(order, axis=-1), axis=-1) < size

    @cached_property
    def offsets(self) -> Array:
        """Small Gaussian steps, (rows, draws, columns); none on categories."""
        shape = (len(self.rows), DRAWS, self.rows.shape[1])
        noise = np.random.default_rng([self.settings.seed, 12]).normal(size=shape)
        return noise * SMALL * self.sd * self.features.numeric

    @cached_property
    def references(self) -> Array:
        """Evenly spaced background rows, (draws, columns)."""
        places = np.linspace(0, len(self.background) - 1, min(DRAWS, len(self.background)))
        return self.background[places.round().astype(int)]


def gather(
    named: Mapping[str, Any],
    X: Any,
    settings: EvaluationSettings,
    model: Any,
    background: Any,
    output: Any,
    groups: Mapping[str, Sequence[int]] | None,
    max_distance: float | str | None,
    truth: Any,
) -> CommonEvidence:
    """Build the evidence that all explainers of an evaluation share."""
    hosts = [e for e in named.values() if hasattr(e, "predictor") and hasattr(e, "background")]
    if not hosts and (model is None or background is None):
        raise InputError(
            "the explainers do not have a model and background; pass model=... and background=...."
        )
    schemas = [getattr(host, "schema", host.predictor.schema) for host in hosts]
    if background is not None:
        schema, reference = frames.learn(background)
    else:
        schema = schemas[0].inner or schemas[0]
        reference = schemas[0].wide(hosts[0].background.rows)
    model = hosts[0].predictor.model if model is None else model
    if groups is None:
        groups = next((one.groups for one in schemas if one.layout is not None), {})
    features = describe_features(
        schema.names, reference, groups, {j: len(levels) for j, levels in schema.levels.items()}
    )
    settings = _completed(settings, features.names, reference, max_distance)
    if output is None and hosts and len(hosts[0].predictor.outputs) == 1:
        output = hosts[0].predictor.outputs[0]
    predictor = _main_predictor(model, schema, reference, output)
    if len(predictor.outputs) != 1:
        names = ", ".join(predictor.all_names)
        raise InputError(f"the model has several outputs ({names}); pass output=<name or index>.")
    rows = schema.read(X)
    known = None if truth is None else features.gather(np.asarray(truth, dtype=float))
    return CommonEvidence(
        rows, reference, schema, features, {"main": predictor}, model, predictor.outputs[0], settings, known
    )


def _main_predictor(model: Any, schema: frames.Schema, reference: Array, output: Any) -> prediction.Predictor:
    """The model's probabilities where it has them, else what it has."""
    try:
        return prediction.adapt(model, schema, reference[:8], output=output, scale="probability")
    except InputError:
        return prediction.adapt(model, schema, reference[:8], output=output)


def _completed(
    asked: EvaluationSettings, names: Sequence[str], reference: Array, max_distance: float | str | None
) -> EvaluationSettings:
    """Fill in what depends on the data: k, and the farthest distance."""
    count = len(names)
    k = asked.k or tuple(one for one in ((1, 3, 5, 7, 9) if count >= 9 else (1, 2, 3)) if one <= count)
    if min(k) < 1 or max(k) > count:
        raise InputError(f"k={k} for {count} features; expected numbers between 1 and {count}.")
    if max_distance == "paper":
        from scipy.spatial import KDTree

        points = np.unique(reference, axis=0)
        far = KDTree(points).query(points, k=2)[0][:, 1].min() / 2 if len(points) > 1 else np.inf
    else:
        far = np.inf if max_distance is None else float(max_distance)
    return replace(asked, k=k, max_distance=float(far))


def hidden_of(model: Any) -> Callable[[Any], np.ndarray]:
    """Build a function from the model's table to the units of its last hidden layer, (rows, units).

    Raises
    ------
    Unsupported : when the model is neither a scikit-learn MLP (alone or last in a pipeline) nor torch.
    """
    if hasattr(model, "coefs_"):
        return lambda table: _mlp(model, np.asarray(table))
    if hasattr(model, "steps") and hasattr(model.steps[-1][1], "coefs_"):
        return lambda table: _mlp(model.steps[-1][1], np.asarray(model[:-1].transform(table)))
    if any(base.__module__.startswith("torch.nn") for base in type(model).__mro__):
        return lambda table: _torch(model, table)
    raise Unsupported(f"a {type(model).__name__} has no hidden layer; RRS is for networks.")


def _mlp(network: Any, rows: np.ndarray) -> np.ndarray:
    return Layers(network).forward(rows.astype(np.float64))[-2].copy()  # its buffers are used again


def _torch(network: Any, table: Any) -> np.ndarray:
    """Catch what enters the last linear layer."""
    import torch

    linear = [module for module in network.modules() if isinstance(module, torch.nn.Linear)]
    if len(linear) < 2:
        raise Unsupported("the torch network has no hidden linear layer; RRS needs one.")
    caught: list[Any] = []
    handle = linear[-1].register_forward_pre_hook(lambda module, inputs: caught.append(inputs[0].detach()))
    try:
        with torch.no_grad():
            network(torch.as_tensor(np.asarray(table), dtype=linear[0].weight.dtype))
    finally:
        handle.remove()
    return caught[-1].double().numpy()
