"""TExplainer: a model and a background in, explanations out.

It composes the parts and holds no mathematics of its own: `frames` reads the table, `prediction`
wraps the model, `gradients` differentiates it, `attribution` turns gradients into values,
`diagnostics` says how far to trust them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from texplainer import attribution as attributions
from texplainer import background as backgrounds
from texplainer import diagnostics, frames, gradients, prediction
from texplainer.errors import InputError, ModelError, UndefinedRowsWarning
from texplainer.explanation import Explanation
from texplainer.progress import track
from texplainer.signatures import Array

PROBE_ROWS = 8


class TExplainer:
    """Deterministic, Taylor-based explanations of any model's predictions.

    Parameters
    ----------
    model
        A fitted model of scikit-learn, XGBoost, LightGBM, CatBoost, torch, Keras, JAX or ONNX
        Runtime, or any function from a table to predictions.
    background
        Rows of the training data (some hundred are enough): their spread, range and mean prediction
        set the scale of the explanation.
    output
        What is explained: None (class 1 of a binary classifier, otherwise every output), a class
        label, an output's name or index, "predicted" (each row's own class) or "all".
    scale
        "probability" (the default for classifiers), "margin" (log-odds or decision function), "raw".
    engine
        "auto" takes the cheapest exact one; "closed-form", "autodiff", "tree", "finite-difference".
    step
        How finite differences find their displacement h: "auto" (a noise-aware ladder with an error
        bound), "paper" (Algorithm 1) or a number.
    smoothing
        Width of the neighbourhood the gradient is averaged over, in units of each feature's spread.
    attribution
        "sensitivity" (the paper: the partial derivative), "scaled", "contribution", "integrated".
    categorical
        Names of columns that hold categories, or groups of one-hot columns.
    bounds
        "background" keeps perturbations inside the data's range; None; or (low, high).
    feature_names
        Names for a background without any.
    batch_rows
        The most rows given to the model at once; results do not depend on it.
    """

    def __init__(
        self,
        model: Any,
        background: Any,
        *,
        output: Any = None,
        scale: str = "auto",
        engine: str = "auto",
        step: Any = "auto",
        smoothing: Any = "auto",
        attribution: str = "auto",
        categorical: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        bounds: Any = "background",
        feature_names: Sequence[str] | None = None,
        batch_rows: int = prediction.BATCH_ROWS,
        validation: tuple[Any, Any] | None = None,
    ) -> None:
        self._arguments = {name: value for name, value in locals().items() if name != "self"}
        if batch_rows < 1:
            raise InputError(f"batch_rows={batch_rows} is too small; expected at least 1.")
        self.attribution = "sensitivity" if attribution == "auto" else attribution
        if self.attribution not in attributions.ATTRIBUTIONS:
            known = ", ".join(attributions.ATTRIBUTIONS)
            raise InputError(f"attribution={attribution!r} is unknown; expected 'auto' or one of {known}.")
        schema, rows = frames.learn(background, feature_names, categorical or ())
        backgrounds.check(rows, schema)
        self.schema = schema
        self.predictor = prediction.adapt(
            model, schema, rows[:PROBE_ROWS], output=output, scale=scale, batch_rows=batch_rows
        )
        limits = backgrounds.resolve_bounds(bounds, rows)
        self.background = backgrounds.summarise(rows, self.predictor, limits)
        settings = gradients.Settings(step, smoothing, limits, batch_rows, validation)
        self.engine = gradients.choose(self.predictor, rows, engine, settings)

    def __call__(self, X: Any, *, progress: bool | None = None) -> Explanation:
        """Explain every row of a table.

        A row that cannot be explained is marked "undefined" with the reason; the others are
        explained. `progress` shows a bar (None: on a terminal, when it takes more than a moment).
        """
        rows = self.schema.read(X)
        refused = self._refused(rows)
        todo = np.array([i for i in range(len(rows)) if i not in refused], dtype=int)
        blocks = [todo[i : i + self._block] for i in range(0, len(todo), self._block)]
        parts: list[tuple[np.ndarray, _Part]] = []
        for block in track(blocks, "explaining", progress, [len(b) for b in blocks]):
            parts += self._keep_going(rows, block, refused)
        if not parts and any(isinstance(reason, ModelError) for reason in refused.values()):
            raise next(reason for reason in refused.values() if isinstance(reason, ModelError))
        if refused:
            first = min(refused)
            warnings.warn(
                f"{len(refused)} of {len(rows)} rows are undefined; row {first}: {refused[first]}",
                UndefinedRowsWarning,
                stacklevel=2,
            )
        return self._assemble(rows, parts, refused)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process as model, background and arguments; everything else is derived."""
        return _rebuild, (self._arguments,)

    def __repr__(self) -> str:
        outputs = "predicted class" if self.predictor.predicted else ", ".join(self.predictor.output_names)
        return (
            f"TExplainer of a {type(self.predictor.model).__name__}, {self.schema.width} features, "
            f"output {outputs} on the {self.predictor.scale} scale\n"
            f"  engine       {self.engine.name}: {self.engine.why}\n"
            f"  attribution  {self.attribution}\n"
            f"  background   {len(self.background.rows)} rows, base value "
            f"{np.array2string(self.background.base, precision=4)}"
        )

    # -------------------------------------------------------------- the work

    @property
    def _block(self) -> int:
        """Rows explained at a time, so that memory does not grow with the table."""
        per_row = 1 if self.engine.exact else 2 * self.schema.width
        return max(1, self.predictor.batch_rows // per_row)

    def _explain(self, rows: Array) -> _Part:
        """Explain rows that are known to be acceptable."""
        f0 = self.predictor(rows)
        gradient = self.engine.gradient(rows)
        local = attributions.Local(rows, f0, gradient.values, self.background, self.predictor, self.engine)
        found = attributions.ATTRIBUTIONS[self.attribution](local)
        residual, promised = diagnostics.taylor_residual(
            self.predictor, rows, f0, gradient.values, self.background
        )
        verdict, reason = diagnostics.verdicts(
            gradient, residual, promised, self.background, self.schema.names
        )
        part = _Part(
            {
                "values": found.values,
                "gradient": gradient.values,
                "predictions": f0,
                "error": gradient.error,
                "step": gradient.step,
                "flags": gradient.flags,
                "taylor_residual": residual,
                "completeness": f0 - self.background.base - found.values.sum(axis=1),
                "evaluations": gradient.evaluations + found.evaluations + f0.shape[1] + 1,
                "verdict": verdict,
                "reason": reason,
                **gradient.extras,
            }
        )
        return part.of_predicted_class() if self.predictor.predicted else part

    def _keep_going(
        self, rows: Array, block: np.ndarray, refused: dict[int, Any]
    ) -> list[tuple[np.ndarray, _Part]]:
        """Explain a block; if the model fails on it, halve it until only the failing rows are left out."""
        try:
            return [(block, self._explain(rows[block]))]
        except ModelError as error:
            if len(block) == 1:
                refused[int(block[0])] = error
                return []
        half = len(block) // 2
        return self._keep_going(rows, block[:half], refused) + self._keep_going(rows, block[half:], refused)

    def _refused(self, rows: Array) -> dict[int, Any]:
        """Rows whose cells no model could take: infinite ones, and missing ones if this model minds."""
        refused: dict[int, Any] = {}
        odd = np.nonzero(~np.all(np.isfinite(rows), axis=1))[0]
        for i in odd:
            j = int(np.nonzero(~np.isfinite(rows[i]))[0][0])
            cell = f"cell {self.schema.names[j]!r} is {rows[i, j]}"
            if np.isinf(rows[i]).any():
                refused[int(i)] = f"{cell}; expected a finite number. Clip or drop it."
                continue
            try:
                fine = np.all(np.isfinite(self.predictor(rows[i : i + 1])))
            except ModelError:
                fine = False
            if not fine:
                refused[int(i)] = f"{cell} and the model does not take missing values. Impute or drop it."
        return refused

    def _assemble(
        self, rows: Array, parts: list[tuple[np.ndarray, _Part]], refused: dict[int, Any]
    ) -> Explanation:
        names = ("predicted",) if self.predictor.predicted else self.predictor.output_names
        outputs = len(names)
        arrays = {
            "values": np.full((*rows.shape, outputs), np.nan),
            "gradient": np.full((*rows.shape, outputs), np.nan),
            "predictions": np.full((len(rows), outputs), np.nan),
            "verdict": np.full(len(rows), "undefined", dtype="<U9"),
            "reason": np.full(len(rows), "", dtype=object),
        }
        for block, part in parts:
            for name, array in part.arrays.items():
                if name not in arrays:
                    arrays[name] = _blank(array, len(rows))
                arrays[name][block] = _fit(array, arrays[name])
        for i, reason in refused.items():
            arrays["reason"][i] = str(reason)
        base = self.background.base
        if self.predictor.predicted:  # one base value a row, that of its own class
            base = base[arrays["predicted_class"]][:, None] if parts else np.full((len(rows), 1), np.nan)
        return Explanation.build(
            arrays.pop("values"),
            data=self._data(rows),
            base_values=base,
            predictions=arrays.pop("predictions"),
            gradient=arrays.pop("gradient"),
            feature_names=self.schema.names,
            output_names=names,
            diagnostics=arrays,
            scale=self.predictor.scale,
            attribution=self.attribution,
            engine=self.engine.name,
            settings=self._settings(),
        )

    def _data(self, rows: Array) -> np.ndarray:
        if not self.schema.levels:
            return rows
        columns = [np.asarray(self.schema.column(rows, j), dtype=object) for j in range(rows.shape[1])]
        return np.stack(columns, axis=1)

    def _settings(self) -> dict[str, Any]:
        """What was run, for the record; plain values only."""
        plain = {k: v for k, v in self._arguments.items() if isinstance(v, (str, int, float, type(None)))}
        return {
            **plain,
            "why": self.engine.why,
            "width": self.engine.width,
            "model": type(self.predictor.model).__name__,
        }


@dataclass(frozen=True)
class _Part:
    """The arrays of a block of rows."""

    arrays: dict[str, np.ndarray]

    def of_predicted_class(self) -> _Part:
        """Keep each row's own greatest output only."""
        from texplainer.explanation import axes_of

        pick = self.arrays["predictions"].argmax(axis=1)
        out = {"predicted_class": pick}
        for name, array in self.arrays.items():
            if axes_of(name, array).endswith("o"):
                index = pick.reshape(-1, *(1,) * (array.ndim - 1))
                array = np.take_along_axis(array, index, axis=array.ndim - 1)
            out[name] = array
        return replace(self, arrays=out)


def _blank(array: np.ndarray, rows: int) -> np.ndarray:
    """An empty array for all rows: NaN where there is a NaN, 0 or "" elsewhere."""
    fill: Any = np.nan if array.dtype.kind == "f" else "" if array.dtype.kind in "UO" else 0
    return np.full((rows, *array.shape[1:]), fill, dtype=array.dtype)


def _fit(array: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Pad a trace to the length of the first block's, or cut it (Algorithm 1 stops at different times)."""
    if array.ndim != 2 or array.shape[1] == target.shape[1]:
        return array
    out = np.full((len(array), target.shape[1]), np.nan)
    width = min(array.shape[1], target.shape[1])
    out[:, :width] = array[:, :width]
    return out


def _rebuild(arguments: dict[str, Any]) -> TExplainer:
    return TExplainer(**arguments)
