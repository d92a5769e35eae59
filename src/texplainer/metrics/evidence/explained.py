"""Evidence of one explainer: its explanations of the rows, of their neighbours, and of the rows again.

A metric names the evidence it needs (table.py); `Own.find` looks it up here or in what is shared.
Explanations are made in batches, each from a random state that depends on the seed, the explainer's name and
the purpose alone, so that explainers cannot influence each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texplainer.errors import InputError
from texplainer.isolation import isolated, stream
from texplainer.signatures import Array

from . import units
from .shared import Shared


class Own:
    """Evidence of one explainer: its explanations, and what it explains."""

    def __init__(self, name: str, explain: Callable[[Any], Any], shared: Shared, control: bool) -> None:
        self.name, self.explain, self.shared, self.control = name, explain, shared, control
        self.seconds = 0.0  # for explaining the rows once
        self.cost = np.nan  # model evaluations a row
        self.failures: dict[str, Exception] = {}  # purpose -> what was raised; not tried again
        self.broken: NDArray[np.bool_] = np.zeros(len(shared.rows), dtype=bool)

    def find(self, name: str) -> Any:
        """Look a piece of evidence up, here or in what is shared."""
        return getattr(self, name) if hasattr(type(self), name) else getattr(self.shared, name)

    def _explained(self, rows: Array, purpose: str, run: int = 0) -> tuple[Array, list[Any]]:
        """Explain rows in batches, each from a random state of its own; (values per feature, results)."""
        if purpose in self.failures:
            raise self.failures[purpose]
        try:
            return self._in_batches(rows, purpose, run)
        except Exception as error:
            self.failures[purpose] = error
            raise

    def _in_batches(self, rows: Array, purpose: str, run: int) -> tuple[Array, list[Any]]:
        shared, size = self.shared, self.shared.plan.batch_rows
        values, results = np.empty((len(rows), len(shared.features.names))), []
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            table = block if self.control else shared.schema.write(block)
            began = time.perf_counter()
            with isolated(stream(shared.plan.seed, self.name, purpose, run, start)):
                result = self.explain(table)
            taken = time.perf_counter() - began
            shared.clock.explain += taken
            self.seconds += taken if purpose == "rows" else 0.0
            values[start : start + size] = self._canonical(result, len(block))
            results.append(result)
        return values, results

    def _canonical(self, result: Any, count: int, part: str = "values") -> Array:
        """One value per feature of one output, whatever the explainer returned."""
        values = np.asarray(getattr(result, part, result), dtype=float)
        names = getattr(result, "feature_names", None)
        if values.ndim == 3:
            values = values[:, :, self._output_of(result, values.shape[2])]
        if len(values) != count:
            raise InputError(f"the explainer returned {len(values)} rows for {count}; expected one each.")
        return self.shared.features.gather(values, names)

    def _output_of(self, result: Any, count: int) -> int:
        wanted = self.shared.main.all_names[self.shared.output]
        names = tuple(getattr(result, "output_names", ()))
        if wanted in names:
            return names.index(wanted)
        if count == len(self.shared.main.all_names):
            return self.shared.output
        raise InputError(f"the explainer explains the outputs {names}, not {wanted!r}; explain that one.")

    # ---------------------------------------------------------------- named evidence

    def warm_up(self) -> None:
        """Explain one row first: some libraries compile then. Counted in the run's time, not in `seconds`."""
        if self.control:
            return
        table = self.shared.schema.write(self.shared.rows[:1])
        began = time.perf_counter()
        try:
            with isolated(stream(self.shared.plan.seed, self.name, "warm-up")):
                self.explain(table)
        finally:
            self.shared.clock.explain += time.perf_counter() - began

    @cached_property
    def _first(self) -> tuple[Array, list[Any]]:
        values, results = self._explained(self.shared.rows, "rows")
        self.broken = np.any(~np.isfinite(values), axis=1)
        spent = [getattr(result, "diagnostics", {}).get("evaluations", np.nan) for result in results]
        self.cost = float(np.mean(np.concatenate([np.atleast_1d(one) for one in spent])))
        return np.where(self.broken[:, None], 0.0, values), results

    @cached_property
    def values(self) -> Array:
        """Attributions of the rows, (rows, features); rows with a gap hold zeros and are marked broken."""
        return self._first[0]

    @cached_property
    def _near(self) -> tuple[Array, NDArray[np.bool_]]:
        hood = self.shared.hood
        near = np.zeros((*hood.valid.shape, len(self.shared.features.names)))
        near[hood.valid] = self._explained(hood.rows[hood.valid], "neighbours")[0]
        broken = np.any(~np.isfinite(near), axis=-1, keepdims=True)
        return np.where(broken, 0.0, near), hood.valid & ~broken[..., 0]

    near_values = property(lambda self: self._near[0])
    near_valid = property(lambda self: self._near[1])

    @cached_property
    def repeats(self) -> Array:
        """The rows explained again and again, (runs, rows, features)."""
        runs = range(1, self.shared.plan.runs)
        again = [self._explained(self.shared.rows, "runs", run)[0] for run in runs]
        return np.stack([self.values, *again])  # (runs, rows, features)

    @cached_property
    def unit(self) -> str:
        """What a value means: "slope", "spread" or "contribution"."""
        return units.unit_of(str(getattr(self._first[1][0], "attribution", "contribution")))

    @cached_property
    def _own_function(self) -> Callable[[Array], Array]:
        """The function this explainer explains, rows -> (rows,): its output on its own scale."""
        explained = getattr(self.explain, "explained", None)
        if explained is not None:
            return explained
        predictor, schema = (getattr(self.explain, name, None) for name in ("predictor", "schema"))
        if predictor is None or schema is None:
            return self.shared.predict
        write = self.shared.schema.write
        return lambda rows: predictor.everything(schema.read(write(rows)))[:, self.shared.output]

    def own_predict(self, rows: Array) -> Array:
        """Call the explained function, timed as the model's time."""
        if self._own_function == self.shared.predict:
            return self.shared.predict(rows)
        began = time.perf_counter()
        try:
            return self._own_function(rows)
        finally:
            self.shared.clock.model += time.perf_counter() - began

    @cached_property
    def own_predictions(self) -> Array:
        """The explained function at the rows, (rows,)."""
        return self.own_predict(self.shared.rows)

    @cached_property
    def base(self) -> Array:
        """Its mean over the background, once per row."""
        return np.full(len(self.shared.rows), self.own_predict(self.shared.background).mean())

    @cached_property
    def contributions(self) -> Array:
        """The output each feature accounts for, (rows, features)."""
        shared = self.shared
        return units.contributions(
            self.values, self.unit, shared.rows, shared.baseline, shared.spread, shared.features
        )

    @cached_property
    def _slopes(self) -> tuple[Array, str]:
        """What the explanation claims of small steps: its surrogate's slopes, or its values without one."""
        results = self._first[1]
        if not all(np.all(np.isfinite(getattr(result, "gradient", np.nan))) for result in results):
            return self.values, self.unit
        return np.concatenate([self._canonical(r, len(r), "gradient") for r in results]), "slope"

    @cached_property
    def expected_small(self) -> Array:
        """What the explanation expects of the small steps, (rows, draws)."""
        shared, (slopes, unit) = self.shared, self._slopes
        return units.expected_small(
            slopes, unit, shared.rows, shared.offsets, shared.baseline, shared.spread, shared.features
        )

    @cached_property
    def response_small(self) -> Array:
        """What the model does, (rows, draws)."""
        return self._responses(self.shared.rows[:, None] - self.shared.offsets)

    @cached_property
    def expected_references(self) -> Array:
        """What the explanation expects on the way to the references, (rows, draws)."""
        shared = self.shared
        return units.expected_references(
            self.values, self.unit, shared.rows, shared.references, shared.spread, shared.features
        )

    @cached_property
    def response_references(self) -> Array:
        """What the model does, (rows, draws)."""
        shape = (len(self.shared.rows), *self.shared.references.shape)
        return self._responses(np.broadcast_to(self.shared.references, shape))

    def _responses(self, moved: Array) -> Array:
        """f(x) - f(x - I) on the explainer's own scale, (rows, draws)."""
        there = self.own_predict(moved.reshape(-1, moved.shape[-1])).reshape(moved.shape[:2])
        return self.own_predictions[:, None] - there
