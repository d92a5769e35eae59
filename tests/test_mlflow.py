"""Explanations and explainers in a local MLflow store; the logged model is loaded, scored and served."""

from __future__ import annotations

import builtins
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import texplainer as tx
from texplainer.errors import InputError
from texplainer.mlflow import log_explainer, log_explanation

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow warns when it is imported
        import mlflow
        import mlflow.pyfunc
except ModuleNotFoundError:
    mlflow = None
needs_mlflow = pytest.mark.skipif(mlflow is None, reason="mlflow is not installed")
# MLflow's own warnings are not ours to fix
pytestmark = pytest.mark.filterwarnings("ignore")


def explained(classes: int = 2) -> tuple[tx.TExplainer, pd.DataFrame]:
    random = np.random.default_rng(3)
    table = pd.DataFrame(random.normal(size=(120, 3)), columns=["age", "a<b>", "income"])
    table["job"] = pd.Categorical(random.choice(["cook", "nurse"], 120))
    y = np.digitize(table["age"] + table["income"] ** 2, [0.5, 2.0][: classes - 1])
    model = HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype").fit(table, y)
    table.index = [f"C-{i}" for i in range(120)]
    return tx.TExplainer(model, table[:60]), table[60:66]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as active:
        yield active
    mlflow.set_tracking_uri(before)


@needs_mlflow
def test_an_explanation_is_logged_with_its_report_and_plots(run, tmp_path: Path) -> None:
    explainer, X = explained()
    both = explainer(X, attribution=("slope", "shapley"))
    log_explanation(both, "why", plots=("bar", "heatmap"))
    folder = Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="why"))
    assert {path.name for path in folder.iterdir()} == {
        "explanation.npz",
        "report.html",
        "bar.png",
        "heatmap.png",
    }
    loaded = tx.Explanation.load(folder / "explanation.npz")
    np.testing.assert_array_equal(loaded.with_attribution("shapley").values, both.others["shapley"].values)
    assert "C-60" in (folder / "report.html").read_text(encoding="utf-8")


@needs_mlflow
@pytest.mark.parametrize("classes", [2, 3])
def test_a_logged_explainer_predicts_with_contributions_and_slopes(run, classes: int) -> None:
    explainer, X = explained(classes)
    info = log_explainer(explainer, "risk")
    found = mlflow.pyfunc.load_model(info.model_uri).predict(X)
    assert list(found.index) == list(X.index)
    for o, output in enumerate(explainer.predictor.output_names):
        of = f".{output}" if classes == 3 else ""
        np.testing.assert_array_equal(
            found[f"prediction{of}"], explainer.predictor(explainer.schema.read(X))[:, o]
        )
        for attribution, title in (("shapley", "contribution"), ("slope", "slope")):
            values = explainer(X, attribution=attribution).arrays["values"][:, :, o]
            names = [f"{title}{of}.{name}" for name in X.columns]
            np.testing.assert_array_equal(found[names], values)
        total = found[[name for name in found if name.startswith(f"contribution{of}.")]].sum(axis=1)
        np.testing.assert_allclose(found[f"prediction{of}"], explainer.background.base[o] + total)


@needs_mlflow
def test_a_logged_explainer_can_be_served(run) -> None:
    server = pytest.importorskip("mlflow.pyfunc.scoring_server", reason="mlflow's server is not installed")
    testing = pytest.importorskip("starlette.testclient", reason="httpx is not installed")
    explainer, X = explained()
    model = mlflow.pyfunc.load_model(log_explainer(explainer).model_uri)
    client = testing.TestClient(server.init(model))
    sent = {"dataframe_split": json.loads(X.to_json(orient="split"))}
    answer = client.post("/invocations", json=sent)
    assert answer.status_code == 200, answer.text
    scored = pd.DataFrame(answer.json()["predictions"])
    np.testing.assert_allclose(scored["contribution.age"], model.predict(X)["contribution.age"], rtol=1e-9)


def test_without_mlflow_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def without(name: str, *rest: object, **words: object) -> object:
        if name.split(".")[0] == "mlflow":
            raise ModuleNotFoundError(name)
        return plain(name, *rest, **words)

    explainer, X = explained()
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"texplainer\[mlflow\]"):
        log_explanation(explainer(X))
    with pytest.raises(ImportError, match=r"texplainer\[mlflow\]"):
        log_explainer(explainer)


def test_wrong_arguments_are_refused() -> None:
    explainer, X = explained()
    with pytest.raises(InputError, match="expected an Explanation"):
        log_explanation(explainer)
    with pytest.raises(InputError, match="expected a TExplainer"):
        log_explainer(explainer(X))
    with pytest.raises(InputError, match="plots has 'bars'"):
        log_explanation(explainer(X), plots=("bars",))
