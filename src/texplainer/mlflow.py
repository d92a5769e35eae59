"""Explanations and explainers in MLflow runs; MLflow, an extra, is imported here only.

`log_explanation` adds a result, its report and its plots to a run. `log_explainer` logs an explainer with its model
as a pyfunc model, whose predictions come with contributions and slopes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from texplainer import plots as drawings
from texplainer import report
from texplainer.errors import InputError
from texplainer.explainer import TExplainer
from texplainer.explanation.explanation import Explanation
from texplainer.support.messages import describe

FILE = "explainer.pkl"
PACKAGES = ("texplainer", "numpy", "scipy", "sklearn", "pandas", "cloudpickle")
COLUMNS = {"shapley": "contribution", "slope": "slope"}


def log_explanation(
    explanation: Explanation,
    artifact_path: str = "explanation",
    *,
    plots: Sequence[str] = ("bar", "beeswarm"),
    run_id: str | None = None,
) -> None:
    """Log an explanation to an MLflow run: `explanation.npz`, `report.html` and a picture per plot.

    Parameters
    ----------
    explanation
        What an explainer returned.
    artifact_path
        The folder among the run's artifacts.
    plots
        Names of functions of `texplainer.plots`, drawn for each output as `bar.png` or `bar-<position>.png`.
    run_id
        The run; by default the active one, or a new one.
    """
    if not isinstance(explanation, Explanation):
        raise InputError(f"log_explanation got {describe(explanation)}; expected an Explanation.")
    unknown = [name for name in plots if name not in drawings.PLOTS]
    if unknown:
        raise InputError(f"plots has {unknown[0]!r}; expected some of {', '.join(drawings.PLOTS)}.")
    mlflow = _mlflow()
    with tempfile.TemporaryDirectory() as folder:
        explanation.save(Path(folder) / "explanation.npz")
        report.write(explanation, Path(folder) / "report.html")
        for name in plots:
            _draw(explanation, name, Path(folder))
        mlflow.log_artifacts(folder, artifact_path, run_id=run_id)


def log_explainer(explainer: TExplainer, name: str = "explainer", **options: Any) -> Any:
    """Log an explainer with its model as a pyfunc model of an MLflow run, and return MLflow's information on it.

    `mlflow.pyfunc.load_model(...).predict(table)` gives a frame with one line per row: the columns `prediction`,
    `contribution.<feature>` and `slope.<feature>`; of several outputs `prediction.<output>` and
    `contribution.<output>.<feature>`. The explainer is pickled: load such models from sources you trust only.

    Parameters
    ----------
    explainer
        The explainer.
    name
        The name of the logged model.
    **options
        Passed on to `mlflow.pyfunc.log_model`.
    """
    if not isinstance(explainer, TExplainer):
        raise InputError(f"log_explainer got {describe(explainer)}; expected a TExplainer.")
    mlflow = _mlflow()
    import cloudpickle

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        path.write_bytes(cloudpickle.dumps(explainer))
        options.setdefault("pip_requirements", requirements(explainer))
        return mlflow.pyfunc.log_model(name=name, loader_module=__name__, data_path=str(path), **options)


class ExplainedModel:
    """A pyfunc model: predictions of a table, each with its contributions and slopes."""

    def __init__(self, explainer: TExplainer) -> None:
        self.explainer = explainer

    def predict(self, table: Any, params: Any = None) -> Any:
        """One line per row, labelled as the table."""
        import pandas as pd

        found = self.explainer(table, attribution=tuple(COLUMNS), progress=False)
        outputs = [f".{name}" for name in found.output_names] if len(found.output_names) > 1 else [""]
        columns = {f"prediction{of}": found.arrays["predictions"][:, o] for o, of in enumerate(outputs)}
        for attribution, title in COLUMNS.items():
            values = found.with_attribution(attribution).arrays["values"]
            for o, of in enumerate(outputs):
                columns |= {
                    f"{title}{of}.{name}": values[:, j, o] for j, name in enumerate(found.feature_names)
                }
        return pd.DataFrame(columns, index=found.index)


def _load_pyfunc(path: str) -> ExplainedModel:
    """Called by MLflow to load what `log_explainer` logged."""
    import cloudpickle

    return ExplainedModel(cloudpickle.loads(Path(path).read_bytes()))


def requirements(explainer: TExplainer) -> list[str]:
    """The packages that a logged explainer needs, in the versions that are installed here."""
    owners = metadata.packages_distributions()
    modules = [*PACKAGES, type(explainer.predictor.model).__module__.split(".")[0]]
    found = {owner for module in modules for owner in owners.get(module, ())[:1]}
    return [f"{owner}=={metadata.version(owner)}" for owner in sorted(found)]


def _draw(explanation: Explanation, name: str, folder: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    several = len(explanation.output_names) > 1
    for o, output in enumerate(explanation.output_names):
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        getattr(drawings, name)(
            explanation[..., str(output)] if several else explanation, ax=figure.subplots()
        )
        figure.savefig(folder / (f"{name}-{o}.png" if several else f"{name}.png"))


def _mlflow() -> Any:
    try:
        import mlflow.pyfunc
    except ModuleNotFoundError as error:
        raise ImportError(
            "this needs mlflow, which is not installed. Install it with: pip install 'texplainer[mlflow]'"
        ) from error
    return mlflow
