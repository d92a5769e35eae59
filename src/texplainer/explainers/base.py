"""Another explainer in the same shape as a TExplainer: a table in, an `Explanation` out.

Each adapter only says how rows become attributions of one output; `OtherExplainer` reads the table, adds the
prediction, the base value and the cost, and returns the Explanation. What does not fit a model is refused with
`Unsupported` when it is built. At the end: controls, which do not use the model, and an adapter for a function of
your own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from importlib import import_module
from typing import Any

import numpy as np

from texplainer.background.summary import Background, summarise
from texplainer.errors import InputError, Unsupported
from texplainer.explanation.explanation import Explanation
from texplainer.metrics.measuring import noise, ones, zeros
from texplainer.models import predictor as prediction
from texplainer.models.predictor import Predictor
from texplainer.support.process import isolated
from texplainer.tables import schema as frames
from texplainer.types import Array

PROBE_ROWS = 8
#: packages that are in no extra of ours -> what pip installs
DISTRIBUTIONS = {name: name for name in ("shapiq", "lightshap", "treeig")} | {"woodelf": "woodelf_explainer"}


@dataclass(frozen=True)
class Task:
    """The task: one output of a model, and a background."""

    predictor: Predictor
    background: Background

    @property
    def output(self) -> int:
        """Index of the explained output among all."""
        return self.predictor.outputs[0]

    def output_of(self, rows: Array) -> Array:
        """Predict the explained output, (rows,)."""
        return self.predictor(rows)[:, 0]


@dataclass
class Counter:
    """A prediction function that counts the rows it evaluates."""

    function: Callable[[Array], Array]
    rows: int = 0

    def __call__(self, rows: Any) -> Array:
        """Predict, and count."""
        table = np.asarray(rows, dtype=np.float64)
        self.rows += len(table)
        return self.function(table)


#: what another explainer's numbers mean, as the attributions name it: per SD, a share of f(x) - E f, a slope
PER_SD, SHARES, SLOPE = "slope", "shapley", "gradient"

#: rows (rows, features) -> (values (rows, features), model evaluations (rows,))
Attribute = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True)
class OtherExplainer:
    """Another library's explainer with the interface of TExplainer."""

    name: str
    task: Task
    attribute: Attribute
    attribution: str = SHARES
    control: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    predict: Callable[[Array], Array] | None = None  # when what is explained is not the predictor's output
    scale: str = ""
    recipe: Callable[[Any, Any], OtherExplainer] | None = (
        None  # (background or None, seed or None) -> the same anew
    )

    def rebuilt(self, *, background: Any = None, seed: int | None = None) -> OtherExplainer:
        """Rebuild this explainer with another background, or another seed if it has one."""
        if self.recipe is None:
            raise Unsupported(f"{self.name} cannot be rebuilt; create it with texplainer.explainers.")
        return self.recipe(background, seed)

    @property
    def predictor(self) -> Predictor:
        """The explained function."""
        return self.task.predictor

    @property
    def background(self) -> Background:
        """The background and its summary."""
        return self.task.background

    def explained(self, rows: Array) -> Array:
        """Call the explained function, (rows, columns) -> (rows,)."""
        return (self.predict or self.task.output_of)(rows)

    def __call__(self, X: Any) -> Explanation:
        """Explain every row of a table."""
        rows = self.predictor.schema.read(X)
        values, evaluations = self.attribute(rows)
        base = float(self.explained(self.background.rows).mean()) if self.predict else self.background.base
        return Explanation.build(
            values,
            data=rows,
            base_values=base,
            predictions=self.explained(rows),
            feature_names=self.predictor.schema.names,
            output_names=self.predictor.output_names,
            diagnostics={"evaluations": evaluations},
            scale=self.scale or self.predictor.scale,
            attribution=self.attribution,
            engine=self.name,
            settings=dict(self.settings),
        )


@dataclass(frozen=True)
class Skipped:
    """An explainer that does not support the model, with the reason; an evaluation shows it as skipped."""

    name: str
    reason: str

    def __call__(self, X: Any) -> Explanation:
        """Refuse, with the reason."""
        raise Unsupported(self.reason)


def rebuildable(build: Callable[..., OtherExplainer]) -> Callable[..., OtherExplainer]:
    """Record how an explainer was built, so that it can be rebuilt."""

    @wraps(build)
    def remembering(model: Any, background: Any, **choice: Any) -> OtherExplainer:
        other = build(model, background, **choice)

        def recipe(another: Any, seed: int | None) -> OtherExplainer:
            seeded = seed is not None and other.settings.get("seed") is not None
            changed = choice | ({"seed": seed} if seeded else {})
            return remembering(model, background if another is None else another, **changed)

        return replace(other, recipe=recipe)

    return remembering


def task_of(
    model: Any,
    background: Any,
    *,
    output: Any = None,
    scale: str = "auto",
    feature_names: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
) -> Task:
    """Read the background, choose one output of the model and summarise both.

    `scale` "auto" is the probability if the model has one, as is usual for these libraries.
    """
    schema, rows = frames.learn(background, feature_names, categorical)
    predictor = _predictor(model, schema, rows[:PROBE_ROWS], output, scale)
    if len(predictor.outputs) != 1 or predictor.predicted:
        raise InputError(
            f"the model has {len(predictor.all_names)} outputs ({', '.join(predictor.all_names)}) and "
            f"output={output!r} does not choose one; other explainers explain one output. Pass output=<name "
            "or index>."
        )
    return Task(predictor, summarise(rows, predictor, None))


def _predictor(model: Any, schema: frames.Schema, probe: Array, output: Any, scale: str) -> Predictor:
    predictor = prediction.adapt(model, schema, probe, output=output, scale=scale)
    if scale == "auto" and predictor.task == "classification" and predictor.scale != "probability":
        return prediction.adapt(model, schema, probe, output=output, scale="probability")
    return predictor


def evenly_spaced(rows: Array, count: int) -> Array:
    """At most `count` rows, evenly spaced."""
    if len(rows) <= count:
        return rows
    return rows[np.linspace(0, len(rows) - 1, count).round().astype(int)]


def row_by_row(one: Callable[[Array], Array], counter: Counter, seed: int | None) -> Attribute:
    """Explain rows one at a time, each from the same random state: results do not depend on the order.

    Without a seed the library uses the global generators.
    """

    def attribute(rows: Array) -> tuple[Array, Array]:
        values, costs = np.empty(rows.shape), np.empty(len(rows))
        for i, row in enumerate(rows):
            before = counter.rows
            if seed is None:
                values[i] = one(row)
            else:
                with isolated(seed):
                    values[i] = one(row)
            costs[i] = counter.rows - before
        return values, costs

    return attribute


def needs(package: str) -> Any:
    """Import an optional library; raise `Unsupported` if it is missing."""
    try:
        return import_module(package)
    except ImportError:
        name = package.split(".")[0]
        install = DISTRIBUTIONS.get(name, "'texplainer[explainers,torch]'")
        raise Unsupported(
            f"needs the package {name!r}, which is not installed; pip install {install}."
        ) from None


@rebuildable
def constant(model: Any, background: Any, **choice: Any) -> OtherExplainer:
    """Explain every row with ones: stable, but useless."""
    return _control("constant", ones, model, background, choice)


@rebuildable
def zero(model: Any, background: Any, **choice: Any) -> OtherExplainer:
    """Explain every row with zeros."""
    return _control("zero", zeros, model, background, choice)


@rebuildable
def random(model: Any, background: Any, *, seed: int = 0, **choice: Any) -> OtherExplainer:
    """Explain every row with noise seeded by the row, so that equal rows get equal values."""
    return _control("random", lambda rows: noise(rows, seed), model, background, choice)


def _control(
    name: str, values: Callable[[Array], Array], model: Any, background: Any, choice: dict[str, Any]
) -> OtherExplainer:
    task = task_of(model, background, **choice)
    return OtherExplainer(name, task, lambda rows: (values(rows), np.zeros(len(rows))), control=True)


def from_function(
    function: Callable[[Any], Any],
    model: Any,
    background: Any,
    *,
    name: str = "",
    attribution: str = SHARES,
    **choice: Any,
) -> OtherExplainer:
    """Wrap an explainer of your own: a function from the model's table to values (rows, features).

    Parameters
    ----------
    function : called with the rows as the model gets them (an array or a frame, as the background was).
    name : shown in tables; the function's own name by default.
    attribution : what a value means: one of the attributions' names, `SHARES` (output for the way from the
        background), `SLOPE` (per unit of the feature) or `PER_SD` of `explainers.base`.
    **choice : `output`, `scale`, `feature_names`, `categorical`, as for TExplainer.
    """
    task = task_of(model, background, **choice)

    def attribute(rows: Array) -> tuple[Array, Array]:
        values = np.asarray(function(task.predictor.schema.write(rows)), dtype=float)
        return values, np.full(len(rows), np.nan)

    return OtherExplainer(
        name or getattr(function, "__name__", "function"), task, attribute, attribution=attribution
    )
