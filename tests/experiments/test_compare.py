"""The comparison on one data set: an explainer in one file, its place among the others, what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import compare, own, results
from experiments.lines import LINES
from experiments.pages.questions import PAGES
from texplainer.errors import InputError

ROOT = Path(__file__).parents[2]
FEW = {
    "network": ("T-Explainer slope", "T-Explainer shapley", "Two-point difference"),
    "boosted": ("T-Explainer slope", "T-Explainer shapley", "T-Explainer gradient", "Gradient"),
}


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example of CONTRIBUTING.md, as a user would copy it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(r"For example `mine.py`:\n\n```python\n(.*?)```", text, re.DOTALL)
    assert found
    path = tmp_path_factory.mktemp("own") / "mine.py"
    path.write_text(found.group(1))
    return path


@pytest.fixture(scope="module")
def compared(mine: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A quick comparison of a few lines on generated data."""
    out, said = tmp_path_factory.mktemp("compare"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEXPLAINER_CACHE", str(out / "cache"))
        patch.setattr(compare, "MODELS", FEW)
        patch.setattr(compare, "TINY", replace(compare.TINY, rows=6))
        patch.delitem(LINES, "mine", raising=False)
        page = compare.compare("4ft", out, own=[mine], quick=True, tell=said.append)
    return page, said


def test_the_example_of_contributing_stands_in_every_table(compared: tuple[Path, list[str]]) -> None:
    page, said = compared
    text = page.read_text(encoding="utf-8")
    assert text.count("| mine | ") >= 2 * len(PAGES[0].criteria) - 4  # standings; undefined ones are left out
    assert "## network: What would a small change do?" in text and "*constant*" in text
    assert any(line.startswith("mine") and " of 3 " in line for part in said for line in part.splitlines())
    assert "Gradient: " in text.split("## Not measured")[1]  # it needs a network: said, not fatal
    shapley = text.split("## network: Why this prediction?")[1].split("##")[0]
    assert "| mine |" not in shapley  # only beside lines of its question


def test_the_example_is_the_forward_difference_of_the_explained_output(mine: Path) -> None:
    def predict(rows: np.ndarray) -> np.ndarray:
        return rows @ [1.0, 2.0, -3.0]

    background = np.array([[0.0, 0.0, 0.0], [2.0, 4.0, 6.0]])  # SDs 1, 2, 3
    explain = own.own_explainer(predict, background, build=_build(mine), name="mine", attribution="slope")
    found = explain(background)
    np.testing.assert_allclose(found.values.reshape(2, 3), [[1.0, 4.0, -9.0]] * 2, rtol=1e-12)
    np.testing.assert_array_equal(found.diagnostics.evaluations, 6.0)  # two a feature


def _build(path: Path):
    found: dict[str, object] = {}
    exec(path.read_text(), found)
    return found["build"]


def test_places_and_differences_agree_with_the_scores_on_disk(compared: tuple[Path, list[str]]) -> None:
    page, _ = compared
    result = results.read_run("4ft_network", page.parent)
    criterion = next(c for c in PAGES[0].criteria if c.label == "PGI mean")
    rows = {
        line: np.mean(
            [v for (n, s), v in result.scores.items() if n == line and s.startswith("pgi_mean/")], 0
        )
        for line in ("T-Explainer slope", "Two-point difference")
    }
    a, b = rows.values()
    gap, low, high = compare.difference(result, criterion, *rows)
    assert gap == pytest.approx(a.mean() - b.mean()) and low <= gap <= high
    swapped = compare.difference(result, criterion, *reversed(rows))
    np.testing.assert_allclose(swapped, (-gap, -high, -low), atol=1e-12)


@pytest.mark.parametrize(
    ("gap", "better", "said"),
    [
        ((-1.0, -2.0, -0.5), "low", "better"),
        ((-1.0, -2.0, -0.5), "high", "worse"),
        ((1.0, 0.5, 2.0), "high", "better"),
        ((1.0, -0.5, 2.0), "high", "not separable"),
        ((0.0, 0.0, 0.0), "low", "not separable"),
        ((np.nan, np.nan, np.nan), "low", "not separable"),
    ],
)
def test_better_is_said_only_where_the_interval_excludes_zero(gap, better, said) -> None:
    assert compare.judged(gap, replace(PAGES[0].criteria[0], better=better)) == said


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none.py", None, "is not a file"),
        ("a.py", "QUESTION = 'why'", "QUESTION is 'why'; expected one of slope, shapley, variation"),
        ("a.py", "QUESTION = 'slope'", "has no function build"),
        ("a.txt", "QUESTION = 'slope'", "is not a Python file"),
        ("SHAP.py", "", "'SHAP' is the name of another line"),
    ],
)
def test_a_file_without_an_explainer_is_refused(
    name: str, text: str | None, said: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=re.escape(said)):
        own.add_line(tmp_path / name)


def test_values_of_another_shape_are_refused() -> None:
    explain = own.own_explainer(
        lambda rows: rows.sum(axis=1),
        np.eye(3),
        build=lambda model, background, predict: lambda rows: rows[:, :2],
        name="narrow",
        attribution="slope",
    )
    with pytest.raises(InputError, match=r"narrow returned values of shape \(3, 2\); expected .* \(3, 3\)"):
        explain(np.eye(3))


def test_the_command_refuses_an_unknown_data_set(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as left:
        compare.main(["nowhere", "-o", str(tmp_path / "out")])
    assert left.value.code == 2 and "unknown data set 'nowhere'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_reason_why_an_explainer_could_not_be_run_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, said = tmp_path / "shapeless.py", []
    path.write_text(
        "QUESTION = 'slope'\ndef build(model, background, predict):\n    return lambda rows: rows[0]\n"
    )
    monkeypatch.setenv("TEXPLAINER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compare, "MODELS", {"network": ("Two-point difference",)})
    monkeypatch.delitem(LINES, "shapeless", raising=False)
    compare.compare("4ft", tmp_path / "out", own=[path], quick=True, tell=said.append)
    told = "\n".join(map(str, said))
    assert "shapeless was not measured on network on 4ft: " in told
    assert "returned values of shape (4,); expected one value per row and feature" in told


def test_the_best_other_of_our_lines_is_not_ours(compared: tuple[Path, list[str]]) -> None:
    page, _ = compared
    result = results.read_run("4ft_boosted", page.parent)
    header, body = compare.standings(result, ())
    others = {row[header.index("Best other")] for row in body}
    assert others and not any(name.startswith("T-Explainer") for name in others)
