"""Explanations with known numbers, for the tests of plots, reports and the explorer."""

from __future__ import annotations

import numpy as np

from texplainer.explanation import CategoryEffects, Explanation

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
    attribution: str = "contribution",
    names: tuple[str, ...] | None = None,
    outputs: tuple[str, ...] = ("yes",),
    seed: int = 0,
) -> Explanation:
    """A linear model's exact contributions, with a kink, an error bound, and two fragile rows."""
    random = np.random.default_rng(seed)
    weights = 1.0 / (1 + np.arange(features)) * np.where(np.arange(features) % 2, -1, 1)
    data = random.normal(size=(rows, features))
    gradient = np.repeat(
        np.broadcast_to(weights, (rows, features))[:, :, None], len(outputs), axis=2
    ) * np.arange(1, len(outputs) + 1)
    values = gradient if attribution in ("sensitivity", "scaled") else gradient * data[:, :, None]
    base = np.arange(len(outputs)) + 0.25
    flags = np.zeros((rows, features), dtype=np.uint8)
    flags[:, 0] = 1
    fragile = np.arange(rows) % 20 == 3
    return Explanation.build(
        values,
        data=data,
        base_values=base,
        predictions=base + np.einsum("rf,rfo->ro", data, gradient),
        feature_names=names or tuple((*NAMES, *(f"x{j}" for j in range(6, features)))[:features]),
        output_names=outputs,
        gradient=gradient,
        diagnostics={
            "error": np.abs(gradient) * 0.1,
            "flags": flags,
            "evaluations": np.full(rows, 13),
            "verdict": np.where(fragile, "fragile", "stable"),
            "reason": np.where(fragile, "kink in 'age'", "").astype(object),
        },
        scale="raw",
        attribution=attribution,
        engine="closed-form",
        settings={"why": "known by construction"},
    )


def categorical(rows: int = 30) -> Explanation:
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
        attribution="contribution",
    )
    category = CategoryEffects(levels, effects[:, :, None].astype(float), np.array([0.2, 0.5, 0.3]))
    from dataclasses import replace

    return replace(explanation, categories={"colour": category})


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
