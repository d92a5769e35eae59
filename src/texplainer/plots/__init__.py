"""Pictures of explanations and evaluations, drawn with matplotlib.

Each function takes what it draws and `ax`, and returns the Axes; none calls `show`. To add a plot:
one file, one export.
"""

try:
    import matplotlib as _matplotlib  # noqa: F401  # an extra: say so at once, not at the first bar
except ModuleNotFoundError as _error:
    raise ImportError(
        "plots need matplotlib, which is not installed. Install it with: pip install 'texplainer[plot]'"
    ) from _error

from texplainer.plots.agreement import agreement
from texplainer.plots.bar import bar
from texplainer.plots.beeswarm import beeswarm
from texplainer.plots.category_effects import category_effects
from texplainer.plots.decision import decision
from texplainer.plots.force import force
from texplainer.plots.heatmap import heatmap
from texplainer.plots.scatter import scatter
from texplainer.plots.stability_boxplot import stability_boxplot
from texplainer.plots.stability_faithfulness import stability_faithfulness
from texplainer.plots.step_trace import step_trace
from texplainer.plots.timing import timing
from texplainer.plots.waterfall import waterfall

__all__ = [
    "agreement",
    "bar",
    "beeswarm",
    "category_effects",
    "decision",
    "force",
    "heatmap",
    "scatter",
    "stability_boxplot",
    "stability_faithfulness",
    "step_trace",
    "timing",
    "waterfall",
]
