"""One pass for all: every explainer on the same rows, the same neighbours, the same masks.

What an explainer does wrong costs its own cells only, with the reason in the result; adding an explainer
changes no other's scores, because nothing random is drawn from a common stream.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from texplainer import frames, prediction
from texplainer.errors import InputError, Unsupported
from texplainer.progress import track
from texplainer.signatures import Array

from .controls import CONTROLS
from .evaluation import Column, Evaluation
from .features import features_of
from .masks import MASKS
from .neighbourhood import FLIP, SIGMA
from .own import Own
from .shared import Plan, Shared
from .table import Metric, choose

Explainers = Mapping[str, Callable[[Any], Any]] | Sequence[Callable[[Any], Any]]


def evaluate(
    explainers: Explainers,
    X: Any,
    *,
    metrics: Sequence[str] | str = "default",
    k: Sequence[int] | None = None,
    neighbours: int = 10,
    sigma: float = SIGMA,
    flip: float = FLIP,
    max_distance: float | str | None = None,
    mask: str = "zero",
    runs: int = 10,
    truth: Any = None,
    groups: Mapping[str, Sequence[int]] | None = None,
    model: Any = None,
    background: Any = None,
    output: Any = None,
    controls: Sequence[str] = tuple(CONTROLS),
    seed: int = 0,
    batch_rows: int = 4096,
    progress: bool | None = None,
) -> Evaluation:
    """Evaluate explainers of the same model side by side.

    Parameters
    ----------
    explainers : TExplainers, rivals, or any functions from a table to an Explanation or to values (rows,
        features); by name, or a list.
    X : the rows to evaluate on.
    metrics : names from `METRICS`, a family's name, "default" or "all".
    k : how many features PGI and PGU remove; 1, 3, 5, 7, 9, or 1, 2, 3 for fewer than nine features.
    neighbours, sigma, flip, max_distance : the neighbourhood; see `metrics.neighbourhood`.
        max_distance="paper" is half the smallest distance between background rows.
    mask : what removed features become: "zero" (the paper), "mean", "marginal" or "gaussian".
    runs : repeated explanations for RES.
    truth : known gradients or weights, one row each, for the metrics of the family "truth".
    groups : one-hot groups by name, as positions of columns; taken from the explainers when not given.
    model, background, output : what is explained; taken from the first explainer that knows.
    controls : the explainers that know nothing, shown below the line.
    seed : of everything random. The same seed gives the same scores, bit for bit.
    batch_rows : the most rows an explainer gets at once.
    progress : show a bar; by default on a terminal only.
    """
    began = time.perf_counter()
    named = _named(explainers)
    chosen = choose(metrics)
    if mask not in MASKS:
        raise InputError(f"mask={mask!r} is unknown; expected one of {', '.join(MASKS)}.")
    unknown = [name for name in controls if name not in CONTROLS]
    if unknown:
        raise InputError(f"unknown controls {unknown}; expected some of {', '.join(CONTROLS)}.")
    plan = Plan(tuple(k or ()), neighbours, sigma, flip, np.inf, mask, runs, seed, batch_rows)
    shared = _shared(named, X, plan, model, background, output, groups, max_distance, truth)
    if shared.truth is None:
        chosen = _without_truth(chosen, metrics)
    subjects = [Own(name, explain, shared, False) for name, explain in named.items()]
    subjects += [Own(name, CONTROLS[name], shared, True) for name in controls if name not in named]
    parts: dict[tuple[str, str], Array] = {}
    notes: dict[str, str] = {}
    for own in track(subjects, "evaluating", progress):
        _measure(own, chosen, parts, notes)
    total = time.perf_counter() - began
    return _assemble(shared, subjects, chosen, parts, _collapsed(notes, len(subjects)), total)


def _measure(
    own: Own, chosen: Mapping[str, Metric], parts: dict[tuple[str, str], Array], notes: dict[str, str]
) -> None:
    """All metrics of one explainer; whatever it raises costs its own cells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a row that is undefined shows as a gap; no need to say it thrice
        try:
            own.warm_up()
            own.values  # noqa: B018
        except Exception as error:
            what = "skipped" if isinstance(error, Unsupported) else f"failed with {type(error).__name__}"
            notes[own.name] = f"{what}: {error}"
            return
        if own.broken.any():
            rows = f"{int(own.broken.sum())} of {len(own.broken)} rows"
            notes[own.name] = f"returned NaN or infinite values for {rows}, which have no scores."
        for name, metric in chosen.items():
            try:
                found = metric.function(**{arg: own.find(source) for arg, source in metric.needs.items()})
            except Exception as error:
                notes[f"{own.name}: {metric.label}"] = str(error) or type(error).__name__
                continue
            for part, scores in (found if isinstance(found, dict) else {"": found}).items():
                parts[own.name, f"{name}/{part}"] = np.where(own.broken, np.nan, scores)


def _collapsed(notes: dict[str, str], subjects: int) -> dict[str, str]:
    """Say once what is said of a metric for every explainer: it is the model's or the data's doing."""
    whose = {who: who.rpartition(": ")[2] for who in notes if ": " in who}
    common = {}
    for metric in dict.fromkeys(whose.values()):
        said = [notes[who] for who, which in whose.items() if which == metric]
        if len(said) > 1 and len(set(said)) == 1 and len(said) >= subjects - len(notes.keys() - whose.keys()):
            common[metric] = said[0]
    return {who: why for who, why in notes.items() if whose.get(who) not in common} | common


def _assemble(
    shared: Shared,
    subjects: list[Own],
    chosen: Mapping[str, Metric],
    parts: Mapping[tuple[str, str], Array],
    notes: dict[str, str],
    total: float,
) -> Evaluation:
    columns = []
    for name, metric in chosen.items():
        found = dict.fromkeys(key[1].partition("/")[2] for key in parts if key[1].partition("/")[0] == name)
        for part in found or [""]:
            better = "low" if part in metric.lower_parts else metric.better
            columns.append(Column(name, part, metric.label, better, metric.family))
    rows, features = len(shared.rows), len(shared.features.names)
    scores = np.full((len(subjects), len(columns), rows), np.nan)
    values = np.full((len(subjects), rows, features), np.nan)
    for i, own in enumerate(subjects):
        for j, column in enumerate(columns):
            scores[i, j] = parts.get((own.name, f"{column.metric}/{column.part}"), np.nan)
        if "values" in vars(own):
            values[i] = np.where(own.broken[:, None], np.nan, own.values)
    clock = shared.clock
    drawn = "hood" in vars(shared)
    return Evaluation(
        tuple(own.name for own in subjects),
        tuple(columns),
        scores,
        values,
        shared.features.names,
        tuple(own.name for own in subjects if own.control or getattr(own.explain, "control", False)),
        notes,
        shared.hood.valid.sum(axis=1) if drawn else np.full(rows, shared.plan.neighbours),
        np.array([own.seconds for own in subjects]),
        np.array([own.cost for own in subjects]),
        {
            "explainers": clock.explain,
            "model": clock.model,
            "harness": total - clock.explain - clock.model,
            "total": total,
        },
        _settings(shared),
    )


def _settings(shared: Shared) -> dict[str, Any]:
    plan = {**asdict(shared.plan), "k": list(shared.plan.k)}
    if not np.isfinite(shared.plan.max_distance):
        plan["max_distance"] = None
    main = shared.main
    return {
        **plan,
        "rows": len(shared.rows),
        "model": type(shared.model).__name__,
        "output": main.all_names[shared.output],
        "scale": main.scale,
    }


# -------------------------------------------------------------------- setting up


def _named(explainers: Explainers) -> dict[str, Callable[[Any], Any]]:
    """Explainers by name; a list's are named after themselves, repeated names numbered."""
    if isinstance(explainers, Mapping):
        named = {str(name): explain for name, explain in explainers.items()}
    else:
        named = {}
        for explain in explainers if isinstance(explainers, Sequence) else [explainers]:
            own = getattr(explain, "name", None) or getattr(explain, "__name__", type(explain).__name__)
            base = "T-Explainer" if own == "TExplainer" else str(own)
            same = sum(name == base or name.startswith(f"{base} ") for name in named)
            named[f"{base} {same + 1}" if base in named else base] = explain
    wrong = [name for name, explain in named.items() if not callable(explain)]
    if wrong or not named:
        raise InputError(
            f"explainers {wrong or 'missing'}: expected at least one callable from a table to an Explanation."
        )
    return named


def _shared(
    named: Mapping[str, Any],
    X: Any,
    plan: Plan,
    model: Any,
    background: Any,
    output: Any,
    groups: Mapping[str, Sequence[int]] | None,
    max_distance: float | str | None,
    truth: Any,
) -> Shared:
    hosts = [e for e in named.values() if hasattr(e, "predictor") and hasattr(e, "background")]
    if not hosts and (model is None or background is None):
        raise InputError("no explainer knows its model and background; pass model=... and background=....")
    schemas = [getattr(host, "schema", host.predictor.schema) for host in hosts]
    if background is not None:
        schema, reference = frames.learn(background)
    else:
        schema = schemas[0].inner or schemas[0]
        reference = schemas[0].wide(hosts[0].background.rows)
    model = hosts[0].predictor.model if model is None else model
    if groups is None:
        groups = next((_groups(one) for one in schemas if one.layout is not None), {})
    features = features_of(
        schema.names, reference, groups, {j: len(levels) for j, levels in schema.levels.items()}
    )
    plan = _completed(plan, features.names, reference, max_distance)
    if output is None and hosts and len(hosts[0].predictor.outputs) == 1:
        output = hosts[0].predictor.outputs[0]
    predictor = _main(model, schema, reference, output)
    if len(predictor.outputs) != 1:
        names = ", ".join(predictor.all_names)
        raise InputError(f"the model has several outputs ({names}); pass output=<name or index>.")
    rows = schema.read(X)
    known = None if truth is None else features.gather(np.asarray(truth, dtype=float))
    return Shared(
        rows, reference, schema, features, {"main": predictor}, model, predictor.outputs[0], plan, known
    )


def _main(model: Any, schema: frames.Schema, reference: Array, output: Any) -> prediction.Predictor:
    """The model's probabilities where it has them, else what it has."""
    try:
        return prediction.adapt(model, schema, reference[:8], output=output, scale="probability")
    except InputError:
        return prediction.adapt(model, schema, reference[:8], output=output)


def _groups(schema: frames.Schema) -> dict[str, tuple[int, ...]]:
    found = schema.layout.folds.items() if schema.layout is not None else ()
    return {schema.names[j]: fold.columns for j, fold in found}


def _completed(plan: Plan, names: Sequence[str], reference: Array, max_distance: float | str | None) -> Plan:
    """Fill in what depends on the data: k, and the farthest distance."""
    count = len(names)
    k = plan.k or tuple(one for one in ((1, 3, 5, 7, 9) if count >= 9 else (1, 2, 3)) if one <= count)
    if min(k) < 1 or max(k) > count:
        raise InputError(f"k={k} for {count} features; expected numbers between 1 and {count}.")
    if max_distance == "paper":
        from scipy.spatial import KDTree

        points = np.unique(reference, axis=0)
        far = KDTree(points).query(points, k=2)[0][:, 1].min() / 2 if len(points) > 1 else np.inf
    else:
        far = np.inf if max_distance is None else float(max_distance)
    return replace(plan, k=k, max_distance=float(far))


def _without_truth(chosen: dict[str, Metric], asked: Sequence[str] | str) -> dict[str, Metric]:
    """Drop the truth metrics when there is no truth; complain if they were asked for by name."""
    named = [asked] if isinstance(asked, str) else list(asked)
    wanted = [
        name for name in named if name == "truth" or (name in chosen and chosen[name].family == "truth")
    ]
    if wanted:
        raise InputError(f"{wanted} need the known gradients or weights; pass truth=..., one row each.")
    return {name: metric for name, metric in chosen.items() if metric.family != "truth"}
