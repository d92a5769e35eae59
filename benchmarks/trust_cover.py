"""How many derivatives the stated bounds cover, function by function.

python benchmarks/trust_cover.py         writes docs/results/trust_cover.md
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from conditions import measured_on

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "results" / "trust_cover.md"
ROWS = 200


def main() -> None:
    sys.path.insert(0, str(ROOT / "tests" / "helpers"))
    from hard_functions import HARD, cover

    warnings.simplefilter("ignore")
    found = {hard.name: cover(hard, ROWS) for hard in HARD}
    page = [
        "# Bounds of derivatives: cover by function",
        "",
        "How many derivatives lie within their bounds, function by function? Aimed at: 99% of float64 functions and",
        "95% of the narrower ones, and 99% in rows called stable.",
        "",
        "| function | what is hard | covered | rows called stable | covered there | median relative error |",
        "|---|---|---|---|---|---|",
    ]
    for hard in HARD:
        one = found[hard.name]
        there = f"{one.stable_covered / one.stable_cells:.1%}" if one.stable_cells else ""
        name = f"| {hard.name} | {hard.kind} | {one.covered:.1%}"
        page.append(f"{name} | {one.stable:.0%} | {there} | {one.error:.0e} |")
    page += ["", "| together | functions | covered | covered in stable rows |", "|---|---|---|---|"]
    for name, narrow in (("float64", False), ("narrower inside", True)):
        some = [found[hard.name] for hard in HARD if hard.narrow == narrow]
        there = sum(one.stable_covered for one in some) / max(1, sum(one.stable_cells for one in some))
        page.append(f"| {name} | {len(some)} | {np.mean([one.covered for one in some]):.2%} | {there:.2%} |")
    page += [
        "",
        "## How",
        "",
        f"`python benchmarks/trust_cover.py`: finite differences, {ROWS} rows each, their bound against the derivative",
        "on paper.",
        "",
        measured_on(),
    ]
    OUT.write_text("\n".join(page) + "\n")
    print(OUT.read_text())


if __name__ == "__main__":
    main()
