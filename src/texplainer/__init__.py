"""Shapley values and local slopes of any tabular model's predictions, with error bounds."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names for editors and type checkers
    from texplainer import datasets, explainers, metrics, plots
    from texplainer.categories.refit import Refitted
    from texplainer.execution import run
    from texplainer.explainer import TExplainer
    from texplainer.explanation.explanation import Explanation
    from texplainer.images.image_explainer import ImageExplainer
    from texplainer.metrics import Evaluation, evaluate

__version__ = "0.1.0"
__all__ = [
    "Evaluation",
    "Explanation",
    "ImageExplainer",
    "Refitted",
    "TExplainer",
    "datasets",
    "evaluate",
    "explainers",
    "metrics",
    "plots",
    "run",
]

#: public name -> where it lives
PUBLIC = {
    "Evaluation": "texplainer.metrics:Evaluation",
    "Explanation": "texplainer.explanation.explanation:Explanation",
    "ImageExplainer": "texplainer.images.image_explainer:ImageExplainer",
    "Refitted": "texplainer.categories.refit:Refitted",
    "TExplainer": "texplainer.explainer:TExplainer",
    "datasets": "texplainer.datasets",
    "evaluate": "texplainer.metrics:evaluate",
    "metrics": "texplainer.metrics",
    "plots": "texplainer.plots",
    "explainers": "texplainer.explainers",
    "run": "texplainer.execution:run",
}


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used: `texplainer --help` needs none of them."""
    if name not in PUBLIC:
        from texplainer.support.messages import no_attribute

        raise no_attribute("module 'texplainer'", name)
    module, _, attribute = PUBLIC[name].partition(":")
    loaded = import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def __dir__() -> list[str]:
    """The public names, before and after they were first used."""
    return sorted([*__all__, "__version__"])
