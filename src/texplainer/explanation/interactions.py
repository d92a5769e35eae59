"""The frozen result of second order: how one feature's slope changes with another feature.

`values[r, i, j]` is how much the slope of feature i, per SD, changes per SD of feature j around the row; on
the diagonal, a feature's own curvature. Of a category it is its effect compared with the average one.

With attribution "shapley" it is half of the pair's Shapley interaction index; rows sum to the Shapley values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.explanation.fields import names_left, position, take


@dataclass(frozen=True, repr=False, eq=False)
class Interactions:
    """Slopes of slopes or Shapley interaction values of some rows, with their error bounds.

    Attributes
    ----------
    arrays
        "values" and "error" (rows, features, features, outputs); "data" (rows, features); "predictions"
        (rows, outputs); "evaluations" (rows,).
    feature_names, output_names
        The names along the axes.
    scale, engine
        What was explained, and the engine of the explainer.
    width
        Bandwidth of the moves, in SDs.
    attribution
        "slope", or "shapley" and "shapley_path" for Shapley interaction values.
    sd
        (features,), what one step of a feature is; NaN for categories.
    """

    arrays: dict[str, np.ndarray]
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    scale: str
    engine: str
    width: float
    sd: np.ndarray
    dropped: frozenset[str] = field(default_factory=frozenset)
    attribution: str = "slope"

    def _view(self, name: str) -> np.ndarray:
        return self.arrays[name][tuple(0 if axis in self.dropped else slice(None) for axis in "rfgo")]

    @property
    def values(self) -> np.ndarray:
        """SD_i SD_j times the slope of the slope, or Shapley interaction values.

        (rows, features, features), outputs last where there are several.
        """
        return self._view("values")

    @property
    def error(self) -> np.ndarray:
        """Bounds of the values, of their shape."""
        return self._view("error")

    @property
    def question(self) -> str:
        """What the numbers answer."""
        if self.attribution != "slope":
            return "How much of the prediction is due to two features together?"
        return "How strongly do two features interact here?"

    def __len__(self) -> int:
        return len(self.arrays["values"])

    def __getitem__(self, key: Any) -> Interactions:
        """Rows, or with `[..., "output"]` an output; a single row or output disappears from view."""
        rows, output = key if isinstance(key, tuple) else (key, slice(None))
        picks = {
            "r": slice(None) if rows is Ellipsis else position(rows, (), len(self)),
            "o": position(output, self.output_names, len(self.output_names)),
        }
        axes = {"values": "rfgo", "error": "rfgo", "data": "rf", "predictions": "ro", "evaluations": "r"}
        arrays = dict(self.arrays)
        for name, array in self.arrays.items():
            for axis, pick in picks.items():
                if axis in axes[name]:
                    array = take(array, axes[name].index(axis), pick)
            arrays[name] = array
        gone = {axis for axis, pick in picks.items() if isinstance(pick, int)}
        names = names_left(self.output_names, picks["o"])
        return replace(self, arrays=arrays, output_names=names, dropped=self.dropped | gone)

    def strongest(self, most: int = 10, *, own: bool = False) -> list[tuple[str, str, float, float]]:
        """The pairs that matter most: both names, the mean size over rows (and outputs), its error bound.

        `own` counts a feature's own curvature among them. Of one row the value keeps its sign.
        """
        values, error = self.arrays["values"], self.arrays["error"]
        known = np.isfinite(values).all(axis=(1, 2, 3))
        if not known.any():
            return []
        first, second = np.triu_indices(values.shape[1], 0 if own else 1)
        sizes = values[known][:, first, second]  # (rows, pairs, outputs)
        size = np.abs(sizes).mean(axis=(0, 2))
        bound = error[known][:, first, second].mean(axis=(0, 2))
        single = sizes.shape[0] == sizes.shape[2] == 1
        order = np.argsort(-size, kind="stable")[:most]
        return [
            (
                self.feature_names[first[k]],
                self.feature_names[second[k]],
                float(sizes[0, k, 0] if single else size[k]),
                float(bound[k]),
            )
            for k in order
        ]

    def hessian(self) -> np.ndarray:
        """d2f/dx_i dx_j in the features' own units, (rows, features, features, outputs); 0 for categories."""
        if self.attribution != "slope":
            raise InputError(
                f"interactions with attribution={self.attribution!r} are not second derivatives. "
                "Use explainer.interactions(X)."
            )
        area = np.nan_to_num(np.multiply.outer(self.sd, self.sd))[..., None]
        values = self.arrays["values"]
        return np.divide(values, area, out=np.zeros_like(values), where=area > 0)

    def check_rows(self, predictions: np.ndarray, names: tuple[str, ...]) -> None:
        """Refuse an explanation of other rows, features or outputs."""
        same = self.arrays["predictions"].shape == predictions.shape and names == self.feature_names
        if not same or not np.allclose(self.arrays["predictions"], predictions, equal_nan=True):
            raise InputError(
                "these interactions are of other rows, features or outputs than the explanation. "
                "Compute both of the same table: explainer(X) and explainer.interactions(X)."
            )

    def __repr__(self) -> str:
        pairs = [f"{one} x {two} {size:.3g}" for one, two, size, _ in self.strongest(3)]
        how = f"differences of predictions, bandwidth {self.width:.3g} SD"
        if self.attribution != "slope":
            how = f"exact interaction values of {self.attribution}"
        return (
            f"Interactions of {len(self)} rows, {len(self.feature_names)} features, "
            f"{', '.join(self.output_names[:3])} on the {self.scale} scale\n"
            f"  method     {how}\n"
            f"  strongest  {', '.join(pairs)}"
        )
