"""skorch: torch networks with the interface of scikit-learn; they accept float32 only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from texplainer.models.libraries import Library, ModelAdapter
from texplainer.models.libraries.sklearn import estimator
from texplainer.tables.schema import Schema


def _outlet(model: Any, schema: Schema) -> ModelAdapter:
    adapter = estimator(model, schema)
    narrow = replace(adapter.schema or schema, kind="array", narrow_floats=True)
    return replace(adapter, schema=narrow, dtype=np.float32)


LIBRARY = Library("skorch", _outlet)
