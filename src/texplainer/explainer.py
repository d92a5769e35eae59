"""TExplainer: a model and a background in, explanations out.

It composes the parts and holds no mathematics: `tables` reads the table, `models` wraps the model,
`gradients` differentiates it, `attributions` answer a question each, `diagnostics` say how far to trust them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from texplainer import diagnostics
from texplainer.attributions.attribution import Attribution, ExplainContext
from texplainer.attributions.replaced import with_categories
from texplainer.attributions.table import ATTRIBUTIONS, DEFAULT, attributions_of
from texplainer.background import summary as backgrounds
from texplainer.categories import detect
from texplainer.categories import refit as refitting
from texplainer.categories.detect import Categories, categories_of
from texplainer.categories.refit import RefitReport, Refitted
from texplainer.errors import InputError, ModelError, UndefinedRowsWarning, Unsupported
from texplainer.explanation.explanation import Explanation
from texplainer.explanation.fields import Live, RowArrays, blanks, by_halves, of_predicted_class
from texplainer.explanation.interactions import Interactions
from texplainer.gradients import engine as gradients
from texplainer.gradients.choose import ENGINES, choose_engine
from texplainer.gradients.moves import checked_smoothing
from texplainer.interactions.compute import second_order
from texplainer.limits import BATCH_ROWS, CELLS
from texplainer.models import predictor
from texplainer.models.checks import check_original, refused_rows
from texplainer.models.libraries import feature_names as names_of_model
from texplainer.support import hashing
from texplainer.support.messages import check_arguments, listed, no_attribute, refuse_keywords
from texplainer.support.progress import asked_for, track, waiting
from texplainer.tables import native
from texplainer.types import Array

if TYPE_CHECKING:
    from texplainer.reasons.recourse import Recourse

PROBE_ROWS = 8
BUILDING, MOMENT = "predicting the background", 1.0  # shown on a terminal after so many seconds
FINGERPRINT_ROWS = 256  # a model is known by its predictions of so many background rows


class TExplainer:
    """Shapley values and local slopes of any model's predictions, with error bounds.

    Parameters
    ----------
    model
        A fitted model of scikit-learn, XGBoost, LightGBM, CatBoost, torch, Keras, JAX or ONNX
        Runtime, or any function from a table to predictions; `tx.Refitted(model, X, y)` for the paper's refit.
    background
        Some hundred rows of the training data; their SD, range and mean prediction set the scale.
    output
        What is explained: None (class 1 of a binary classifier, otherwise every output), a class
        label, an output's name or index, "predicted" (each row's own class) or "all".
    scale
        "auto" takes the log-odds where the model has its own (linear models, networks, boosters) and the
        probability elsewhere; "probability", "log-odds" (the log-odds of a class against the rest), "raw".
    engine
        "auto" takes the cheapest exact one; "closed-form", "autodiff", "tree", "finite-difference".
    step
        How differences find their step h: "auto" (with an error bound), "paper" (Algorithm 1), a number.
    smoothing
        Bandwidth of "slope": the standard deviation of the kernel that slopes are averaged over, in units of
        each feature's SD; None for 0.25. Points are kept inside `bounds`. 0 is the derivative at the point. Discrete
        columns (0/1, counts: values further apart than the bandwidth) are not averaged over: their slope
        is the difference of f between the neighbouring values of the background, per unit. "gradient" is
        averaged only where a bandwidth is given.
    attribution
        The question: "slope" (the default: what would a small change do?), "shapley" (why this prediction?
        The values and the base value sum to it), "shapley_path" (the same for trees, with their own covers in
        place of the background: XGBoost's `pred_contribs`), "variation" (how much does the prediction depend on this
        feature? Never negative) or "gradient" (the paper's derivative; the default when a step is given).
        Several, such as ("slope", "shapley"), are kept in one result.
    categorical
        None finds the categorical features (text, category and boolean dtypes, columns the model
        encodes, one-hot columns). Otherwise the columns that hold categories, or a mapping: a group
        of one-hot columns, {"Purpose": ["Purpose_car", ...]}, or "nominal", "ordinal", "numeric" (also: a
        column of few values whose slope is averaged nevertheless).
    bounds
        "background" keeps perturbations inside the data's range; None; or (low, high).
    feature_names
        Names for a background without any.
    id_column
        The column that identifies the rows: it is not a feature, and its values label the rows of the result.
        None takes a column that the model does not know and that is named like one ("id", "customer_id"),
        with a warning.
    batch_rows
        The most rows given to the model at once. Results depend neither on it nor on the other rows, unless the
        model's predictions do. Matrix products do in their last bits: about 1e-15 of a row's largest value in
        float64, 2e-7 in float32, 2e-11 for Gaussian processes.
    max_evals
        The most model evaluations per row for slopes and Shapley values that are estimated from predictions,
        those for the relative change included. Where slopes are 0, up to 4 more for the row and 4 for each of these
        features find out whether they are flat. None takes, for n features, about 4n + 64 for slopes and 256
        permutations of n - 1 for Shapley values (with more than 20 features fewer, at least 64); the relative
        change adds up to 96 or 2n for slopes, and half as many again for Shapley values. The first Shapley values
        of a function also fit a control variate, which costs as many evaluations as one row, at most 4,000; those
        of an additive function cost 1,024 and one for each value in the background, at most 20,000, and are exact.
    retries
        How often a failed call of the model is tried again, for a model behind a service. A row whose calls
        still fail is undefined, with the model's error as the reason; the other rows are kept.
    cache
        True keeps all predictions of the model, so that a second run of the same rows costs only the check of a
        few rows of your table. A dict is used to keep them in. None keeps nothing.
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
        smoothing: float | None = None,
        attribution: str | Sequence[str] = "auto",
        categorical: Sequence[Any] | Mapping[str, Any] | None = None,
        bounds: Any = "background",
        feature_names: Sequence[str] | None = None,
        id_column: Any = None,
        batch_rows: int = BATCH_ROWS,
        max_evals: int | None = None,
        retries: int = 0,
        cache: Any = None,
        **unknown: Any,
    ) -> None:
        refuse_keywords("TExplainer", unknown, signature(TExplainer).parameters)
        self.arguments = {name: value for name, value in locals().items() if name not in ("self", "unknown")}
        check_arguments(self.arguments)
        self.attribution = attributions_of(attribution, step)[0]
        request = model if isinstance(model, Refitted) else None
        model = model.model if isinstance(model, Refitted) else model
        background = native.split_identifiers(native.collected(background), names_of_model(model), id_column)[
            0
        ]
        schema, rows, self._why = detect.learn_with_categories(
            background, feature_names, categorical, model, request and request.X
        )
        backgrounds.check(rows, schema)
        self.schema = schema
        self.predictor = predictor.adapt(
            model,
            schema,
            rows[: min(PROBE_ROWS, batch_rows)],
            output=output,
            scale=scale,
            batch_rows=batch_rows,
            retries=retries,
            cache=cache,
        )
        check_original(self.predictor, background, rows)
        self.refit: RefitReport | None = None
        if request is not None and schema.levels:
            self.predictor, self.refit = refitting.refit(
                self.predictor, schema, request, output=output, scale=scale
            )
        limits = backgrounds.resolve_bounds(bounds, schema.wide(rows))
        bandwidth = checked_smoothing(gradients.BANDWIDTH if smoothing is None else smoothing)
        continuous = detect.declared_numeric(categorical, schema.names)
        with waiting(BUILDING, MOMENT):
            self.background = backgrounds.summarise(
                rows, self.predictor, schema.narrow(limits), bandwidth, continuous
            )
        settings = gradients.Settings(
            step, bandwidth, limits, batch_rows, self.background.discrete, max_evals
        )
        self._settings, self._parts = settings, {}
        with waiting(BUILDING, MOMENT):
            self.engine, self.categories = self._parts_of(self.attribution)
        self._fingerprints = {
            "model": hashing.of_array(self.background.predictions[:FINGERPRINT_ROWS]),
            "background": hashing.of_array(rows),
        }

    def __call__(
        self,
        X: Any,
        *,
        attribution: str | Sequence[str] | None = None,
        id_column: Any = None,
        progress: bool | None = None,
        **unknown: Any,
    ) -> Explanation:
        """Explain every row of a table, in the explainer's own attribution or in another.

        Several attributions, such as ("slope", "shapley"), give one result that holds them all: it is the
        first, and `with_attribution` gives the others.

        A row that cannot be explained is marked "undefined" with the reason; the others are
        explained. `id_column` names the column whose values label the rows (None: the explainer's own).
        `progress` shows a bar (None: on a terminal, when it takes more than a moment).
        """
        refuse_keywords("a call of the explainer", unknown, ("attribution", "id_column", "progress"))
        chosen = self.arguments["attribution"] if attribution is None else attribution
        name, *others = attributions_of(chosen, self.arguments["step"])
        X = native.collected(X)
        if id_column is not None:
            native.check_identifier(X, id_column)
        X, labels = self.split_identifiers(X, id_column)
        rows = self.schema.read(X)
        if self.refit is None:
            check_original(self.predictor, X, rows)
        found = self._explained(rows, name, progress)
        with warnings.catch_warnings():
            if others:  # the rows that are left out were reported above
                warnings.simplefilter("ignore", UndefinedRowsWarning)
            for other in others:
                found = found.with_other(self._explained(rows, other, progress))
        return found.with_index(labels)

    def split_identifiers(self, X: Any, id_column: Any = None) -> tuple[Any, np.ndarray | None]:
        """A table without its identifiers, and its row labels: its identifiers or a pandas index."""
        own = self.schema.inner or self.schema
        declared = self.arguments["id_column"] if id_column is None else id_column
        features = (own.header or own.names) if own.named else None
        return native.split_identifiers(native.collected(X), features, declared, stacklevel=4)

    def shap_values(self, X: Any, *, progress: bool | None = None, **unknown: Any) -> np.ndarray:
        """Contributions (Shapley values), as shap returns them: (rows, features) or (rows, features, outputs).

        The same as ``explainer(X, attribution="shapley").values``, which also holds error bounds.

        Examples
        --------
        >>> import numpy as np
        >>> import texplainer as tx
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> explainer = tx.TExplainer(lambda X: X @ [1.0, 2.0, 3.0], X)
        >>> total = explainer.expected_value + explainer.shap_values(X[:5]).sum(axis=1)
        >>> bool(np.allclose(total, X[:5] @ [1.0, 2.0, 3.0]))
        True
        """
        refuse_keywords("shap_values", unknown, ("progress",))
        return self(X, attribution="shapley", progress=progress).values

    @property
    def expected_value(self) -> Any:
        """The mean prediction of the background: a number, or one per output."""
        base = self.background.base
        return float(base[0]) if len(base) == 1 else base.copy()

    def interactions(
        self, X: Any, *, attribution: str = DEFAULT, progress: bool | None = None
    ) -> Interactions:
        """How one feature's slope changes with another feature, for every row and pair, with error bounds.

        The slope of the slope by the same moves, SD_i SD_j times the mean double difference of predictions per unit
        of both. Any model: 16 predictions a pair, 4 beyond 50 features or where `max_evals` allows no more. The
        diagonal is a feature's own curvature. For a category: the effect of this category, compared with the
        average one, on the other feature's value. A discrete column is moved to its neighbouring values.

        With attribution="shapley" or "shapley_path": the exact Shapley interaction values of a tree ensemble,
        as shap's `shap_interaction_values` has them. Rows of the symmetric matrix sum to the Shapley values.

        Examples
        --------
        >>> import numpy as np
        >>> import texplainer as tx
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> explainer = tx.TExplainer(lambda X: X[:, 0] * X[:, 1] + X[:, 2], X)
        >>> explainer.interactions(X[:5]).strongest(1)[0][:2]
        ('x0', 'x1')
        """
        rows = self.schema.read(self.split_identifiers(X)[0])
        refused = refused_rows(self.predictor, self.schema.names, rows)
        _warn_of(refused, len(rows), 3)
        engine, categories = self._parts_of(DEFAULT)
        found = second_order(
            self.predictor,
            self.background,
            engine,
            categories,
            rows,
            [*refused],
            progress,
            attribution,
            self._settings.bandwidth,
            self.arguments["max_evals"],
        )
        return replace(
            found, feature_names=self.schema.names, arrays={**found.arrays, "data": self.schema.shown(rows)}
        )

    def engine_report(self) -> str:
        """Which engine differentiates the model, and why each of the others does not, one line each."""
        lines = [self._engine_line()]
        for name in ENGINES:
            if name == self.engine.name:
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self._build(name, self._settings)
                reason = "possible, with engine=" + repr(name)
            except (InputError, ModelError) as error:
                reason = error.__context__ if isinstance(error.__context__, Unsupported) else error
            lines.append(f"not {name}: {reason}")
        return "\n".join(lines)

    def recourse(
        self,
        row: Any,
        target: Any,
        *,
        actionable: Any = None,
        fixed: Any = (),
        ranges: Mapping[str, Any] | None = None,
        monotone: Mapping[str, Any] | None = None,
        max_changes: int = 3,
        margin: float = 0.0,
        count: int = 3,
    ) -> Recourse:
        """The smallest changes of a row that move its prediction to the target, each verified by the model.

        Parameters
        ----------
        row
            One row: a frame or an array of one row, a pandas Series or a mapping from names to values.
        target
            A class label (the predicted class must become this one), ("<=", value) or (">=", value) (also "<"
            and ">") or a number, which the prediction must reach from the side it is on. Values are
            probabilities of the explained class for a classifier, predictions for a regression.
        actionable
            The features that may change; None for all.
        fixed
            Features that must not change.
        ranges
            Feature -> (low, high), either of them None; of a category the values it may take. What lies outside
            the background's range stays excluded.
        monotone
            Feature -> "up" or "down", the only direction it may move in.
        max_changes
            The most features that a proposal changes.
        margin
            How far past the target the prediction must lie, in the target's unit.
        count
            The most proposals; they differ in the features they change.

        Examples
        --------
        >>> import numpy as np
        >>> import texplainer as tx
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> explainer = tx.TExplainer(lambda X: 3 * X[:, 0] + X[:, 1], X)
        >>> found = explainer.recourse([0.0, 0.0], (">=", 1.0), count=1)
        >>> found.found, found.changes[0][0].feature
        (True, 'x0')
        """
        from texplainer.reasons.recourse import Limits, recourse_of

        limits = Limits(actionable, fixed, ranges, monotone, max_changes, margin, count)
        return recourse_of(self, row, target, limits)

    if not TYPE_CHECKING:  # a type checker must still find misspelt names

        def __getattr__(self, name: str) -> Any:
            """Reached for what is not there: names the remedy for what shap and others call it."""
            raise no_attribute("a TExplainer", name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the model, the background and the arguments; everything else is computed from them again."""
        return _rebuild, (self.arguments,)

    def __sklearn_clone__(self) -> TExplainer:
        """For `sklearn.base.clone`: built anew from the same model, background and arguments."""
        return _rebuild(self.arguments)

    def __repr__(self) -> str:
        names = "predicted class" if self.predictor.predicted else ", ".join(self.predictor.output_names)
        what = "prediction" if names == "output" else f"output {names}"
        return (
            f"TExplainer of a {type(self.predictor.model).__name__}, {self.schema.width} features, "
            f"{what} on the {self.predictor.scale} scale\n"
            f"  engine       {self._engine_line()}\n"
            f"  attribution  {self.attribution}\n"
            f"{self._category_words()}"
            f"{self._discrete_words()}"
            f"  background   {len(self.background.rows)} rows, base value "
            f"{np.array2string(self.background.base, precision=4)}"
        )

    def _engine_line(self) -> str:
        """The engine and how it finds slopes, without the reasons against the others."""
        return f"{self.engine.name}: {self.engine.how}"

    def _category_words(self) -> str:
        by_reason: dict[str, list[str]] = {}
        for name, reason in self._why.items():
            by_reason.setdefault(reason, []).append(name)
        found = "; ".join(f"{listed(names)} ({reason})" for reason, names in by_reason.items())
        if self.refit is not None:
            found += (
                f"; by {self.refit.method}\n               the refitted model disagrees by "
                f"{self.refit.disagreement:.1%} on the training rows, score {self.refit.refitted:.3f} "
                f"against {self.refit.original:.3f}"
            )
        return f"  categorical  {found}\n" if found else ""

    def _discrete_words(self) -> str:
        names = [self.schema.names[j] for j in self.background.discrete.columns]
        return f"  discrete     {listed(names)}\n" if names else ""

    # -------------------------------------------------------------- the work

    @property
    def block_rows(self) -> int:
        """Rows explained at a time, so that memory does not grow with the table."""
        width, rows = self.schema.width, gradients.BATCH // 2  # arrays stay in cache
        if not self.engine.exact:  # walks hold some hundred numbers for each value
            rows = min(rows, CELLS // (16 * width * len(self.predictor.outputs)))
        per_row = max(1 if self.engine.exact else 2 * width, self.categories.evaluations)
        return max(1, min(rows, self.predictor.batch_rows // per_row))

    def _parts_of(self, name: str) -> tuple[gradients.Engine, Categories]:
        """The engine and the categories that an attribution needs: for averaged slopes, or for those at a point."""
        around = ATTRIBUTIONS[name].neighbourhood or self.arguments["smoothing"] is not None
        if around not in self._parts:
            smooth = (parts for parts in self._parts.values() if parts[0].averages)  # alike for both
            built = next(smooth, None) or self._build(
                self.arguments["engine"], replace(self._settings, average=around)
            )
            self._parts[around] = built
        return self._parts[around]

    def _build(self, engine: str, settings: gradients.Settings) -> tuple[gradients.Engine, Categories]:
        parts = self.predictor, self.background, self.schema.names
        if self.refit is not None:
            return refitting.engine_and_categories(*parts, engine, settings)
        return choose_engine(self.predictor, self.background.rows, engine, settings), categories_of(*parts)

    def _explained(self, rows: Array, name: str, progress: bool | None = False) -> Explanation:
        """Explain rows of codes and numbers, block by block."""
        began = time.perf_counter()
        refused = refused_rows(self.predictor, self.schema.names, rows)
        todo = np.delete(np.arange(len(rows)), list(refused))
        blocks = [todo[i : i + self.block_rows] for i in range(0, len(todo), self.block_rows)]
        filled = RowArrays(len(rows))
        if len(blocks) > 1 or progress:
            blocks = track(blocks, "explaining", progress, [len(b) for b in blocks])
        with asked_for(progress):
            for block in blocks:
                by_halves(
                    block,
                    lambda part: filled.put(part, self._explain(rows[part], name)),
                    refused.__setitem__,
                    ModelError,
                )
        if not filled.arrays and any(isinstance(reason, ModelError) for reason in refused.values()):
            raise next(reason for reason in refused.values() if isinstance(reason, ModelError))
        _warn_of(refused, len(rows), 4)
        explanation = self._result(rows, name, filled, refused)
        seconds = round(time.perf_counter() - began, 4)
        live = Live(
            lambda which, other: self._explained(
                rows[which], attributions_of(other, self.arguments["step"])[0]
            ),
            np.arange(len(rows)),
            lambda: (self.schema.names, self.schema.shown(self.background.rows)),
            lambda position: (self, self.schema.write(rows[position : position + 1])),
        )
        return replace(explanation, settings={**explanation.settings, "seconds": seconds}, live=live)

    def _explain(self, rows: Array, name: str) -> dict[str, np.ndarray]:
        """Explain rows that are known to be acceptable."""
        spec, (engine, categories) = ATTRIBUTIONS[name], self._parts_of(name)
        f0 = self.predictor(rows)
        context = ExplainContext(
            rows,
            f0,
            self.background,
            self.predictor,
            engine,
            self.background.bounds,
            self.arguments["max_evals"],
        )
        found = spec.compute(context)
        swaps = categories.swaps(rows, f0)
        if swaps:
            found = with_categories(found, context, categories, swaps, spec)
        slopes = found.gradient is not None
        arrays = {
            "values": found.values,
            "gradient": found.gradient if slopes else np.full(found.values.shape, np.nan),
            "predictions": f0,
            "error": found.error,
            "evaluations": found.evaluations + categories.evaluations + 1 + slopes * f0.shape[1],
            **diagnostics.assess(context, found, spec, self._base_of(name), self.schema.names),
            **found.arrays,
            **{key: swap.delta for key, swap in zip(categories.keys, swaps, strict=True)},
        }
        return of_predicted_class(arrays) if self.predictor.predicted else arrays

    def _result(self, rows: Array, name: str, filled: RowArrays, refused: dict[int, Any]) -> Explanation:
        engine, categories = self._parts_of(name)
        names = ("predicted",) if self.predictor.predicted else self.predictor.output_names
        if not filled.arrays:
            own = ["predicted_class"] if self.predictor.predicted else []
            filled.arrays = blanks(len(rows), self.schema.width, len(names), own)
        arrays = filled.arrays
        for i, reason in refused.items():
            arrays["reason"][i] = str(reason)
        base = self._base_of(name)
        if self.predictor.predicted:  # one base value a row, that of its own class
            base = base[arrays["predicted_class"]][:, None]
        effects = {key: arrays.pop(key) for key in categories.keys if key in arrays}
        return Explanation.build(
            arrays.pop("values"),
            data=self.schema.shown(rows),
            base_values=base,
            predictions=arrays.pop("predictions"),
            gradient=arrays.pop("gradient"),
            feature_names=self.schema.names,
            output_names=names,
            diagnostics=arrays,
            scale=self.predictor.scale,
            attribution=name,
            engine=engine.name,
            settings=self._record(name),
            categories=categories.results(effects),
            units=self._units(ATTRIBUTIONS[name]),
        )

    def _base_of(self, name: str) -> Array:
        """The base value of an attribution, (outputs,)."""
        own = ATTRIBUTIONS[name].base
        return self.background.base if own is None else own(self._parts_of(name)[0])

    def _units(self, spec: Attribution) -> tuple[str, ...]:
        schema = self.predictor.schema
        plain = [j not in schema.levels or j in schema.ordinal for j in range(schema.width)]
        return tuple(spec.feature_unit if number else spec.level_unit for number in plain)

    def _record(self, name: str) -> dict[str, Any]:
        """The settings that are stored with the result; plain values only."""
        plain = {k: v for k, v in self.arguments.items() if isinstance(v, (str, int, float, type(None)))}
        engine = self._parts_of(name)[0]
        return {
            **plain,
            "attribution": name,
            "question": ATTRIBUTIONS[name].question,
            "how": ATTRIBUTIONS[name].computed(engine),
            "why": engine.why,
            "width": engine.width,
            "model": type(self.predictor.model).__name__,
            "fingerprints": self._fingerprints,
            "categorical_features": list(self._why),
            **(
                {"classes": list(self.predictor.all_names)} if self.predictor.task == "classification" else {}
            ),
            **({} if self.predictor.repeatable else {"repeatable": False}),
            **({} if self.predictor.row_by_row else {"row_by_row": False}),
            **({"refit": asdict(self.refit)} if self.refit else {}),
        }


def _warn_of(refused: Mapping[int, Any], rows: int, level: int) -> None:
    """Say which rows are left out, at the user's own line."""
    if refused:
        first = min(refused)
        words = f"{len(refused)} of {rows} rows are undefined; row {first}: {refused[first]}"
        warnings.warn(words, UndefinedRowsWarning, stacklevel=level)


def _rebuild(arguments: dict[str, Any]) -> TExplainer:
    return TExplainer(**arguments)
