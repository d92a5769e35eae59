"""Trees of a model file that are trees: every index of every node lies inside what it refers to.

The libraries do not check their files: XGBoost reads memory outside its arrays, LightGBM follows a cycle
without end. Where no node has two parents and the root has none, every walk from the root ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from texplainer.errors import InputError

_CYCLE = "contains a tree with a reference outside the tree or a cycle"
_CATEGORIES = "contains a tree with a reference to categories that do not exist"
_CATEGORICAL = 1  # the bit of LightGBM's decision types


def check_xgboost(path: Path | str, model: Any) -> None:
    """Reject a loaded Booster with an invalid tree."""
    check_xgboost_json(path, bytes(model.save_raw("json")))


def check_xgboost_json(path: Path | str, content: bytes) -> None:
    """Reject a file in XGBoost's JSON format with an invalid tree, before its library evaluates it."""
    learner = json.loads(content)["learner"]
    width = int(learner["learner_model_param"]["num_feature"])
    sizes = [int(learner["learner_model_param"].get(name, 1)) for name in ("num_class", "num_target")]
    groups = max(1, *sizes)
    boosting = learner["gradient_booster"]
    found = boosting.get("gbtree", boosting).get("model", {})
    if "weights" in found:  # of a linear model
        _demand(
            path, len(found["weights"]) == (width + 1) * groups, "has weights of another number of classes"
        )
        return
    trees = found.get("trees", ())
    for tree in trees:
        left, right = tree["left_children"], tree["right_children"]
        inner = [i for i, child in enumerate(left) if child != -1]
        _demand(path, _ends([side[i] for side in (left, right) for i in inner], (), len(left)), _CYCLE)
        _demand(
            path,
            all(0 <= tree["split_indices"][i] < width for i in inner),
            f"contains a tree that refers to a feature beyond the model's {width}",
        )
        split_types = tree.get("split_type") or [0] * len(left)
        known = tree.get("categories_nodes", ())
        segments = zip(tree.get("categories_segments", ()), tree.get("categories_sizes", ()), strict=True)
        _demand(
            path,
            all(split_types[i] == 0 or i in known for i in inner)
            and all(at >= 0 and 0 <= size <= len(tree["categories"]) - at for at, size in segments),
            _CATEGORIES,
        )
    leaves = {int(tree["tree_param"].get("size_leaf_vector", 1)) for tree in trees}
    if leaves and max(leaves) > 1:  # a leaf's second child is the position of its values
        places = [
            (child, len(tree["leaf_weights"]) // groups)
            for tree in trees
            for leaf, child in zip(tree["left_children"], tree["right_children"], strict=True)
            if leaf == -1 and "leaf_weights" in tree
        ]
        _demand(
            path,
            leaves == {groups} and all(0 <= at < count for at, count in places),
            f"has leaves of another number of values than its {groups} classes",
        )
        return
    info, rounds = found.get("tree_info", ()), found.get("iteration_indptr", ())
    _demand(
        path,
        len(info) == len(trees)
        and (groups == 1 or set(info) == set(range(groups)))
        and set(info) <= {*range(groups)},
        f"declares {groups} classes, but its trees belong to others",
    )
    _demand(
        path,
        not rounds or (rounds[0] == 0 and rounds[-1] == len(trees) and list(rounds) == sorted(rounds)),
        f"lists rounds that do not consist of its {len(trees)} trees",
    )
    drops = boosting.get("weight_drop")
    _demand(path, drops is None or len(drops) == len(trees), "has weights of another number of trees")


def check_lightgbm(path: Path | str, text: bytes) -> None:
    """Reject a model file with an invalid tree, before its library evaluates it."""
    header, _, rest = text.partition(b"\nTree=")
    body = b"Tree=" + rest.partition(b"\nend of trees")[0]
    starts = [found.start() for found in re.finditer(rb"^Tree=", body, re.MULTILINE)] if rest else []
    fields = _fields(path, header)
    (last,), (classes,), (rounds,) = (
        _numbers(path, fields, name, 1)
        for name in (b"max_feature_idx", b"num_class", b"num_tree_per_iteration")
    )
    objective = re.search(rb"\bnum_class:(\d+)", fields.get(b"objective", b""))
    _demand(
        path,
        classes == rounds == int(objective[1] if objective else classes)
        and (classes == 1 or (len(starts) > 0 and len(starts) % classes == 0)),
        f"declares {classes} classes, but has {len(starts)} trees of others",
    )
    sizes = _numbers(path, fields, b"tree_sizes") if b"tree_sizes" in fields else None
    at = None if sizes is None else [*accumulate(sizes, initial=0)][:-1]
    _demand(
        path,
        at in (None, starts) and b"\0" not in text and body.count(b"Tree=") == max(1, len(starts)),
        _CYCLE,
    )
    for start, end in pairwise([*starts, len(body)]):
        _check_lightgbm_tree(path, _fields(path, body[start:end]), last + 1)


def _check_lightgbm_tree(path: Path | str, tree: Mapping[bytes, bytes], width: int) -> None:
    nodes = _numbers(path, tree, b"num_leaves", 1)[0] - 1
    # a word that is not a number is read as 0, the root
    children = [*_numbers(path, tree, b"left_child", nodes), *_numbers(path, tree, b"right_child", nodes)]
    _demand(path, _ends(children, range(-nodes - 1, 0), nodes), _CYCLE)
    thresholds, coefficients = (tree.get(n, b"").split() for n in (b"threshold", b"leaf_coeff"))
    kinds = _numbers(path, tree, b"decision_type") or [0] * nodes
    counts = _numbers(path, tree, b"num_features") or [0] * (nodes + 1)  # of the leaves' linear models
    linear = _numbers(path, tree, b"leaf_features")
    _demand(
        path,
        len(thresholds) == len(kinds) == nodes == len(counts) - 1
        and len(tree.get(b"leaf_value", b"").split()) == nodes + 1
        and min(counts) >= 0
        and sum(counts) == len(linear) == len(coefficients),
        "contains a tree whose lists differ in length",
    )
    _demand(
        path,
        all(0 <= j < width for j in (*_numbers(path, tree, b"split_feature", nodes), *linear)),
        f"contains a tree that refers to a feature beyond the model's {width}",
    )
    ends = _numbers(path, tree, b"cat_boundaries") or [0]
    sets = [word for word, kind in zip(thresholds, kinds, strict=True) if kind & _CATEGORICAL]
    _demand(
        path,
        ends == sorted(ends)
        and (ends[0], len(tree.get(b"cat_threshold", b"").split())) == (0, ends[-1])
        and (_numbers(path, tree, b"num_cat") or [0]) == [len(ends) - 1]
        and all(word.isdigit() and int(word) < len(ends) - 1 for word in sets),
        _CATEGORIES,
    )


def check_boosters(path: Path | str, model: Any) -> None:
    """Refuse a model with such a tree in any booster it holds."""
    for booster in _boosters(model, set()):
        if type(booster).__module__.startswith("lightgbm."):
            check_lightgbm(path, booster.model_to_string().encode())
        else:
            check_xgboost(path, booster)


def _boosters(part: Any, seen: set[int]) -> Iterator[Any]:
    if id(part) in seen:
        return
    seen.add(id(part))
    library = type(part).__module__.split(".")[0]
    if type(part).__name__ == "Booster" and library in {"xgboost", "lightgbm"}:
        yield part
    elif isinstance(part, Mapping):
        for value in part.values():
            yield from _boosters(value, seen)
    elif isinstance(part, (list, tuple)):
        for value in part:
            yield from _boosters(value, seen)
    elif library in {"sklearn", "imblearn", "xgboost", "lightgbm"} and hasattr(part, "__dict__"):
        yield from _boosters(vars(part), seen)


def _demand(path: Path | str, holds: bool, found: str) -> None:
    if not holds:
        raise InputError(f"{path} {found}; it is damaged.")


def _fields(path: Path | str, text: bytes) -> dict[bytes, bytes]:
    """The lines `name=value`; of two with one name, another reader may take the other."""
    pairs = [line.partition(b"=")[::2] for line in text.splitlines() if b"=" in line]
    _demand(path, len({name for name, _ in pairs}) == len(pairs), "states one entry of a tree twice")
    return {name: value.strip() for name, value in pairs}


def _numbers(
    path: Path | str, fields: Mapping[bytes, bytes], name: bytes, count: int | None = None
) -> list[int]:
    """The whole numbers of a line."""
    words = fields.get(name, b"").split()
    sound = all(re.fullmatch(rb"-?\d{1,9}", word) for word in words) and count in (None, len(words))
    _demand(path, sound, _CYCLE)
    return [int(word) for word in words]


def _ends(pointers: Sequence[int], leaves: Sequence[int], nodes: int) -> bool:
    """Whether every walk from node 0 ends: `leaves` are pointers that end one."""
    inner = [pointer for pointer in pointers if pointer not in leaves]
    return len(set(inner)) == len(inner) and all(0 < pointer < nodes for pointer in inner)
