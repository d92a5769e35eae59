"""What a page of the wide evaluation says of our attribution: first, ahead, behind, and to whom."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from experiments import statistics
from experiments.pages.questions import PAGES, QuestionPage, Standing, conclusions, short_table
from experiments.statistics import RankTest
from experiments.wide import blocks

RANKS = {"T-Explainer slope": 1.0, "Gradient": 3.0, "SmoothGrad": 4.0}


def standing(
    ranks: dict[str, float] = RANKS, gap: tuple[float, float, float] = (1.0, 0.5, 1.5), critical: float = 1.0
) -> Standing:
    average = dict(sorted(ranks.items(), key=lambda pair: pair[1]))
    test = RankTest(average, 0.001, critical, 16)
    return Standing("T-Explainer slope", blocks.LOCALITY, "all", test, "Gradient", (0.9, 0.8), gap)


def test_first_is_said_only_where_ranks_and_interval_say_so() -> None:
    assert standing().result == "**first**, separable from all"
    assert standing(critical=2.5).result == "lowest rank, not separable from 1 of 2"
    assert standing(gap=(1.0, -0.5, 1.5)).result == "lowest rank, not separable from 0 of 2"
    untested = replace(standing(), test=replace(standing().test, p_value=0.2))
    assert untested.result == "lowest rank, not separable from 2 of 2"


def test_our_other_lines_add_no_distance_to_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"T-Explainer slope": 1.0, "T-Explainer gradient": 2.0, "Gradient": 3.0, "SmoothGrad": 4.0}
    tables = {(name, "m"): table for name in "abcd"}
    monkeypatch.setattr(QuestionPage, "tables", lambda page, results, criterion: tables)
    page = replace(PAGES[0], criteria=(blocks.INFIDELITY,))
    alone, every = (page.tests([], alone=choice)["Infidelity"] for choice in (True, False))
    assert alone.average == {"T-Explainer slope": 1.0, "Gradient": 2.0, "SmoothGrad": 3.0}
    assert list(every.average) == list(table)


def test_behind_is_said_where_either_says_so() -> None:
    later = {**RANKS, "T-Explainer slope": 3.5}
    assert standing(later, (-1.0, -1.5, 0.5)).result == "not first, not separable from Gradient"
    assert standing(later, (-1.0, -1.5, -0.5)).result == "behind Gradient"  # the interval
    assert standing({**later, "Gradient": 2.0}, (-1.0, -1.5, 0.5)).result == "behind Gradient"  # the ranks
    assert standing(gap=(-1.0, -1.5, -0.5)).result == "behind Gradient"  # the lower rank does not hide it


def test_the_first_table_names_the_kinds_of_models_on_which_it_is_behind() -> None:
    lost = replace(standing(gap=(-1.0, -1.5, -0.5)), family="boosted", other="SmoothGrad")
    header, (row,) = short_table([standing(), lost])
    assert header[-1] == "Also behind, by kind of model" and row[-1] == "boosted: SmoothGrad"
    assert "models" not in header and len(row) == len(header)
    said = list(conclusions([standing()]))
    assert said[0] == "First: Locality, r = 0.75 (0.9; Gradient 0.8)." and said[2] == "Behind: nowhere."


def test_an_undefined_number_is_the_worst_of_its_table_also_in_a_pair() -> None:
    tables = {
        ("one", "m"): {"a": math.nan, "b": 1.0, "c": 5.0},
        ("two", "m"): {"a": 1.0, "b": 3.0, "c": 2.0},
    }
    mean, *_ = statistics.paired_difference(tables, "low", "a", "b")
    assert mean == pytest.approx(((5.0 - 1.0) + (1.0 - 3.0)) / 2)  # not 1 - 1, a tie
