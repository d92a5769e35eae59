"""The table of metrics: what each needs, which way is better, its convention and its reference.

To add a metric: write a function of arrays that returns scores per row (or a dict of parts) in scores/, and
one line here. The line wraps it in the function of measures.py that selects its arguments. If libraries define a
metric differently, each definition has its own line.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from texplainer.errors import InputError
from texplainer.metrics import measures
from texplainer.metrics.measures import Measure
from texplainer.metrics.scores import accuracy, complexity, faithfulness, locality, stability
from texplainer.types import Array

Better = Literal["low", "high"]


@dataclass(frozen=True)
class Metric:
    """One line of the table.

    A part named after a statistic ("max", "mean", "median", "p95") is aggregated over rows by it; the others
    by the mean.
    """

    label: str
    measure: Measure
    better: Better
    family: Literal["stability", "faithfulness", "accuracy", "complexity", "truth", "printed", "locality"]
    convention: str
    reference: str
    lower_parts: tuple[str, ...] = ()  # parts for which low is better although the metric's own is high


ROW_STATISTICS: dict[str, Callable[[Array], Any]] = {
    "max": np.max,
    "mean": np.mean,
    "median": np.median,
    "p95": lambda scores: np.quantile(scores, 0.95),
}


RADII = (0.75, 0.25)  # of locality, in SDs
_RIS, _ROS = stability.relative_input_stability, stability.relative_output_stability
_PGI = faithfulness.prediction_gap_important
_PGU = faithfulness.prediction_gap_unimportant
_AGARWAL = "Agarwal et al. 2022, arXiv 2203.06877"
_ALVAREZ = "Alvarez-Melis and Jaakkola 2018, arXiv 1806.08049"
_BHATT = "Bhatt et al. 2020, arXiv 2005.00631"
_DAI = "Dai et al. 2022, arXiv 2205.07277"
_NGUYEN = "Nguyen and Martinez 2020, arXiv 2007.07584"
_PETSIUK = "Petsiuk et al. 2018, arXiv 1806.07421"
_YEH = "Yeh et al. 2019, arXiv 1901.09392"

# fmt: off
METRICS: dict[str, Metric] = {
    # name: Metric(label, measure, better, family, convention, reference)
    "ris": Metric("RIS", measures.of_inputs(_RIS), "low", "stability", "element-wise, double-sided clipping",
                  _AGARWAL),
    "ros": Metric("ROS", measures.of_outputs(_ROS), "low", "stability", "element-wise, probabilities",
                  _AGARWAL),
    "rrs": Metric("RRS", measures.of_hidden(_RIS), "low", "stability",
                  "element-wise, last hidden layer", _AGARWAL),
    "res": Metric("RES", measures.of_repeats(stability.run_stability), "low", "stability",
                  "largest distance to the mean run; standard deviation", "the paper, Eq. 9"),
    "ris_openxai": Metric("RIS (OpenXAI)", measures.of_inputs(partial(_RIS, convention="openxai")), "low",
                          "stability", "ratio of vector norms", _AGARWAL),
    "ros_openxai": Metric("ROS (OpenXAI)", measures.of_margins(partial(_ROS, convention="openxai")), "low",
                          "stability", "ratio of vector norms, margins", _AGARWAL),
    "ris_skipped": Metric("RIS (zeros skipped)",
                          measures.of_inputs(partial(_RIS, convention="zeros-skipped")), "low", "stability",
                          "element-wise, exact zeros take no part", _AGARWAL),
    "ros_skipped": Metric("ROS (zeros skipped)",
                          measures.of_outputs(partial(_ROS, convention="zeros-skipped")), "low", "stability",
                          "element-wise, exact zeros take no part", _AGARWAL),
    "ris_quantus": Metric("RIS (Quantus)", measures.of_inputs(partial(_RIS, convention="quantus")), "low",
                          "stability", "element-wise, exact zeros lifted", _AGARWAL),
    "ros_quantus": Metric("ROS (Quantus)", measures.of_margins(partial(_ROS, convention="quantus")), "low",
                          "stability", "element-wise over the plain distance of margins", _AGARWAL),
    "ris_norm": Metric("RIS*", measures.of_scaled_inputs(stability.normwise_stability), "low", "stability",
                       "vector norm over root-mean-square step in SDs, worst neighbour", "texplainer"),
    "ros_norm": Metric("ROS*", measures.of_scaled_outputs(stability.normwise_stability), "low", "stability",
                       "vector norm over root-mean-square step of outputs, worst neighbour", "texplainer"),
    "lipschitz": Metric("Lipschitz", measures.of_inputs(stability.local_lipschitz), "low", "stability",
                        "largest ratio of Euclidean distances", _ALVAREZ),
    "sensitivity": Metric("Sensitivity", measures.of_neighbours(stability.max_sensitivity), "low",
                          "stability", "relative to the explanation's norm (Captum)", _YEH),
    "cai": Metric("CAI", measures.of_classmates(stability.class_agreement), "high", "stability",
                  "mean cosine to the 5 nearest rows of the class", "texplainer"),
    "background": Metric("Background", measures.of_backgrounds(stability.background_stability), "low",
                         "stability", "relative change between two samples of the background, and under "
                         "noise of 1e-12 SDs", "texplainer"),
    "seed": Metric("Seed", measures.of_seeds(stability.relative_change), "low", "stability",
                   "relative change with another seed; 0 where nothing is drawn", "texplainer"),
    "misplaced": Metric("Misplaced mass", measures.of_local_effects(locality.misplaced_mass, RADII), "low",
                        "locality", "fraction of |e| on features without an effect within r SDs",
                        "texplainer"),
    "local_rank": Metric("Local effects", measures.of_local_effects(locality.effect_correlation, RADII),
                         "high", "locality", "rank correlation with measured effects within r SDs",
                         "texplainer"),
    "pgi": Metric("PGI", measures.of_gaps(_PGI), "high", "faithfulness",
                  "top k by |e| removed, the run's mask", _DAI),
    "pgu": Metric("PGU", measures.of_gaps(_PGU), "low", "faithfulness",
                  "bottom k by |e| removed, the run's mask", _DAI),
    "pgi_mean": Metric("PGI (mean)", measures.of_gaps(_PGI, "mean"), "high", "faithfulness",
                       "removed to the mean", _DAI),
    "pgi_marginal": Metric("PGI (marginal)", measures.of_gaps(_PGI, "marginal"), "high", "faithfulness",
                           "removed to marginal quantiles", _DAI),
    "pgi_openxai": Metric("PGI (OpenXAI)", measures.of_gaps(faithfulness.prediction_gap_area, "gaussian"),
                          "high", "faithfulness", "Gaussian noise on the top k, area over k", _DAI),
    "pgu_openxai": Metric("PGU (OpenXAI)", measures.of_gaps(faithfulness.prediction_gap_complement,
                                                            "gaussian"), "low", "faithfulness",
                          "Gaussian noise on all but the top k, area over k", _DAI),
    "pgi_kept": Metric("PGI (kept)", measures.of_gaps(faithfulness.prediction_gap_kept), "high", "printed",
                       "1 - gap, only the top k by signed value kept: to compare with the paper's tables, "
                       "not a measure of faithfulness", "the paper's tables"),
    "deletion": Metric("Deletion", measures.of_removal_order(faithfulness.deletion), "low", "faithfulness",
                       "signed order, predicted class's output", _PETSIUK),
    "insertion": Metric("Insertion", measures.of_removal_order(faithfulness.insertion), "high",
                        "faithfulness", "signed order, predicted class's output", _PETSIUK),
    "faithfulness_correlation": Metric("Faith. corr.",
                                       measures.of_subsets(faithfulness.faithfulness_correlation), "high",
                                       "faithfulness", "Pearson over random subsets of features", _BHATT),
    "monotonicity": Metric("Monotonicity", measures.of_single_removals(faithfulness.monotonicity), "high",
                           "faithfulness", "rank correlation of |e| with single-feature effects", _NGUYEN),
    "infidelity": Metric("Infidelity", measures.of_small_steps(faithfulness.infidelity), "low",
                         "faithfulness", "small Gaussian steps, the values shown, normalised: zeros score 1",
                         _YEH),
    "infidelity_surrogate": Metric("Infidelity (local model)",
                                   measures.of_surrogate_steps(faithfulness.infidelity), "low",
                                   "faithfulness",
                                   "small steps, the local model beside the values, normalised", _YEH),
    "infidelity_scale_free": Metric("Infidelity (dir.)",
                                    measures.of_small_steps(partial(faithfulness.infidelity,
                                                                    convention="scale-free")),
                                    "low", "faithfulness", "small steps, e times its best factor, normalised",
                                    _YEH),
    "infidelity_background": Metric("Infidelity (bg)", measures.of_reference_steps(faithfulness.infidelity),
                                    "low", "faithfulness", "steps to background rows, normalised", _YEH),
    "lap": Metric("LAP", measures.of_sums(accuracy.local_accuracy), "high", "accuracy",
                  "share of rows within tol; the residual", "Lundberg and Lee 2017",
                  lower_parts=("median", "p95")),
    "complexity": Metric("Complexity", measures.of_values(complexity.complexity), "low", "complexity",
                         "entropy of |e| / sum |e|, nats", _BHATT),
    "sparseness": Metric("Sparseness", measures.of_values(complexity.sparseness), "high", "complexity",
                         "Gini index", "Chalasani et al. 2020, arXiv 1810.06583"),
    "effective_complexity": Metric("Eff. complexity", measures.of_values(complexity.effective_complexity),
                                   "low", "complexity", "features above 1% of the largest", _NGUYEN),
    "truth_error": Metric("Truth error", measures.of_truth(accuracy.truth_error), "low", "truth",
                          "relative error to the known truth", "texplainer"),
    "truth_mass": Metric("Truth mass", measures.of_truth(accuracy.truth_mass), "low", "truth",
                         "fraction of |e| on features without a true effect", "texplainer"),
    "truth_cosine": Metric("Truth cosine", measures.of_truth(accuracy.truth_cosine), "high", "truth",
                           "cosine to the known truth", "texplainer"),
}
# fmt: on

#: The paper's tables, and the columns beside which their stability must be read.
DEFAULT = ("ris", "ros", "res", "pgi", "pgu", "infidelity", "lap", "complexity")


def choose_metrics(names: Sequence[str] | str) -> dict[str, Metric]:
    """Return metrics by name, family, "default" or "all"."""
    names = [names] if isinstance(names, str) else list(names)
    families = {metric.family for metric in METRICS.values()}
    chosen: dict[str, Metric] = {}
    for name in names:
        key = str(name).lower()
        if key in METRICS:
            chosen[key] = METRICS[key]
        elif key == "default":
            chosen |= {one: METRICS[one] for one in DEFAULT}
        elif key == "all" or key in families:
            chosen |= {one: metric for one, metric in METRICS.items() if key in ("all", metric.family)}
        else:
            close = difflib.get_close_matches(key, [*METRICS, *families, "all", "default"], 1, cutoff=0.3)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(METRICS)}."
            raise InputError(f"unknown metric {name!r}; {hint} See texplainer.metrics.METRICS.")
    if not chosen:
        raise InputError("metrics is empty; pass at least one name, or 'default'.")
    return chosen
