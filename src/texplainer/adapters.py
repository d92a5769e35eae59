"""One adapter per library: a fitted model -> the scales it can be explained on.

`ADAPTERS` maps the name of a library to its adapter. A model's type and its bases are looked up in
order, so that an XGBClassifier, which is also a scikit-learn estimator, meets XGBoost first; any
other callable is taken as it is. Adapters import their library only when a model of it arrives.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, log_softmax, logit, softmax

from texplainer.errors import InputError
from texplainer.frames import Schema


@dataclass(frozen=True)
class Outlet:
    """What an adapter found out about a model.

    `scales` maps a scale to the function that predicts all outputs on it; `names` are the outputs'
    names (empty: unknown until the first call); `labels` maps a class label to its output.
    """

    kind: str
    task: str
    scales: Mapping[str, Callable[[Any], Any]]
    default: str
    names: tuple[str, ...] = ()
    labels: Mapping[Any, int] = field(default_factory=dict)
    dtype: type = np.float64
    schema: Schema | None = None  # the table the model wants, where it differs from the user's


def find(model: Any, schema: Schema) -> Outlet:
    """Adapt a model by the library its type comes from."""
    if schema.inner is not None:  # the model eats the wide table
        outlet = find(model, schema.inner)
        return replace(outlet, schema=replace(schema, inner=outlet.schema or schema.inner))
    for base in type(model).__mro__:
        adapter = ADAPTERS.get(base.__module__.split(".")[0])
        if adapter is not None:
            return adapter(model, schema)
    if callable(model):
        return Outlet("callable", "regression", {"raw": model}, "raw")
    if hasattr(model, "predict_proba") or hasattr(model, "predict"):  # duck-typed estimators
        return _sklearn(model, schema)
    raise InputError(
        f"a {type(model).__module__}.{type(model).__name__} is no model: it has no predict method and is not "
        "callable. Pass a fitted model, or a function from rows to predictions."
    )


def numbered(count: int) -> tuple[str, ...]:
    """Names for outputs that have none."""
    return ("output",) if count == 1 else tuple(f"output {i}" for i in range(count))


# ---------------------------------------------------------------- scikit-learn and its relatives


def _sklearn(model: Any, schema: Schema) -> Outlet:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if hasattr(model, "get_params") or hasattr(model, "steps"):
        try:
            check_is_fitted(model)
        except NotFittedError:
            raise InputError(
                f"the {type(model).__name__} is not fitted; expected a fitted one. Call its fit(X, y) first."
            ) from None
        except TypeError:
            pass
    wanted = _wanted(model, schema)
    if hasattr(model, "predict_proba"):
        scales: dict[str, Callable[[Any], Any]] = {"probability": partial(_probabilities, model)}
        margin = _decision if hasattr(model, "decision_function") else _log_odds
        scales["margin"] = partial(margin, model)
        return replace(_classifier(model, "sklearn", scales), schema=wanted)
    if hasattr(model, "decision_function") and hasattr(model, "classes_"):
        scales = {"margin": partial(_decision, model)}
        return replace(_classifier(model, "sklearn", scales), default="margin", schema=wanted)
    return Outlet("sklearn", "regression", {"raw": model.predict}, "raw", schema=wanted)


def _wanted(model: Any, schema: Schema) -> Schema | None:
    """A model fitted with names gets a frame with them, one fitted without gets an array: no warnings."""
    fitted = getattr(model, "feature_names_in_", None)
    if fitted is None:
        return replace(schema, kind="array") if schema.kind != "array" and not schema.levels else None
    if schema.kind == "array" and len(fitted) == schema.width:
        return replace(schema, kind="pandas", names=tuple(str(n) for n in fitted))
    return None


def _classifier(model: Any, kind: str, scales: Mapping[str, Callable[[Any], Any]]) -> Outlet:
    classes = getattr(model, "classes_", ())
    if isinstance(classes, list):  # several targets, one array of classes each
        names = [
            f"y{i}={c}" if len(own) != 2 else f"y{i}"
            for i, own in enumerate(classes)
            for c in (own if len(own) != 2 else own[1:])
        ]
        return Outlet(kind, "multilabel", scales, "probability", tuple(names))
    names = tuple(str(c) for c in classes)
    labels = {c.item() if isinstance(c, np.generic) else c: i for i, c in enumerate(classes)}
    return Outlet(kind, "classification", scales, "probability", names, labels)


def _probabilities(model: Any, table: Any) -> np.ndarray:
    raw = model.predict_proba(table)
    if isinstance(raw, list):  # several targets: the positive class of the binary ones, all of the others
        return np.hstack([p[:, 1:] if p.shape[1] == 2 else p for p in raw])
    return raw


def _decision(model: Any, table: Any) -> np.ndarray:
    return two_sided(np.asarray(model.decision_function(table)))


def _log_odds(model: Any, table: Any) -> np.ndarray:
    tiny = np.finfo(np.float64).eps
    return logit(np.clip(_probabilities(model, table), tiny, 1 - tiny))


def two_sided(margin: np.ndarray) -> np.ndarray:
    """A binary margin z as the two outputs [-z, z]; other margins unchanged."""
    if margin.ndim == 2 and margin.shape[1] == 1:
        margin = margin[:, 0]
    return np.column_stack([-margin, margin]) if margin.ndim == 1 else margin


def _both(p: np.ndarray) -> np.ndarray:
    return np.column_stack([1 - p, p]) if p.ndim == 1 else p


# ---------------------------------------------------------------- boosted trees


def _xgboost(model: Any, schema: Schema) -> Outlet:
    if type(model).__name__ == "Booster":
        return _xgboost_booster(model, schema)
    outlet = _sklearn(model, schema)
    if outlet.task == "classification":
        scales = {**outlet.scales, "margin": lambda t: two_sided(model.predict(t, output_margin=True))}
        return replace(outlet, kind="xgboost", scales=scales, dtype=np.float32)
    margin = partial(model.predict, output_margin=True)
    return replace(outlet, kind="xgboost", scales={"raw": model.predict, "margin": margin}, dtype=np.float32)


def _xgboost_booster(model: Any, schema: Schema) -> Outlet:
    from xgboost import DMatrix

    objective = json.loads(model.save_config())["learner"]["objective"]["name"]

    def matrix(table: Any) -> Any:
        names = model.feature_names
        if hasattr(table, "columns"):
            return DMatrix(table, enable_categorical=True)
        return DMatrix(table, feature_names=names)

    def raw(table: Any) -> np.ndarray:
        return model.predict(matrix(table))

    def margin(table: Any) -> np.ndarray:
        return model.predict(matrix(table), output_margin=True)

    if model.feature_names is None and schema.kind != "array" and not schema.levels:
        schema = replace(schema, kind="array")
    if objective.startswith("binary:"):
        scales = {"probability": lambda t: _both(expit(margin(t))), "margin": lambda t: two_sided(margin(t))}
        return Outlet(
            "xgboost", "classification", scales, "probability", ("0", "1"), {0: 0, 1: 1}, np.float32, schema
        )
    if objective.startswith("multi:"):
        scales = {"probability": lambda t: softmax(margin(t), axis=1), "margin": margin}
        return Outlet("xgboost", "classification", scales, "probability", dtype=np.float32, schema=schema)
    return Outlet(
        "xgboost", "regression", {"raw": raw, "margin": margin}, "raw", dtype=np.float32, schema=schema
    )


def _lightgbm(model: Any, schema: Schema) -> Outlet:
    if type(model).__name__ == "Booster":
        return _lightgbm_booster(model, schema)
    outlet = _sklearn(model, schema)
    if getattr(model, "feature_name_", None) and schema.kind != "array":  # it keeps names its own way
        outlet = replace(outlet, schema=None)
    margin = partial(model.predict, raw_score=True)
    if outlet.task == "classification":
        scales = {**outlet.scales, "margin": lambda t: two_sided(margin(t))}
        return replace(outlet, kind="lightgbm", scales=scales)
    return replace(outlet, kind="lightgbm", scales={"raw": model.predict, "margin": margin})


def _lightgbm_booster(model: Any, schema: Schema) -> Outlet:
    objective = model.dump_model(num_iteration=1).get("objective", "").split(" ")[0]
    raw = model.predict
    margin = partial(model.predict, raw_score=True)
    if objective in {"binary", "cross_entropy"}:
        scales = {"probability": lambda t: _both(raw(t)), "margin": lambda t: two_sided(margin(t))}
        return Outlet("lightgbm", "classification", scales, "probability", ("0", "1"), {0: 0, 1: 1})
    if objective in {"multiclass", "multiclassova"}:
        return Outlet("lightgbm", "classification", {"probability": raw, "margin": margin}, "probability")
    return Outlet("lightgbm", "regression", {"raw": raw, "margin": margin}, "raw")


def _catboost(model: Any, schema: Schema) -> Outlet:
    if not model.is_fitted():
        raise InputError("the CatBoost model is not fitted; call its fit(X, y) first.")
    margin = partial(model.predict, prediction_type="RawFormulaVal")
    wanted = None
    if schema.kind == "array" and len(model.get_cat_feature_indices()):  # a float array holds no categories
        wanted = replace(schema, kind="pandas", names=tuple(model.feature_names_))
    if hasattr(model, "classes_") and len(model.classes_):
        scales = {
            "probability": partial(model.predict, prediction_type="Probability"),
            "margin": lambda t: two_sided(np.asarray(margin(t))),
        }
        return replace(_classifier(model, "catboost", scales), dtype=np.float32, schema=wanted)
    scales = {"raw": model.predict, "margin": margin}
    return Outlet("catboost", "regression", scales, "raw", dtype=np.float32, schema=wanted)


# ---------------------------------------------------------------- networks


def _torch(model: Any, schema: Schema) -> Outlet:
    import torch

    first = next(iter(model.parameters()), None)
    dtype = torch.get_default_dtype() if first is None else first.dtype
    device = "cpu" if first is None else first.device

    def raw(table: Any) -> np.ndarray:
        x = torch.as_tensor(np.asarray(table), dtype=dtype, device=device)
        with evaluating(model), torch.no_grad():
            return model(x).detach().cpu().numpy()

    width = np.float32 if dtype in {torch.float32, torch.float16, torch.bfloat16} else np.float64
    return _network("torch", raw, replace(schema, kind="array"), width)


@contextlib.contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Put a torch module into eval mode and leave every submodule's mode as it was found."""
    modes = [(part, part.training) for part in module.modules()]
    with contextlib.suppress(NotImplementedError):  # an exported program has one mode only
        module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def _keras(model: Any, schema: Schema) -> Outlet:
    import keras

    width = np.float64 if model.compute_dtype == "float64" else np.float32

    def raw(table: Any) -> np.ndarray:
        return np.asarray(keras.ops.convert_to_numpy(model(np.asarray(table, dtype=width), training=False)))

    return _network("keras", raw, replace(schema, kind="array"), width)


def _jax(model: Any, schema: Schema) -> Outlet:
    import jax

    width = np.float64 if jax.config.jax_enable_x64 else np.float32  # type: ignore[attr-defined]
    return _network(
        "jax", lambda t: np.asarray(model(np.asarray(t, dtype=width))), replace(schema, kind="array"), width
    )


def _network(kind: str, raw: Callable[[Any], np.ndarray], schema: Schema, width: type) -> Outlet:
    """A network's outputs say not what they mean: explained as they are, or through the usual link."""

    def probability(table: Any) -> np.ndarray:
        z = raw(table)
        return _both(expit(z).reshape(-1)) if z.ndim == 1 or z.shape[1] == 1 else softmax(z, axis=1)

    def margin(table: Any) -> np.ndarray:
        return two_sided(raw(table))

    scales = {"raw": raw, "probability": probability, "margin": margin}
    return Outlet(kind, "network", scales, "raw", dtype=width, schema=schema)


def _onnx(model: Any, schema: Schema) -> Outlet:
    inputs = model.get_inputs()
    outputs = {o.name: o for o in model.get_outputs()}
    named = next((n for n in outputs if "prob" in n.lower()), None)
    target = named or next((n for n, o in outputs.items() if "float" in o.type or "double" in o.type), None)
    if target is None:
        raise InputError(
            f"the ONNX model has the outputs {sorted(outputs)}, none of them a float tensor; "
            "export it with probabilities or scores."
        )
    width = np.float64 if any("double" in i.type for i in inputs) else np.float32

    def raw(table: Any) -> np.ndarray:
        if len(inputs) == 1:
            feed = {inputs[0].name: np.asarray(table, dtype=width)}
        else:  # one input per column
            feed = {
                i.name: np.asarray(table[i.name]).reshape(-1, 1).astype(_onnx_type(i.type)) for i in inputs
            }
        out = model.run([target], feed)[0]
        return np.array([list(r.values()) for r in out]) if isinstance(out, list) else out

    wanted = replace(schema, kind="array") if len(inputs) == 1 and not schema.levels else None
    if named is None:
        return Outlet("onnx", "regression", {"raw": raw}, "raw", dtype=width, schema=wanted)
    scales = {"probability": raw, "margin": lambda t: _margin_of(raw(t))}
    return Outlet("onnx", "classification", scales, "probability", dtype=width, schema=wanted)


def _onnx_type(name: str) -> Any:
    types = {"float": np.float32, "double": np.float64, "int64": np.int64, "int32": np.int32}
    return next((t for key, t in types.items() if key in name), object)


def _margin_of(p: np.ndarray) -> np.ndarray:
    tiny = np.finfo(np.float32).tiny
    return (
        logit(np.clip(p, tiny, 1 - 1e-7)) if p.shape[1] == 2 else log_softmax(np.log(np.maximum(p, tiny)), 1)
    )


ADAPTERS: dict[str, Callable[[Any, Schema], Outlet]] = {
    "sklearn": _sklearn,
    "imblearn": _sklearn,
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "catboost": _catboost,
    "torch": _torch,
    "keras": _keras,
    "jax": _jax,
    "jaxlib": _jax,
    "onnxruntime": _onnx,
}
