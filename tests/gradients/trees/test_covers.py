"""Path-dependent Shapley values against the enumeration of all subsets and the libraries' own numbers."""

from itertools import product
from math import factorial

import numpy as np
import pytest

pytest.importorskip("numba")

from oracles_trees import random_rows, random_tree, trees_of
from tree_shelf import MODELS

from texplainer.errors import Unsupported
from texplainer.gradients.trees.ensemble import Tree, assemble, compared
from texplainer.gradients.trees.readers.table import load
from texplainer.gradients.trees.shapley import cover_expectation, cover_tables


def worth(tree, row, present, node=0):
    """v(S) of one tree: follow the features of S, average over the children of the others by cover."""
    if tree.left[node] < 0:
        return tree.value[node]
    left, right = int(tree.left[node]), int(tree.right[node])
    if present[tree.column[node]]:
        x = row[tree.column[node]]
        goes_left = tree.missing_left[node] if np.isnan(x) else x <= tree.threshold[node]
        return worth(tree, row, present, left if goes_left else right)
    shares = tree.cover[[left, right]] / max(tree.cover[node], 1e-300)  # 0 where no training row was
    return shares[0] * worth(tree, row, present, left) + shares[1] * worth(tree, row, present, right)


def enumerated(ensemble, row, owner):
    """Shapley values of all subsets of players; `owner` of every column, virtual ones too."""
    players, trees = int(max(owner)) + 1, list(trees_of(ensemble))
    cells = compared(ensemble, ensemble.widen(row[None]))[0]
    game = {}
    for present in product([False, True], repeat=players):
        total = np.zeros(len(ensemble.base))
        for tree in trees:
            value = worth(tree, cells, np.array(present)[owner])
            total[tree.output : tree.output + len(value)] += value
        game[present] = total
    values = np.zeros((players, len(ensemble.base)))
    for j, present in product(range(players), game):
        if not present[j]:
            size = sum(present)
            share = factorial(size) * factorial(players - 1 - size) / factorial(players)
            values[j] += share * (game[(*present[:j], True, *present[j + 1 :])] - game[present])
    return values, game[(False,) * players]


def covered(rng, tree):
    """The tree with covers: of random leaves, summed up."""
    cover = rng.random(len(tree.left))
    for node in range(len(tree.left) - 1, -1, -1):  # children come after their parents
        if tree.left[node] >= 0:
            cover[node] = cover[tree.left[node]] + cover[tree.right[node]]
    return Tree(*(getattr(tree, name) for name in tree.__dataclass_fields__ if name != "cover"), cover)


@pytest.mark.parametrize(
    ("depth", "owner"), [(1, range(5)), (5, range(5)), (8, range(5)), (7, (0, 1, 1, 2, 0))]
)
def test_random_trees_equal_the_enumeration(depth, owner):
    rng = np.random.default_rng(depth)
    trees = [covered(rng, random_tree(rng, 5, 2, depth)) for _ in range(3)]
    ensemble = assemble(trees, features=5, base=np.array([0.5, -1.0]), link="identity")
    rows, owner = random_rows(rng, 4, 5, wild=True), np.array(owner)
    found = cover_tables(ensemble, owner=owner)(rows)
    for row, values in zip(rows, found, strict=True):
        expected, empty = enumerated(ensemble, row, owner)
        np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(cover_expectation(ensemble), ensemble.base + empty, rtol=1e-12)


@pytest.mark.parametrize("trees", [1, 3])
def test_deep_leaves_equal_the_enumeration(trees):
    """Leaves without tables, beside others that have one, and a subtree that no training row reached."""
    rng = np.random.default_rng(2)
    chain = 12  # one long path, a leaf beside every split
    left = np.array([i for k in range(chain) for i in (2 * k + 1, -1)] + [-1])
    right = np.array([i for k in range(chain) for i in (2 * k + 2, -1)] + [-1])
    column = np.array([c for k in range(chain) for c in (k, 0)] + [0])
    made = []
    for _ in range(trees):
        value, none = rng.normal(size=(len(left), 1)), np.zeros(len(left), bool)
        made.append(covered(rng, Tree(left, right, column, rng.normal(size=len(left)) - 1, none, value)))
    ensemble = assemble(made, features=chain, base=[0.0], link="identity")
    tables = cover_tables(ensemble)
    assert tables.groups.deep.any()
    rows = rng.normal(size=(3, chain))
    for row, values in zip(rows, tables(rows), strict=True):
        expected, _ = enumerated(ensemble, row, np.arange(chain))
        np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("depth", [4, 14])
def test_a_row_is_bit_identical_whatever_else_is_in_the_batch(depth):
    rng = np.random.default_rng(7)
    trees = [covered(rng, random_tree(rng, 20, 1, depth)) for _ in range(4)]
    tables = cover_tables(assemble(trees, features=20, base=[0.0], link="identity"))
    rows = random_rows(rng, 2500, 20, wild=True)
    together = tables(rows)
    assert (tables(rows, threads=1) == together).all()
    assert (tables(rows[1234:1235])[0] == together[1234]).all()


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_library_equals_the_enumeration(name):
    model, data = MODELS[name][0]()
    ensemble = load(model)
    owner = np.append(np.arange(data.shape[1]), [feature for feature, _ in ensemble.categories]).astype(int)
    rows = data[:2]
    for row, values in zip(rows, cover_tables(ensemble)(rows), strict=True):
        np.testing.assert_allclose(values, enumerated(ensemble, row, owner)[0], rtol=1e-9, atol=1e-11)


def own_values(name, model, rows):
    """The library's own values and base value, (rows, outputs, features + 1)."""
    if name.startswith("xgboost"):
        xgb = pytest.importorskip("xgboost")
        table = xgb.DMatrix(rows, feature_types=model.feature_types, enable_categorical=True)
        last = model.best_iteration + 1 if "stopped" in name else 0
        return model.get_booster().predict(table, pred_contribs=True, iteration_range=(0, last))
    if name.startswith("lightgbm"):
        return model.predict(rows, pred_contrib=True)
    if name.startswith("catboost"):
        return model.get_feature_importance(pytest.importorskip("catboost").Pool(rows), type="ShapValues")
    shap = pytest.importorskip("shap")
    explainer = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    values = np.asarray(explainer.shap_values(rows, check_additivity=False)).reshape(*rows.shape, -1)
    base = np.broadcast_to(np.atleast_1d(explainer.expected_value), (len(rows), 1, values.shape[2]))
    return np.concatenate([values, base], axis=1).transpose(0, 2, 1)


#: what is compared with nothing: the library or shap has no values, or its values miss its own predictions
WITHOUT = {
    "xgboost vector leaves": "XGBoost refuses",
    "catboost lossguide": "CatBoost's values do not sum to its prediction",
    "forest multilabel": "shap gives one of two classes",
    "boosting multiclass": "shap refuses",
    "boosting from zero": "shap refuses",
    "boosting exponential": "shap's base value is that of another loss",
    "histogram categories": "shap reads categories as numbers",
}


@pytest.mark.parametrize("name", sorted(set(MODELS) - set(WITHOUT)))
def test_values_and_base_value_are_those_of_the_library(name):
    make, _, tolerance = MODELS[name]
    model, data = make()
    ensemble, rows = load(model), data[:20]
    values, base = cover_tables(ensemble)(rows).transpose(0, 2, 1), cover_expectation(ensemble)
    own = np.asarray(own_values(name, model, rows))
    own = own.reshape(len(rows), -1, rows.shape[1] + 1)[:, -values.shape[1] :]  # of two classes the second
    np.testing.assert_allclose(values, own[:, :, :-1], rtol=0, atol=tolerance)
    np.testing.assert_allclose(
        np.broadcast_to(base, own[:, :, -1].shape), own[:, :, -1], rtol=0, atol=tolerance
    )


def test_trees_without_covers_are_refused():
    tree = random_tree(np.random.default_rng(0), 3, 1, 2)
    with pytest.raises(Unsupported, match="how many training rows reached each node"):
        cover_tables(assemble([tree], features=3, base=[0.0], link="identity"))
