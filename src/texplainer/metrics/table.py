"""The table of metrics: what each needs, which way is better, its convention and its reference.

To add a metric: write a function of arrays that returns scores per row (or a dict of parts) in scores/, and
one line here. The line wraps it in the function below that selects its arguments from the evidence of one explainer.
Evidence (evidence/) is computed when it is first used; arrays that no chosen metric uses are not computed. If
libraries define a metric differently, each definition has its own line.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from texplainer.errors import InputError
from texplainer.metrics.evidence.common import CommonEvidence
from texplainer.metrics.evidence.explained import ExplainerEvidence
from texplainer.metrics.evidence.perturbations import comparable
from texplainer.metrics.scores import accuracy, complexity, faithfulness, stability
from texplainer.types import Array

Score = Callable[..., Array | dict[str, Array]]
#: the evidence of one explainer -> scores per row, or a dict of parts
Measure = Callable[[ExplainerEvidence], Array | dict[str, Array]]
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


def of_values(score: Score) -> Measure:
    """Needs the attributions alone."""
    return lambda seen: score(seen.values)


def of_neighbours(score: Score) -> Measure:
    """Needs the attributions of the rows and of their neighbours."""
    return lambda seen: score(seen.values, seen.near_values, seen.near_valid)


def of_inputs(score: Score) -> Measure:
    """Needs the attributions and the inputs of the rows and of their neighbours."""
    return _of_both(score, lambda common: (comparable(common.rows), comparable(common.near_rows)))


def of_outputs(score: Score) -> Measure:
    """Needs the attributions and outputs of the rows and of their neighbours, probabilities if there are any."""
    return _of_both(score, lambda common: (common.outputs, common.near_outputs))


def of_log_odds(score: Score) -> Measure:
    """Needs the attributions and outputs of the rows and of their neighbours; log-odds for classifiers."""
    return _of_both(score, lambda common: (common.log_odds, common.near_log_odds))


def of_hidden(score: Score) -> Measure:
    """Needs a network's last hidden layer at the rows and their neighbours."""
    return _of_both(score, lambda common: (common.hidden, common.near_hidden))


def _of_both(score: Score, pair: Callable[[CommonEvidence], tuple[Array, Array]]) -> Measure:
    """Needs the attributions and a pair of arrays: of the rows, and of their neighbours."""
    return lambda seen: score(seen.values, seen.near_values, *pair(seen.common), seen.near_valid)


def of_scaled_inputs(score: Score) -> Measure:
    """Needs rows and neighbours, and the columns' SD."""
    return lambda seen: of_inputs(partial(score, sd=seen.common.sd))(seen)


def of_scaled_outputs(score: Score) -> Measure:
    """Needs outputs at rows and neighbours, and the outputs' SD."""
    return lambda seen: of_outputs(partial(score, sd=seen.common.outputs_sd))(seen)


def of_repeats(score: Score) -> Measure:
    """Needs the same rows explained repeatedly."""
    return lambda seen: score(seen.repeats)


def of_classmates(score: Score) -> Measure:
    """Needs the predicted classes of the rows."""
    return lambda seen: score(seen.values, seen.common.rows, seen.common.labels, seen.common.sd)


def of_gaps(score: Score, mask: str = "") -> Measure:
    """Needs the model and the values that replace removed features: those of `mask`, or of the run."""

    def measure(seen: ExplainerEvidence) -> Any:
        common = seen.common
        return score(
            values=seen.values, rows=common.rows, prediction=common.prediction, predict=common.predict,
            fills=common.fills(mask), owner=common.features.owner, ties=common.ties, k=common.settings.k,
        )  # fmt: skip

    return measure


def of_removal_order(score: Score) -> Measure:
    """Needs the model, the run's mask, and the direction of the predicted class."""

    def measure(seen: ExplainerEvidence) -> Any:
        common = seen.common
        return score(
            values=seen.values, rows=common.rows, predict=common.predict, fills=common.fills(),
            owner=common.features.owner, ties=common.ties, direction=common.direction, top=common.top,
        )  # fmt: skip

    return measure


def of_subsets(score: Score) -> Measure:
    """Needs the model, the run's mask and random subsets of features."""
    return lambda seen: of_single_removals(partial(score, subsets=seen.common.subsets))(seen)


def of_single_removals(score: Score) -> Measure:
    """Needs the model and the run's mask."""

    def measure(seen: ExplainerEvidence) -> Any:
        common = seen.common
        return score(
            values=seen.values, rows=common.rows, prediction=common.prediction, predict=common.predict,
            fills=common.fills(), owner=common.features.owner,
        )  # fmt: skip

    return measure


def of_small_steps(score: Score) -> Measure:
    """Needs the changes predicted by the values for small steps, and the actual changes."""
    return lambda seen: score(seen.expected_small, seen.response_small)


def of_surrogate_steps(score: Score) -> Measure:
    """Needs the changes predicted by the local model for small steps, and the actual changes."""
    return lambda seen: score(seen.expected_surrogate, seen.response_small)


def of_reference_steps(score: Score) -> Measure:
    """Needs the changes predicted by the values for steps to background rows, and the actual changes."""
    return lambda seen: score(seen.expected_references, seen.response_references)


def of_local_effects(score: Score, radii: Sequence[float]) -> Measure:
    """Needs the effects of the features near the rows, within each radius (in SDs)."""
    return lambda seen: {f"{r:g}": np.asarray(score(seen.values, seen.local_effects(r))) for r in radii}


def of_backgrounds(score: Score) -> Measure:
    """Needs the rows explained by the same explainer on other backgrounds."""
    return lambda seen: score(*seen.on_other_backgrounds)


def of_seeds(score: Score) -> Measure:
    """Needs the rows explained by the same explainer with another seed."""
    return lambda seen: score(seen.values, seen.with_another_seed)


def of_sums(score: Score) -> Measure:
    """Needs the explained function at the rows and over the background, and contributions."""
    return lambda seen: score(seen.own_predictions, seen.base, seen.contributions)


def of_truth(score: Score) -> Measure:
    """Needs the known gradients or weights."""
    return lambda seen: score(seen.values, seen.common.truth)


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
    "ris": Metric("RIS", of_inputs(_RIS), "low", "stability", "element-wise, double-sided clipping",
                  _AGARWAL),
    "ros": Metric("ROS", of_outputs(_ROS), "low", "stability", "element-wise, probabilities",
                  _AGARWAL),
    "rrs": Metric("RRS", of_hidden(_RIS), "low", "stability",
                  "element-wise, last hidden layer", _AGARWAL),
    "res": Metric("RES", of_repeats(stability.run_stability), "low", "stability",
                  "largest distance to the mean run; standard deviation", "the paper, Eq. 9"),
    "ris_openxai": Metric("RIS (OpenXAI)", of_inputs(partial(_RIS, convention="openxai")), "low",
                          "stability", "ratio of vector norms", _AGARWAL),
    "ros_openxai": Metric("ROS (OpenXAI)", of_log_odds(partial(_ROS, convention="openxai")), "low",
                          "stability", "ratio of vector norms, log-odds", _AGARWAL),
    "ris_skipped": Metric("RIS (zeros skipped)",
                          of_inputs(partial(_RIS, convention="zeros-skipped")), "low", "stability",
                          "element-wise, exact zeros take no part", _AGARWAL),
    "ros_skipped": Metric("ROS (zeros skipped)",
                          of_outputs(partial(_ROS, convention="zeros-skipped")), "low", "stability",
                          "element-wise, exact zeros take no part", _AGARWAL),
    "ris_quantus": Metric("RIS (Quantus)", of_inputs(partial(_RIS, convention="quantus")), "low",
                          "stability", "element-wise, exact zeros lifted", _AGARWAL),
    "ros_quantus": Metric("ROS (Quantus)", of_log_odds(partial(_ROS, convention="quantus")), "low",
                          "stability", "element-wise over the plain distance of log-odds", _AGARWAL),
    "ris_norm": Metric("RIS*", of_scaled_inputs(stability.normwise_stability), "low", "stability",
                       "vector norm over root-mean-square step in SDs, worst neighbour", "texplainer"),
    "ros_norm": Metric("ROS*", of_scaled_outputs(stability.normwise_stability), "low", "stability",
                       "vector norm over root-mean-square step of outputs, worst neighbour", "texplainer"),
    "lipschitz": Metric("Lipschitz", of_inputs(stability.local_lipschitz), "low", "stability",
                        "largest ratio of Euclidean distances", _ALVAREZ),
    "sensitivity": Metric("Sensitivity", of_neighbours(stability.max_sensitivity), "low",
                          "stability", "relative to the explanation's norm (Captum)", _YEH),
    "cai": Metric("CAI", of_classmates(stability.class_agreement), "high", "stability",
                  "mean cosine to the 5 nearest rows of the class", "texplainer"),
    "background": Metric("Background", of_backgrounds(stability.background_stability), "low",
                         "stability", "relative change between two samples of the background, and under "
                         "noise of 1e-12 SDs", "texplainer"),
    "seed": Metric("Seed", of_seeds(stability.relative_change), "low", "stability",
                   "relative change with another seed; 0 where nothing is drawn", "texplainer"),
    "misplaced": Metric("Misplaced mass", of_local_effects(accuracy.misplaced_mass, RADII), "low",
                        "locality", "fraction of |e| on features without an effect within r SDs",
                        "texplainer"),
    "local_rank": Metric("Local effects", of_local_effects(accuracy.effect_correlation, RADII),
                         "high", "locality", "rank correlation with measured effects within r SDs",
                         "texplainer"),
    "pgi": Metric("PGI", of_gaps(_PGI), "high", "faithfulness",
                  "top k by |e| removed, the run's mask", _DAI),
    "pgu": Metric("PGU", of_gaps(_PGU), "low", "faithfulness",
                  "bottom k by |e| removed, the run's mask", _DAI),
    "pgi_mean": Metric("PGI (mean)", of_gaps(_PGI, "mean"), "high", "faithfulness",
                       "removed to the mean", _DAI),
    "pgi_marginal": Metric("PGI (marginal)", of_gaps(_PGI, "marginal"), "high", "faithfulness",
                           "removed to marginal quantiles", _DAI),
    "pgi_openxai": Metric("PGI (OpenXAI)", of_gaps(faithfulness.prediction_gap_area, "gaussian"),
                          "high", "faithfulness", "Gaussian noise on the top k, area over k", _DAI),
    "pgu_openxai": Metric("PGU (OpenXAI)", of_gaps(faithfulness.prediction_gap_complement,
                                                            "gaussian"), "low", "faithfulness",
                          "Gaussian noise on all but the top k, area over k", _DAI),
    "pgi_kept": Metric("PGI (kept)", of_gaps(faithfulness.prediction_gap_kept), "high", "printed",
                       "1 - gap, only the top k by signed value kept: to compare with the paper's tables, "
                       "not a measure of faithfulness", "the paper's tables"),
    "deletion": Metric("Deletion", of_removal_order(faithfulness.deletion), "low", "faithfulness",
                       "signed order, predicted class's output", _PETSIUK),
    "insertion": Metric("Insertion", of_removal_order(faithfulness.insertion), "high",
                        "faithfulness", "signed order, predicted class's output", _PETSIUK),
    "faithfulness_correlation": Metric("Faith. corr.",
                                       of_subsets(faithfulness.faithfulness_correlation), "high",
                                       "faithfulness", "Pearson over random subsets of features", _BHATT),
    "monotonicity": Metric("Monotonicity", of_single_removals(faithfulness.monotonicity), "high",
                           "faithfulness", "rank correlation of |e| with single-feature effects", _NGUYEN),
    "infidelity": Metric("Infidelity", of_small_steps(faithfulness.infidelity), "low",
                         "faithfulness", "small Gaussian steps, the values shown, normalised: zeros score 1",
                         _YEH),
    "infidelity_surrogate": Metric("Infidelity (local model)",
                                   of_surrogate_steps(faithfulness.infidelity), "low",
                                   "faithfulness",
                                   "small steps, the local model beside the values, normalised", _YEH),
    "infidelity_scale_free": Metric("Infidelity (dir.)",
                                    of_small_steps(partial(faithfulness.infidelity,
                                                                    convention="scale-free")),
                                    "low", "faithfulness", "small steps, e times its best factor, normalised",
                                    _YEH),
    "infidelity_background": Metric("Infidelity (bg)", of_reference_steps(faithfulness.infidelity),
                                    "low", "faithfulness", "steps to background rows, normalised", _YEH),
    "lap": Metric("LAP", of_sums(accuracy.local_accuracy), "high", "accuracy",
                  "share of rows within tol; the residual", "Lundberg and Lee 2017",
                  lower_parts=("median", "p95")),
    "complexity": Metric("Complexity", of_values(complexity.complexity), "low", "complexity",
                         "entropy of |e| / sum |e|, nats", _BHATT),
    "sparseness": Metric("Sparseness", of_values(complexity.sparseness), "high", "complexity",
                         "Gini index", "Chalasani et al. 2020, arXiv 1810.06583"),
    "effective_complexity": Metric("Eff. complexity", of_values(complexity.effective_complexity),
                                   "low", "complexity", "features above 1% of the largest", _NGUYEN),
    "truth_error": Metric("Truth error", of_truth(accuracy.truth_error), "low", "truth",
                          "relative error to the known truth", "texplainer"),
    "truth_mass": Metric("Truth mass", of_truth(accuracy.truth_mass), "low", "truth",
                         "fraction of |e| on features without a true effect", "texplainer"),
    "truth_cosine": Metric("Truth cosine", of_truth(accuracy.truth_cosine), "high", "truth",
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
