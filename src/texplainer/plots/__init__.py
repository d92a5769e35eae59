"""Pictures of explanations and evaluations, drawn with matplotlib.

Each function takes what it draws and `ax`, and returns the Axes; it is shown only with `show=True`. To add a plot:
one file and one line in `PLOTS`, by which it is found when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from texplainer.support.messages import no_attribute

if TYPE_CHECKING:  # the same names for editors and type checkers
    from texplainer.plots.evaluations.agreement import agreement as agreement
    from texplainer.plots.evaluations.stability_boxplot import stability_boxplot as stability_boxplot
    from texplainer.plots.evaluations.stability_faithfulness import (
        stability_faithfulness as stability_faithfulness,
    )
    from texplainer.plots.evaluations.timing import timing as timing
    from texplainer.plots.explanations.bar import bar as bar
    from texplainer.plots.explanations.beeswarm import beeswarm as beeswarm
    from texplainer.plots.explanations.category_effects import category_effects as category_effects
    from texplainer.plots.explanations.decision import decision as decision
    from texplainer.plots.explanations.dependence import dependence as dependence
    from texplainer.plots.explanations.force import force as force
    from texplainer.plots.explanations.heatmap import heatmap as heatmap
    from texplainer.plots.explanations.ice import ice as ice
    from texplainer.plots.explanations.image import image as image
    from texplainer.plots.explanations.interactions import interactions as interactions
    from texplainer.plots.explanations.scatter import scatter as scatter
    from texplainer.plots.explanations.step_trace import step_trace as step_trace
    from texplainer.plots.explanations.waterfall import waterfall as waterfall

#: name -> the module that holds the function of this name
PLOTS = {
    "agreement": "texplainer.plots.evaluations.agreement",
    "bar": "texplainer.plots.explanations.bar",
    "beeswarm": "texplainer.plots.explanations.beeswarm",
    "category_effects": "texplainer.plots.explanations.category_effects",
    "decision": "texplainer.plots.explanations.decision",
    "dependence": "texplainer.plots.explanations.dependence",
    "force": "texplainer.plots.explanations.force",
    "heatmap": "texplainer.plots.explanations.heatmap",
    "ice": "texplainer.plots.explanations.ice",
    "image": "texplainer.plots.explanations.image",
    "interactions": "texplainer.plots.explanations.interactions",
    "scatter": "texplainer.plots.explanations.scatter",
    "stability_boxplot": "texplainer.plots.evaluations.stability_boxplot",
    "stability_faithfulness": "texplainer.plots.evaluations.stability_faithfulness",
    "step_trace": "texplainer.plots.explanations.step_trace",
    "timing": "texplainer.plots.evaluations.timing",
    "waterfall": "texplainer.plots.explanations.waterfall",
}

__all__ = [*PLOTS]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Import a plot, and with it matplotlib, when it is first asked for."""
    if name not in PLOTS:
        raise no_attribute("module 'texplainer.plots'", name)
    try:
        return getattr(import_module(PLOTS[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "matplotlib":
            raise
        raise ImportError(
            "plots need matplotlib, which is not installed. Install it with: pip install 'texplainer[plot]'"
        ) from error


def __dir__() -> list[str]:
    """The plots, and what a module has anyway."""
    return sorted({*globals(), *PLOTS})
