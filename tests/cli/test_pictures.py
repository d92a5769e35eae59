"""Images on the command line."""

from __future__ import annotations

import numpy as np
import pytest

import texplainer as tx
from texplainer.cli import main

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")


def run(*words):
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A linear model of colour images, and three images of two sizes."""
    from onnx import TensorProto, helper, numpy_helper

    path = tmp_path_factory.mktemp("pictures")
    weights = np.random.default_rng(0).normal(size=(3 * 16 * 16, 3)).astype(np.float32)
    nodes = [helper.make_node("Flatten", ["x"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["y"])]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
        [numpy_helper.from_array(weights, "w")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, str(path / "model.onnx"))
    random = np.random.default_rng(1)
    for name, size in (("a", 16), ("b", 16), ("c", 40)):
        Image.fromarray(random.integers(0, 255, (size, size, 3), dtype=np.uint8)).save(path / f"{name}.png")
    (path / "empty").mkdir()
    (path / "album").mkdir()
    (path / "album" / "broken.png").write_bytes(b"no image at all")
    return path


def test_images_in_a_result_and_pictures_out(folder, capsys):
    files = [folder / f"{name}.png" for name in "abc"]
    assert (
        run("explain", folder / "model.onnx", *files, "-o", folder / "out", "--attribution", "shapley") == 0
    )
    assert "3 images (3 stable" in capsys.readouterr().err
    found = tx.Explanation.load(folder / "out" / "explanation.npz")
    assert found.attribution == "shapley" and found.arrays["image"].shape == (3, 16, 16, 3)
    np.testing.assert_allclose(found.values.sum(axis=1), found.predictions - found.base_values, atol=1e-3)
    drawn = sorted(path.name for path in (folder / "out").glob("*.png"))
    assert drawn == ["0000-a.png", "0001-b.png", "0002-c.png"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("empty", "-o", "out"), 3, "does not contain images"),
        (("album", "-o", "out"), 3, "is not an image, or is damaged"),
        (("missing.png", "-o", "out"), 3, "there is no file"),
        (("a.png",), 2, "-o FOLDER/"),
        (("a.png", "-o", "out", "--background", "b.csv"), 2, "--background is for tables"),
        (("a.csv", "b.csv", "-o", "out.npz"), 2, "or several images"),
    ],
)
def test_what_cannot_be_explained_is_refused_with_a_sentence(folder, monkeypatch, capsys, words, code, said):
    monkeypatch.chdir(folder)
    assert run("explain", "model.onnx", *words) == code
    assert said in capsys.readouterr().err
