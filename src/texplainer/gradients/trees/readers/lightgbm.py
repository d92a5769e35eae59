"""Read LightGBM models from their text format, one array a line.

Inputs are compared in float64 with ``x <= t``. Children below zero are leaves, ``-1 - leaf``. The
decision type holds bits for a categorical split, for the default side, and for what counts as missing
(nothing, zero or NaN).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.gradients.trees.ensemble import CategoryColumns, Tree, TreeEnsemble, assemble

#: objective -> link; "unknown" for those that are not listed
LINKS = {
    "binary": "logistic",
    "cross_entropy": "logistic",
    "multiclass": "softmax",
    "multiclassova": "sigmoid",
    "poisson": "exponential",
    "gamma": "exponential",
    "tweedie": "exponential",
    **dict.fromkeys(
        ("regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank", "rank_xendcg"),
        "identity",
    ),
}
ZERO = float(np.float32(1e-35))
CATEGORICAL, DEFAULT_LEFT, ZERO_IS_MISSING, NAN_IS_MISSING = 1, 2, 4, 8


def load(model: Any) -> TreeEnsemble:
    """Read a `Booster` or a scikit-learn wrapper (the best iteration, if it stopped early)."""
    booster = getattr(model, "booster_", model)
    if callable(getattr(model, "objective", None)):
        raise Unsupported("its objective is a function, whose link is unknown.")
    head, *blocks = booster.model_to_string().split("end of trees")[0].split("\nTree=")
    header = _fields(head)
    objective, *options = header.get("objective", "unknown").split(" ")
    link = "unknown" if "sqrt" in options else LINKS.get(objective, "unknown")
    steepness = next((float(option[8:]) for option in options if option.startswith("sigmoid:")), 1.0)
    outputs = int(header["num_tree_per_iteration"])
    categories = CategoryColumns(int(header["max_feature_idx"]) + 1)
    if "average_output" in head.split("\n"):  # a forest: its raw score is the sum, its prediction the mean
        steepness *= outputs / len(blocks)
    zero = _zero_is_missing(blocks)
    trees = [_tree(_fields(text), i % outputs, categories) for i, text in enumerate(blocks)]
    return assemble(
        trees,
        features=categories.features,
        base=np.zeros(outputs),
        link=link,
        steepness=steepness,
        categories=categories.known,
        missing=0.0 if zero else np.nan,
        missing_within=ZERO,
    )


def _zero_is_missing(blocks: list[str]) -> bool:
    """Whether it was trained with zero_as_missing; then every zero may be read as NaN."""
    kinds = [int(kind) for text in blocks for kind in _fields(text).get("decision_type", "").split()]
    zero = any(kind & ZERO_IS_MISSING for kind in kinds)
    if zero and any(kind & (CATEGORICAL | NAN_IS_MISSING) for kind in kinds):
        raise Unsupported("zero_as_missing next to categories: 0 is also the code of a category.")
    return zero


def _fields(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.split("\n") if "=" in line)


def _tree(fields: dict[str, str], output: int, categories: CategoryColumns) -> Tree:
    if fields.get("is_linear", "0") != "0":
        raise Unsupported("its leaves hold linear models.")
    leaves = np.array(fields["leaf_value"].split(), dtype=np.float64)
    if len(leaves) == 1:
        none = np.array([-1])
        return Tree(none, none, np.zeros(1), np.zeros(1), np.zeros(1), leaves[:, None], output, np.ones(1))

    def integers(name: str) -> np.ndarray:
        return np.array(fields[name].split(), dtype=np.int64)

    splits, count = len(leaves) - 1, len(leaves)
    kind, threshold = integers("decision_type"), np.array(fields["threshold"].split(), dtype=np.float64)
    column = integers("split_feature")
    # Cells as small as this are read as zero, so no threshold lies among them.
    small = (np.abs(threshold) <= ZERO) & (kind & CATEGORICAL == 0)
    threshold = np.where(small, np.where(threshold < 0, np.nextafter(-ZERO, -np.inf), ZERO), threshold)
    # Where NaN is not missing it counts as zero.
    missing = np.where(
        kind & (NAN_IS_MISSING | ZERO_IS_MISSING), (kind & DEFAULT_LEFT) != 0, threshold >= 0.0
    )
    if (kind & CATEGORICAL).any():
        bounds, words = integers("cat_boundaries"), integers("cat_threshold")
        for at in np.flatnonzero(kind & CATEGORICAL):
            which = int(threshold[at])
            column[at] = categories.column(
                int(column[at]), set_bits(words[bounds[which] : bounds[which + 1]])
            )
            threshold[at], missing[at] = 0.5, False
    # Splits first, then leaves: child -1 - leaf is node splits + leaf.
    left, right = (
        np.concatenate([np.where(side < 0, splits - 1 - side, side), np.full(count, -1)])
        for side in (integers("left_child"), integers("right_child"))
    )

    def padded(array: np.ndarray) -> np.ndarray:
        return np.concatenate([array, np.zeros(count, dtype=array.dtype)])

    value = np.concatenate([np.zeros(splits), leaves])[:, None]
    cover = None
    if "internal_count" in fields and "leaf_count" in fields:
        cover = np.concatenate([integers("internal_count"), integers("leaf_count")])
    return Tree(left, right, padded(column), padded(threshold), padded(missing), value, output, cover)


def set_bits(words: np.ndarray) -> list[int]:
    """Positions of the bits that are set in 32-bit words."""
    return [32 * i + bit for i, word in enumerate(words) for bit in range(32) if int(word) >> bit & 1]
