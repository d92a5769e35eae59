"""What an engine is: a function from rows to gradients, with what it can do besides.

Every engine is one module with `build(predictor, background, settings) -> Engine`. It raises `Unsupported`
with a plain reason when it does not fit the model. `choose` lists the engines and picks one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from texplainer.background.summary import DiscreteColumns
from texplainer.limits import BATCH_ROWS
from texplainer.types import Array

#: bits of the flags; STEP: every difference was 0 though the model is not constant: a step function
SMOOTH, KINK, JUMP, NOISY, STEP = 0, 1, 2, 4, 8
MOVE = 0.05  # in SDs: a row measured a little differently
BANDWIDTH = 0.25  # in SDs: the default neighbourhood of slopes
#: Points given to an engine at a time, where many belong to one row: 64 in an average. Blocks
#: of rows and of points are whole parts of it, so that none is filled up in vain, up to 500 columns.
BATCH = 4032


@dataclass(frozen=True)
class Gradient:
    """A gradient with its error and its cost.

    Attributes
    ----------
    values
        (rows, features, outputs), the partial derivatives.
    error
        Same shape: bound on the absolute error.
    step
        (rows, features), the displacement h that was used; NaN where the derivative is exact.
    flags
        (rows, features), bit mask of KINK, JUMP, NOISY and STEP.
    evaluations
        (rows,), model evaluations spent on each row.
    extras
        Further arrays, rows first (Algorithm 1's trace).
    change
        (rows, outputs), how much the gradient times the features' SDs would change (the expected
        Euclidean norm) had the row been measured a little differently: moved by `MOVE` SDs times a
        standard normal number in every numeric feature. NaN, or None altogether, where unknown.
    """

    values: Array
    error: np.ndarray  # float32 will do
    step: Array
    flags: np.ndarray
    evaluations: np.ndarray
    extras: dict[str, np.ndarray] = field(default_factory=dict)
    change: Array | None = None


class ExactShapley(Protocol):
    """The exact Shapley values of a tree model."""

    def __call__(self, rows: Array) -> Array:
        """Values against the background, (rows, features, outputs)."""
        ...

    def path_values(self, rows: Array) -> Array:
        """Path-dependent values, of the same shape; raises `Unsupported` where the trees hold no covers."""
        ...

    def pairs(self, rows: Array, path: bool = False) -> Array:
        """Interaction values of either kind, (rows, features, features, outputs)."""
        ...

    def together(self) -> np.ndarray:
        """Which pairs of features may interact, (features, features)."""
        ...

    def path_base(self) -> Array:
        """What path-dependent values and this sum to the prediction, (outputs,)."""
        ...


@dataclass(frozen=True)
class Engine:
    """A gradient function with its name and the reason it was chosen.

    `how` says how it finds slopes. `why` is "asked for", or why the exact engines do not fit the model; "" for an exact
    engine that was chosen.

    `point` is the engine before its gradient was averaged over a neighbourhood, None where nothing was
    averaged; `at_point` is the one to ask for the derivative at the row itself in either case.
    """

    name: str
    how: str
    gradient: Callable[[Any], Gradient]
    exact: bool = True
    averages: bool = False  # whether its gradient is an average over the neighbourhood already
    width: float = 0.0  # of the neighbourhood it averages over, in units of each feature's SD
    linear: bool = False  # whether its gradient is the same everywhere
    narrow: bool = False  # whether it takes float32 rows, at half the time: good enough for an average
    point: Engine | None = None
    owner: np.ndarray | None = (
        None  # of trees behind transformers: the column each of their inputs is made from
    )
    #: () -> the exact Shapley values, prepared at the first call; raises `Unsupported` with the reason where
    #: the model does not allow it; None without trees
    shapley: Callable[[], ExactShapley] | None = None
    #: rows, row and column of some of their cells, values (values, features) of the columns -> exactly what
    #: f gains with each value in the cell, (cells, values, outputs); None where the model itself must tell
    replaced: Callable[[Array, np.ndarray, np.ndarray, Array], Array] | None = None
    why: str = ""

    @property
    def at_point(self) -> Engine:
        """The engine of the derivative at the row itself."""
        return self.point or self


@dataclass(frozen=True)
class Settings:
    """What the engines need to know from the user.

    `discrete` are columns of the table the engine sees; they stay where they are in an average.
    """

    step: Any = "auto"
    bandwidth: float = (
        BANDWIDTH  # standard deviation of the kernel slopes are averaged over, in SDs; 0: the point
    )
    bounds: tuple[Array, Array] | None = None
    batch_rows: int = BATCH_ROWS
    discrete: DiscreteColumns = field(default_factory=DiscreteColumns)
    max_evals: int | None = None  # model evaluations a row's slopes may cost, where they are a choice
    average: bool = True  # whether slopes over a neighbourhood are shown, or the derivative at the row
