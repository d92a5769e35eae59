"""`texplainer bench`: the paper's experiments, and the wide evaluation."""

from __future__ import annotations

import click


@click.command(
    epilog="""\b
Examples:
  texplainer bench --list
  texplainer bench 3hnn_4ft --quick
  texplainer bench --wide banknote --jobs 2
"""
)
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Run every experiment.")
@click.option("--wide", is_flag=True, help="The wide evaluation instead of the paper's experiments.")
@click.option("--quick", is_flag=True, help="A smoke run on few rows.")
@click.option("--list", "listing", is_flag=True, help="List the experiments and their state.")
@click.option("-o", "--out", metavar="FOLDER", default=None, help="Folder for results.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Runs at the same time.")
def command(
    names: tuple[str, ...],
    everything: bool,
    wide: bool,
    quick: bool,
    listing: bool,
    out: str | None,
    jobs: int,
) -> int:
    """Run the experiments NAMES of the paper and write a page of results beside its figures.

    With --wide: many data sets, five kinds of models, three seeds, and one page per question.

    Finished runs are kept: an interrupted benchmark goes on where it stopped.
    """
    from texplainer import paper

    if not (names or everything or listing or wide):
        raise click.UsageError("name some experiments (see --list), or ask for --all")
    return min(
        1,
        paper.run_benchmark(names, all=everything, wide=wide, quick=quick, list=listing, out=out, jobs=jobs),
    )
