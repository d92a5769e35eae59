"""Explanations with known numbers, for the tests of plots, reports and the explorer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from texplainer import ImageExplainer, TExplainer
from texplainer.attributions.table import ATTRIBUTIONS
from texplainer.explanation.explanation import CategoryEffects, Explanation
from texplainer.explanation.fields import Live
from texplainer.explanation.interactions import Interactions

NAMES = (
    "age",
    "income",
    "Größe_in_cm",
    "доход",
    "price in $ per $unit",
    "a_very_long_feature_name_that_never_ends",
)


def made(
    rows: int = 40,
    features: int = 6,
    *,
    attribution: str = "shapley",
    names: tuple[str, ...] | None = None,
    outputs: tuple[str, ...] = ("yes",),
    seed: int = 0,
    scale: str = "raw",
) -> Explanation:
    """A linear model's exact values in any attribution, with a kink, an error bound, and two unstable rows.

    Every SD is 1. It is live: asked for a sibling, it makes that.
    """
    random = np.random.default_rng(seed)
    weights = 1.0 / (1 + np.arange(features)) * np.where(np.arange(features) % 2, -1, 1)
    data = random.normal(size=(rows, features))
    gradient = np.repeat(
        np.broadcast_to(weights, (rows, features))[:, :, None], len(outputs), axis=2
    ) * np.arange(1, len(outputs) + 1)
    values = {
        "shapley": gradient * data[:, :, None],
        "variation": np.abs(gradient) * np.sqrt(1 + data**2)[:, :, None],
    }.get(attribution, gradient)
    base = np.arange(len(outputs)) + 0.25
    flags = np.zeros((rows, features), dtype=np.uint8)
    flags[:, 0] = 1
    unstable = np.arange(rows) % 20 == 3
    spec = ATTRIBUTIONS[attribution]

    def ask(which: np.ndarray, other: str) -> Explanation:
        with_attribution = made(
            rows, features, attribution=other, names=names, outputs=outputs, seed=seed, scale=scale
        )
        return with_attribution[which]

    explanation = Explanation.build(
        values,
        data=data,
        base_values=base,
        predictions=base + np.einsum("rf,rfo->ro", data, gradient),
        feature_names=names or tuple((*NAMES, *(f"x{j}" for j in range(6, features)))[:features]),
        output_names=outputs,
        gradient=gradient if attribution in ("slope", "gradient") else None,
        diagnostics={
            "error": np.abs(values) * 0.1,
            "relative_change": np.full((rows, len(outputs)), 0.02) + 0.3 * unstable[:, None],
            "flags": flags,
            "evaluations": np.full(rows, 13),
            "stability": np.where(unstable, "unstable", "stable"),
            "reason": np.where(unstable, "kink in 'age'", "").astype(object),
        },
        scale=scale,
        attribution=attribution,
        engine="closed-form",
        settings={"how": "known by construction", "question": spec.question},
        units=(spec.feature_unit,) * features,
    )
    return replace(explanation, live=Live(ask, np.arange(rows)))


def loaded(explanation: Explanation) -> Explanation:
    """The same without its explainer, as a file gives it back."""
    return replace(explanation, live=None)


def categorical(rows: int = 30, attribution: str = "slope") -> Explanation:
    """One number and one category of three levels with effects 0, 1, 2 away from the row's own."""
    random = np.random.default_rng(1)
    levels = ("red", "green", "<b>blue</b>")
    codes = random.integers(0, 3, rows)
    data = np.empty((rows, 2), dtype=object)
    data[:, 0], data[:, 1] = random.normal(size=rows), [levels[c] for c in codes]
    effects = np.arange(3)[None, :] - codes[:, None]  # (rows, levels)
    values = np.column_stack([data[:, 0].astype(float), codes - 1.0])
    explanation = Explanation.build(
        values,
        data=data,
        base_values=0.0,
        predictions=values.sum(axis=1, keepdims=True),
        feature_names=("size", "colour"),
        gradient=np.column_stack([np.ones(rows), np.zeros(rows)])[:, :, None],
        attribution=attribution,
        units=(ATTRIBUTIONS[attribution].feature_unit, ATTRIBUTIONS[attribution].level_unit),
    )
    category = CategoryEffects(levels, effects[:, :, None].astype(float), np.array([0.2, 0.5, 0.3]))
    return replace(explanation, categories={"colour": category})


def gated(rows: int = 400) -> Explanation:
    """Shares of x0 · sign(x2): what x0 does hangs on x2 and on nothing else."""
    data = np.random.default_rng(0).normal(size=(rows, 4))
    values = np.zeros((rows, 4))
    values[:, 0] = data[:, 0] * np.sign(data[:, 2])
    return Explanation.build(values, data=data, feature_names=tuple("abcd"), attribution="shapley")


def pictured() -> Explanation:
    """A linear model of two small images, explained by segments."""
    images = np.random.default_rng(0).random((2, 8, 8, 3))
    weights = np.random.default_rng(1).normal(size=(192, 3))
    explain = ImageExplainer(
        lambda some: np.asarray(some).reshape(len(some), -1) @ weights,
        segments=(2, 2),
        baseline=0.0,
        attribution="shapley",
    )
    return explain(images)


def interacting(rows: int = 30, features: int = 6, outputs: tuple[str, ...] = ("yes",)) -> Interactions:
    """Second-order terms of known sizes: those of x0 and x1 first."""
    random = np.random.default_rng(0)
    part = random.normal(size=(rows, features, len(outputs))) / (1 + np.arange(features))[:, None]
    values = np.einsum("rio,rjo->rijo", part, part)
    names = (*NAMES, *(f"x{j}" for j in range(6, features)))[:features]
    arrays = {
        "values": values,
        "error": 0.1 * np.abs(values),
        "data": part[:, :, 0],
        "predictions": part[:, 0],
        "evaluations": np.full(rows, 13),
    }
    dropped = frozenset("o") if len(outputs) == 1 else frozenset()
    return Interactions(arrays, names, outputs, "raw", "tree", 1.0, np.ones(features), dropped)


def searched(rows: int = 5) -> Explanation:
    """A trace of Algorithm 1 with known h and cost."""
    h = np.tile(2.0 ** -np.arange(1, 7), (rows, 1))
    h[1:, 4:] = np.nan
    return Explanation.build(
        np.ones((rows, 2)),
        data=np.zeros((rows, 2)),
        diagnostics={"trace_h": h, "trace_cost": h**2, "h": h[:, 3]},
        engine="finite-difference",
    )


def curved() -> TExplainer:
    """A smooth function of three numbers, one of them with a curve."""
    background = np.random.default_rng(0).normal(size=(200, 3))
    return TExplainer(
        lambda rows: np.sin(2 * rows[:, 0]) * rows[:, 1] + rows[:, 2],
        background,
        feature_names=["dose", "age", "price in $ per $unit"],
    )


def shopping() -> TExplainer:
    """A function of a number and a category of three levels, worth 0, 1 and 4."""
    import pandas as pd

    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": random.normal(40, 10, 200), "colour": random.choice(["blue", "green", "<b>red</b>"], 200)}
    )
    worth = {"blue": 0.0, "green": 1.0, "<b>red</b>": 4.0}
    return TExplainer(lambda frame: frame["age"] / 10 + frame["colour"].map(worth).astype(float), table)
