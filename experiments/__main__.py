"""`python -m texplainer.paper`: the same as `texplainer bench`."""

from __future__ import annotations

import argparse
from pathlib import Path

from texplainer.paper import run_benchmark

if __name__ == "__main__":
    about = "Run experiments of the paper, or of the wide evaluation, and write their pages of results."
    parser = argparse.ArgumentParser(prog="python -m texplainer.paper", description=about)
    parser.add_argument("names", nargs="*", help="experiments, see --list")
    parser.add_argument("--all", action="store_true", help="run every experiment")
    parser.add_argument("--wide", action="store_true", help="the wide evaluation instead of the paper's")
    parser.add_argument("--quick", action="store_true", help="a smoke run on few rows")
    parser.add_argument("--list", action="store_true", help="list the experiments and their state")
    parser.add_argument("--out", type=Path, help="folder for results")
    parser.add_argument("--jobs", type=int, default=1, help="runs done at the same time")
    raise SystemExit(min(run_benchmark(**vars(parser.parse_args())), 1))
