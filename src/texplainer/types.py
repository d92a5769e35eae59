"""The callables everything is made of.

Arrays are float64 unless said otherwise; shapes are written as (rows, features) and
(rows, features, outputs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from texplainer.explanation import Explanation

Array = NDArray[np.float64]
#: (rows, features) -> (rows, outputs)
Predict = Callable[[Array], Array]
#: any table -> Explanation
Explain = Callable[[Any], "Explanation"]

T = TypeVar("T")
R = TypeVar("R")
#: map(function, tasks), in order: serial, in processes or on a cluster
Mapper = Callable[[Callable[[T], R], Iterable[T]], Iterable[R]]
