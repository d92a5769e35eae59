"""Closed forms against the finite-difference engine, for every model of the table, output and scale."""

import warnings

import numpy as np
import pytest
from sklearn import (
    calibration,
    compose,
    discriminant_analysis,
    ensemble,
    gaussian_process,
    kernel_ridge,
    linear_model,
    multiclass,
    naive_bayes,
    neural_network,
    svm,
)
from sklearn.decomposition import PCA
from sklearn.gaussian_process import kernels as gp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from texplainer.errors import InputError, Unsupported
from texplainer.gradients import finite_difference
from texplainer.gradients.choose import choose
from texplainer.gradients.closed_form import engine as closed_form
from texplainer.gradients.closed_form.models import MADE_OF, MODELS
from texplainer.gradients.engine import Settings
from texplainer.models import predictor as prediction
from texplainer.models.perceptron import ACTIVATIONS
from texplainer.tables import schema as frames

X = np.random.default_rng(7).normal(size=(120, 4)) * [1.0, 2.0, 0.5, 1.0] + [0.0, 1.0, 0.0, -1.0]
SCORE = X[:, 0] - 0.5 * X[:, 1] + X[:, 0] * X[:, 2] + 0.3 * np.random.default_rng([7, 2]).normal(size=120)
TARGETS = {
    "number": SCORE,
    "positive": np.exp(0.3 * SCORE),
    "two": (SCORE > -0.3).astype(int),
    "three": np.digitize(SCORE, [-1.0, 0.5]),
    "labels": np.column_stack([SCORE > 0, X[:, 1] > 1, X[:, 3] > -1]).astype(int),
    "numbers": np.column_stack([SCORE, X[:, 1] ** 2]),
}
NET = {"hidden_layer_sizes": (8, 6), "max_iter": 30, "random_state": 0}
mlp, MLP = neural_network.MLPClassifier, neural_network.MLPRegressor


def _processes():
    """Gaussian processes with every kernel of the table."""
    base = gp.ConstantKernel(1.0) * gp.RBF([1.0, 2.0, 1.0, 1.0]) + gp.WhiteKernel(0.1)
    matern = [gp.Matern(1.5, nu=nu) + gp.WhiteKernel(0.1) for nu in (0.5, 1.5, 2.5, 1.1, np.inf)]
    other = [gp.RationalQuadratic() + gp.DotProduct() ** 2 + gp.WhiteKernel(0.1)]
    return [gaussian_process.GaussianProcessRegressor(k, normalize_y=True) for k in (base, *matern, *other)]


#: (model, kind of target); every name of MODELS appears
CASES = [
    *(
        (getattr(linear_model, n, None) or getattr(svm, n), "number")
        for n in MODELS
        if MODELS[n].__name__ == "_linear_regressor" and not n.startswith("MultiTask")
    ),
    *((getattr(linear_model, n), "numbers") for n in MODELS if n.startswith("MultiTask")),
    (linear_model.Ridge(), "numbers"),
    (linear_model.PoissonRegressor(), "positive"),
    (linear_model.GammaRegressor(), "positive"),
    (linear_model.TweedieRegressor(power=0), "number"),
    (linear_model.TweedieRegressor(power=1.5), "positive"),
    *((linear_model.LogisticRegression(), t) for t in ("two", "three")),
    (linear_model.LogisticRegressionCV(Cs=2, cv=2, l1_ratios=(0,), use_legacy_attributes=False), "two"),
    *((linear_model.RidgeClassifier(), t) for t in ("two", "three")),
    (linear_model.RidgeClassifierCV(), "two"),
    (linear_model.Perceptron(), "three"),
    (linear_model.PassiveAggressiveClassifier(), "two"),
    (svm.LinearSVC(), "three"),
    *((linear_model.SGDClassifier(loss="log_loss", random_state=0, alpha=0.1), t) for t in ("two", "three")),
    *((mlp(activation=a, **NET), t) for a in ACTIVATIONS for t in ("two", "three", "labels")),
    *((MLP(activation=a, **NET), t) for a in ACTIVATIONS for t in ("number", "numbers")),
    (MLP(loss="poisson", **NET), "positive"),
    *((svm.SVC(kernel=k), "two") for k in ("linear", "rbf", "poly", "sigmoid")),
    *(
        (svm.SVC(kernel=k, decision_function_shape="ovo"), "three")
        for k in ("linear", "rbf", "poly", "sigmoid")
    ),
    (svm.SVC(probability=True, random_state=0), "two"),
    (svm.NuSVC(probability=True, random_state=0, kernel="poly", coef0=1.0), "two"),
    (svm.SVR(), "number"),
    (svm.NuSVR(kernel="poly", degree=2), "number"),
    *(
        (kernel_ridge.KernelRidge(kernel=k, gamma=g), t)
        for k, g, t in (
            ("linear", None, "number"),
            ("rbf", None, "numbers"),
            ("polynomial", 0.1, "number"),
            ("laplacian", 0.2, "number"),
        )
    ),
    *((process, "number") for process in _processes()),
    (gaussian_process.GaussianProcessRegressor(gp.RBF() + gp.WhiteKernel(0.1)), "numbers"),
    *((gaussian_process.GaussianProcessClassifier(gp.RBF(2.0)), t) for t in ("two", "three")),
    (gaussian_process.GaussianProcessClassifier(2.0 * gp.Matern(2.0)), "two"),
    *((naive_bayes.GaussianNB(), t) for t in ("two", "three")),
    *((make_pipeline(MinMaxScaler(), naive_bayes.MultinomialNB()), t) for t in ("two", "three")),
    (make_pipeline(MinMaxScaler(), naive_bayes.ComplementNB()), "three"),
    *((discriminant_analysis.LinearDiscriminantAnalysis(), t) for t in ("two", "three")),
    *((discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1), t) for t in ("two", "three")),
    (calibration.CalibratedClassifierCV(svm.SVC(), ensemble=False, cv=3), "two"),
    (calibration.CalibratedClassifierCV(mlp(**NET), ensemble=True, cv=2), "two"),
    (make_pipeline(StandardScaler(), PolynomialFeatures(2), linear_model.LogisticRegression()), "three"),
    (make_pipeline(RobustScaler(), PCA(3, whiten=True), svm.SVC()), "two"),
    (make_pipeline(MinMaxScaler(), "passthrough", make_pipeline(StandardScaler(), mlp(**NET))), "two"),
    *(
        (
            ensemble.BaggingClassifier(
                linear_model.LogisticRegression(), 3, max_features=0.8, random_state=0
            ),
            t,
        )
        for t in ("two", "three")
    ),
    (ensemble.BaggingRegressor(linear_model.Ridge(), 3, random_state=0), "number"),
    (
        ensemble.VotingClassifier(
            [("a", linear_model.LogisticRegression()), ("b", naive_bayes.GaussianNB())],
            voting="soft",
            weights=[1, 2],
        ),
        "three",
    ),
    (ensemble.VotingRegressor([("a", linear_model.Ridge()), ("b", svm.SVR())]), "number"),
    *(
        (
            ensemble.StackingClassifier(
                [("a", linear_model.LogisticRegression()), ("b", svm.SVC(decision_function_shape="ovo"))],
                cv=2,
                passthrough=True,
            ),
            t,
        )
        for t in ("two", "three")
    ),
    (ensemble.StackingRegressor([("a", linear_model.Ridge()), ("b", svm.SVR())], cv=2), "number"),
    *((multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), t) for t in ("two", "three")),
    (
        compose.TransformedTargetRegressor(linear_model.Ridge(), func=np.arcsinh, inverse_func=np.sinh),
        "number",
    ),
    (compose.TransformedTargetRegressor(linear_model.Ridge(), transformer=StandardScaler()), "number"),
]


def _fit(model, target):
    model = model() if isinstance(model, type) else model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short fits do not converge: any fitted model will do
        return model.fit(X, TARGETS[target])


def _last(model):
    return _last(model.steps[-1][1]) if hasattr(model, "steps") else model


def _predictor(model, scale, output="all", rows=X):
    schema, background = frames.learn(rows)
    return prediction.adapt(model, schema, background[:8], output=output, scale=scale)


#: probabilities without scores below them
NO_SCORES = (
    gaussian_process.GaussianProcessClassifier,
    calibration.CalibratedClassifierCV,
    ensemble.BaggingClassifier,
    ensemble.VotingClassifier,
)


def _name(case):
    return case.__name__ if isinstance(case, type) else str(case).replace("\n", "")[:60]


def test_every_model_of_the_table_is_tested():
    covered = {m.__name__ if isinstance(m, type) else type(_last(m)).__name__ for m, _ in CASES}
    assert covered == set(MODELS) | set(MADE_OF)


@pytest.mark.parametrize(("model", "target"), CASES, ids=_name)
def test_closed_form_agrees_with_finite_differences(model, target):
    fitted = _fit(model, target)
    scales = ["raw"]
    if hasattr(fitted, "classes_"):
        scales = (
            ["log-odds", "probability", "raw"] if hasattr(fitted, "predict_proba") else ["log-odds", "raw"]
        )
    if getattr(_last(fitted), "probability", False) is True:  # Platt's probabilities are no formula
        scales = ["raw"]
    if "raw" in scales and isinstance(_last(fitted), NO_SCORES):
        scales.remove("raw")
    rows = X[::6] + 0.01  # off the training points, where a Matern-1/2 process has its kinks
    for scale in scales:
        predictor = _predictor(fitted, scale)
        exact = closed_form.build(predictor, X, Settings()).gradient(rows)
        twin = finite_difference.build(predictor, X, Settings()).gradient(rows)
        smooth = (twin.flags == 0)[:, :, None]
        gap = np.abs(exact.values - twin.values)
        allowed = 2 * twin.error + exact.error + 1e-9 * np.abs(twin.values).max()
        assert np.mean((gap <= allowed)[np.broadcast_to(smooth, gap.shape)]) > 0.99
        assert np.linalg.norm(gap * smooth) <= 1e-4 * np.linalg.norm(twin.values * smooth)


def test_a_row_is_bit_identical_alone_and_in_a_batch():
    predictor = _predictor(_fit(mlp(**NET), "three"), "probability")
    gradient = closed_form.build(predictor, X, Settings()).gradient
    together = gradient(np.tile(X, (6, 1))).values
    np.testing.assert_array_equal(together[:120], together[600:])
    for i in (0, 7, 119):
        np.testing.assert_array_equal(gradient(X[i : i + 1]).values[0], together[i])


def test_only_the_chosen_outputs_are_differentiated():
    fitted = _fit(mlp(**NET), "three")
    every = closed_form.build(_predictor(fitted, "probability"), X, Settings()).gradient(X).values
    one = closed_form.build(_predictor(fitted, "probability", output=2), X, Settings()).gradient(X).values
    np.testing.assert_allclose(one[:, :, 0], every[:, :, 2], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(every.sum(axis=2), 0, atol=1e-12)  # probabilities sum to 1


class _Twisted(linear_model.LinearRegression):
    def predict(self, X):
        return super().predict(X) ** 2


def test_what_is_not_in_the_table_falls_back_and_never_lies():
    forest = ensemble.RandomForestClassifier(3, random_state=0).fit(X, TARGETS["two"])
    with pytest.raises(Unsupported, match="closed form of a RandomForestClassifier is not known"):
        closed_form.build(_predictor(forest, "probability"), X, Settings())
    twisted = _Twisted().fit(X, SCORE)
    with pytest.raises(Unsupported, match="closed form of a _Twisted is not known"):
        closed_form.build(_predictor(twisted, "raw"), X, Settings())
    odd = make_pipeline(FunctionTransformer(np.sin), linear_model.LinearRegression()).fit(X, SCORE)
    engine = choose(_predictor(odd, "raw"), X, "auto", Settings(bandwidth=0))
    assert engine.name == "finite-difference" and "FunctionTransformer" in engine.why
    with pytest.raises(InputError, match=r"engine='closed-form' cannot explain.*FunctionTransformer"):
        choose(_predictor(odd, "raw"), X, "closed-form", Settings())


def test_a_model_whose_predictions_are_not_its_formula_is_refused():
    fitted = _fit(linear_model.LinearRegression(), "number")
    fitted.predict = lambda rows: np.tanh(np.asarray(rows) @ fitted.coef_)  # patched by its user
    with pytest.raises(Unsupported, match="differs from the model's predictions"):
        closed_form.build(_predictor(fitted, "raw"), X, Settings())


@pytest.mark.parametrize("target", ["two", "three"])
def test_platt_probabilities_are_refused(target):
    """libsvm couples the pairs by an iteration it stops early: no formula reproduces it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = svm.SVC(probability=True, random_state=0, decision_function_shape="ovo")
        fitted.fit(X, TARGETS[target])
    with pytest.raises(Unsupported, match="no closed form on the probability scale"):
        closed_form.build(_predictor(fitted, "probability"), X, Settings())


def test_votes_are_refused():
    """They jump: their slope between the jumps is a small part of their slope over a neighbourhood."""
    with pytest.raises(Unsupported, match="count votes"):
        closed_form.build(_predictor(svm.SVC().fit(X, TARGETS["three"]), "raw"), X, Settings())


def test_text_columns_are_refused():
    import pandas as pd

    table = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "x", "y")})
    schema, rows = frames.learn(table)
    predictor = prediction.adapt(_fit(linear_model.Ridge(), "number"), frames.learn(X)[0], X[:8])
    with pytest.raises(Unsupported, match="categorical"):
        closed_form.build(predictor.__class__(**{**predictor.__dict__, "schema": schema}), rows, Settings())


def test_error_bound_covers_rounding():
    """The same network in extended precision, layer by layer, is the slow twin."""
    fitted = _fit(mlp(**NET, activation="tanh"), "two")
    found = closed_form.build(_predictor(fitted, "log-odds", output=1), X, Settings()).gradient(X)
    a, derivative = X.astype(np.longdouble), np.broadcast_to(np.eye(4, dtype=np.longdouble), (120, 4, 4))
    for i, (w, b) in enumerate(zip(fitted.coefs_, fitted.intercepts_, strict=True)):
        a, derivative = a @ w.astype(np.longdouble) + b, derivative @ w.astype(np.longdouble)
        if i < len(fitted.coefs_) - 1:
            a = np.tanh(a)
            derivative = derivative * (1 - a**2)[:, None, :]
    assert np.all(np.abs(found.values - derivative) <= found.error)
