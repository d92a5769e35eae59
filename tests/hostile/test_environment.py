"""Forked children, containers that cannot be written to, and numba without its compiler."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import texplainer as tx

SOURCE = Path(tx.__file__).parents[1]
FORKED = """
import os, sys
import numpy as np
import texplainer as tx
X = np.random.default_rng(0).normal(size=(500, 3))
{model}
explainer = tx.TExplainer(model, X)
{before}
child = os.fork()
if child == 0:
    try:
        explainer(X[:9], attribution={attribution!r})
    except tx.errors.InputError as error:
        os._exit(7 if "spawn" in str(error) else 1)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
MODELS = {
    "lightgbm": "from lightgbm import LGBMRegressor as M; model = M(n_estimators=5, verbose=-1).fit(X, X[:, 0])",
    "xgboost": "from xgboost import XGBRegressor as M; model = M(n_estimators=5).fit(X, X[:, 0])",
    "sklearn": "from sklearn.ensemble import HistGradientBoostingRegressor as M; model = M().fit(X, X[:, 0])",
    "torch": "import torch; model = torch.nn.Linear(3, 1)",
}
TREE = """
import warnings
import numpy as np
import texplainer as tx
from sklearn.ensemble import GradientBoostingRegressor
X = np.random.default_rng(0).normal(size=(60, 3))
model = GradientBoostingRegressor(n_estimators=3, random_state=0).fit(X, X[:, 0])
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    explainer = tx.TExplainer(model, X)
    values = explainer(X[:3]).values
assert explainer.engine.name == "tree"
print(sum("NUMBA_CACHE_DIR" in str(one.message) for one in seen), *values.ravel())
"""


def run(code, **environment):
    full = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
    full = {name: value for name, value in full.items() if value}
    return subprocess.run(
        [sys.executable, "-B", "-c", code], env=full, capture_output=True, text=True, timeout=300
    )


def forked(model, before="", attribution="slope"):
    """Use a model, fork, use it in the child: exit code 0 is an answer, 7 an error with the remedy."""
    return run(FORKED.format(model=model, before=before, attribution=attribution), OMP_NUM_THREADS="2")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("library", MODELS)
def test_a_forked_child_raises_instead_of_waiting_for_ever(library):
    pytest.importorskip(library)
    done = forked(MODELS[library])
    assert done.returncode == 7, done.stderr[-500:]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("attribution", ["slope", "shapley"])
@pytest.mark.parametrize("before", ["", "explainer(X[:1], attribution='shapley')"], ids=["new", "used"])
def test_a_forked_child_may_use_a_plain_function(attribution, before):
    model = "model = lambda rows: rows[:, 0] * (rows[:, 1] > 0) + abs(rows[:, 2])"
    assert forked(model, before, attribution).returncode == 0


@pytest.mark.parametrize("numba", ["None", "type(sys)('numba')"], ids=["missing", "broken"])
def test_models_that_are_no_trees_need_no_numba(numba):
    code = f"""
import sys, warnings
sys.modules["numba"] = {numba}
import numpy as np
import texplainer as tx
from sklearn.neighbors import KNeighborsRegressor
warnings.simplefilter("error")
X = np.random.default_rng(0).normal(size=(60, 3))
explainer = tx.TExplainer(KNeighborsRegressor().fit(X, X[:, 0] * X[:, 1]), X)
explainer(X[:3], attribution=("slope", "shapley"))
print(explainer.engine_report())
"""
    done = run(code)
    assert "not tree: the model is not a tree ensemble." in done.stdout.splitlines(), done.stderr[-500:]


def test_trees_are_explained_without_the_compiler_and_without_a_cache():
    usual = run(TREE).stdout.split()
    slow = run(TREE, NUMBA_DISABLE_JIT="1")
    assert slow.returncode == 0, slow.stderr[-500:]
    uncached = run("from numba.core import caching\ncaching.CacheImpl._locator_classes = []\n" + TREE)
    assert uncached.returncode == 0, uncached.stderr[-500:]
    assert (usual[0], slow.stdout.split()[0], uncached.stdout.split()[0]) == ("0", "0", "1")
    for other in (slow, uncached):
        assert np.allclose(
            [float(v) for v in usual[1:]], [float(v) for v in other.stdout.split()[1:]], rtol=1e-9
        )


def test_reading_an_onnx_file_leaves_no_device_id(tmp_path):
    pytest.importorskip("onnxruntime")
    code = "from texplainer.models.libraries import file_readers; file_readers(); import onnxruntime"
    done = run(code, HOME=str(tmp_path), ORT_DISABLE_TELEMETRY="")
    assert done.returncode == 0, done.stderr[-500:]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


# ---------------------------------------------------------------- without a network, and without a place to write

LIBRARIES = {
    "sklearn": "from sklearn.linear_model import LogisticRegression as M; model = M().fit(X, X[:, 0] > 0)",
    "xgboost": MODELS["xgboost"],
    "onnxruntime": """
from skl2onnx import to_onnx
from sklearn.linear_model import LinearRegression
import texplainer.models.libraries.onnx
import onnxruntime
graph = to_onnx(LinearRegression().fit(X, X[:, 0]), X[:1].astype(np.float32), target_opset=17)
model = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
""",
    "torch": MODELS["torch"],
}
OFFLINE = """
import socket
asked = []
def note(real):
    def call(*given, **named):
        place = given[1] if real.__name__.startswith("connect") else given[0]
        host = place[0] if isinstance(place, tuple) else place
        if not isinstance(host, (bytes, type(None))) and str(host) not in ("127.0.0.1", "::1", "localhost"):
            asked.append(host)
        return real(*given, **named)
    return call
class Noted(socket.socket):
    connect, connect_ex = note(socket.socket.connect), note(socket.socket.connect_ex)
socket.socket, socket.getaddrinfo = Noted, note(socket.getaddrinfo)
import numpy as np
import texplainer as tx
X = np.random.default_rng(0).normal(size=(60, 3))
{model}
explainer = tx.TExplainer(model, X)
explainer(X[:3], attribution=("slope", "shapley"))
{more}
print("asked", len(asked), *asked)
"""


def unshared(*options):
    """A command that runs another one in namespaces of its own; the test is skipped where that is forbidden."""
    command = ["unshare", "-r", *options]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip(f"{' '.join(command)} is not permitted here")
    return command


def run_in(command, code, **environment):
    full = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
    full = {name: value for name, value in full.items() if value}
    return subprocess.run(
        [*command, sys.executable, "-B", "-c", code], env=full, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_explaining_opens_no_connection_and_needs_no_network(library):
    pytest.importorskip(library)
    if library == "onnxruntime":
        pytest.importorskip("skl2onnx")
    done = run_in(unshared("-n"), OFFLINE.format(model=LIBRARIES[library], more=""))
    assert done.stdout.split() == ["asked", "0"], done.stdout + done.stderr[-500:]


def test_a_connection_would_be_noticed():
    more = "try:\n    socket.create_connection(('198.51.100.1', 9), 1)\nexcept OSError:\n    pass"
    done = run_in(unshared("-n"), OFFLINE.format(model=LIBRARIES["sklearn"], more=more))
    assert done.stdout.split()[:3] == ["asked", "2", "198.51.100.1"], done.stderr[-500:]


def test_trees_are_explained_where_nothing_can_be_written(tmp_path):
    """The package is a read-only copy and there is no home folder: no cache, one warning, the same values."""
    copy = tmp_path / "package"
    shutil.copytree(SOURCE / "texplainer", copy / "texplainer", ignore=shutil.ignore_patterns("__pycache__"))
    script = f'mount --bind {copy} {copy} && mount -o remount,ro,bind {copy} && exec "$@"'
    command = [*unshared("-m"), "sh", "-c", script, "sh"]
    if subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("mount --bind is not permitted here")
    nowhere = {
        "PYTHONPATH": str(copy),
        "HOME": "/proc/nonexistent",
        "XDG_CACHE_HOME": "",
        "NUMBA_CACHE_DIR": "",
    }
    done = run_in(command, TREE, **nowhere)
    assert done.returncode == 0, done.stderr[-500:]
    warned, *values = done.stdout.split()
    assert warned == "1" and not list(copy.rglob("*.nbi"))
    assert values == run(TREE).stdout.split()[1:]
