"""Trees of a model file that are trees: no node points outside, to another's child or back to the root.

The libraries believe what a file says: XGBoost reads what lies outside and may live on, LightGBM walks in a
circle for ever. Where no node has two parents and the root has none, every walk from the root ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from texplainer.errors import InputError


def check_xgboost(path: Path | str, model: Any) -> None:
    """Reject a loaded Booster with an invalid tree."""
    boosting = json.loads(bytes(model.save_raw("json")))["learner"]["gradient_booster"]
    for tree in boosting.get("gbtree", boosting).get("model", {}).get("trees", ()):
        pointers = [*tree["left_children"], *tree["right_children"]]
        if not _ends(pointers, (-1,), len(tree["left_children"])):
            raise InputError(
                f"{path} contains a tree with a reference outside the tree or a cycle; it is damaged."
            )


def check_lightgbm(path: Path | str, text: bytes) -> None:
    """Reject a model file with an invalid tree, before its library evaluates it."""
    for tree in text.split(b"\nTree=")[1:]:
        leaves, left, right = (
            _numbers(tree, name) for name in (b"num_leaves", b"left_child", b"right_child")
        )
        nodes = max(leaves or (), default=1) - 1
        # a word that is no number is read as 0, the root
        whole = None not in (leaves, left, right) and len(left or ()) == len(right or ()) == nodes
        if (
            b"\0" in text
            or not whole
            or not _ends([*(left or ()), *(right or ())], range(-nodes - 1, 0), nodes)
        ):
            raise InputError(
                f"{path} contains a tree with a reference outside the tree or a cycle; it is damaged."
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


def _numbers(tree: bytes, name: bytes) -> list[int] | None:
    """The whole numbers of a line, None if some of its words are none."""
    line = re.search(rb"^" + name + rb"=(.*)$", tree, re.MULTILINE)
    words = line[1].split() if line else []
    return [int(word) for word in words] if all(re.fullmatch(rb"-?\d{1,9}", word) for word in words) else None


def _ends(pointers: Sequence[int], leaves: Sequence[int], nodes: int) -> bool:
    """Whether every walk from node 0 ends: `leaves` are pointers that end one."""
    inner = [pointer for pointer in pointers if pointer not in leaves]
    return len(set(inner)) == len(inner) and all(0 < pointer < nodes for pointer in inner)
