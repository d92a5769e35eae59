"""One pass for all: every explainer on the same rows, the same neighbours, the same masks.

What an explainer does wrong costs its own cells only, with the reason in the result; adding an explainer
changes no other's scores, because nothing random is drawn from a common stream.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.metrics.evaluation import Evaluation
from texplainer.metrics.evidence.common import CommonEvidence, EvaluationSettings, gather
from texplainer.metrics.evidence.explained import ExplainerEvidence
from texplainer.metrics.evidence.perturbations import FLIP, MASKS, NEIGHBOURS
from texplainer.metrics.image_evaluation import evaluate_images
from texplainer.metrics.measuring import CONTROLS, collapsed, gather_scores, measure_all
from texplainer.metrics.table import Metric, choose_metrics
from texplainer.support.messages import EVALUATION_CHECKS, check_arguments
from texplainer.support.progress import track
from texplainer.types import Array

Explainers = Mapping[str, Callable[[Any], Any]] | Sequence[Callable[[Any], Any]]


def evaluate(
    explainers: Explainers,
    X: Any,
    *,
    metrics: Sequence[str] | str = "default",
    k: Sequence[int] | None = None,
    neighbours: int = 10,
    neighbourhood: str = "nearest",
    sigma: float | None = None,
    flip: float = FLIP,
    max_distance: float | str | None = None,
    mask: str = "zero",
    runs: int = 10,
    truth: Any = None,
    groups: Mapping[str, Sequence[int]] | None = None,
    model: Any = None,
    background: Any = None,
    output: Any = None,
    controls: Sequence[str] = tuple(CONTROLS),
    seed: int = 0,
    batch_rows: int = 4096,
    progress: bool | None = None,
) -> Evaluation:
    """Evaluate explainers of the same model side by side.

    Parameters
    ----------
    explainers
        Explainers of tables or of images, other explainers, or functions from a table to values; by name, or a list.
    X
        The rows to evaluate on, or the images.
    metrics
        Names from `METRICS`, a family's name, "default" or "all".
    k
        The numbers of features that PGI and PGU remove; 1, 3, 5, 7, 9, or 1, 2, 3 for fewer than nine features.
    neighbourhood
        How neighbours of a row are drawn: "nearest" (the paper's text) or "first-draws" (its authors' code: the first
        draws of the same class, standard deviation 0.001).
    neighbours
        How many neighbours a row has.
    sigma
        Standard deviation of the noise that makes a neighbour; None takes that of the neighbourhood.
    flip
        Chance that a neighbour has another category.
    max_distance
        The largest Euclidean distance of a neighbour; None for no limit, "paper" for half the
        smallest distance in the background.
    mask
        What removed features become: "zero" (the paper), "mean", "marginal" or "gaussian".
    runs
        Repeated explanations for RES.
    truth
        Known gradients or weights, one row each, for the metrics of the family "truth".
    groups
        One-hot groups by name, as positions of columns; taken from the explainers when not given.
    model, background, output
        The explained model; by default taken from the first explainer that has them.
    controls
        Explainers that do not use the model, shown below the line.
    seed
        Seed of all random draws. The same seed gives bit-identical scores.
    batch_rows
        The largest number of rows per call of an explainer.
    progress
        Whether to show a progress bar; by default on a terminal only.
    """
    check_arguments(locals(), EVALUATION_CHECKS)
    began = time.perf_counter()
    named = _named(explainers)
    _check_names(mask, controls, neighbourhood)
    sigma = NEIGHBOURS[neighbourhood].sigma if sigma is None else sigma
    settings = EvaluationSettings(
        tuple(k or ()), neighbours, sigma, flip, np.inf, mask, runs, seed, batch_rows, neighbourhood
    )
    if any(hasattr(explain, "scenes") for explain in named.values()):
        of_tables = {"groups": groups, "model": model, "background": background, "output": output}
        return evaluate_images(named, X, metrics, settings, truth, controls, progress, of_tables)
    chosen = choose_metrics(metrics)
    common = gather(named, X, settings, model, background, output, groups, max_distance, truth)
    if common.truth is None:
        chosen = _without_truth(chosen, metrics)
    added = {name: CONTROLS[name] for name in controls if name not in named}
    subjects = [ExplainerEvidence(name, one, common, name in added) for name, one in (named | added).items()]
    return _scored(common, subjects, chosen, began, progress)


def _scored(
    common: CommonEvidence,
    subjects: list[ExplainerEvidence],
    chosen: Mapping[str, Metric],
    began: float,
    progress: bool | None,
) -> Evaluation:
    """Measure one explainer after the other."""
    parts: dict[tuple[str, str], Array] = {}
    notes: dict[str, str] = {}
    for own in track(subjects, "evaluating", progress):
        measure_all(own, chosen, parts, notes)
    notes = collapsed(notes, len(subjects))
    return gather_scores(common, subjects, chosen, parts, notes, time.perf_counter() - began)


def _check_names(mask: str, controls: Sequence[str], neighbourhood: str) -> None:
    if neighbourhood not in NEIGHBOURS:
        raise InputError(
            f"neighbourhood={neighbourhood!r} is unknown; expected one of {', '.join(NEIGHBOURS)}."
        )
    if mask not in MASKS:
        raise InputError(f"mask={mask!r} is unknown; expected one of {', '.join(MASKS)}.")
    unknown = [name for name in controls if name not in CONTROLS]
    if unknown:
        raise InputError(f"unknown controls {unknown}; expected some of {', '.join(CONTROLS)}.")


def _named(explainers: Explainers) -> dict[str, Callable[[Any], Any]]:
    """Explainers by name; a list's are named after themselves, repeated names numbered."""
    if isinstance(explainers, Mapping):
        named = {str(name): explain for name, explain in explainers.items()}
    else:
        named = {}
        for explain in explainers if isinstance(explainers, Sequence) else [explainers]:
            own = getattr(explain, "name", None) or getattr(explain, "__name__", type(explain).__name__)
            base = "T-Explainer" if own == "TExplainer" else str(own)
            same = sum(name == base or name.startswith(f"{base} ") for name in named)
            named[f"{base} {same + 1}" if base in named else base] = explain
    wrong = [name for name, explain in named.items() if not callable(explain)]
    if wrong or not named:
        raise InputError(
            f"explainers {wrong or 'missing'}: expected at least one callable. Pass "
            "TExplainers or other explainers, {'ours': TExplainer(model, X), 'SHAP': "
            "tx.explainers.shap(model, X)}."
        )
    return named


def _without_truth(chosen: dict[str, Metric], asked: Sequence[str] | str) -> dict[str, Metric]:
    """Drop the truth metrics when there is no truth; complain if they were asked for by name."""
    named = [asked] if isinstance(asked, str) else list(asked)
    wanted = [
        name for name in named if name == "truth" or (name in chosen and chosen[name].family == "truth")
    ]
    if wanted:
        raise InputError(f"{wanted} need the known gradients or weights; pass truth=..., one row each.")
    return {name: metric for name, metric in chosen.items() if metric.family != "truth"}
