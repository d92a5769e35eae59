"""Models out of the ordinary: half precision, endings told by the graph, several inputs, odd objectives."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import texplainer as tx
from texplainer.errors import InputError, ModelError, ModelWarning

X = np.random.default_rng(0).normal(size=(80, 4)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)


def torch_net(*ending):
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(0)
    layers = [torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2)]
    for layer in layers:
        for weight in layer.parameters():
            weight.data = torch.randn(weight.shape, generator=generator)
    return torch.nn.Sequential(*layers, *ending)


@pytest.mark.parametrize("width", ["float16", "bfloat16"])
def test_a_module_in_half_precision_knows_its_rounding(width):
    torch = pytest.importorskip("torch")
    exact = tx.TExplainer(torch_net().double(), X.astype(float))(X[:6].astype(float))
    explainer = tx.TExplainer(torch_net().to(getattr(torch, width)), X)
    found = explainer(X[:6])
    assert explainer.predictor.unit == torch.finfo(getattr(torch, width)).eps / 2
    np.testing.assert_allclose(found.values, exact.values, atol=0.05)
    assert np.mean(np.abs(found.values - exact.values) <= found.diagnostics.error) >= 0.95


@pytest.mark.parametrize(("ending", "words"), [("ReLU", "relu"), ("Softplus", "softplus"), ("Tanh", "tanh")])
def test_outputs_that_are_no_scores_say_so(ending, words):
    torch = pytest.importorskip("torch")
    model = torch_net(getattr(torch.nn, ending)())
    with pytest.warns(ModelWarning, match=f"the network ends in {words}.*scale='raw'"):
        tx.TExplainer(model, X, scale="probability")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tx.TExplainer(model, X)
        tx.TExplainer(torch_net(), X, scale="probability")
        tx.TExplainer(torch_net(torch.nn.LogSoftmax(dim=1)), X, scale="probability")


def test_a_module_that_returns_several_things_is_refused_in_words():
    torch = pytest.importorskip("torch")

    class Pair(torch.nn.Module):
        def forward(self, x):
            return x, x

    with pytest.raises(ModelError, match=r"returned a tuple; expected one tensor.*Wrap it"):
        tx.TExplainer(Pair(), X)


def onnx_session(*inputs, width="FLOAT"):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper, numpy_helper

    kind = getattr(TensorProto, width)
    weights = numpy_helper.from_array(WEIGHTS[:, :1].astype(helper.tensor_dtype_to_np_dtype(kind)), "w")
    nodes = [helper.make_node("MatMul", [inputs[0], "w"], ["h"]), helper.make_node("Tanh", ["h"], ["y"])]
    given = [helper.make_tensor_value_info(name, kind, [None, 4]) for name in inputs]
    graph = helper.make_graph(
        nodes, "g", given, [helper.make_tensor_value_info("y", kind, [None, 1])], [weights]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def test_onnx_in_half_precision():
    explainer = tx.TExplainer(onnx_session("x", width="FLOAT16"), X, attribution="gradient")
    found = explainer(X[:6])
    assert explainer.predictor.unit == np.finfo(np.float16).eps / 2
    slopes = (1 - np.tanh(X[:6] @ WEIGHTS[:, :1]) ** 2) * WEIGHTS[:, 0]
    assert np.all(np.abs(found.values - slopes) <= found.diagnostics.error + 0.02)


def test_onnx_of_several_inputs_names_the_missing_column():
    with pytest.raises(
        InputError, match=r"inputs \['x', 'z'\], but the table does not have a column 'x'.*Wrap the session"
    ):
        tx.TExplainer(onnx_session("x", "z"), X)


@pytest.mark.parametrize(
    ("function", "ending"),
    [
        (lambda nn, x: nn.sigmoid(x @ WEIGHTS[:, 0]), "sigmoid"),
        (lambda nn, x: nn.softmax(x @ WEIGHTS, axis=1), "softmax"),
        (lambda nn, x: x @ WEIGHTS, ""),
    ],
)
def test_how_a_jax_function_ends(function, ending):
    jax = pytest.importorskip("jax")
    model = jax.jit(lambda x: function(jax.nn, x))
    explainer = tx.TExplainer(model, X)
    assert explainer.predictor.ending == ending
    assert explainer.predictor.scale == ("probability" if ending else "raw")
    own = np.asarray(model(X[:5])).reshape(5, -1)[:, -1]
    np.testing.assert_allclose(explainer(X[:5]).predictions.reshape(5, -1)[:, -1], own, rtol=1e-5)


def test_how_a_keras_model_ends():
    keras = pytest.importorskip("keras")
    if keras.backend.backend() not in ("jax", "torch"):
        pytest.skip(f"Keras runs on {keras.backend.backend()!r}")
    layers = keras.layers
    endings = {
        "sigmoid": [layers.Dense(1, "sigmoid")],
        "softmax": [layers.Dense(3), layers.Softmax()],
        "": [layers.Dense(2)],
    }
    for ending, last in endings.items():
        model = keras.Sequential([layers.Input((4,)), layers.Dense(5, "tanh"), *last])
        assert tx.TExplainer(model, X).predictor.ending == ending
    first, second = layers.Input((3,)), layers.Input((1,))
    both = keras.Model([first, second], layers.Dense(1)(layers.Concatenate()([first, second])))
    with pytest.raises(InputError, match=r"has 2 inputs; expected one tensor.*Wrap it"):
        tx.TExplainer(both, X)


def test_hinge_losses_are_read_as_trees_and_texts_are_not():
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=4, objective="binary:hinge").fit(X, X[:, 0] > 0)
    explainer = tx.TExplainer(model, X)
    assert explainer.engine.name == "tree"
    np.testing.assert_allclose(
        explainer(X[:5]).predictions, model.predict(X[:5], output_margin=True), rtol=1e-5
    )


def test_catboost_of_texts_says_why_it_is_a_black_box():
    catboost = pytest.importorskip("catboost")
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd")).assign(words=np.where(X[:, 0] > 0, "a day", "a night"))
    quiet = {"iterations": 3, "verbose": False, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(text_features=["words"], **quiet).fit(table, X[:, 0] > 0)
    why = tx.TExplainer(model, table).engine.why
    assert "1 text feature, of which CatBoost computes numbers" in why and "may have changed" not in why
