"""On what a page was measured, in one sentence: Python, libraries, processor, cores, load."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where experiments/ is

BEGAN = os.getloadavg()[0]  # the load when the script began
ALWAYS = ("texplainer", "numpy", "scipy", "scikit-learn")


def measured_on(*libraries: str) -> str:
    """Say with what, and on what, a script measures; a library that is not installed is left out."""
    from experiments.results import this_machine

    here, found = this_machine(), []
    for name in (*ALWAYS, *libraries):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return (
        f"Python {here['python']}, {', '.join(found)}; {here['processor']}; load {BEGAN:.1f} when it began, "
        f"{here['load']:.1f} at the end."
    )
