"""Models saved by skops: only types from a list are ever built.

skops writes a model as a zip of JSON and arrays and names every type in it, so that nothing has to be
executed to learn what would be. It trusts scikit-learn's public estimators by itself; `ALLOWED` adds the
inner parts of fitted ones, and XGBoost's and LightGBM's models. Any other type is listed and refused. Trees
are followed by compiled code that checks no index, so that a forged one could read outside its memory:
`check_trees` looks at every index first.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.files.loaders import safety
from texplainer.files.loaders.safety import check_boosters, try_in_child
from texplainer.models.libraries import trial_rows

_KERNELS = (
    "CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Matern PairwiseKernel Product "
    "RBF RationalQuadratic Sum WhiteKernel"
)
ALLOWED = frozenset(
    [
        "collections.OrderedDict",
        "collections.defaultdict",
        "lightgbm.basic.Booster",
        *(f"lightgbm.sklearn.LGBM{kind}" for kind in ("Classifier", "Model", "Ranker", "Regressor")),
        *(f"sklearn.calibration.{name}" for name in ("_CalibratedClassifier", "_SigmoidCalibration")),
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        *(f"sklearn.gaussian_process.kernels.{name}" for name in _KERNELS.split()),
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "xgboost.core.Booster",
        *(f"xgboost.sklearn.XGB{kind}" for kind in ("Classifier", "Model", "Ranker", "Regressor")),
        *(f"xgboost.sklearn.XGBRF{kind}" for kind in ("Classifier", "Regressor")),
    ]
)
#: libraries whose own readers, in machine code, meet bytes of the file; all else is read by numpy and JSON
_COMPILED = ("xgboost.", "lightgbm.")
#: attributes through which an ensemble hands its own, already checked rows to a part
_HANDED_DOWN = frozenset({"estimators_", "estimator_", "tree_", "_predictors"})


def load_skops(path: Path, trust: Sequence[str] = ()) -> Any:
    """Read a model; `trust` names further types the user answers for."""
    import skops.io

    safety.check_archive(path)
    try:
        types = set(skops.io.get_untrusted_types(file=path))
    except Exception as error:
        raise InputError(f"{path} is not a skops file, or is damaged ({error}).") from error
    unknown = sorted(types - ALLOWED - set(trust))
    if unknown:
        raise InputError(
            f"{path} holds types that are not on the list of safe ones: {', '.join(unknown)}. If you trust "
            f"its author, allow each by name: {' '.join(f'--trust {name}' for name in unknown)}."
        )
    if any(name.startswith(_COMPILED) for name in types) or _mentions(path, b"sklearn.svm"):
        try_in_child(path, "skops", _load_and_ask)
    try:
        model = skops.io.load(path, trusted=sorted(ALLOWED | set(trust)))
    except Exception as error:
        raise InputError(f"{path} cannot be read as a skops file ({error}).") from error
    check_trees(path, model)
    check_boosters(path, model)
    check_support_vectors(path, model)
    return model


def _load_and_ask(path: Path) -> None:
    """In a child, of a file whose types are known to be safe or trusted."""
    import skops.io

    model: Any = skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    check_boosters(path, model)
    check_support_vectors(path, model)
    for rows in trial_rows(model.n_features_in_):
        model.predict(rows)


def check_trees(path: Path, model: Any) -> None:
    """Refuse trees whose nodes point outside the tree or at features that do not exist."""
    for tree, width in _trees(model, None, set()):
        if hasattr(tree, "nodes"):  # of histogram gradient boosting
            nodes, inner = tree.nodes, tree.nodes["is_leaf"] == 0
            left, right, feature = nodes["left"], nodes["right"], nodes["feature_idx"]
            bitsets = nodes["bitset_idx"][inner & (nodes["is_categorical"] != 0)]
            if np.any(bitsets >= len(tree.raw_left_cat_bitsets)):
                raise InputError(
                    f"{path} contains a tree with a reference to categories that do not exist. It is damaged."
                )
        else:
            left, right, feature = tree.children_left, tree.children_right, tree.feature
            inner = left != -1
        at = np.nonzero(inner)[0]
        # savers number children after their parent; this also rules out circles
        ends = [(child[at].astype(np.int64) > at) & (child[at] < len(left)) for child in (left, right)]
        known = (feature[at] >= 0) & (feature[at] < (np.inf if width is None else width))
        if not (len(left) and all(end.all() for end in ends) and known.all()):
            raise InputError(
                f"{path} contains a tree with a reference outside the tree. It is damaged or forged."
            )


def check_support_vectors(path: Path, model: Any) -> None:
    """Refuse support vector machines whose arrays do not fit together; libsvm does not look."""
    for part in _parts(model, set()):
        if not (type(part).__module__.startswith("sklearn.svm.") and hasattr(part, "_dual_coef_")):
            continue
        classes = len(getattr(part, "classes_", (0, 1)))
        pairs, held = classes * (classes - 1) // 2, len(part.support_)
        sound = (
            part._dual_coef_.shape == (classes - 1, held)
            and part.support_vectors_.shape in {(held, part.n_features_in_), (0, 0)}  # (0, 0): precomputed
            and (part.kernel == "precomputed" or part.support_vectors_.shape[0] == held)
            and part._intercept_.shape == (pairs,)
            and len(part._n_support) == classes
            and part._n_support.min() >= 0
            and part.n_support_.sum() == held
            and part._probA.shape == part._probB.shape
            and part._probA.shape in {(0,), (1,), (pairs,)}
        )
        if not sound:
            raise InputError(f"{path} holds a support vector machine whose arrays do not fit. It is damaged.")


def _mentions(path: Path, name: bytes) -> bool:
    """Whether an archive, which is known to be sound, names a module."""
    with zipfile.ZipFile(path) as archive:
        return name in archive.read("schema.json")


def _parts(part: Any, seen: set[int]) -> Iterator[Any]:
    """Every estimator in a model."""
    if id(part) in seen:
        return
    seen.add(id(part))
    if isinstance(part, Mapping):
        inside: Any = part.values()
    elif isinstance(part, (list, tuple, set)) or (isinstance(part, np.ndarray) and part.dtype == object):
        inside = part.flat if isinstance(part, np.ndarray) else part
    elif type(part).__module__.split(".")[0] in {"sklearn", "imblearn"} and hasattr(part, "__dict__"):
        yield part
        inside = vars(part).values()
    else:
        return
    for value in inside:
        yield from _parts(value, seen)


def _trees(part: Any, width: int | None, seen: set[int]) -> Iterator[tuple[Any, int | None]]:
    """Every compiled tree in a model, with the number of features its caller checks for."""
    if id(part) in seen:
        return
    seen.add(id(part))
    if type(part).__name__ in {"Tree", "TreePredictor"} and type(part).__module__.startswith("sklearn."):
        yield part, width
    elif isinstance(part, Mapping):
        for value in part.values():
            yield from _trees(value, width, seen)
    elif isinstance(part, (list, tuple, set)) or (isinstance(part, np.ndarray) and part.dtype == object):
        for value in part.flat if isinstance(part, np.ndarray) else part:
            yield from _trees(value, width, seen)
    elif type(part).__module__.split(".")[0] in {"sklearn", "imblearn"} and hasattr(part, "__dict__"):
        own = part.__dict__.get("n_features_in_", part.__dict__.get("_n_features"))
        for name, value in part.__dict__.items():
            widths = [w for w in ((width, own) if name in _HANDED_DOWN else (own,)) if w is not None]
            yield from _trees(value, min(widths, default=None), seen)
