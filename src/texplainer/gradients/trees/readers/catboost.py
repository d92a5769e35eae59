"""Read CatBoost models from their JSON export: oblivious trees, or any others; numeric features only.

CatBoost rounds inputs to float32 and goes right on ``x > border``. All nodes of an oblivious tree's
level share one split, so a leaf's index is the number its comparisons spell, the first split in the
lowest bit.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.gradients.trees.ensemble import Tree, TreeEnsemble, assemble

#: loss -> link
LINKS = {
    "Logloss": "logistic",
    "CrossEntropy": "logistic",
    "MultiClass": "softmax",
    **dict.fromkeys(("MultiClassOneVsAll", "MultiLogloss", "MultiCrossEntropy"), "sigmoid"),
    "Poisson": "exponential",
    "Tweedie": "exponential",
    **dict.fromkeys(
        (
            "RMSE",
            "MAE",
            "Quantile",
            "MAPE",
            "Huber",
            "Expectile",
            "LogCosh",
            "MultiQuantile",
            "MultiRMSE",
            "QueryRMSE",
            "YetiRank",
        ),
        "identity",
    ),
}
MAX_DEPTH = 16


def _check_features(model: Any) -> None:
    """Reject text and embedding features: CatBoost does not export their trees."""
    found = {
        "text": model.get_text_feature_indices(),
        "embedding": model.get_embedding_feature_indices(),
    }
    for kind, columns in found.items():
        if len(columns):
            raise Unsupported(
                f"it has {len(columns)} {kind} feature{'s'[: len(columns) != 1]}, of which CatBoost computes "
                "numbers that its export does not hold."
            )


def load(model: Any) -> TreeEnsemble:
    """Read any fitted CatBoost model without categorical, text or embedding features."""
    _check_features(model)
    loss = str(model.get_all_params().get("loss_function", "unknown")).split(":")[0]
    if loss == "RMSEWithUncertainty":
        raise Unsupported("its second output, a variance, is not a sum of trees.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        content = json.loads(path.read_text(encoding="utf-8"))
    information = content["features_info"]
    others = sorted(set(information) - {"float_features"})
    if any(information[name] for name in others):
        raise Unsupported(f"it has {', '.join(others)}, which CatBoost turns into statistics of the labels.")
    floats = {one["feature_index"]: one for one in information["float_features"]}
    scale, bias = content["scale_and_bias"]
    bias = np.atleast_1d(np.asarray(bias, dtype=np.float64))
    read = _oblivious if "oblivious_trees" in content else _free
    trees = [
        read(tree, floats, len(bias), scale) for tree in content.get("oblivious_trees", content.get("trees"))
    ]
    width = trees[0].value.shape[1]
    return assemble(
        trees,
        features=len(model.feature_names_),
        base=np.broadcast_to(bias, (width,)),
        link=LINKS.get(loss, "unknown"),
        dtype=np.float32,
    )


def _column(split: dict[str, Any], floats: dict[int, Any]) -> tuple[int, float, bool]:
    """Feature, border, and whether missing values go left ("AsFalse": below every border)."""
    if split["split_type"] != "FloatFeature":
        raise Unsupported(f"it splits by {split['split_type']}.")
    feature = floats[split["float_feature_index"]]
    return feature["flat_feature_index"], split["border"], feature["nan_value_treatment"] != "AsTrue"


def _oblivious(tree: dict[str, Any], floats: dict[int, Any], outputs: int, scale: float) -> Tree:
    splits = [_column(split, floats) for split in tree["splits"]]
    depth = len(splits)
    if depth > MAX_DEPTH:
        raise Unsupported(f"a tree has depth {depth}; at most {MAX_DEPTH} is taken.")
    values = np.asarray(tree["leaf_values"], dtype=np.float64).reshape(2**depth, -1) * scale
    # A heap: node i has the children 2i + 1 and 2i + 2; the root asks the last split, so leaves come
    # in order.
    inner, total = 2**depth - 1, 2 ** (depth + 1) - 1
    node = np.arange(total)
    level = np.floor(np.log2(node + 1)).astype(np.int64)
    asked = np.array([*reversed(splits), (0, 0.0, False)], dtype=object)[np.minimum(level, depth)]
    left = np.where(node < inner, 2 * node + 1, -1)
    value = np.vstack([np.zeros((inner, values.shape[1])), values])
    column, border, missing = (asked[:, i] for i in range(3))
    cover = None
    if len(tree.get("leaf_weights", ())) == 2**depth:
        weights = [np.asarray(tree["leaf_weights"], dtype=np.float64)]
        while len(weights[0]) > 1:
            weights.insert(0, weights[0].reshape(-1, 2).sum(axis=1))
        cover = np.concatenate(weights)
    column, border, missing = column.astype(int), border.astype(float), missing.astype(bool)
    return Tree(left, left + 1, column, border, missing, value, cover=cover)


def _free(tree: dict[str, Any], floats: dict[int, Any], outputs: int, scale: float) -> Tree:
    rows: list[tuple[int, int, int, float, bool, Any]] = []
    cover: list[float] = []

    def visit(node: dict[str, Any]) -> int:
        at = len(rows)
        rows.append((-1, -1, 0, 0.0, False, np.zeros(outputs)))
        cover.append(node.get("weight", np.nan))
        if "split" in node:
            column, border, missing = _column(node["split"], floats)
            left, right = visit(node["left"]), visit(node["right"])
            rows[at] = (left, right, column, border, missing, np.zeros(outputs))
            cover[at] = cover[left] + cover[right]
        else:
            rows[at] = (-1, -1, 0, 0.0, False, scale * np.atleast_1d(node["value"]))
        return at

    visit(tree)
    left, right, column, border, missing, value = zip(*rows, strict=True)
    arrays = [np.array(one) for one in (left, right, column, border, missing)]
    known = None if np.isnan(cover).any() else np.array(cover)
    return Tree(arrays[0], arrays[1], arrays[2], arrays[3], arrays[4], np.vstack(value), cover=known)
