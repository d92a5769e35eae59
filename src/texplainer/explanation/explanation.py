"""The frozen result: attributions, what they were computed from, and how far to trust them.

All arrays are kept at full rank with their axes known by name (`fields`), so that slicing is one rule for
all of them. An axis indexed by a single number or name disappears from view, as in numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from texplainer.errors import InputError
from texplainer.explanation import views
from texplainer.explanation.fields import (
    FIELDS,
    CategoryEffects,
    Diagnostics,
    Live,
    axes_of,
    is_shared,
    names_left,
    position,
    take,
)
from texplainer.explanation.interactions import Interactions
from texplainer.support.messages import no_attribute

if TYPE_CHECKING:
    from texplainer.reasons.codes import Reasons


@dataclass(frozen=True, repr=False, eq=False)
class Explanation:
    """Feature attributions of some rows, with their diagnostics.

    Attributes
    ----------
    values : (rows, features), or (rows, features, outputs) when several outputs are explained
    base_values : phi_0, the mean prediction over the background, per output
    predictions : f(x) on the explained scale
    data : the user's own values
    gradient : the slopes of the local model; NaN where the attribution has none
    units : the unit of each feature's value: "per SD", "this category", "contribution", ...
    diagnostics : per row: the error bound of every value, relative change, residuals, evaluations, stability, reason
    categories : per categorical feature, the effect of every category
    others : further attributions of the same rows, by name; `with_attribution` gives them
    """

    arrays: Mapping[str, np.ndarray]
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    scale: str = "raw"
    attribution: str = "gradient"
    engine: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    categories: Mapping[str, CategoryEffects] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    units: tuple[str, ...] = ()
    others: Mapping[str, Explanation] = field(default_factory=dict)
    live: Live | None = field(default=None, compare=False)
    positions: np.ndarray | None = None  # of the rows of a slice, in the explanation it was taken from

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
    def index(self) -> np.ndarray:
        """The labels of the rows: those of the user's frame, or their positions in the explained table."""
        found = self.arrays.get("index", self.positions if self.live is None else self.live.rows)
        return np.arange(len(self)) if found is None or len(found) != len(self) else found

    def with_index(self, labels: np.ndarray | None) -> Explanation:
        """A copy with a label for every row; None leaves their positions."""
        if labels is None:
            return self
        others = {name: other.with_index(labels) for name, other in self.others.items()}
        return replace(self, arrays={**self.arrays, "index": labels}, others=others)

    @property
    def diagnostics(self) -> Diagnostics:
        """How far to trust each row."""
        names = [n for n in self.arrays if n not in FIELDS or FIELDS[n].diagnostic]
        return Diagnostics({**{name: self.view(name) for name in names}, "engine": self.engine})

    def every_array(self) -> dict[str, np.ndarray]:
        """All arrays, those of other attributions as "shapley/values"; what is shared once."""
        return dict(self.arrays) | {
            f"{name}/{key}": array
            for name, other in self.others.items()
            for key, array in other.arrays.items()
            if not is_shared(key)
        }

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of `values`."""
        return self.values.shape

    def __len__(self) -> int:
        return self.arrays["values"].shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The values, for `np.asarray(explanation)`."""
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    # -------------------------------------------------------------- slicing

    def __getitem__(self, key: Any) -> Explanation:
        """Slice by row, by feature name, by output name: `e[0]`, `e[:, "age"]`, `e[..., "class_a"]`."""
        return self._take(self._picks(key))

    def _take(self, picks: Mapping[str, Any]) -> Explanation:
        arrays, dropped = dict(self.arrays), set(self.dropped)
        for axis, pick in picks.items():
            dropped |= {axis} if np.ndim(pick) == 0 and not isinstance(pick, slice) else set()
            for name, array in arrays.items():
                for at, one in enumerate(axes_of(name, array)):
                    if one == axis:  # twice in a matrix of features by features
                        arrays[name] = take(arrays[name], at, pick)
        names = names_left(self.feature_names, picks.get("f"))
        positions = np.arange(len(self)) if self.positions is None else self.positions
        return replace(
            self,
            arrays=arrays,
            positions=take(positions, 0, picks["r"]) if "r" in picks else self.positions,
            feature_names=names,
            output_names=names_left(self.output_names, picks.get("o")),
            categories=self._take_categories(picks, names),
            dropped=frozenset(dropped),
            units=names_left(self.units, picks.get("f")) if self.units else (),
            others={name: other._take(picks) for name, other in self.others.items()},
            live=self.live and replace(self.live, rows=take(self.live.rows, 0, picks.get("r", slice(None)))),
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
        return {a: position(k, names[a], sizes[a]) for a, k in zip(axes, key, strict=False)}

    def _take_categories(
        self, picks: Mapping[str, Any], names: tuple[str, ...]
    ) -> dict[str, CategoryEffects]:
        out = {}
        for name, category in self.categories.items():
            if name in names:
                effects = category.effects
                for axis, at in (("r", 0), ("o", 2)):
                    effects = take(effects, at, picks[axis]) if axis in picks else effects
                out[name] = replace(category, effects=effects)
        return out

    # -------------------------------------------------------------- other attributions

    def with_attribution(self, attribution: str) -> Explanation:
        """The same rows in another attribution, if it is held or the explainer is still there to compute it."""
        if attribution == self.attribution:
            return self
        if attribution in self.others:
            others = {self.attribution: replace(self, others={}, live=None), **self.others}
            found = others.pop(attribution)
            return replace(found, others=others, live=self.live)
        if self.live is None:
            raise InputError(
                f"this explanation holds {self.attribution!r} and has no explainer to ask for "
                f"{attribution!r}: it was loaded, sent from another process or made by hand. Keep both with "
                f"explainer(X, attribution=({self.attribution!r}, {attribution!r}))."
            )
        found = self.live.ask(self.live.rows, attribution)
        picks = {
            "f": np.array([found.feature_names.index(name) for name in self.feature_names]),
            "o": np.array([found.output_names.index(name) for name in self.output_names]),
        }
        found = found._take(picks).with_index(self.arrays.get("index"))
        return replace(found, dropped=self.dropped)

    def with_other(self, other: Explanation) -> Explanation:
        """A copy that also holds another attribution of the same rows; arrays of the rows are kept once."""
        shared = {name: array for name, array in self.arrays.items() if is_shared(name)}
        other = replace(
            other, arrays={**other.arrays, **shared}, categories=self.categories, others={}, live=None
        )
        return replace(self, others={**self.others, other.attribution: other})

    if not TYPE_CHECKING:  # a type checker must still find misspelt names

        def __getattr__(self, name: str) -> Any:
            """Reached for what is not there: names the remedy for what shap and others call it."""
            raise no_attribute("an Explanation", name)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the explainer."""
        return {**self.__dict__, "live": None}

    # -------------------------------------------------------------- using it

    def with_interactions(self, interactions: Interactions) -> Explanation:
        """A copy with the second derivatives that `surrogate(dx, order=2)` needs."""
        interactions.check_rows(self.arrays["predictions"], self.feature_names)
        return replace(self, arrays={**self.arrays, "hessian": interactions.hessian()})

    def surrogate(self, dx: Any, order: int = 1) -> np.ndarray:
        """The local model f(x) + sum_i df/dx_i dx_i (paper, Eq. 2), with order=2 its second-order terms too.

        `dx` is a displacement of every row, (rows, features) or (features,); the answer has the
        shape of `predictions`. The second order is that of `with_interactions`.
        """
        return views.surrogate(self, dx, order)[
            tuple(0 if axis in self.dropped else slice(None) for axis in "ro")
        ]

    def importance(self) -> Any:
        """Global view: a pandas table with one line per feature, the largest mean |value| first.

        Its columns are the feature, the mean |value| over rows and outputs (`mean_abs`) and its `bound` (the mean
        of the values' error bounds, NaN where none is known), the standard deviation of the values and the share
        of rows in which they are positive. Undefined rows are left out.
        """
        import pandas as pd

        return pd.DataFrame(views.importance(self))

    def cohorts(self, by: Any) -> dict[str, Explanation]:
        """The rows in groups: by a feature's categories, below and above its median, or by one label per row."""
        return views.cohorts(self, by)

    def sample(self, rows: int, seed: int = 0) -> Explanation:
        """Some rows drawn at random, in their order."""
        return views.sample(self, rows, seed)

    @property
    def abs(self) -> Explanation:
        """A copy with the absolute values, as `explanation.abs` of shap."""
        return views.sizes(self)

    def mean(self, axis: int | None = 0, dtype: Any = None, out: Any = None) -> Any:
        """The mean value of every feature over the rows (axis 0), or of all values (None), as `np.mean` asks.

        Rows that are undefined are left out.
        """
        return views.reduced(self, np.mean, axis, dtype, out)

    def sum(self, axis: int | None = 0, dtype: Any = None, out: Any = None) -> Any:
        """The sum of every feature's values over the rows (axis 0), or of all values (None), as `np.sum` asks.

        Rows that are undefined are left out.
        """
        return views.reduced(self, np.sum, axis, dtype, out)

    def to_frame(self) -> Any:
        """A pandas table, one line per row, feature and output: value, its unit and error, data, stability.

        Further attributions that are kept have columns of their own, such as `shapley` and `shapley_error`.
        """
        return views.to_frame(self)

    def to_excel(self, path: Any) -> Any:
        """Write an .xlsx file with the sheets "values" (`to_frame`) and "importance"; give its path."""
        from texplainer.files import results

        return results.write_workbook(self, path)

    def to_pixels(self) -> np.ndarray:
        """Values by pixel, every pixel that of its segment: (rows, height, width), or with outputs last."""
        return views.painted(self)[tuple(0 if axis in self.dropped else slice(None) for axis in "r..o")]

    def to_shap(self) -> Any:
        """The contributions of these rows as a `shap.Explanation`, for SHAP's own plots."""
        return views.to_shap(self)

    def reasons(
        self,
        k: int = 4,
        toward: Any = None,
        exclude: Any = (),
        phrases: Mapping[str, str] | None = None,
        group: Mapping[str, Sequence[str]] | None = None,
        reference: Any = None,
    ) -> Reasons:
        """Reason codes: per row the features that pushed the prediction in the adverse direction.

        They are ranked by contribution (attribution "shapley"; a live explanation computes it). Reasons that
        their error bounds cannot order share a rank.

        Parameters
        ----------
        k
            The most reasons a row has.
        toward
            The adverse direction. None and "up": a higher prediction of the explained output, which is what a
            score of risk means; "down": a lower one, for a model of approval or repayment. Or the class that
            the decision went to, such as "bad".
        exclude
            Features that are never reasons, such as protected ones; their total contribution is reported.
        phrases
            Feature or group -> the phrase to print; "{value}" and "{reference}" in it are filled in. Where the
            value is missing, the phrase says just that.
        group
            Name -> related features whose contributions are summed into one reason.
        reference
            A table of rows, such as approved applicants, whose means and most frequent categories are shown as
            typical; None for the background. Contributions are always against the background.
        """
        from texplainer.reasons import codes

        return codes.reasons_of(self, k, toward, exclude, phrases, group, reference)

    def save(self, path: Any) -> None:
        """Write to a .npz, .parquet, .arrow, .feather, .csv or .jsonl file; nothing is pickled.

        The first four hold every field. CSV and JSON lines are for people: they leave out the gradient, most
        diagnostics and the effects of every category. No file holds the link to the explainer.
        """
        from texplainer.files import results

        results.save_explanation(self, path)

    @classmethod
    def load(cls, path: Any) -> Explanation:
        """Read what `save` wrote."""
        from texplainer.files import results

        return results.load_explanation(path)

    def report(self, path: Any, *, title: str = "") -> Any:
        """Write one self-contained HTML page with interactive pictures; give its path."""
        from texplainer import report

        return report.write(self, path, title=title)

    def _repr_html_(self) -> str:
        from texplainer.report import notebook

        return notebook.explanation(self)

    def stability_counts(self) -> dict[str, int]:
        """How many rows are stable, unstable and undefined."""
        stability = self.arrays.get("stability", np.array([], dtype=str))
        return {v: int(np.sum(stability == v)) for v in ("stable", "unstable", "undefined")}

    def __repr__(self) -> str:
        return views.summary_words(self)
