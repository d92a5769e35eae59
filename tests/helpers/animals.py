"""The zoo's table: models and tables as people have them, each built by its own library.

A row names the library it needs, how its model and background are made, and the engine that must serve it
(None: any). Models are small; what matters is that every door is used once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

X = np.random.default_rng(0).normal(
    size=(160, 5)
)  # the last column is constant while models are fitted (`blind`)
SCORE = 1.5 * X[:, 0] + np.sin(X[:, 1]) + 0.5 * X[:, 2] * X[:, 3]
THREE = np.digitize(SCORE, np.quantile(SCORE, [0.35, 0.7]))
TWO = (SCORE > 0).astype(int)
COUNTS = np.round(np.exp(0.4 * SCORE)).astype(float)
LABELS = np.column_stack([TWO, (X[:, 1] > 0).astype(int)])
NAMED = pd.DataFrame(X, columns=list("abcde"))
COLOUR = np.array(["red", "blue", "grey"], dtype=object)[THREE]
MIXED = NAMED.assign(colour=COLOUR)


@dataclass(frozen=True)
class Animal:
    """One row of the table."""

    library: str
    make: Callable[[], tuple[Any, Any]]
    engine: str | None = None
    takes: dict[str, Any] | None = None  # further words for TExplainer
    returned: str = ""  # why its predictions are not held against what the model returns
    coarse: str = ""  # why its slopes are not held against a plain regression around the row


def quietly(fit: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit()


def blind(table: Any) -> Any:
    """The table without what the last number tells: models that can leave it do."""
    if isinstance(table, pd.DataFrame):
        return table.assign(e=0.0) if "e" in table else table
    return np.where(np.arange(table.shape[1]) == 4, 0.0, table)


def fitted(path: str, y: np.ndarray | None, table: Any = X, **words: Any) -> tuple[Any, Any]:
    """Fit `package.module:Class` and give it with its table."""
    module, _, name = path.partition(":")
    make = getattr(import_module(module), name)
    return quietly(lambda: make(**words).fit(blind(table), y)), table


def sk(path: str, y: np.ndarray, engine: str | None, table: Any = X, **words: Any) -> Animal:
    return Animal("sklearn", partial(fitted, f"sklearn.{path}", y, table, **words), engine)


LABELS_ONLY = "its labels are a step, and its probability the same step"
RAW = "its predict_proba returns scores, which are no probabilities"


EXACT, TREE, BLACK = "closed-form", "tree", "finite-difference"
REGRESSORS = {
    name: sk(f"linear_model:{name}", SCORE, EXACT, **words)
    for name, words in {
        "LinearRegression": {},
        "Ridge": {},
        "RidgeCV": {},
        "Lasso": {"alpha": 0.01},
        "LassoCV": {},
        "ElasticNet": {"alpha": 0.01},
        "ElasticNetCV": {},
        "Lars": {},
        "LassoLars": {"alpha": 0.01},
        "OrthogonalMatchingPursuit": {},
        "BayesianRidge": {},
        "ARDRegression": {},
        "HuberRegressor": {},
        "TheilSenRegressor": {"random_state": 0},
        "QuantileRegressor": {"alpha": 0.01},
        "SGDRegressor": {"random_state": 0},
    }.items()
} | {
    "RANSACRegressor": sk("linear_model:RANSACRegressor", SCORE, None, random_state=0),
    "PoissonRegressor": sk("linear_model:PoissonRegressor", COUNTS, EXACT),
    "GammaRegressor": sk("linear_model:GammaRegressor", COUNTS + 1, EXACT),
    "TweedieRegressor": sk("linear_model:TweedieRegressor", COUNTS, EXACT, power=1.5),
    "LinearSVR": sk("svm:LinearSVR", SCORE, EXACT),
    "SVR": sk("svm:SVR", SCORE, EXACT),
    "NuSVR": sk("svm:NuSVR", SCORE, EXACT),
    "KernelRidge": sk("kernel_ridge:KernelRidge", SCORE, EXACT, kernel="rbf"),
    "GaussianProcessRegressor": sk("gaussian_process:GaussianProcessRegressor", SCORE, EXACT, alpha=0.1),
    "MLPRegressor": sk("neural_network:MLPRegressor", SCORE, EXACT, random_state=0, max_iter=300),
    "KNeighborsRegressor": sk("neighbors:KNeighborsRegressor", SCORE, BLACK),
    "PLSRegression": sk("cross_decomposition:PLSRegression", SCORE, BLACK, n_components=2),
    "DecisionTreeRegressor": sk("tree:DecisionTreeRegressor", SCORE, TREE, max_depth=4),
    "RandomForestRegressor": sk("ensemble:RandomForestRegressor", SCORE, TREE, n_estimators=8),
    "ExtraTreesRegressor": sk("ensemble:ExtraTreesRegressor", SCORE, TREE, n_estimators=8),
    "GradientBoostingRegressor": sk("ensemble:GradientBoostingRegressor", SCORE, TREE, n_estimators=8),
    "HistGradientBoostingRegressor": sk("ensemble:HistGradientBoostingRegressor", SCORE, TREE, max_iter=8),
    "AdaBoostRegressor": sk("ensemble:AdaBoostRegressor", SCORE, BLACK, n_estimators=5, random_state=0),
    "BaggingRegressor": sk("ensemble:BaggingRegressor", SCORE, TREE, n_estimators=5, random_state=0),
    "MultiTaskLasso": sk("linear_model:MultiTaskLasso", np.column_stack([SCORE, -SCORE]), EXACT, alpha=0.01),
    "a forest of two targets": sk(
        "ensemble:RandomForestRegressor", np.column_stack([SCORE, COUNTS]), TREE, n_estimators=5
    ),
}
CLASSIFIERS: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "LogisticRegression": ("linear_model", EXACT, {}),
    "SGDClassifier": ("linear_model", EXACT, {"loss": "log_loss", "random_state": 0}),
    "RidgeClassifier": ("linear_model", EXACT, {}),
    "LinearSVC": ("svm", EXACT, {}),
    "SVC": ("svm", EXACT, {}),
    "LinearDiscriminantAnalysis": ("discriminant_analysis", EXACT, {}),
    "QuadraticDiscriminantAnalysis": ("discriminant_analysis", EXACT, {"reg_param": 0.1}),
    "GaussianNB": ("naive_bayes", EXACT, {"var_smoothing": 0.1}),
    "MLPClassifier": ("neural_network", EXACT, {"max_iter": 300, "random_state": 0}),
    "GaussianProcessClassifier": ("gaussian_process", EXACT, {}),
    "KNeighborsClassifier": ("neighbors", BLACK, {}),
    "NearestCentroid": ("neighbors", BLACK, {}),
    "DecisionTreeClassifier": ("tree", TREE, {"max_depth": 4}),
    "RandomForestClassifier": ("ensemble", TREE, {"n_estimators": 8, "random_state": 0}),
    "ExtraTreesClassifier": ("ensemble", TREE, {"n_estimators": 8, "random_state": 0}),
    "GradientBoostingClassifier": ("ensemble", TREE, {"n_estimators": 8}),
    "HistGradientBoostingClassifier": ("ensemble", TREE, {"max_iter": 8}),
    "AdaBoostClassifier": ("ensemble", None, {"n_estimators": 5, "random_state": 0}),
    "BaggingClassifier": ("ensemble", TREE, {"n_estimators": 5, "random_state": 0}),
    "CalibratedClassifierCV": ("calibration", EXACT, {"cv": 2}),
}
SKLEARN = REGRESSORS | {
    f"{name} of {len(set(y.tolist()))}": sk(f"{module}:{name}", y, engine, **words)
    for name, (module, engine, words) in CLASSIFIERS.items()
    for y in (TWO, THREE)
}
SKLEARN["SVC of 3"] = replace(SKLEARN["SVC of 3"], engine=BLACK)  # it counts votes


def wrapped(build: Callable[[Any], Any], y: np.ndarray, table: Any = X) -> Callable[[], tuple[Any, Any]]:
    """Build an estimator of the module sklearn, fit it, give it with its table."""

    def make() -> tuple[Any, Any]:
        parts = ("calibration", "compose", "covariance", "ensemble", "linear_model", "model_selection",
                 "multiclass", "multioutput", "naive_bayes", "neighbors", "neural_network", "pipeline",
                 "preprocessing", "svm")  # fmt: skip
        for part in parts:
            import_module(f"sklearn.{part}")
        return quietly(lambda: build(import_module("sklearn")).fit(blind(table), y)), table

    return make


def logistic(sk: Any) -> Any:
    return sk.linear_model.LogisticRegression()


def forest(sk: Any) -> Any:
    return sk.ensemble.RandomForestClassifier(8, random_state=0)


WRAPPED = {
    "a grid search of a forest": (lambda s: s.model_selection.GridSearchCV(forest(s), {}, cv=2), TWO, TREE),
    "a random search": (lambda s: s.model_selection.RandomizedSearchCV(logistic(s), {"C": [1.0]}, n_iter=1), TWO, EXACT),
    "a tuned threshold": (lambda s: s.model_selection.TunedThresholdClassifierCV(logistic(s), cv=2), TWO, EXACT),
    "a fixed threshold": (lambda s: s.model_selection.FixedThresholdClassifier(forest(s)), TWO, TREE),
    "a pipeline": (lambda s: s.pipeline.make_pipeline(s.preprocessing.StandardScaler(), logistic(s)), THREE, EXACT),
    "a pipeline of trees": (lambda s: s.pipeline.make_pipeline(s.preprocessing.StandardScaler(), forest(s)), TWO, TREE),
    "a search at a pipeline's end": (
        lambda s: s.pipeline.make_pipeline(
            s.preprocessing.StandardScaler(), s.model_selection.GridSearchCV(logistic(s), {}, cv=2)
        ),
        TWO,
        EXACT,
    ),
    "a target on another scale": (
        lambda s: s.compose.TransformedTargetRegressor(s.linear_model.Ridge(), func=np.log1p, inverse_func=np.expm1),
        COUNTS,
        EXACT,
    ),
    "a vote": (
        lambda s: s.ensemble.VotingClassifier(
            [("a", logistic(s)), ("b", s.naive_bayes.GaussianNB())], voting="soft"
        ),
        THREE,
        EXACT,
    ),
    "a vote of regressors": (
        lambda s: s.ensemble.VotingRegressor([("a", s.linear_model.Ridge()), ("b", s.linear_model.Lasso())]),
        SCORE,
        EXACT,
    ),
    "a stack": (
        lambda s: s.ensemble.StackingClassifier([("a", logistic(s)), ("b", s.naive_bayes.GaussianNB())], cv=2),
        TWO,
        EXACT,
    ),
    "one against the rest": (lambda s: s.multiclass.OneVsRestClassifier(logistic(s)), THREE, EXACT),
    "one against one": (lambda s: s.multiclass.OneVsOneClassifier(logistic(s)), THREE, BLACK),
    "several labels": (lambda s: s.multiclass.OneVsRestClassifier(logistic(s)), LABELS, EXACT),
    "a chain of labels": (lambda s: s.multioutput.ClassifierChain(logistic(s)), LABELS, None),
    "labels of a network": (
        lambda s: s.neural_network.MLPClassifier((5,), max_iter=200, random_state=0), LABELS, EXACT
    ),
    "labels of neighbours": (lambda s: s.neighbors.KNeighborsClassifier(), LABELS, BLACK),
    "labels of a forest": (lambda s: forest(s), LABELS, TREE),
    "a vote of trees": (
        lambda s: s.ensemble.VotingClassifier(
            [("a", forest(s)), ("b", s.ensemble.ExtraTreesClassifier(8, random_state=0))], voting="soft"
        ),
        TWO,
        TREE,
    ),
    "a hard vote": (
        lambda s: s.ensemble.VotingClassifier([("a", logistic(s)), ("b", forest(s)), ("c", s.svm.SVC())]),
        TWO,
        BLACK,
    ),
    "a vote of regression trees": (
        lambda s: s.ensemble.VotingRegressor(
            [("a", s.ensemble.RandomForestRegressor(5, random_state=0)), ("b", s.ensemble.GradientBoostingRegressor())]
        ),
        SCORE,
        TREE,
    ),
    "a stack of trees": (
        lambda s: s.ensemble.StackingClassifier([("a", forest(s)), ("b", logistic(s))], cv=2), TWO, BLACK
    ),
    "a stack that ends in trees": (
        lambda s: s.ensemble.StackingRegressor(
            [("a", s.linear_model.Ridge())], s.ensemble.RandomForestRegressor(8, random_state=0), cv=2
        ),
        SCORE,
        BLACK,
    ),
    "isotonic calibration": (
        lambda s: s.calibration.CalibratedClassifierCV(logistic(s), method="isotonic", cv=2), TWO, BLACK
    ),
    "calibrated trees": (lambda s: s.calibration.CalibratedClassifierCV(forest(s), cv=2), THREE, BLACK),
    "bagged forests": (lambda s: s.ensemble.BaggingClassifier(forest(s), n_estimators=3, random_state=0), THREE, TREE),
    "bagged logistic models": (lambda s: s.ensemble.BaggingClassifier(logistic(s), n_estimators=3, random_state=0), TWO, EXACT),
    "forests against the rest": (lambda s: s.multiclass.OneVsRestClassifier(forest(s)), THREE, BLACK),
    "a regressor a target": (
        lambda s: s.multioutput.MultiOutputRegressor(s.ensemble.RandomForestRegressor(5, random_state=0)),
        np.column_stack([SCORE, COUNTS]),
        TREE,
    ),
    "labels alone": (lambda s: s.multiclass.OutputCodeClassifier(logistic(s), random_state=0), THREE, BLACK),
    "an isolation forest": (lambda s: s.ensemble.IsolationForest(n_estimators=8, random_state=0), TWO, None),
    "a one-class machine": (lambda s: s.svm.OneClassSVM(), TWO, None),
    "local outliers": (lambda s: s.neighbors.LocalOutlierFactor(novelty=True), TWO, BLACK),
    "an elliptic envelope": (lambda s: s.covariance.EllipticEnvelope(random_state=0), TWO, BLACK),
}  # fmt: skip
#: rows that need a later scikit-learn than the oldest, by a module it has
LATER = dict.fromkeys(
    ("a tuned threshold", "a fixed threshold"), "sklearn.model_selection._classification_threshold"
)
META = {
    name: Animal(LATER.get(name, "sklearn"), wrapped(build, y), engine)
    for name, (build, y, engine) in WRAPPED.items()
}
META |= {
    "a method": Animal("sklearn", lambda: (wrapped(forest, TWO)()[0].predict_proba, X), TREE),
    "a partial of a method": Animal(
        "sklearn", lambda: (partial(wrapped(logistic, TWO)()[0].predict_proba), X), EXACT
    ),
    "a frozen model": Animal(
        "sklearn.frozen",
        lambda: (import_module("sklearn.frozen").FrozenEstimator(wrapped(logistic, TWO)()[0]), X),
        EXACT,
    ),
}


# ---------------------------------------------------------------- boosters


def xgb(y: np.ndarray, engine: str | None = TREE, kind: str = "XGBClassifier", **words: Any) -> Animal:
    return Animal(
        "xgboost",
        partial(fitted, f"xgboost:{kind}", y, X, n_estimators=6, max_depth=3, n_jobs=1, **words),
        engine,
    )


def lgb(y: np.ndarray, engine: str | None = TREE, kind: str = "LGBMClassifier", **words: Any) -> Animal:
    quiet = {"n_estimators": 6, "verbose": -1, "n_jobs": 1}
    return Animal("lightgbm", partial(fitted, f"lightgbm:{kind}", y, X, **quiet, **words), engine)


def cat(y: np.ndarray, engine: str | None = TREE, kind: str = "CatBoostClassifier", **words: Any) -> Animal:
    quiet = {"iterations": 6, "verbose": False, "allow_writing_files": False, "thread_count": 1}
    return Animal("catboost", partial(fitted, f"catboost:{kind}", y, X, **quiet, **words), engine)


def booster(animal: Animal, attribute: str) -> Animal:
    def make() -> tuple[Any, Any]:
        model, table = animal.make()
        found = getattr(model, attribute)
        return (found() if callable(found) and attribute == "get_booster" else found), table

    return Animal(animal.library, make, animal.engine)


BOOSTERS = {
    "xgboost of 2": xgb(TWO),
    "xgboost of 3": xgb(THREE),
    "xgboost of labels": xgb(LABELS),
    "xgboost dart": xgb(TWO, booster="dart"),
    "xgboost logitraw": replace(xgb(TWO, objective="binary:logitraw"), returned=RAW),
    "xgboost hinge": replace(xgb(TWO, objective="binary:hinge"), returned=LABELS_ONLY),
    "xgboost hinge, its labels": replace(
        xgb(TWO, objective="binary:hinge", engine=BLACK), takes={"scale": "probability"}
    ),
    "xgboost softmax": xgb(THREE, objective="multi:softmax"),
    "xgboost forest": xgb(TWO, None, kind="XGBRFClassifier"),
    "xgboost regression": xgb(SCORE, kind="XGBRegressor"),
    "xgboost poisson": xgb(COUNTS, kind="XGBRegressor", objective="count:poisson"),
    "xgboost gamma": xgb(COUNTS + 1, kind="XGBRegressor", objective="reg:gamma"),
    "xgboost tweedie": xgb(COUNTS, kind="XGBRegressor", objective="reg:tweedie"),
    "xgboost cox": xgb(COUNTS + 1, kind="XGBRegressor", objective="survival:cox"),
    "xgboost logistic regression": xgb(TWO, kind="XGBRegressor", objective="reg:logistic"),
    "xgboost absolute": xgb(SCORE, kind="XGBRegressor", objective="reg:absoluteerror"),
    "xgboost booster": booster(xgb(THREE), "get_booster"),
    "lightgbm of 2": lgb(TWO),
    "lightgbm of 3": lgb(THREE),
    "lightgbm one against all": lgb(THREE, objective="multiclassova"),
    "lightgbm steep": lgb(TWO, sigmoid=0.5),
    "lightgbm forest": lgb(TWO, boosting_type="rf", bagging_freq=1, bagging_fraction=0.7),
    "lightgbm regression": lgb(SCORE, kind="LGBMRegressor"),
    "lightgbm poisson": lgb(COUNTS, kind="LGBMRegressor", objective="poisson"),
    "lightgbm quantile": lgb(SCORE, kind="LGBMRegressor", objective="quantile"),
    "lightgbm booster": booster(lgb(TWO), "booster_"),
    "catboost of 2": cat(TWO),
    "catboost of 3": cat(THREE),
    "catboost one against all": cat(THREE, None, loss_function="MultiClassOneVsAll"),
    "catboost regression": cat(SCORE, kind="CatBoostRegressor"),
    "catboost poisson": cat(COUNTS, kind="CatBoostRegressor", loss_function="Poisson"),
}  # fmt: skip


# ---------------------------------------------------------------- networks


def torch_net(ending: str, outputs: int, dtype: str = "float32") -> Callable[[], tuple[Any, Any]]:
    def make() -> tuple[Any, Any]:
        import torch

        generator = torch.Generator().manual_seed(0)
        layers: list[Any] = [torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs)]
        for layer in layers:
            for weight in getattr(layer, "parameters", list)():
                weight.data = torch.randn(weight.shape, generator=generator)
        endings = {"sigmoid": torch.nn.Sigmoid(), "softmax": torch.nn.Softmax(dim=1),
                   "log_softmax": torch.nn.LogSoftmax(dim=1)}  # fmt: skip
        model = torch.nn.Sequential(*layers, *([endings[ending]] if ending else []))
        return model.to(getattr(torch, dtype)), X.astype(np.float32)

    return make


def keras_net() -> tuple[Any, Any]:
    import keras

    keras.utils.set_random_seed(0)
    layers = [keras.layers.Input((5,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(3, "softmax")]
    return keras.Sequential(layers), X.astype(np.float32)


def jax_net() -> tuple[Any, Any]:
    import jax

    weights = np.random.default_rng(1).normal(size=5).astype(np.float32)
    return jax.jit(lambda rows: jax.nn.sigmoid(rows @ weights)), X.astype(np.float32)


def skorch_net() -> tuple[Any, Any]:
    import torch
    from skorch import NeuralNetClassifier

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    net = NeuralNetClassifier(
        module, criterion=torch.nn.CrossEntropyLoss, max_epochs=5, verbose=0, train_split=None
    )
    table = X.astype(np.float32)
    return quietly(lambda: net.fit(table, THREE.astype(np.int64))), table


NETWORKS = {
    "torch, scores": Animal("torch", torch_net("", 2), "autodiff"),
    "torch in float64": Animal("torch", torch_net("", 1, "float64"), "autodiff"),
    "torch, sigmoid": Animal("torch", torch_net("sigmoid", 1), "autodiff"),
    "torch, softmax": Animal("torch", torch_net("softmax", 3), "autodiff"),
    "torch in bfloat16": Animal("torch", torch_net("", 1, "bfloat16"), "autodiff"),
    "torch in float16": Animal("torch", torch_net("", 1, "float16"), "autodiff"),
    "torch, log-probabilities": Animal(
        "torch", torch_net("log_softmax", 3), "autodiff", {"scale": "probability"}
    ),
    "keras, softmax": Animal("keras", keras_net, "autodiff"),
    "jax, sigmoid": Animal("jax", jax_net, "autodiff"),
    "skorch": Animal("skorch", skorch_net),
}


# ---------------------------------------------------------------- tables


def table_of(change: Callable[[pd.DataFrame], Any]) -> Callable[[], tuple[Any, Any]]:
    def make() -> tuple[Any, Any]:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression().fit(X, TWO), change(NAMED)

    return make


def encoded(unknown: str = "ignore") -> tuple[Any, Any]:
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    first = make_column_transformer(
        (OneHotEncoder(handle_unknown=unknown), ["colour"]), remainder="passthrough"
    )
    return quietly(lambda: make_pipeline(first, LogisticRegression()).fit(MIXED, TWO)), MIXED


def native_category(path: str, **words: Any) -> Callable[[], tuple[Any, Any]]:
    table = MIXED.assign(colour=pd.Categorical(COLOUR))
    return lambda: fitted(path, TWO, table, **words)


def sparse_table(frame: pd.DataFrame) -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix(frame.to_numpy())


def polars_table(frame: pd.DataFrame) -> Any:
    import polars as pl

    return pl.DataFrame(frame.to_dict(orient="list"))


def arrow_table(frame: pd.DataFrame) -> Any:
    import pyarrow as pa

    return pa.table(frame.to_dict(orient="list"))


TABLES = {
    "a frame with names": Animal("sklearn", lambda: fitted("sklearn.linear_model:LogisticRegression", TWO, NAMED), EXACT),
    "integer names": Animal("sklearn", table_of(lambda t: pd.DataFrame(X)), EXACT),
    "mixed names": Animal("sklearn", table_of(lambda t: t.set_axis(["a", None, 3, 4.5, "e"], axis=1)), EXACT),
    "a header of two rows": Animal(
        "sklearn", table_of(lambda t: t.set_axis(pd.MultiIndex.from_product([["a"], range(5)]), axis=1)), EXACT
    ),
    "a sparse matrix": Animal("scipy", table_of(sparse_table), EXACT),
    "a polars frame": Animal("polars", table_of(polars_table), EXACT),
    "a lazy frame": Animal("polars", table_of(lambda t: polars_table(t).lazy()), EXACT),
    "an Arrow table": Animal("pyarrow", table_of(arrow_table), EXACT),
    "lists": Animal("sklearn", table_of(lambda t: t.to_numpy().tolist()), EXACT),
    "float32": Animal("sklearn", table_of(lambda t: t.to_numpy().astype(np.float32)), None),
    "nullable numbers": Animal("sklearn", table_of(lambda t: t.convert_dtypes()), EXACT),
    "text through an encoder": Animal("sklearn", encoded, None),
    "categories in xgboost": Animal(
        "xgboost", native_category("xgboost:XGBClassifier", n_estimators=5, enable_categorical=True), None
    ),
    "categories in lightgbm": Animal(
        "lightgbm", native_category("lightgbm:LGBMClassifier", n_estimators=5, verbose=-1), None
    ),
    "categories in histogram boosting": Animal(
        "sklearn",
        native_category("sklearn.ensemble:HistGradientBoostingClassifier", max_iter=5,
                        categorical_features="from_dtype"),
        TREE,
    ),
    "categories in catboost": Animal(
        "catboost",
        lambda: fitted("catboost:CatBoostClassifier", TWO, MIXED, iterations=5, verbose=False,
                       allow_writing_files=False, cat_features=["colour"]),
        None,
    ),
    "missing cells in trees": Animal(
        "sklearn",
        lambda: fitted("sklearn.ensemble:HistGradientBoostingClassifier", TWO,
                       NAMED.mask(np.random.default_rng(1).random(NAMED.shape) < 0.1), max_iter=5),
        TREE,
    ),
    "a function of a frame": Animal("pandas", lambda: (lambda t: t["a"].to_numpy() * t["b"].to_numpy(), NAMED), BLACK),
    "a function of dates": Animal(
        "pandas",
        lambda: (
            lambda t: t["a"].to_numpy() + (t["day"] - pd.Timestamp("2021-01-01")).dt.days.to_numpy() / 100,
            NAMED.assign(day=pd.date_range("2021-01-01", periods=len(NAMED))),
        ),
        BLACK,
    ),
    "booleans": Animal(
        "pandas",
        lambda: (lambda t: t["a"].to_numpy() + t["flag"].to_numpy().astype(float), NAMED.assign(flag=TWO > 0)),
        BLACK,
    ),
}  # fmt: skip


# ---------------------------------------------------------------- third parties


def imblearn_pipeline() -> tuple[Any, Any]:
    from imblearn.over_sampling import RandomOverSampler
    from imblearn.pipeline import make_pipeline
    from sklearn.linear_model import LogisticRegression

    return quietly(
        lambda: make_pipeline(RandomOverSampler(random_state=0), LogisticRegression()).fit(blind(X), TWO)
    ), X


def statsmodels_result() -> tuple[Any, Any]:
    import statsmodels.api as sm

    return quietly(lambda: sm.OLS(SCORE, X).fit().predict), X


THIRD = {
    "NGBoost": Animal("ngboost", lambda: fitted("ngboost:NGBRegressor", SCORE, X, n_estimators=5, verbose=False)),
    "NGBoost classifier": Animal("ngboost", lambda: fitted("ngboost:NGBClassifier", TWO, X, n_estimators=5, verbose=False)),
    "pygam": Animal("pygam", lambda: fitted("pygam:LinearGAM", SCORE, X)),
    "explainable boosting": Animal(
        "interpret",
        lambda: fitted("interpret.glassbox:ExplainableBoostingRegressor", SCORE, X, max_rounds=20, n_jobs=1,
                       outer_bags=2),
    ),
    "imblearn pipeline": Animal("imblearn", imblearn_pipeline, EXACT),
    "quantile forest": Animal(
        "quantile_forest", lambda: fitted("quantile_forest:RandomForestQuantileRegressor", SCORE, X, n_estimators=5)
    ),
    "statsmodels": Animal("statsmodels", statsmodels_result),
}  # fmt: skip


def custom_objective() -> tuple[Any, Any]:
    def logistic_loss(truth: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p = 1 / (1 + np.exp(-score))
        return p - truth, p * (1 - p)

    return fitted("lightgbm:LGBMClassifier", TWO, X, n_estimators=5, verbose=-1, objective=logistic_loss)


def ranker(path: str, **words: Any) -> tuple[Any, Any]:
    module, _, name = path.partition(":")
    made = getattr(import_module(module), name)(n_estimators=5, **words)
    return quietly(lambda: made.fit(blind(X), TWO, group=[80, 80])), X


def catboost_ranker() -> tuple[Any, Any]:
    from catboost import CatBoostRanker

    quiet = {"iterations": 6, "verbose": False, "allow_writing_files": False, "thread_count": 1}
    return CatBoostRanker(**quiet).fit(blind(X), TWO, group_id=np.repeat([0, 1], 80)), X


def survival_forest() -> tuple[Any, Any]:
    from sksurv.ensemble import RandomSurvivalForest
    from sksurv.util import Surv

    time = Surv.from_arrays(np.ones(len(X), dtype=bool), np.exp(SCORE))
    return RandomSurvivalForest(n_estimators=5, random_state=0).fit(blind(X), time), X


def hazard() -> tuple[Any, Any]:
    from lifelines import CoxPHFitter

    frame = NAMED.assign(time=np.exp(SCORE), event=1)
    return quietly(
        lambda: CoxPHFitter(penalizer=0.1).fit(frame, "time", "event")
    ).predict_partial_hazard, NAMED


def survival_times() -> tuple[Any, Any]:
    """XGBoost's accelerated failure times, which its booster alone fits."""
    import xgboost

    times = np.exp(SCORE)
    data = xgboost.DMatrix(blind(X), label_lower_bound=times, label_upper_bound=times)
    return xgboost.train({"objective": "survival:aft", "max_depth": 3, "nthread": 1}, data, 6), X


def half_onnx() -> tuple[Any, Any]:
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    half = TensorProto.FLOAT16
    weights = numpy_helper.from_array(np.eye(5, 1, dtype=np.float16), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Tanh", ["h"], ["y"])]
    ends = [helper.make_tensor_value_info(n, half, [None, c]) for n, c in (("x", 5), ("y", 1))]
    model = helper.make_model(
        helper.make_graph(nodes, "g", ends[:1], ends[1:], [weights]),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    model.ir_version = 9
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]), X


def text_features() -> tuple[Any, Any]:
    table = NAMED.assign(words=np.where(TWO, "a good day", "a bad night"))
    quiet = {"iterations": 5, "verbose": False, "allow_writing_files": False, "text_features": ["words"]}
    return fitted("catboost:CatBoostClassifier", TWO, table, **quiet)


MORE = {
    "lightgbm with an objective of the user's": Animal("lightgbm", custom_objective, BLACK),
    "xgboost ranker": Animal("xgboost", lambda: ranker("xgboost:XGBRanker"), TREE),
    "lightgbm ranker": Animal("lightgbm", lambda: ranker("lightgbm:LGBMRanker", verbose=-1), TREE),
    "xgboost linear": Animal(
        "xgboost", lambda: fitted("xgboost:XGBClassifier", TWO, X, n_estimators=5, booster="gblinear"), BLACK
    ),
    "xgboost survival times": Animal("xgboost", survival_times, TREE),
    **{
        f"xgboost {objective}": Animal(
            "xgboost", partial(ranker, "xgboost:XGBRanker", objective=objective), TREE
        )
        for objective in ("rank:ndcg", "rank:map", "rank:pairwise")
    },
    "catboost ranker": Animal("catboost", catboost_ranker, TREE),
    "onnx in float16": Animal("onnx", half_onnx, BLACK),
    "text in catboost": Animal("catboost", text_features, BLACK),
    "survival forest": Animal("sksurv", survival_forest),
    "proportional hazards": Animal("lifelines", hazard),
    "gpboost": Animal(
        "gpboost", lambda: fitted("gpboost:GPBoostRegressor", SCORE, X, n_estimators=5, verbose=-1), BLACK
    ),
    "pyod": Animal("pyod", lambda: fitted("pyod.models.knn:KNN", None, X)),
}
ZOO: dict[str, Animal] = {**SKLEARN, **META, **BOOSTERS, **NETWORKS, **TABLES, **THIRD, **MORE}
