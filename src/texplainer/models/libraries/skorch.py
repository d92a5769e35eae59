"""skorch: torch networks with the methods of scikit-learn; they take float32 alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from texplainer.models.libraries.library import Library, Outlet
from texplainer.models.libraries.sklearn import estimator
from texplainer.tables.schema import Schema


def _outlet(model: Any, schema: Schema) -> Outlet:
    outlet = estimator(model, schema)
    narrow = replace(outlet.schema or schema, kind="array", narrow_floats=True)
    return replace(outlet, schema=narrow, dtype=np.float32)


LIBRARY = Library("skorch", _outlet)
