"""Keywords of shap, LIME and scikit-learn -> what to write here instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from texplainer.support.names import suggest

#: a keyword that users of other libraries write -> the remedy
ELSEWHERE = {
    **dict.fromkeys(("data", "masker", "training_data", "reference"), "pass the rows as `background`"),
    "algorithm": "use `engine`",
    **dict.fromkeys(("model_output", "link"), "use `scale` ('raw', 'probability' or 'log-odds')"),
    "feature_perturbation": "leave it out: contributions are interventional, against the background",
    **dict.fromkeys(
        ("nsamples", "npermutations", "num_samples", "n_samples", "n_permutations"), "use `max_evals`"
    ),
    "output_names": "choose an output with `output`; names come from the model's classes",
    **dict.fromkeys(("output_indexes", "outputs", "ranked_outputs", "target"), "use `output`"),
    **dict.fromkeys(("seed", "random_state"), "leave it out: results do not depend on a seed"),
    **dict.fromkeys(("check_additivity", "approximate", "main_effects"), "leave it out"),
    **dict.fromkeys(("silent", "verbose", "progress_bar"), "use `progress` when calling the explainer"),
    **dict.fromkeys(("y", "labels"), "leave it out: an explanation does not need the target"),
    **dict.fromkeys(("n_jobs", "batch_size"), "use `batch_rows`, or texplainer.run for several processes"),
    "interactions": "call explainer.interactions(X)",
    "tree_limit": "limit the model itself before passing it",
    **dict.fromkeys(("l1_reg", "keep_index", "linearize_link", "fixed_context"), "leave it out"),
    **dict.fromkeys(("columns", "names", "features"), "use `feature_names`"),
    **dict.fromkeys(("categorical_features", "cat_features", "categorical_names"), "use `categorical`"),
    "mode": "leave it out: the task follows from the model",
}


def refuse_keywords(function: str, unknown: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise a TypeError that names the first unknown keyword and what to write instead."""
    for name in unknown:
        hint = ELSEWHERE.get(name)
        words = f" Instead, {hint}." if hint else suggest(name, list(known))
        raise TypeError(f"{function} does not have the argument {name!r}.{words}")
