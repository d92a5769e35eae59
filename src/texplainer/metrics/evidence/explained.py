"""Evidence of one explainer: its explanations of the rows, of their neighbours, and of the rows again.

What is the same for every explainer is in `common`. Explanations are made in batches, each from a random
state that depends on the seed, the explainer's name and the purpose alone, so that explainers cannot
influence each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texplainer.errors import InputError, Unsupported
from texplainer.metrics.evidence import rebuilding, units
from texplainer.metrics.evidence.common import CommonEvidence
from texplainer.metrics.evidence.local_effects import local_effects
from texplainer.support.random_state import isolated, stream
from texplainer.types import Array


class ExplainerEvidence:
    """Evidence of one explainer: its explanations, and what it explains."""

    def __init__(
        self, name: str, explain: Callable[[Any], Any], common: CommonEvidence, control: bool
    ) -> None:
        self.name, self.explain, self.common, self.control = name, explain, common, control
        self.seconds = 0.0  # of the processor, for explaining the rows once: a busy machine does not show
        self.cost = np.nan  # model evaluations a row
        self.failures: dict[str, Exception] = {}  # purpose -> what was raised; not tried again
        self.broken: NDArray[np.bool_] = np.zeros(len(common.rows), dtype=bool)

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
        common, size = self.common, self.common.settings.batch_rows
        values, results = np.empty((len(rows), len(common.features.names))), []
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            table = block if self.control else common.schema.write(block)
            began, busy = time.perf_counter(), time.process_time()
            with isolated(stream(common.settings.seed, self.name, purpose, run, start)):
                result = self.explain(table)
            common.clock.explain += time.perf_counter() - began
            self.seconds += time.process_time() - busy if purpose == "rows" else 0.0
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
        return self.common.features.gather(values, names)

    def _output_of(self, result: Any, count: int) -> int:
        wanted = self.common.main.all_names[self.common.output]
        names = tuple(getattr(result, "output_names", ()))
        if wanted in names:
            return names.index(wanted)
        if count == len(self.common.main.all_names):
            return self.common.output
        raise InputError(f"the explainer explains the outputs {names}, not {wanted!r}; explain that one.")

    # ---------------------------------------------------------------- pieces of evidence

    def warm_up(self) -> None:
        """Explain one row first: some libraries compile then. Counted in the run's time, not in `seconds`."""
        if self.control:
            return
        table = self.common.schema.write(self.common.rows[:1])
        began = time.perf_counter()
        try:
            with isolated(stream(self.common.settings.seed, self.name, "warm-up")):
                self.explain(table)
        finally:
            self.common.clock.explain += time.perf_counter() - began

    @cached_property
    def _first(self) -> tuple[Array, list[Any]]:
        values, results = self._explained(self.common.rows, "rows")
        self.broken = np.any(~np.isfinite(values), axis=1)
        spent = [getattr(result, "diagnostics", {}).get("evaluations", np.nan) for result in results]
        self.cost = float(np.mean(np.concatenate([np.atleast_1d(one) for one in spent])))
        return np.where(self.broken[:, None], 0.0, values), results

    @cached_property
    def values(self) -> Array:
        """Attributions of the rows, (rows, features); non-finite rows are set to 0 and marked broken."""
        return self._first[0]

    @cached_property
    def _near(self) -> tuple[Array, NDArray[np.bool_]]:
        hood = self.common.hood
        near = np.zeros((*hood.valid.shape, len(self.common.features.names)))
        near[hood.valid] = self._explained(hood.rows[hood.valid], "neighbours")[0]
        broken = np.any(~np.isfinite(near), axis=-1, keepdims=True)
        return np.where(broken, 0.0, near), hood.valid & ~broken[..., 0]

    @property
    def near_values(self) -> Array:
        """Attributions of the neighbours, (rows, neighbours, features)."""
        return self._near[0]

    @property
    def near_valid(self) -> NDArray[np.bool_]:
        """Mask of the neighbours that exist and were explained, (rows, neighbours)."""
        return self._near[1]

    @cached_property
    def repeats(self) -> Array:
        """The rows explained repeatedly, (runs, rows, features)."""
        runs = range(1, self.common.settings.runs)
        again = [self._explained(self.common.rows, "runs", run)[0] for run in runs]
        return np.stack([self.values, *again])  # (runs, rows, features)

    @cached_property
    def on_other_backgrounds(self) -> tuple[Array, Array, Array]:
        """The rows explained on a sample of the background, on another, and on the first with noise."""
        common, seed = self.common, self.common.settings.seed
        one, two = rebuilding.two_samples(common.background, common.features, seed)
        noisy = rebuilding.with_noise(one, common.sd, common.features, seed)
        one, two, noisy = (
            self._by(self._rebuilt(background=common.schema.write(rows)), f"background {i}")
            for i, rows in enumerate((one, two, noisy))
        )
        return one, two, noisy

    @cached_property
    def with_another_seed(self) -> Array:
        """The rows explained with another seed, (rows, features)."""
        return self._by(self._rebuilt(seed=rebuilding.another_seed(self.explain)), "seed")

    def _rebuilt(self, **changes: Any) -> Callable[[Any], Any]:
        return self.explain if self.control else rebuilding.rebuilt_explainer(self.explain, **changes)

    def _by(self, explain: Callable[[Any], Any], purpose: str) -> Array:
        """Explain the rows by another explainer under this one's name, from the same random state."""
        other = ExplainerEvidence(self.name, explain, self.common, self.control)
        return other._explained(self.common.rows, purpose)[0]

    def local_effects(self, radius: float) -> Array:
        """Effect of each feature within `radius` SDs of the rows, (rows, features)."""
        common = self.common
        scale = str(getattr(self._first[1][0], "scale", ""))
        if (scale, radius) not in common.measured_effects:
            common.measured_effects[scale, radius] = local_effects(
                self.own_predict, common.rows, common.sd, common.features, radius=radius,
                seed=common.settings.seed,
            )  # fmt: skip
        return common.measured_effects[scale, radius]

    @cached_property
    def unit(self) -> str:
        """The unit of a value: "slope", "sd" or "share"."""
        return units.unit_of(str(getattr(self._first[1][0], "attribution", "shapley")))

    @cached_property
    def _own_function(self) -> Callable[[Array], Array]:
        """The function this explainer explains, rows -> (rows,): its output on its own scale."""
        explained = getattr(self.explain, "explained", None)
        if explained is not None:
            return explained
        predictor, schema = (getattr(self.explain, name, None) for name in ("predictor", "schema"))
        if predictor is None or schema is None:
            return self.common.predict
        write = self.common.schema.write
        return lambda rows: predictor.everything(schema.read(write(rows)))[:, self.common.output]

    def own_predict(self, rows: Array) -> Array:
        """Call the explained function, timed as the model's time."""
        if self._own_function == self.common.predict:
            return self.common.predict(rows)
        began = time.perf_counter()
        try:
            return self._own_function(rows)
        finally:
            self.common.clock.model += time.perf_counter() - began

    @cached_property
    def own_predictions(self) -> Array:
        """The explained function at the rows, (rows,)."""
        return self.own_predict(self.common.rows)

    @cached_property
    def base(self) -> Array:
        """Its mean over the background, once per row."""
        return np.full(len(self.common.rows), self.own_predict(self.common.background).mean())

    @cached_property
    def contributions(self) -> Array:
        """The output each feature accounts for, (rows, features)."""
        common = self.common
        return units.output_shares(
            self.values, self.unit, common.rows, common.baseline, common.sd, common.features
        )

    @cached_property
    def expected_small(self) -> Array:
        """Change of the output predicted by the values for small steps, (rows, draws)."""
        return self._expected_small(self.values, self.unit)

    @cached_property
    def expected_surrogate(self) -> Array:
        """The same change predicted by the explanation's local model, (rows, draws)."""
        results = self._first[1]
        if not all(np.all(np.isfinite(getattr(result, "gradient", np.nan))) for result in results):
            raise Unsupported("the explanation does not contain a local model (a gradient).")
        slopes = np.concatenate([self._canonical(one, len(one), "gradient") for one in results])
        return self._expected_small(slopes, "slope")

    def _expected_small(self, values: Array, unit: str) -> Array:
        common = self.common
        return units.expected_small(
            values, unit, common.rows, common.offsets, common.baseline, common.sd, common.features
        )

    @cached_property
    def response_small(self) -> Array:
        """Actual change of the output, (rows, draws)."""
        return self._responses(self.common.rows[:, None] - self.common.offsets)

    @cached_property
    def expected_references(self) -> Array:
        """Change of the output predicted by the explanation for steps to the references, (rows, draws)."""
        common = self.common
        return units.expected_references(
            self.values, self.unit, common.rows, common.references, common.sd, common.features
        )

    @cached_property
    def response_references(self) -> Array:
        """Actual change of the output, (rows, draws)."""
        shape = (len(self.common.rows), *self.common.references.shape)
        return self._responses(np.broadcast_to(self.common.references, shape))

    def _responses(self, moved: Array) -> Array:
        """f(x) - f(x - I) on the explainer's own scale, (rows, draws)."""
        there = self.own_predict(moved.reshape(-1, moved.shape[-1])).reshape(moved.shape[:2])
        return self.own_predictions[:, None] - there
