"""Model files with an index or a size that is not true: refused before a row of the caller's is predicted.

The trial in a child process is switched off: a library may read what lies outside its arrays and live on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from texplainer.errors import InputError
from texplainer.files import models
from texplainer.files.loaders import skops


@pytest.fixture(autouse=True)
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (models, skops):
        monkeypatch.setattr(module, "try_in_child", lambda *_: None)


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Four features, the last one with six categories; three classes."""
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 4))
    x[:, 3] = random.integers(0, 6, 300)
    return x, ((x[:, 0] + x[:, 3] % 2) > 0).astype(int) + (x[:, 1] > 1)


@pytest.fixture(scope="module")
def lightgbm_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    lightgbm = pytest.importorskip("lightgbm")
    x, y = rows()
    settings = {"objective": "multiclass", "num_class": 3, "num_leaves": 6, "min_data_per_group": 5}
    data = lightgbm.Dataset(x, y, categorical_feature=[3])
    path = tmp_path_factory.mktemp("lightgbm") / "model.txt"
    lightgbm.train({**settings, "verbose": -1, "num_threads": 1}, data, 3).save_model(path)
    assert models.load_model(path).predict(x).shape == (300, 3)
    return path.read_text()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (r"split_feature=\d+", "split_feature=9", "a feature beyond the model's 4"),
        (r"split_feature=\d+", "split_feature=-1", "a feature beyond the model's 4"),
        (r"max_feature_idx=3", "max_feature_idx=0", "a feature beyond the model's 1"),
        (r"decision_type=\d+", "decision_type=3", "categories that do not exist"),
        (r"cat_boundaries=0 1", "cat_boundaries=0 9", "categories that do not exist"),
        (r"cat_boundaries=0 1", "cat_boundaries=-9 1", "categories that do not exist"),
        (r"num_cat=1", "num_cat=7", "categories that do not exist"),
        (r"num_cat=1", "num_cat=0", "categories that do not exist"),
        (r"leaf_value=\S+ ", "leaf_value=", "differ in length"),
        (r"threshold=\S+ ", "threshold=", "differ in length"),
        (r"decision_type=\d+ ", "decision_type=", "differ in length"),
        (r"num_leaves=6", "num_leaves=5", "outside the tree"),
        (r"objective=multiclass num_class:3", "objective=multiclass num_class:300", "declares 3 classes"),
        (r"\nnum_class=3", "\nnum_class=1000000", "declares 1000000 classes"),
        (r"num_tree_per_iteration=3", "num_tree_per_iteration=9", "declares 3 classes"),
        (r"left_child=", "left_child=1\nleft_child=", "twice"),
        (r"tree_sizes=\d+", "tree_sizes=12", "outside the tree"),
        (r"shrinkage=1\n", "shrinkage=1 Tree=0\n", "outside the tree"),
    ],
)
def test_a_lightgbm_file_with_an_index_out_of_range_is_refused(
    lightgbm_text: str, tmp_path: Path, old: str, new: str, words: str
) -> None:
    forged = re.sub(old, new, lightgbm_text, count=1)
    assert forged != lightgbm_text
    if "tree_sizes" not in old:  # what a careful forger does
        parts = re.split(r"(?=^Tree=)", forged.partition("end of trees")[0], flags=re.MULTILINE)[1:]
        forged = re.sub(r"tree_sizes=.*", f"tree_sizes={' '.join(str(len(p)) for p in parts)}", forged)
    path = tmp_path / "model.txt"
    path.write_text(forged)
    with pytest.raises(InputError, match=f"{words}.*it is damaged"):
        models.load_model(path)


def test_the_linear_models_of_leaves_are_checked_too(tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    x, _ = rows()
    settings = {"linear_tree": True, "num_leaves": 4, "verbose": -1, "num_threads": 1}
    path = tmp_path / "model.txt"
    lightgbm.train(settings, lightgbm.Dataset(x, x[:, 0] * x[:, 1]), 3).save_model(path)
    models.load_model(path)
    text = re.sub(r"^tree_sizes=.*\n", "", path.read_text(), flags=re.MULTILINE)
    path.write_text(re.sub(r"leaf_features=( *)\d", r"leaf_features=\g<1>77", text))
    with pytest.raises(InputError, match="a feature beyond the model's 4; it is damaged"):
        models.load_model(path)


@pytest.fixture(scope="module")
def xgboost_content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    xgboost = pytest.importorskip("xgboost")
    x, y = rows()
    data = xgboost.DMatrix(x, y, feature_types=["q", "q", "q", "c"], enable_categorical=True)
    settings = {"objective": "multi:softprob", "num_class": 3, "max_depth": 3, "nthread": 1}
    path = tmp_path_factory.mktemp("xgboost") / "model.json"
    xgboost.train(settings, data, 3).save_model(path)
    models.load_model(path)
    return path.read_bytes()


def _classes(model: Any, count: int) -> None:
    model["learner"]["learner_model_param"]["num_class"] = str(count)
    model["learner"]["learner_model_param"]["base_score"] = "5E-1"
    model["learner"]["objective"]["softmax_multiclass_param"]["num_class"] = str(count)


def _tree(model: Any) -> Any:
    return model["learner"]["gradient_booster"]["model"]["trees"][0]


def _trees(model: Any) -> Any:
    return model["learner"]["gradient_booster"]["model"]


FORGED: dict[str, Callable[[Any], object]] = {
    "tree_info": lambda m: _trees(m)["tree_info"].__setitem__(0, 999),
    "tree_info below zero": lambda m: _trees(m)["tree_info"].__setitem__(0, -7),
    "split_indices": lambda m: _tree(m)["split_indices"].__setitem__(0, 1_000_000),
    "num_class": lambda m: _classes(m, 1_000_000),
    "fewer classes": lambda m: _classes(m, 2),
    "rounds": lambda m: _trees(m)["iteration_indptr"].__setitem__(-1, 99),
    "a category without a set": lambda m: _tree(m)["split_type"].__setitem__(0, 1),
    "a set beyond the list": lambda m: _tree(m)["categories_sizes"].__setitem__(0, 99_999),
    "the node of a set": lambda m: _tree(m)["categories_nodes"].__setitem__(0, 2),
    "both children": lambda m: _tree(m)["right_children"].__setitem__(0, -1),
}


@pytest.mark.parametrize("name", FORGED)
def test_an_xgboost_file_with_an_index_out_of_range_is_refused(
    xgboost_content: bytes, tmp_path: Path, name: str
) -> None:
    model = json.loads(xgboost_content)
    FORGED[name](model)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    with pytest.raises(InputError, match="damaged"):
        models.load_model(path)


def test_trees_with_a_vector_in_each_leaf_are_read(tmp_path: Path) -> None:
    """In their leaves the second child is the position of the vector, not a node."""
    xgboost = pytest.importorskip("xgboost")
    x, _ = rows()
    settings = {"multi_strategy": "multi_output_tree", "tree_method": "hist", "max_depth": 3, "nthread": 1}
    whole = xgboost.train(settings, xgboost.DMatrix(x, x[:, :2] * x[:, 1:3]), 3)
    path = tmp_path / "model.json"
    whole.save_model(path)
    np.testing.assert_array_equal(models.load_model(path).inplace_predict(x), whole.inplace_predict(x))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_intercept_", np.zeros(0)),
        ("_dual_coef_", np.zeros((2, 1))),
        ("_n_support", np.array([9000, 1, 1], dtype=np.int32)),
        ("support_vectors_", np.zeros((1, 4))),
        ("_probA", np.zeros(7)),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_a_support_vector_machine_whose_arrays_do_not_fit_is_refused(
    tmp_path: Path, name: str, value: np.ndarray, inside: bool
) -> None:
    skops_io = pytest.importorskip("skops.io")
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    machine = SVC().fit(*rows())
    model = make_pipeline(machine) if inside else machine
    path = tmp_path / "model.skops"
    skops_io.dump(model, path)
    np.testing.assert_array_equal(models.load_model(path).predict(rows()[0]), model.predict(rows()[0]))
    setattr(machine, name, value)
    skops_io.dump(model, path)
    with pytest.raises(InputError, match=r"do not fit\. It is damaged"):
        models.load_model(path)


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
def test_every_support_vector_machine_is_read(tmp_path: Path, name: str) -> None:
    skops_io = pytest.importorskip("skops.io")
    from sklearn import svm

    x, y = rows()
    settings = {"nu": 0.1} if name == "NuSVC" else {}
    model = getattr(svm, name)(**settings).fit(x, y)
    skops_io.dump(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(models.load_model(tmp_path / "model.skops").predict(x), model.predict(x))
