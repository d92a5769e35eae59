"""`python -m experiments`, from the root of a checkout; `make paper ARGS="..."` calls it."""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments import run_benchmark
from texplainer.errors import InputError

ABOUT = """Run experiments of the paper and write a page of results beside its figures. With --wide: many
data sets, four kinds of models, three seeds, and one page per question. Finished runs are kept."""
EXAMPLES = """examples:
  python -m experiments --list
  python -m experiments 3hnn_4ft --quick
  python -m experiments --wide banknote --jobs 2
  python -m experiments --wide --models network --jobs 2
"""


def parser() -> argparse.ArgumentParser:
    """Describe the options."""
    made = argparse.ArgumentParser(
        prog="python -m experiments",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("names", nargs="*", help="experiments, see --list")
    made.add_argument("--all", action="store_true", help="run every experiment")
    made.add_argument("--wide", action="store_true", help="the wide evaluation instead of the paper's")
    made.add_argument(
        "--models", nargs="+", default=(), metavar="MODEL", help="only runs of these kinds of models"
    )
    made.add_argument("--quick", action="store_true", help="a smoke run on few rows")
    made.add_argument("--list", action="store_true", help="list the experiments and their state")
    made.add_argument("-o", "--out", type=Path, metavar="FOLDER", help="folder for results")
    made.add_argument("--jobs", type=int, default=1, help="runs done at the same time (default: 1)")
    return made


if __name__ == "__main__":
    options = parser()
    chosen = options.parse_args()
    if chosen.jobs < 1:
        options.error(f"--jobs is {chosen.jobs}; expected 1 or more")
    try:
        failed = run_benchmark(**vars(chosen))
    except InputError as error:
        options.error(str(error))
    raise SystemExit(min(failed, 1))
