"""Every library's real models, through one Predictor."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import texplainer as tx
from texplainer.errors import InputError, ModelError, ModelWarning
from texplainer.models.predictor import adapt
from texplainer.tables import schema as frames

X2, Y2 = make_classification(300, 5, random_state=0)
X3, Y3 = make_classification(300, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
XR, YR = make_regression(300, 5, noise=1.0, random_state=0)


def predictor_of(model, X, **options):
    schema, rows = frames.learn(X)
    return adapt(model, schema, rows[:8], **options), rows


def check(model, X, expected, **options):
    """All outputs equal what the library itself says."""
    predictor, rows = predictor_of(model, X, output="all", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = predictor(rows)
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)
    return predictor


def both(p):
    return np.column_stack([1 - p, p])


def test_sklearn_binary_multiclass_regression_multioutput():
    binary = LogisticRegression().fit(X2, Y2)
    check(binary, X2, binary.predict_proba(X2), scale="probability")
    z = binary.decision_function(X2)
    check(binary, X2, np.column_stack([-z, z]), scale="log-odds")
    multi = LogisticRegression(max_iter=500).fit(X3, Y3)
    check(multi, X3, multi.predict_proba(X3), scale="probability")
    check(multi, X3, multi.decision_function(X3), scale="raw")
    line = LinearRegression().fit(XR, YR)
    check(line, XR, line.predict(XR)[:, None])
    two = LinearRegression().fit(XR, np.column_stack([YR, -YR]))
    assert check(two, XR, two.predict(XR)).output_names == ("output 0", "output 1")


def test_sklearn_without_probabilities_or_decision_function():
    svm = LinearSVC().fit(X2, Y2)
    assert predictor_of(svm, X2)[0].scale == "log-odds"
    forest = RandomForestClassifier(10, random_state=0).fit(X2, Y2)
    predictor, rows = predictor_of(forest, X2, scale="log-odds")
    assert np.all(np.isfinite(predictor(rows)))  # probabilities of exactly 0 and 1 are held off infinity
    labels = RandomForestClassifier(10, random_state=0).fit(X2, np.column_stack([Y2, 1 - Y2]))
    predictor, rows = predictor_of(labels, X2)
    assert predictor.output_names == ("y0", "y1") and predictor(rows).shape == (300, 2)


def test_default_outputs_and_choices():
    names = np.array(["bad", "good"])[Y2]
    model = LogisticRegression().fit(X2, names)
    assert predictor_of(model, X2)[0].output_names == ("good",)
    assert predictor_of(model, X2, output="bad")[0].outputs == (0,)
    assert predictor_of(model, X2, output=0)[0].output_names == ("bad",)
    multi = LogisticRegression(max_iter=500).fit(X3, Y3 + 10)
    assert predictor_of(multi, X3)[0].output_names == ("10", "11", "12")
    assert predictor_of(multi, X3, output=11)[0].outputs == (1,)  # a label goes before an index
    assert predictor_of(multi, X3, output=2)[0].output_names == ("12",)
    assert predictor_of(multi, X3, output=["10", "12"])[0].outputs == (0, 2)
    with pytest.raises(InputError, match=r"output='ugly' is unknown; .* bad, good"):
        predictor_of(model, X2, output="ugly")


def test_pipeline_with_column_transformer_explains_the_raw_columns():
    table = pd.DataFrame(X2, columns=list("abcde"))
    table["f"] = np.where(X2[:, 0] > 0, "hi", "lo")
    prepare = ColumnTransformer([("n", StandardScaler(), list("abcde")), ("c", OneHotEncoder(), ["f"])])
    model = make_pipeline(prepare, LogisticRegression()).fit(table, Y2)
    predictor = check(model, table, model.predict_proba(table), scale="probability")
    assert predictor.schema.names == tuple("abcdef")


@pytest.mark.parametrize("named_fit", [True, False])
@pytest.mark.parametrize("named_use", [True, False])
def test_no_feature_name_warning_reaches_the_user(named_fit, named_use):
    table = pd.DataFrame(X2, columns=list("abcde"))
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table if named_fit else X2, Y2)
    check(
        model,
        table if named_use else X2,
        model.predict_proba(table if named_fit else X2),
        scale="probability",
    )


def test_xgboost_both_interfaces():
    import xgboost as xgb

    model = xgb.XGBClassifier(n_estimators=20, max_depth=3).fit(X2, Y2)
    predictor = check(model, X2, model.predict_proba(X2), scale="probability")
    assert predictor.kind == "xgboost" and predictor.dtype == np.float32
    z = model.predict(X2, output_margin=True)
    check(model, X2, np.column_stack([-z, z]), scale="log-odds")
    booster = model.get_booster()
    check(booster, X2, both(booster.predict(xgb.DMatrix(X2))), scale="probability")
    multi = xgb.XGBClassifier(n_estimators=20, max_depth=3).fit(X3, Y3)
    check(multi, X3, multi.predict_proba(X3), scale="probability")
    check(multi.get_booster(), X3, multi.predict_proba(X3), scale="probability")
    check(multi, X3, multi.predict(X3, output_margin=True), scale="raw")
    regressor = xgb.XGBRegressor(n_estimators=20, max_depth=3).fit(XR, YR)
    check(regressor, XR, regressor.predict(XR)[:, None])
    table = pd.DataFrame(X2, columns=list("abcde"))
    named = xgb.XGBClassifier(n_estimators=5).fit(table, Y2)
    check(named, table, named.predict_proba(table), scale="probability")
    check(named.get_booster(), table, named.predict_proba(table), scale="probability")
    check(named.get_booster(), X2, named.predict_proba(table), scale="probability")


def test_lightgbm_both_interfaces():
    import lightgbm as lgb

    quiet = {"n_estimators": 20, "verbose": -1, "n_jobs": 1}
    model = lgb.LGBMClassifier(**quiet).fit(X2, Y2)
    check(model, X2, model.predict_proba(X2), scale="probability")
    z = model.predict(X2, raw_score=True)
    check(model, X2, np.column_stack([-z, z]), scale="log-odds")
    check(model.booster_, X2, model.predict_proba(X2), scale="probability")
    multi = lgb.LGBMClassifier(**quiet).fit(X3, Y3)
    check(multi, X3, multi.predict_proba(X3), scale="probability")
    check(multi.booster_, X3, multi.predict_proba(X3), scale="probability")
    regressor = lgb.LGBMRegressor(**quiet).fit(XR, YR)
    check(regressor, XR, regressor.predict(XR)[:, None])
    check(regressor.booster_, XR, regressor.predict(XR)[:, None])
    table = pd.DataFrame(X2, columns=list("abcde"))
    named = lgb.LGBMClassifier(**quiet).fit(table, Y2)
    check(named, table, named.predict_proba(table), scale="probability")
    check(named, X2, named.predict_proba(table), scale="probability")


def test_catboost():
    from catboost import CatBoostClassifier, CatBoostRegressor

    quiet = {"iterations": 20, "verbose": False, "allow_writing_files": False, "thread_count": 1}
    model = CatBoostClassifier(**quiet).fit(X2, Y2)
    check(model, X2, model.predict_proba(X2), scale="probability")
    z = model.predict(X2, prediction_type="RawFormulaVal")
    check(model, X2, np.column_stack([-z, z]), scale="log-odds")
    multi = CatBoostClassifier(**quiet).fit(X3, Y3)
    check(multi, X3, multi.predict_proba(X3), scale="probability")
    regressor = CatBoostRegressor(**quiet).fit(XR, YR)
    check(regressor, XR, regressor.predict(XR)[:, None])
    with pytest.raises(InputError, match="not fitted"):
        predictor_of(CatBoostClassifier(**quiet), X2)


def test_torch_leaves_mode_and_gradients_as_found():
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.Dropout(0.5), torch.nn.ReLU(), torch.nn.Linear(8, 3)
    )
    model[1].eval()
    modes = [m.training for m in model.modules()]
    predictor, rows = predictor_of(model, X2)
    state = torch.random.get_rng_state()
    got = predictor(rows)
    assert [m.training for m in model.modules()] == modes
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(p.grad is None for p in model.parameters())
    model.eval()
    z = model(torch.tensor(X2, dtype=torch.float32)).detach().numpy()
    np.testing.assert_allclose(got, z, rtol=1e-6)
    assert predictor.dtype == np.float32 and predictor.unit > 1e-9
    check(model, X2, softmax(z, axis=1), scale="probability")
    one = torch.nn.Linear(5, 1).double()
    z = one(torch.tensor(X2)).detach().numpy()[:, 0]
    assert check(one, X2, both(expit(z)), scale="probability").dtype == np.float64
    check(one, X2, z[:, None])


def test_keras_on_jax():
    keras = pytest.importorskip("keras")
    model = keras.Sequential([keras.layers.Input((5,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(2)])
    check(model, X2, np.asarray(model(X2.astype(np.float32))))


def test_jax_function():
    jax = pytest.importorskip("jax")

    f = jax.jit(lambda x: jax.numpy.tanh(x @ np.ones((5, 2), np.float32)))
    assert check(f, X2, np.asarray(f(X2.astype(np.float32)))).kind == "jax"


def test_onnx_session():
    skl2onnx = pytest.importorskip("skl2onnx")
    import onnxruntime as ort

    model = MLPClassifier((8,), max_iter=300, random_state=0).fit(X2, Y2)
    onnx = skl2onnx.to_onnx(model, X2[:1].astype(np.float32))
    session = ort.InferenceSession(onnx.SerializeToString(), providers=["CPUExecutionProvider"])
    predictor, rows = predictor_of(session, X2, output="all")
    np.testing.assert_allclose(predictor(rows), model.predict_proba(X2), atol=1e-5)
    assert predictor.kind == "onnx" and predictor_of(session, X2)[0].outputs == (1,)
    plain = skl2onnx.to_onnx(model, X2[:1].astype(np.float32), options={"zipmap": False})
    session = ort.InferenceSession(plain.SerializeToString(), providers=["CPUExecutionProvider"])
    predictor, rows = predictor_of(session, X2, output="all")
    np.testing.assert_allclose(predictor(rows), model.predict_proba(X2), atol=1e-5)
    regressor = MLPRegressor(hidden_layer_sizes=(8,), max_iter=300, random_state=0).fit(XR, YR)
    onnx = skl2onnx.to_onnx(regressor, XR[:1].astype(np.float32))
    session = ort.InferenceSession(onnx.SerializeToString(), providers=["CPUExecutionProvider"])
    predictor, rows = predictor_of(session, XR)
    np.testing.assert_allclose(predictor(rows)[:, 0], regressor.predict(XR), rtol=1e-3, atol=1e-3)


def test_any_callable_gets_the_users_own_kind_of_table():
    seen = []

    def f(table):
        seen.append(type(table))
        return table["a"] * 2

    table = pd.DataFrame(X2, columns=list("abcde"))
    check(f, table, 2 * X2[:, :1])
    assert set(seen) == {pd.DataFrame}


def test_batches_hold_at_most_batch_rows():
    sizes = []

    def f(x):
        sizes.append(len(x))
        return x[:, 0]

    tx.TExplainer(f, X2, batch_rows=17, engine="finite-difference")(X2[:40])
    assert max(sizes) <= 17


class Flaky:
    """A callable whose answer is wrong in a chosen way, once the background is done."""

    def __init__(self, answer):
        self.answer, self.calls = answer, 0

    def __call__(self, x):
        self.calls += 1
        return self.answer(x) if self.calls > 2 else x[:, 0]


BAD_ANSWERS = {
    "wrong number of rows": (lambda x: x[1:, 0], "expected"),
    "changed number of outputs": (lambda x: x[:, :2], "number of outputs must not change"),
    "text": (lambda x: np.array(["a"] * len(x)), "expected numbers"),
    "an exception": (lambda x: 1 / 0, "ZeroDivisionError"),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_bad_answers_are_model_errors(name):
    answer, message = BAD_ANSWERS[name]
    explainer = tx.TExplainer(lambda x: x[:, 0], X2, engine="finite-difference")
    object.__setattr__(explainer.predictor, "call", answer)
    with pytest.raises(ModelError, match=message):
        explainer(X2[:3])


def test_unfitted_and_meaningless_models():
    with pytest.raises(InputError, match=r"LogisticRegression is not fitted; .* fit\(X, y\)"):
        tx.TExplainer(LogisticRegression(), X2)
    with pytest.raises(InputError, match="is not a model"):
        tx.TExplainer(3, X2)
    with pytest.raises(InputError, match="scale='probability' is not available"):
        tx.TExplainer(LinearRegression().fit(XR, YR), XR, scale="probability")
    with pytest.raises(InputError, match="scale='logit' is unknown"):
        tx.TExplainer(LinearRegression().fit(XR, YR), XR, scale="logit")


def test_labels_of_a_classifier_are_warned_about() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3))
    forest = RandomForestClassifier(5, random_state=0).fit(X, X[:, 0] > 0)
    with pytest.warns(ModelWarning, match=r"RandomForestClassifier.predict returns labels.*predict_proba"):
        tx.TExplainer(forest.predict, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        tx.TExplainer(RandomForestRegressor(5, random_state=0).fit(X, X[:, 0]).predict, X)
