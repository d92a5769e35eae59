"""Evidence that is the same for every explainer of a run: rows, neighbours, masks, the model's answers.

Each piece is gathered once, and only when a chosen metric asks for it (measures.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texplainer.background.sd import robust_sd
from texplainer.errors import InputError, Unsupported
from texplainer.metrics.evidence import masks
from texplainer.metrics.evidence.features import Features
from texplainer.metrics.evidence.neighbourhood import Neighbourhood, neighbourhood
from texplainer.metrics.evidence.representation import hidden_of
from texplainer.models import predictor as prediction
from texplainer.models.predictor import Predictor
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
    def margins(self) -> Array:
        """All outputs as log-odds; a regressor has one scale."""
        scale = "log-odds" if self.main.task == "classification" else "main"
        return self.everything(self.rows, scale)

    @cached_property
    def near_margins(self) -> Array:
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
            draw = masks.MASKS[mask]
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
