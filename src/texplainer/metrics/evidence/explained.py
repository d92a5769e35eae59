"""Evidence of one explainer: its explanations of the rows, of their neighbours, and of the rows again.

What is the same for every explainer is in common.py. Explanations are made in batches, each from a random
state that depends on the seed, the explainer's name and the purpose alone, so that explainers cannot
influence each other.

Infidelity and local accuracy compare attributions with outputs, so each is converted by its unit: a derivative is
output per unit of the feature, a scaled derivative output per standard deviation, a SHAP value output for the
difference between the row and the baseline. Rankings (PGI and the like) use attributions as they are.

For the stability to the background and the seed an explainer is built again: another explainer knows how it was
built (`rebuilt`), a TExplainer keeps its `arguments`. An explainer of your own takes part by a method
`rebuilt(background=..., seed=...)`, which may use either.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texplainer.attributions.table import ATTRIBUTIONS
from texplainer.errors import InputError, Unsupported
from texplainer.metrics.evidence.common import CommonEvidence
from texplainer.metrics.evidence.features import Features
from texplainer.metrics.scores.stability import clip_from_zero
from texplainer.support.process import isolated, stream
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
        one, two = two_samples(common.background, common.features, seed)
        noisy = with_noise(one, common.sd, common.features, seed)
        one, two, noisy = (
            self._by(self._rebuilt(background=common.schema.write(rows)), f"background {i}")
            for i, rows in enumerate((one, two, noisy))
        )
        return one, two, noisy

    @cached_property
    def with_another_seed(self) -> Array:
        """The rows explained with another seed, (rows, features)."""
        return self._by(self._rebuilt(seed=another_seed(self.explain)), "seed")

    def _rebuilt(self, **changes: Any) -> Callable[[Any], Any]:
        return self.explain if self.control else rebuilt_explainer(self.explain, **changes)

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
        return unit_of(str(getattr(self._first[1][0], "attribution", "shapley")))

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
        return output_shares(self.values, self.unit, common.rows, common.baseline, common.sd, common.features)

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
        return expected_small(
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
        return expected_references(
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


def unit_of(attribution: str) -> str:
    """Return the unit of an attribution; contributions unless known otherwise."""
    spec = ATTRIBUTIONS.get(attribution)
    return "share" if spec is None else spec.unit


def _per_feature(columns: Array, features: Features) -> Array:
    """Take each feature's own column, (..., columns) -> (..., features); a group's first is never used."""
    return columns[..., [own[0] for own in features.columns]]


def _numeric(features: Features) -> Array:
    return features.numeric[[own[0] for own in features.columns]].astype(float)


def output_shares(
    values: Array, unit: str, rows: Array, baseline: Array, sd: Array, features: Features
) -> Array:
    """Compute the contribution of each feature to f(x) - f(baseline), (rows, features).

    A category's attribution is taken as its contribution in every unit.
    """
    if unit == "share":
        return values
    way = _per_feature(rows - baseline, features)
    slope = values / _per_feature(sd, features) if unit == "sd" else values
    numeric = _numeric(features)
    return np.where(numeric > 0, slope * way, values)


def expected_small(
    values: Array, unit: str, rows: Array, offsets: Array, baseline: Array, sd: Array, features: Features
) -> Array:
    """Compute the change I·e an explanation expects of offsets (rows, draws, columns) -> (rows, draws).

    Contributions become slopes by dividing by the distance from the baseline, at least a hundredth of the SD;
    offsets leave categories alone.
    """
    scale = _per_feature(sd, features)
    way = clip_from_zero(_per_feature(rows - baseline, features) / scale, 1e-2) * scale
    slope = {"slope": values, "sd": values / scale, "share": values / way}[unit] * _numeric(features)
    return np.einsum("rf,rdf->rd", slope, _per_feature(offsets, features))


def expected_references(
    values: Array, unit: str, rows: Array, references: Array, sd: Array, features: Features
) -> Array:
    """Compute f(x) - f(b) as an explanation expects it, b (draws, columns) -> (rows, draws).

    Contributions are summed, whatever b: they are already relative to the background.
    """
    if unit == "share":
        return np.repeat(values.sum(axis=1)[:, None], len(references), axis=1)
    way = rows[:, None, :] - references  # (rows, draws, columns)
    differs = np.stack([np.any(way[..., list(own)] != 0, axis=-1) for own in features.columns], axis=-1)
    scale = _per_feature(sd, features)
    slope = values / scale if unit == "sd" else values
    amounts = np.where(_numeric(features) > 0, _per_feature(way, features), 0.0)
    category = values * (1 - _numeric(features))
    return np.einsum("rf,rdf->rd", slope, amounts) + np.einsum("rf,rdf->rd", category, differs.astype(float))


SAMPLE = 200  # rows of each sample of the background
NOISE = 1e-12  # of an SD


def rebuilt_explainer(explain: Any, **changes: Any) -> Callable[[Any], Any]:
    """Rebuild an explainer with another `background` or `seed`, if it has these arguments."""
    if hasattr(explain, "rebuilt"):
        return explain.rebuilt(**changes)
    known = getattr(explain, "arguments", None)
    if known is None:
        raise Unsupported("the explainer cannot be rebuilt; add a method rebuilt(background, seed).")
    return type(explain)(**known | {name: value for name, value in changes.items() if name in known})


def another_seed(explain: Any) -> int:
    """A seed the explainer was not built with."""
    settings = getattr(explain, "arguments", None) or getattr(explain, "settings", {})
    return int(settings.get("seed") or 0) + 1


def two_samples(background: Array, features: Features, seed: int) -> tuple[Array, Array]:
    """Two disjoint samples of the background, except for rows added so that both contain every category."""
    count = min(SAMPLE, len(background) // 2)
    order = np.random.default_rng([seed, 14]).permutation(len(background))
    parts = (order[:count], order[count : 2 * count])
    one, two = (background[np.union1d(part, _lacking(background, features, part))] for part in parts)
    return one, two


def _lacking(background: Array, features: Features, sample: NDArray[np.int_]) -> NDArray[np.int_]:
    """Rows of the background with the categories that are absent from a sample of it."""
    added: list[int] = []
    for feature in features.patterns:
        cells = background[:, list(features.columns[feature])]
        levels, first, level = np.unique(cells, axis=0, return_index=True, return_inverse=True)
        missing = np.setdiff1d(np.arange(len(levels)), level.reshape(-1)[sample])
        added += first[missing].tolist()
    return np.array(added, dtype=int)


def with_noise(rows: Array, sd: Array, features: Features, seed: int) -> Array:
    """The rows with negligible noise; categories are unchanged."""
    noise = np.random.default_rng([seed, 15]).normal(size=rows.shape)
    return rows + NOISE * sd * features.numeric * noise


PLACES = 8  # where the other features stand, x itself the first
STOPS = np.linspace(-1.0, 1.0, 5)  # where the moved feature stops, in radii
LEVELS = 8  # the most levels a category is tried at


def local_effects(
    predict: Callable[[Array], Array],
    rows: Array,
    sd: Array,
    features: Features,
    *,
    radius: float,
    seed: int = 0,
) -> Array:
    """Measure the effect of each feature near each row, (rows, features); the same places for every row."""
    offsets = np.random.default_rng([seed, 13]).uniform(-1.0, 1.0, (PLACES, rows.shape[1]))
    offsets[0] = 0.0
    places = rows[:, None, :] + radius * sd * features.numeric * offsets  # (rows, places, columns)
    effects = np.empty((len(rows), len(features.names)))
    for feature, columns in enumerate(features.columns):
        cells = _stops(rows, sd, features, feature, radius)  # (rows or 1, stops, columns of the feature)
        moved = np.repeat(places[:, :, None, :], cells.shape[1], axis=2)
        moved[..., list(columns)] = cells[:, None]
        found = predict(moved.reshape(-1, rows.shape[1])).reshape(moved.shape[:3])
        effects[:, feature] = np.ptp(found, axis=2).max(axis=1)
    return effects


def _stops(rows: Array, sd: Array, features: Features, feature: int, radius: float) -> Array:
    columns = list(features.columns[feature])
    if feature in features.patterns:
        levels = features.patterns[feature]
        chosen = np.unique(np.linspace(0, len(levels) - 1, min(LEVELS, len(levels))).round().astype(int))
        return levels[chosen][None]
    return rows[:, None, columns] + radius * sd[columns] * STOPS[:, None]
