"""Read XGBoost models from their own JSON, which holds categories, vector leaves and DART weights.

XGBoost rounds inputs to float32 and goes left on ``x < t``, which is ``x <= previous float32 of t``.
Its base score is stored on the scale of the prediction.

Reference: XGBoost manual, "Introduction to Model IO" and its JSON schema.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from scipy.special import logit

from texplainer.errors import Unsupported
from texplainer.gradients.trees.ensemble import CategoryColumns, Tree, TreeEnsemble, assemble

#: objective -> link; objectives that predict their margin are not listed
LINKS = {
    "binary:logistic": "logistic",
    "binary:logitraw": "logistic",
    "binary:hinge": "hinge",
    "reg:logistic": "sigmoid",
    "multi:softprob": "softmax",
    "multi:softmax": "softmax",
    "count:poisson": "exponential",
    "reg:gamma": "exponential",
    "reg:tweedie": "exponential",
    "survival:cox": "exponential",
    "survival:aft": "exponential",
}
IDENTITY = ("reg:", "rank:")
INVERSE = {"logistic": logit, "sigmoid": logit, "exponential": np.log}


def load(model: Any) -> TreeEnsemble:
    """Read a `Booster` or a scikit-learn wrapper (its best iteration, if it stopped early)."""
    booster = model
    if hasattr(model, "get_booster"):
        booster = model.get_booster()
        best = getattr(booster, "best_iteration", None) if _stopped_early(model) else None
        booster = booster if best is None else booster[: best + 1]
        if callable(getattr(model, "objective", None)):
            raise Unsupported("its objective is a function, whose link is unknown.")
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    boosting, weights = learner["gradient_booster"], None
    if boosting["name"] == "dart":
        boosting, weights = boosting["gbtree"], boosting["weight_drop"]
    weights = boosting.get("model", {}).get("weight_drop") or weights  # since XGBoost 3.4
    if boosting["name"] != "gbtree":
        raise Unsupported(f"its booster {boosting['name']!r} has no trees.")
    link = _link(learner["objective"]["name"])
    parameters = learner["learner_model_param"]
    base = np.array(json.loads(parameters["base_score"]), dtype=np.float64).reshape(-1)
    outputs = max(int(parameters["num_class"]), int(parameters["num_target"]), 1)
    if link in INVERSE and learner["objective"]["name"] != "binary:logitraw":  # which predicts its margin
        base = INVERSE[link](base)
    elif learner["objective"]["name"] == "binary:logitraw" and type(model).__name__.endswith("Regressor"):
        link = "identity"  # a regressor predicts the margin itself
    if link == "logistic" and outputs > 1:  # several labels, each with a sigmoid of its own
        link = "sigmoid"
    if link == "identity" and outputs > 1 and _sorts(booster, outputs):
        raise Unsupported("it sorts the quantiles that it predicts, so that none of them is a sum of trees.")
    categories = CategoryColumns(int(parameters["num_feature"]))
    found = boosting["model"]
    scales = np.ones(len(found["trees"])) if weights is None else np.asarray(weights, dtype=np.float64)
    trees = [
        _tree(tree, output, scale, categories)
        for tree, output, scale in zip(found["trees"], found["tree_info"], scales, strict=True)
    ]
    return assemble(
        trees,
        features=categories.features,
        base=np.broadcast_to(base, (outputs,)),
        link=link,
        dtype=np.float32,
        tolerance=1e-5,  # it adds up in float32
        categories=categories.known,
        missing=float(getattr(model, "missing", np.nan)),
    )


def _sorts(booster: Any, outputs: int) -> bool:
    """Whether the outputs of a row are put in order, as XGBoost 3.4 does with quantiles."""
    from xgboost import DMatrix

    scores = np.linspace(1e6, -1e6, outputs)[None]
    matrix = DMatrix(np.full((1, booster.num_features()), np.nan), base_margin=scores)
    found = np.ravel(booster.predict(matrix, validate_features=False))
    return bool(found[0] < found[-1])


def _stopped_early(model: Any) -> bool:
    try:
        return model.best_iteration is not None
    except AttributeError:
        return False


def _link(objective: str) -> str:
    if objective in LINKS:
        return LINKS[objective]
    if objective.startswith(IDENTITY):
        return "identity"
    return "unknown"


def _tree(node: dict[str, Any], output: int, scale: float, categories: CategoryColumns) -> Tree:
    left, right = np.array(node["left_children"]), np.array(node["right_children"])
    column, leaf = np.array(node["split_indices"]), left < 0
    split = np.array(node["split_conditions"], dtype=np.float32)
    threshold = np.nextafter(split, np.float32(-np.inf)).astype(np.float64)
    width = int(node["tree_param"]["size_leaf_vector"])
    value = split.astype(np.float64)[:, None]
    if width > 1:
        value = np.array(node.get("leaf_weights", node["base_weights"]), dtype=np.float64).reshape(-1, width)
        if len(value) < len(left):  # kept for leaves only, their row in place of the right child
            value = value[np.where(leaf, right, 0)]
    # A set of categories goes right; ours go left, so the children change sides.
    missing = np.array(node["default_left"], dtype=bool)
    for at, first, size in zip(
        node["categories_nodes"], node["categories_segments"], node["categories_sizes"], strict=True
    ):
        codes = node["categories"][first : first + size]
        column[at], threshold[at] = categories.column(int(column[at]), codes), 0.5
        left[at], right[at], missing[at] = right[at], left[at], not missing[at]
    cover = np.array(node.get("sum_hessian", ()), dtype=np.float64)
    cover = cover if len(cover) == len(left) else None  # trees of several outputs hold none
    return Tree(left, right, column, threshold, missing, value * scale, output if width == 1 else 0, cover)
