"""Count the files of texplainer that a row passes through, from the constructor to its values.

python benchmarks/journey.py              both models: every file in the order of its first call, then the count
python benchmarks/journey.py --count      the counts alone

A file counts when one of its functions is called. Everything has been imported and compiled before, so that
what only runs at import does not count. Compiled loops (`numba`) are not seen; the files that call them are.
"""

from __future__ import annotations

import argparse
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

import texplainer as tx

SOURCE = Path(tx.__file__).parent
ROWS = 3
#: the most files that a row may pass through
TARGETS = {"black box": 25, "trees with a category": 34}


def black_box() -> tuple[Any, pd.DataFrame]:
    """Give a plain function of a frame with three numeric columns."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 3)), columns=list("abc"))
    return (lambda table: np.tanh(np.asarray(table, dtype=float)).sum(axis=1)), frame


def trees_with_a_category() -> tuple[Any, pd.DataFrame]:
    """Give a LightGBM classifier of a frame with two numbers and one category."""
    import lightgbm

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["size", "age"])
    frame["colour"] = pd.Categorical(rng.choice(["red", "green", "blue"], len(frame)))
    target = frame["size"] + (frame["colour"] == "red") > 0
    return lightgbm.LGBMClassifier(n_estimators=20, verbose=-1).fit(frame, target), frame


SUBJECTS: dict[str, Callable[[], tuple[Any, pd.DataFrame]]] = {
    "black box": black_box,
    "trees with a category": trees_with_a_category,
}


def journey(name: str, attribution: str = "slope") -> list[str]:
    """Give the files a row passes through, below src/texplainer, in the order of their first call."""
    model, frame = SUBJECTS[name]()
    explain_once(model, frame, attribution)  # imports and compiles
    return traced(lambda: explain_once(model, frame, attribution))


def explain_once(model: Any, frame: pd.DataFrame, attribution: str) -> Any:
    """Build an explainer and explain a few rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tx.TExplainer(model, frame, attribution=attribution)(frame[:ROWS]).values


def traced(run: Callable[[], Any]) -> list[str]:
    """Give the files of texplainer whose functions a call runs, in any thread."""
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(SOURCE):
                found.setdefault(path.relative_to(SOURCE).as_posix())

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attribution", default="slope")
    parser.add_argument("--count", action="store_true", help="print the counts alone")
    options = parser.parse_args()
    for name, target in TARGETS.items():
        files = journey(name, options.attribution)
        if not options.count:
            print(*(f"{i:3d}  {file}" for i, file in enumerate(files, 1)), sep="\n")
        print(f"{name}, {options.attribution}: {len(files)} files (target: {target})\n")


if __name__ == "__main__":
    main()
