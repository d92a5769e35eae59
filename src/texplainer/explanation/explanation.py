"""The frozen result: attributions, what they were computed from, and how far to trust them.

All arrays are kept at full rank with their axes known by name (r: rows, f: features, o: outputs), so
that slicing is one rule for all of them. An axis indexed by a single number or name disappears from
view, as in numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from texplainer.errors import InputError

#: the axes of every array of an Explanation; further diagnostics have rows first
AXES = {
    "values": "rfo",
    "gradient": "rfo",
    "error": "rfo",
    "curvature": "rfo",
    "predictions": "ro",
    "taylor_residual": "ro",
    "completeness": "ro",
    "data": "rf",
    "step": "rf",
    "flags": "rf",
}


CATEGORY = "category/"  # begins the name of a block's level effects, (rows, levels, outputs)


class Diagnostics(Mapping[str, Any]):
    """Per-row diagnostics, as a mapping and as attributes: `diagnostics["error"]`, `diagnostics.error`."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._arrays = dict(arrays)

    def __getitem__(self, name: str) -> Any:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._arrays[name]
        except KeyError:
            raise AttributeError(f"no diagnostic {name!r}; there are {', '.join(self._arrays)}") from None

    def __repr__(self) -> str:
        return f"Diagnostics({', '.join(self._arrays)})"


@dataclass(frozen=True)
class CategoryEffects:
    """What each level of one categorical feature would do: f(x with that level) - f(x).

    `effects` is (rows, levels, outputs); `frequencies` (levels,) are those of the background.
    """

    levels: tuple[Any, ...]
    effects: np.ndarray
    frequencies: np.ndarray


@dataclass(frozen=True, repr=False, eq=False)
class Explanation:
    """Feature attributions of some rows, with their diagnostics.

    Attributes
    ----------
    values : (rows, features), or (rows, features, outputs) when several outputs are explained
    base_values : phi_0, the mean prediction over the background, per output
    predictions : f(x) on the explained scale
    data : the user's own values
    gradient : the partial derivatives, whatever attribution was asked for
    diagnostics : per row: step h, error bound, residuals, evaluations, verdict and its reason
    categories : per categorical feature, the effect of every level
    """

    arrays: Mapping[str, np.ndarray]
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    scale: str = "raw"
    attribution: str = "sensitivity"
    engine: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    categories: Mapping[str, CategoryEffects] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()

    @classmethod
    def build(
        cls,
        values: Any,
        *,
        data: Any,
        base_values: Any = np.nan,
        predictions: Any = None,
        feature_names: Sequence[str] | None = None,
        output_names: Sequence[str] = ("output",),
        gradient: Any = None,
        diagnostics: Mapping[str, Any] | None = None,
        **words: Any,
    ) -> Explanation:
        """Make an Explanation from plain arrays; for one output, values may be (rows, features)."""
        values = np.asarray(values, dtype=float)
        if values.ndim == 2:
            values = values[:, :, None]
        if values.ndim != 3:
            raise InputError(
                f"values has shape {values.shape}; expected (rows, features) or (rows, features, outputs)."
            )
        rows, features, outputs = values.shape
        if len(output_names) != outputs:
            raise InputError(f"{len(output_names)} output names for {outputs} outputs; give one name each.")
        predictions = (
            np.full((rows, outputs), np.nan) if predictions is None else np.asarray(predictions, float)
        )
        base = np.asarray(base_values, dtype=float)
        base = np.broadcast_to(base, (rows, outputs) if base.ndim == 2 else (outputs,)).copy()
        found = {
            "values": values,
            "base_values": base,
            "predictions": predictions.reshape(rows, outputs),
            "data": np.asarray(data).reshape(rows, features),
            "gradient": np.full(values.shape, np.nan) if gradient is None else np.asarray(gradient, float),
            **{name: np.asarray(array) for name, array in (diagnostics or {}).items()},
        }
        names = tuple(feature_names) if feature_names is not None else tuple(f"x{j}" for j in range(features))
        dropped = frozenset("o") if outputs == 1 else frozenset()
        return cls(found, names, tuple(output_names), dropped=dropped, **words)

    # -------------------------------------------------------------- what it holds

    def view(self, name: str) -> np.ndarray:
        """One array, without the axes that were indexed away."""
        array = self.arrays[name]
        axes = axes_of(name, array)
        index = tuple(0 if axis in self.dropped else slice(None) for axis in axes)
        return array[index]

    @property
    def values(self) -> np.ndarray:
        """The attributions."""
        return self.view("values")

    @property
    def base_values(self) -> np.ndarray:
        """phi_0, the mean prediction over the background."""
        return self.view("base_values")

    @property
    def predictions(self) -> np.ndarray:
        """f(x) on the explained scale."""
        return self.view("predictions")

    @property
    def data(self) -> np.ndarray:
        """The explained rows, as the user gave them."""
        return self.view("data")

    @property
    def gradient(self) -> np.ndarray:
        """The partial derivatives the surrogate is made of."""
        return self.view("gradient")

    @property
    def diagnostics(self) -> Diagnostics:
        """How far to trust each row."""
        names = [
            n for n in self.arrays if n not in ("values", "base_values", "predictions", "data", "gradient")
        ]
        return Diagnostics({**{name: self.view(name) for name in names}, "engine": self.engine})

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of `values`."""
        return self.values.shape

    def __len__(self) -> int:
        return self.arrays["values"].shape[0]

    # -------------------------------------------------------------- slicing

    def __getitem__(self, key: Any) -> Explanation:
        """Slice by row, by feature name, by output name: `e[0]`, `e[:, "age"]`, `e[..., "class_a"]`."""
        picks = self._picks(key)
        arrays, dropped = dict(self.arrays), set(self.dropped)
        for axis, pick in picks.items():
            single = np.ndim(pick) == 0 and not isinstance(pick, slice)
            index = np.array([pick]) if single else pick
            dropped |= {axis} if single else set()
            for name, array in arrays.items():
                axes = axes_of(name, array)
                if axis in axes:
                    arrays[name] = array[(slice(None),) * axes.index(axis) + (index,)]
        names = self._kept(self.feature_names, picks.get("f"))
        return replace(
            self,
            arrays=arrays,
            feature_names=names,
            output_names=self._kept(self.output_names, picks.get("o")),
            categories=self._slice_categories(picks, names),
            dropped=frozenset(dropped),
        )

    def _picks(self, key: Any) -> dict[str, Any]:
        """One index per axis that is still in view."""
        axes = [axis for axis in "rfo" if axis not in self.dropped]
        key = key if isinstance(key, tuple) else (key,)
        if any(k is Ellipsis for k in key):
            at = next(i for i, k in enumerate(key) if k is Ellipsis)
            key = key[:at] + (slice(None),) * (len(axes) - len(key) + 1) + key[at + 1 :]
        if len(key) > len(axes):
            raise IndexError(f"{len(key)} indices for an explanation of shape {self.shape}")
        names = {"r": (), "f": self.feature_names, "o": self.output_names}
        sizes = dict(zip("rfo", self.arrays["values"].shape, strict=True))
        return {a: _position(k, names[a], sizes[a]) for a, k in zip(axes, key, strict=False)}

    @staticmethod
    def _kept(names: tuple[str, ...], pick: Any) -> tuple[str, ...]:
        return names if pick is None else tuple(np.atleast_1d(np.array(names, dtype=object)[pick]))

    def _slice_categories(self, picks: dict[str, Any], names: tuple[str, ...]) -> dict[str, CategoryEffects]:
        out = {}
        for name, category in self.categories.items():
            if name in names:
                effects = category.effects
                for axis, at in (("r", 0), ("o", 2)):
                    if axis in picks:
                        pick = picks[axis]
                        pick = (
                            np.array([pick]) if np.ndim(pick) == 0 and not isinstance(pick, slice) else pick
                        )
                        effects = effects[(slice(None),) * at + (pick,)]
                out[name] = replace(category, effects=effects)
        return out

    # -------------------------------------------------------------- using it

    def surrogate(self, dx: Any) -> np.ndarray:
        """The local linear model f(x) + sum_i df/dx_i dx_i (paper, Eq. 2).

        `dx` is a displacement of every row, (rows, features) or (features,); the answer has the
        shape of `predictions`.
        """
        dx = np.asarray(dx, dtype=float)
        gradient = self.arrays["gradient"]
        if dx.shape[-1:] != gradient.shape[1:2]:
            raise InputError(
                f"dx has shape {dx.shape}; expected {gradient.shape[1]} features on its last axis."
            )
        moved = np.einsum("rf,rfo->ro", np.broadcast_to(dx, gradient.shape[:2]), gradient)
        out = self.arrays["predictions"] + moved
        return out[tuple(0 if axis in self.dropped else slice(None) for axis in "ro")]

    def importance(self) -> dict[str, np.ndarray]:
        """Global view: per feature the mean |value|, its standard deviation and the share of positive rows.

        Sorted by the mean over rows (and outputs), the greatest first; a table of columns.
        """
        values = self.arrays["values"]
        size = np.nanmean(np.abs(values), axis=(0, 2))
        order = np.argsort(-size, kind="stable")
        return {
            "feature": np.array(self.feature_names, dtype=object)[order],
            "mean_abs": size[order],
            "std": np.nanstd(values, axis=(0, 2))[order],
            "positive_share": np.nanmean(values > 0, axis=(0, 2))[order],
        }

    def to_frame(self) -> Any:
        """A pandas table, one line per row, feature and output: value, data, prediction, verdict."""
        import pandas as pd

        values = self.arrays["values"]
        r, f, o = (axis.reshape(-1) for axis in np.meshgrid(*(range(n) for n in values.shape), indexing="ij"))
        table = {
            "row": r,
            "feature": np.array(self.feature_names, dtype=object)[f],
            "output": np.array(self.output_names, dtype=object)[o],
            "data": self.arrays["data"][r, f],
            "value": values.reshape(-1),
            "prediction": self.arrays["predictions"][r, o],
            "base_value": np.broadcast_to(self.arrays["base_values"], values.shape[::2])[r, o],
        }
        if "error" in self.arrays:
            table["error"] = self.arrays["error"].reshape(-1)
        if "verdict" in self.arrays:
            table["verdict"] = self.arrays["verdict"][r]
        return pd.DataFrame(table)

    def to_shap(self) -> Any:
        """The same as a `shap.Explanation`, for SHAP's own plots."""
        import shap

        base = np.broadcast_to(self.arrays["base_values"], self.arrays["predictions"].shape)
        base = base[tuple(0 if axis in self.dropped else slice(None) for axis in "ro")]
        return shap.Explanation(
            values=self.values,
            base_values=base,
            data=self.data,
            feature_names=list(self.feature_names),
            output_names=None if "o" in self.dropped else list(self.output_names),
        )

    def save(self, path: Any) -> None:
        """Write to a file (npz: arrays and JSON, no pickle)."""
        from texplainer import files

        files.save(self, path)

    @classmethod
    def load(cls, path: Any) -> Explanation:
        """Read what `save` wrote."""
        from texplainer import files

        return files.load(path)

    def report(self, path: Any, *, title: str = "") -> Any:
        """Write one self-contained HTML page with interactive pictures; give its path."""
        from texplainer import report

        return report.write(self, path, title=title)

    def _repr_html_(self) -> str:
        from texplainer.report import notebook

        return notebook.explanation(self)

    def verdict_counts(self) -> dict[str, int]:
        """How many rows are stable, fragile and undefined."""
        verdict = self.arrays.get("verdict", np.array([], dtype=str))
        return {v: int(np.sum(verdict == v)) for v in ("stable", "fragile", "undefined")}

    def __repr__(self) -> str:
        rows, features, outputs = self.arrays["values"].shape
        what = f"output {self.output_names[0]!r}" if outputs == 1 else f"{outputs} outputs"
        lines = [
            f"Explanation of {rows} row{'s'[: rows != 1]} x {features} features, {what} "
            f"on the {self.scale} scale, attribution {self.attribution!r}"
        ]
        if self.engine:
            lines.append(f"  engine       {self.engine}: {self.settings.get('why', '')}")
        if "evaluations" in self.arrays:
            cost = self.arrays["evaluations"]
            lines.append(f"  evaluations  {int(cost.sum()):,} ({cost.mean():,.0f} a row)")
        if "error" in self.arrays:
            lines.append(f"  error bound  {self._error_words()}")
        if "verdict" in self.arrays:
            counts = self.verdict_counts()
            lines.append("  rows         " + ", ".join(f"{n} {v}" for v, n in counts.items()))
        if self.categories:
            lines.append(f"  categorical  {', '.join(self.categories)}")
        return "\n".join(lines)

    def _error_words(self) -> str:
        gradient, error = np.abs(self.arrays["gradient"]), self.arrays["error"]
        if not np.isfinite(error).any():
            return "not known (a secant at a chosen step, not a derivative)"
        known = np.isfinite(error) & (gradient > 0)
        if not known.any():
            return "every derivative is 0"
        relative = error[known] / gradient[known]
        middle, high = np.quantile(relative, [0.5, 0.95])
        return f"median {middle:.1e}, 95% below {high:.1e} of the derivative"


def axes_of(name: str, array: np.ndarray) -> str:
    """The axes of an array by its name; extras have rows first and axes of their own after.

    Base values are one per output, or one per row too where each row has its own output.
    """
    if name == "base_values":
        return "o" if array.ndim == 1 else "ro"
    if name.startswith(CATEGORY):
        return "r.o"
    return AXES.get(name, "r" + "." * (array.ndim - 1))


def _position(key: Any, names: Sequence[str], size: int) -> Any:
    """An index of one axis: names become positions, single numbers are checked."""
    if isinstance(key, str):
        if key not in names:
            raise KeyError(f"{key!r} is not one of {', '.join(names) or 'any names of this axis'}")
        return names.index(key)
    if isinstance(key, slice):
        return key
    if isinstance(key, (int, np.integer)):
        if not -size <= key < size:
            raise IndexError(f"index {key} is out of range for {size}")
        return int(key) % size
    if isinstance(key, (list, tuple)) and all(isinstance(k, str) for k in key):
        return np.array([_position(k, names, size) for k in key], dtype=int)
    return np.asarray(key)
