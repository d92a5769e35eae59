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

from texplainer.plots.bar import bar
from texplainer.plots.waterfall import waterfall

__all__ = ["bar", "waterfall"]
