"""Agreement: how far explainers name the same features, as a table of colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from texplainer.errors import InputError
from texplainer.explanation.explanation import Explanation
from texplainer.plots import selection, style
from texplainer.plots.selection import checked


@checked
def agreement(
    subject: Any, measure: str = "feature", *, k: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the mean agreement of every pair of explainers over the same rows.

    Parameters
    ----------
    subject
        An Evaluation, or explanations of the same rows by explainer's name.
    measure
        "feature", "rank", "sign", "signed_rank" (fraction of the top k), "spearman" or "kendall".
    k
        Number of top features; by default at most 5 and at most half of the features.
    ax
        Where to draw; fresh axes by default.
    """
    first = next(iter(subject.values())) if isinstance(subject, Mapping) else subject
    width = len(first.feature_names)
    k = min(k, width) if k else min(5, max(1, width // 2))  # on all features everybody agrees
    if isinstance(subject, Mapping):
        names, table = list(subject), pairwise(subject, measure, k)
    else:
        names = list(subject.explainers)
        table = subject.agreement(measure, k)
    size = 1.6 + 0.55 * len(names)
    ax = style.canvas(ax, width=size + 1.4, height=size)
    low = -1.0 if measure in ("spearman", "kendall") else 0.0
    image = ax.imshow(table, cmap="cividis", vmin=low, vmax=1.0)
    for i in range(len(names)):
        for j in range(len(names)):
            dark = (table[i, j] - low) / (1 - low) < 0.55
            ax.text(
                j, i, _two_digits(table[i, j]), ha="center", va="center", fontsize=style.SIZE,
                color="white" if dark else style.INK,
            )  # fmt: skip
    short = [style.shorten(name, 18) for name in names]
    ax.set_xticks(range(len(names)), short, rotation=35, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(names)), short)
    style.literal([*ax.get_xticklabels(), *ax.get_yticklabels()])
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    image.set_gid("agreement")
    top = "" if measure in ("spearman", "kendall") else f" of the top {k}"
    style.heading(ax, f"{measure} agreement{top}")
    return ax


def pairwise(subject: Mapping[str, Explanation], measure: str, k: int) -> np.ndarray:
    """Mean agreement over rows of every pair, (explainers, explainers)."""
    from texplainer.metrics.scores.agreement import AGREEMENTS

    if measure not in AGREEMENTS:
        raise InputError(f"measure={measure!r} is unknown; expected one of {', '.join(AGREEMENTS)}.")
    values = [selection.one_output(e).arrays["values"][:, :, 0] for e in subject.values()]
    if len({v.shape for v in values}) != 1:
        shapes = ", ".join(f"{name} {v.shape}" for name, v in zip(subject, values, strict=True))
        raise InputError(f"the explanations differ in shape ({shapes}); explain the same rows with each.")
    kept = np.all([np.isfinite(v).all(axis=1) for v in values], axis=0)
    values = [v[kept] for v in values]
    ties = np.random.default_rng(0).random(values[0].shape)  # a fair guess, the same for all
    agree = AGREEMENTS[measure]
    k = min(k, values[0].shape[1])
    return np.array([[np.nanmean(agree(a, b, ties, k)) for b in values] for a in values])


def _two_digits(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
