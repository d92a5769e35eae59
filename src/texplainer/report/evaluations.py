"""An Evaluation as the plain content of a page."""

from __future__ import annotations

from typing import Any


def payload(evaluation: Any) -> dict[str, Any]:
    """Everything the page shows of an evaluation."""
    raise NotImplementedError(type(evaluation).__name__)
