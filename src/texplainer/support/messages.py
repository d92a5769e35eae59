"""Checks of arguments, and what their messages need: similar names, short descriptions, keywords of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence, Set
from difflib import get_close_matches
from typing import Any

import numpy as np

from texplainer.errors import InputError


def suggest(name: Any, names: Sequence[str]) -> str:
    """Return "Did you mean ...?" with the names most similar to an unknown one; empty if there are none.

    Case and separators are ignored.
    """
    plain = {_plain(known): known for known in reversed(names)}
    found = [plain[key] for key in get_close_matches(_plain(str(name)), list(plain), n=3, cutoff=0.6)]
    return f" Did you mean {' or '.join(map(repr, found))}?" if found else ""


def describe(subject: Any) -> str:
    """Describe an object: numbers and strings by value, anything else by type."""
    if subject is None or isinstance(subject, (bool, int, float, str)):
        return repr(subject)
    kind = type(subject).__name__
    return f"{'an' if kind[0] in 'AEIOaeio' else 'a'} {kind}"


def _plain(name: str) -> str:
    return name.lower().replace("_", " ").replace("-", " ").strip()


def listed(names: Sequence[str], most: int = 8) -> str:
    """The first few names, and how many more there are."""
    more = f", ... {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def some(names: Sequence[Any], most: int = 8) -> str:
    """Show the first few names of a list."""
    shown = ", ".join(repr(n) if isinstance(n, str) else str(n) for n in names[:most])
    return f"[{shown}, ... {len(names) - most} more]" if len(names) > most else f"[{shown}]"


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
    **dict.fromkeys(("training_labels", "target_names"), "leave it out: the model's classes are known"),
    "class_names": "choose an output with `output`; names come from the model's classes",
    **dict.fromkeys(("plot_type", "kind"), "use the plot of that name, such as tx.plots.bar"),
    **dict.fromkeys(("order", "clustering", "clustering_cutoff", "cluster_threshold"), "leave it out"),
    **dict.fromkeys(
        ("color", "color_bar", "cmap", "alpha", "plot_size", "axis_color"), "change the returned Axes"
    ),
    **dict.fromkeys(("matplotlib", "out_names", "text_rotation"), "leave it out: plots are matplotlib's"),
    "interaction_index": "leave it out: the second feature is chosen",
}

#: an attribute of shap, LIME or scikit-learn -> the remedy, for the explainer, its results and the package
ATTRIBUTES = {
    **dict.fromkeys(("explain_row", "explain_instance", "explain", "predict_parts"), "call explainer(X)"),
    **dict.fromkeys(("fit", "fit_transform"), "call explainer(X): it is ready when it is built"),
    **dict.fromkeys(("predict", "predict_proba"), "read explainer(X).predictions, or ask the model"),
    "shap_interaction_values": "call explainer.interactions(X, attribution='shapley_path')",
    "shap_values": "read `values` of explainer(X, attribution='shapley')",
    "expected_value": "read `base_values`",
    **dict.fromkeys(("feature_importances_", "feature_importances"), "call explanation.importance()"),
    **dict.fromkeys(("as_list", "as_map", "local_exp"), "call explanation.to_frame()"),
    **dict.fromkeys(("max", "min", "argsort"), "use numpy on explanation.values"),
    **dict.fromkeys(("hstack", "hclust"), "use shap's own on explanation.to_shap()"),
    **dict.fromkeys(
        ("Explainer", "TreeExplainer", "KernelExplainer", "DeepExplainer", "GradientExplainer", "LinearExplainer",
         "PermutationExplainer", "SamplingExplainer", "LimeTabularExplainer"),
        "use tx.TExplainer(model, background)",
    ),
    **dict.fromkeys(("summary_plot", "summary", "violin"), "use tx.plots.beeswarm(explanation)"),
    **dict.fromkeys(
        ("bar_plot", "waterfall_plot", "force_plot", "decision_plot"),
        "use tx.plots.waterfall, tx.plots.force, tx.plots.decision or tx.plots.bar",
    ),
    **dict.fromkeys(("dependence_plot", "partial_dependence"), "use tx.plots.dependence(explanation, feature)"),
    "initjs": "leave it out: plots are matplotlib's",
    **dict.fromkeys(("sample", "kmeans", "maskers"), "pass some hundred rows of the training data as background"),
}  # fmt: skip


def no_attribute(owner: str, name: str) -> AttributeError:
    """The error for an attribute that is not there, with what to write instead where it is known."""
    hint = ATTRIBUTES.get(name)
    return AttributeError(
        f"{owner} does not have the attribute {name!r}." + (f" Instead, {hint}." if hint else "")
    )


def refuse_keywords(function: str, unknown: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise a TypeError that names the first unknown keyword and what to write instead."""
    for name in unknown:
        hint = ELSEWHERE.get(name)
        words = f" Instead, {hint}." if hint else suggest(name, list(known))
        raise TypeError(f"{function} does not have the argument {name!r}.{words}")


LONGEST = 120  # characters of a value that a message shows


def _whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _names(value: Any) -> bool:
    unordered = (str, bytes, Set, Mapping)
    if value is None:
        return True
    listed = np.ndim(value) == 1 if isinstance(value, np.ndarray) else hasattr(value, "__len__")
    return listed and not isinstance(value, unordered) and len(value) > 0 and not any(map(_no_name, value))


def _no_name(value: Any) -> bool:
    return value is None or np.ndim(value) > 0 or bool(value != value)


def _known_bounds(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return True
    try:
        return not np.isnan(np.concatenate([np.ravel(np.asarray(side, dtype=float)) for side in value])).any()
    except (TypeError, ValueError):
        return True  # anything that is not a pair of numbers gets another message


def _groups(value: Any) -> bool:
    return not isinstance(value, Mapping) or all(hasattr(wish, "__iter__") for wish in value.values())


def _positive(value: Any) -> bool:
    return _whole(value) and value >= 1


def _step(value: Any) -> bool:
    vast = isinstance(value, int) and abs(value) > 10**300  # not a float
    return not isinstance(value, (bool, np.ndarray)) and type(value).__name__ != "NAType" and not vast


def _size(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(value >= 0)


def _texts(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset, dict)) and all(isinstance(v, str) for v in value)


def _counts(value: Any) -> bool:
    return value is None or (hasattr(value, "__iter__") and all(map(_whole, value)))


Check = tuple[Callable[[Any], bool], str]
#: argument -> whether a value will do, and what is expected
CHECKS: dict[str, Check] = {
    "batch_rows": (_positive, "a whole number of at least 1"),
    "max_evals": (lambda v: v is None or _positive(v), "None or a whole number of at least 1"),
    "retries": (lambda v: _whole(v) and v >= 0, "a whole number of at least 0"),
    "cache": (
        lambda v: v is None or isinstance(v, (bool, MutableMapping)),
        "True, a dict to keep predictions in, or None",
    ),
    "step": (_step, "'auto', 'paper' or a number"),
    "scale": (lambda v: isinstance(v, str), "'auto' or the name of one scale"),
    "engine": (lambda v: isinstance(v, str), "'auto' or the name of one engine"),
    "feature_names": (_names, "a list with one name per column, in their order"),
    "id_column": (
        lambda v: not isinstance(v, (list, set, dict, np.ndarray)),
        "the name of one column, or None",
    ),
    "output": (
        lambda v: not isinstance(v, (list, tuple, np.ndarray)) or np.size(np.asarray(v, dtype=object)) > 0,
        "at least one output, or None",
    ),
    "bounds": (_known_bounds, "numbers; use -inf and inf for no limit"),
    "categorical": (_groups, "for each name a list of columns or one of nominal, ordinal, numeric"),
}


#: the same for an evaluation
EVALUATION_CHECKS: dict[str, Check] = {
    "metrics": (lambda v: isinstance(v, str) or _texts(v), "names of metrics, a family, 'default' or 'all'"),
    "k": (_counts, "whole numbers of features such as (1, 3, 5), or None"),
    "neighbours": (_positive, "a whole number of at least 1"),
    "sigma": (lambda v: v is None or _size(v), "a number of at least 0"),
    "flip": (lambda v: _size(v) and v <= 1, "a fraction between 0 and 1"),
    "runs": (_positive, "a whole number of at least 1"),
    "controls": (_texts, "names of controls, () for none"),
    "seed": (lambda v: _whole(v) and v >= 0, "a whole number of at least 0"),
    "batch_rows": (_positive, "a whole number of at least 1"),
}


def check_arguments(arguments: Mapping[str, Any], checks: Mapping[str, Check] = CHECKS) -> None:
    """Reject values that would fail later or be ignored."""
    for name, (fine, expected) in checks.items():
        if name in arguments and not fine(arguments[name]):
            shown = repr(arguments[name])
            shown = describe(arguments[name]) if len(shown) > LONGEST else shown
            raise InputError(f"{name}={shown} is invalid; expected {expected}.")
