"""TExplainer: a model and a background in, explanations out.

It composes the parts and holds no mathematics of its own: `frames` reads the table, `prediction`
wraps the model, `gradients` differentiates it, `attribution` turns gradients into values,
`diagnostics` says how far to trust them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from texplainer import attribution as attributions
from texplainer import background as backgrounds
from texplainer import categorical as categories
from texplainer import category_columns, diagnostics, fingerprints, gradients, prediction
from texplainer.assembly import Assembly, of_predicted_class
from texplainer.errors import InputError, ModelError, UndefinedRowsWarning
from texplainer.explanation import Explanation
from texplainer.progress import track
from texplainer.signatures import Array

PROBE_ROWS = 8
FINGERPRINT_ROWS = 256  # a model is known by its predictions of so many background rows


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
        Width of the neighbourhood the gradient is averaged over, in units of each feature's spread; 0
        for the derivative at the point. "auto": where the gradient is the attribution and exact, the
        largest width at which the averaged model is still the model; the point elsewhere.
    attribution
        "effect" (the default: what replacing the feature by other values of its column does),
        "sensitivity" (the paper: the partial derivative; the default when a step is given), "scaled";
        "contribution", "integrated" and "additive" share out f(x) - E f.
    categorical
        None finds the categorical features (text, category and boolean dtypes, columns the model
        encodes, one-hot columns). Otherwise the columns that hold categories, or a mapping: a group
        of one-hot columns, {"Purpose": ["Purpose_car", ...]}, or "nominal", "ordinal", "numeric".
    categorical_method
        "swaps" (each level in turn, no retraining), "induction" (the paper: a clone refitted on
        perturbed one-hot cells) or "target" (a clone refitted on target-encoded levels).
    category_neighbours
        0 weighs levels by their frequency in the background; k among the k rows nearest to x.
    training
        (X, y), what the model was fitted on; "induction" and "target" need it.
    seed
        Of the perturbation of "induction".
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
        categorical: Sequence[Any] | Mapping[str, Any] | None = None,
        categorical_method: str = "swaps",
        category_neighbours: int = 0,
        training: tuple[Any, Any] | None = None,
        seed: int = 0,
        bounds: Any = "background",
        feature_names: Sequence[str] | None = None,
        batch_rows: int = prediction.BATCH_ROWS,
        validation: tuple[Any, Any] | None = None,
    ) -> None:
        self._arguments = {name: value for name, value in locals().items() if name != "self"}
        if batch_rows < 1:
            raise InputError(f"batch_rows={batch_rows} is too small; expected at least 1.")
        self.attribution = attributions.default(step) if attribution == "auto" else attribution
        if self.attribution not in attributions.ATTRIBUTIONS:
            known = ", ".join(attributions.ATTRIBUTIONS)
            raise InputError(f"attribution={attribution!r} is unknown; expected 'auto' or one of {known}.")
        schema, rows, self._why = category_columns.learn(
            background, feature_names, categorical, model, training and training[0]
        )
        backgrounds.check(rows, schema)
        self.schema = schema
        self.predictor = prediction.adapt(
            model, schema, rows[:PROBE_ROWS], output=output, scale=scale, batch_rows=batch_rows
        )
        plan = categories.Plan(categorical_method, category_neighbours, training, output, scale, seed)
        self.predictor, self.refit = categories.prepare(self.predictor, schema, plan)
        limits = backgrounds.resolve_bounds(bounds, schema.wide(rows))
        self.background = backgrounds.summarise(rows, self.predictor, schema.narrow(limits))
        average = self.attribution in attributions.SLOPES
        settings = gradients.Settings(step, smoothing, limits, batch_rows, validation, average)
        self.engine, self.categories = categories.build(
            self.predictor, self.background, schema.names, engine, settings, plan
        )
        known = self.predictor(rows[:FINGERPRINT_ROWS])
        self._fingerprints = {
            "model": fingerprints.of_array(known),
            "background": fingerprints.of_array(rows),
        }

    def __call__(self, X: Any, *, progress: bool | None = None) -> Explanation:
        """Explain every row of a table.

        A row that cannot be explained is marked "undefined" with the reason; the others are
        explained. `progress` shows a bar (None: on a terminal, when it takes more than a moment).
        """
        began = time.perf_counter()
        rows = self.schema.read(X)
        refused = self._refused(rows)
        todo = np.delete(np.arange(len(rows)), list(refused))
        blocks = [todo[i : i + self._block] for i in range(0, len(todo), self._block)]
        assembly = Assembly(len(rows))
        for block in track(blocks, "explaining", progress, [len(b) for b in blocks]):
            self._keep_going(rows, block, assembly, refused)
        if not assembly.arrays and any(isinstance(reason, ModelError) for reason in refused.values()):
            raise next(reason for reason in refused.values() if isinstance(reason, ModelError))
        if refused:
            first = min(refused)
            warnings.warn(
                f"{len(refused)} of {len(rows)} rows are undefined; row {first}: {refused[first]}",
                UndefinedRowsWarning,
                stacklevel=2,
            )
        explanation = self._result(rows, assembly, refused)
        seconds = round(time.perf_counter() - began, 4)
        return replace(explanation, settings={**explanation.settings, "seconds": seconds})

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
            f"{categories.words(self._why, self._arguments['categorical_method'], self.refit)}"
            f"  background   {len(self.background.rows)} rows, base value "
            f"{np.array2string(self.background.base, precision=4)}"
        )

    # -------------------------------------------------------------- the work

    @property
    def _block(self) -> int:
        """Rows explained at a time, so that memory does not grow with the table."""
        per_row = max(1 if self.engine.exact else 2 * self.schema.width, self.categories.evaluations)
        return max(1, min(2048, self.predictor.batch_rows // per_row))  # a block's arrays stay in cache

    def _explain(self, rows: Array) -> dict[str, np.ndarray]:
        """Explain rows that are known to be acceptable."""
        f0 = self.predictor(rows)
        gradient = self.engine.gradient(rows)
        local = attributions.Local(rows, f0, gradient.values, self.background, self.predictor, self.engine)
        found = attributions.ATTRIBUTIONS[self.attribution](local)
        values, effects = self.categories.fill(found.values, rows, f0, self.attribution)
        doubts = diagnostics.assess(
            self.predictor, rows, f0, gradient, self.background, self.schema.names, self.engine.width
        )
        arrays = {
            "values": values,
            "gradient": gradient.values,
            "predictions": f0,
            "error": gradient.error,
            "step": gradient.step,
            "flags": gradient.flags,
            "completeness": f0 - self.background.base - values.sum(axis=1),
            "evaluations": gradient.evaluations
            + found.evaluations
            + self.categories.evaluations
            + f0.shape[1]
            + 1,
            **doubts,
            **gradient.extras,
            **effects,
        }
        return of_predicted_class(arrays) if self.predictor.predicted else arrays

    def _keep_going(
        self, rows: Array, block: np.ndarray, assembly: Assembly, refused: dict[int, Any]
    ) -> None:
        """Explain a block; if the model fails on it, halve it until only the failing rows are left out."""
        try:
            assembly.put(block, self._explain(rows[block]))
        except ModelError as error:
            if len(block) == 1:
                refused[int(block[0])] = error
                return
            half = len(block) // 2
            self._keep_going(rows, block[:half], assembly, refused)
            self._keep_going(rows, block[half:], assembly, refused)

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

    def _result(self, rows: Array, assembly: Assembly, refused: dict[int, Any]) -> Explanation:
        names = ("predicted",) if self.predictor.predicted else self.predictor.output_names
        if not assembly.arrays:
            assembly.put(np.arange(0), self._nothing(len(names)))
        arrays = assembly.arrays
        for i, reason in refused.items():
            arrays["reason"][i] = str(reason)
        base = self.background.base
        if self.predictor.predicted:  # one base value a row, that of its own class
            base = base[arrays["predicted_class"]][:, None]
        effects = {name: arrays.pop(name) for name in self.categories.keys if name in arrays}
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
            categories=self.categories.results(effects),
        )

    def _nothing(self, outputs: int) -> dict[str, np.ndarray]:
        """The arrays of no rows, for a table none of whose rows can be explained."""
        values = np.empty((0, self.schema.width, outputs))
        return {
            "values": values,
            "gradient": values.copy(),
            "predictions": values[:, 0],
            "verdict": np.empty(0, dtype="<U9"),
            "reason": np.empty(0, dtype=object),
            "predicted_class": np.empty(0, dtype=int),
        }

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
            "fingerprints": self._fingerprints,
            "categorical_features": list(self._why),
            **({"refit": asdict(self.refit)} if self.refit else {}),
        }


def _rebuild(arguments: dict[str, Any]) -> TExplainer:
    return TExplainer(**arguments)
