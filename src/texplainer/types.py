"""The callables everything is made of.

Arrays are float64 unless said otherwise; shapes are written as (rows, features) and
(rows, features, outputs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from texplainer.explanation.explanation import Explanation

Array = NDArray[np.float64]
#: any table -> Explanation
Explain = Callable[[Any], "Explanation"]
