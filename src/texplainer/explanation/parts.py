"""The parts of an Explanation: diagnostics by name, the effects of categories, the link to its explainer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from texplainer.explanation.explanation import Explanation


class Diagnostics(Mapping[str, Any]):
    """Per-row diagnostics, as a mapping and as attributes: `diagnostics["error"]`, `diagnostics.error`."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._arrays = dict(arrays)

    def __getitem__(self, name: str) -> Any:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._arrays[name]
        except KeyError:
            raise AttributeError(f"no diagnostic {name!r}; there are {', '.join(self._arrays)}") from None

    def __repr__(self) -> str:
        return f"Diagnostics({', '.join(self._arrays)})"


@dataclass(frozen=True)
class CategoryEffects:
    """What each level of one categorical feature would do: f(x with that level) - f(x).

    `effects` is (rows, levels, outputs); `frequencies` (levels,) are those of the background.
    """

    levels: tuple[Any, ...]
    effects: np.ndarray
    frequencies: np.ndarray


@dataclass(frozen=True)
class Live:
    """The link of an Explanation to the explainer that made it.

    `ask(rows, name)` explains rows of the same table, by their positions, in another attribution; `rows` are
    the positions of the Explanation's own. `background()` gives the names of the background's columns and its
    rows, as the user gave them.
    """

    ask: Callable[[np.ndarray, str], Explanation]
    rows: np.ndarray
    background: Callable[[], tuple[tuple[str, ...], Any]] | None = None
