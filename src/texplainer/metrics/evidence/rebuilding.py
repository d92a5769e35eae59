"""The same explainer on another background, or with another seed.

Another explainer knows how it was built (`rebuilt`); a TExplainer keeps its `arguments`. An explainer of your
own takes part by a method `rebuilt(background=..., seed=...)` of which it may use what it knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texplainer.errors import Unsupported
from texplainer.metrics.evidence.features import Features
from texplainer.types import Array

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
    """Rows of the background with the levels of categories that a sample of it has not."""
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
