"""Deterministic, Taylor-based explanations of any tabular model's predictions, with error bars."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from texplainer import datasets, plots, rivals
    from texplainer.execution import run
    from texplainer.explainer import TExplainer
    from texplainer.explanation import Explanation
    from texplainer.metrics import Evaluation, evaluate

__version__ = "0.1.0"
__all__ = ["Evaluation", "Explanation", "TExplainer", "datasets", "evaluate", "plots", "rivals", "run"]

_LAZY = {
    "TExplainer": "texplainer.explainer:TExplainer",
    "Explanation": "texplainer.explanation:Explanation",
    "datasets": "texplainer.datasets",
    "plots": "texplainer.plots",
    "rivals": "texplainer.rivals",
    "run": "texplainer.execution:run",
    "evaluate": "texplainer.metrics:evaluate",
    "Evaluation": "texplainer.metrics:Evaluation",
}


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used: `texplainer --help` needs none of them."""
    if name not in _LAZY:
        raise AttributeError(f"module 'texplainer' has no attribute {name!r}")
    module, _, attribute = _LAZY[name].partition(":")
    loaded = import_module(module)
    return getattr(loaded, attribute) if attribute else loaded
