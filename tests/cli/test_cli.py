"""The command line: exit codes, one-line errors, help whose examples work, completion, start-up."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import click
import model_shelf
import pandas as pd
import pytest

from texplainer.cli import COMMANDS, group, main
from texplainer.files import results

COMMAND = str(Path(sys.executable).with_name("texplainer"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli")
    model_shelf.skops(path)
    (path / "shelf_module.py").write_text(model_shelf.MODULE)
    (path / "broken_module.py").write_text(
        "import numpy as np\n"
        "def always(table):\n    raise RuntimeError('no licence')\n"
        "def sometimes(table):\n"
        "    x = np.asarray(table)[:, 0]\n"
        "    if (x > 1.5).any():\n        raise RuntimeError('too old')\n"
        "    return x\n"
    )
    model_shelf.table().to_csv(path / "data.csv", index=False)
    return path


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def run(*words: str) -> int:
    """The command in this process."""
    with pytest.raises(SystemExit) as left:
        main(list(words))
    return int(left.value.code or 0)


# ---------------------------------------------------------------- exit codes


@pytest.mark.parametrize(
    ("name", "option"), [("verify", "separator"), ("verify", "drop"), ("reasons", "attribution")]
)
def test_an_option_that_a_command_only_refuses_is_not_in_its_help(
    name: str, option: str, capsys: Any
) -> None:
    words = {
        "verify": ("x.npz", "--model", "model.skops", "--data", "data.csv"),
        "reasons": ("model.skops", "data.csv"),
    }
    assert run(name, *words[name], f"--{option}", {"attribution": "slope"}.get(option, ";")) == 2
    assert f"--{option}" in capsys.readouterr().err
    assert run(name, "--help") == 0
    assert f"--{option}" not in capsys.readouterr().out


def test_usage_is_2_and_names_the_option(capsys: Any) -> None:
    assert run("explain") == 2
    assert run("nonsense") == 2
    assert run("explain", "model.skops", "data.csv", "--scale", "log") == 2
    assert "--scale" in capsys.readouterr().err
    assert run("explain", "model.skops", "data.csv", "--bounds", "1") == 2
    assert run("explain", "model.skops", "data.csv", "--row", "1", "-o", "x.csv") == 2


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "model.skops", "absent.csv", "-o", "x.csv"),
        ("explain", "model.skops", "data.csv", "-o", "x.xlsx"),
        ("explain", "model.skops", "data.csv", "--output", "nobody"),
        ("explain", "model.skops", "data.csv", "--row", "9999"),
        ("explain", "model.skops", "data.csv", "-o", "x.csv", "--engine", "tree"),
        ("verify", "absent.npz", "--model", "model.skops", "--data", "data.csv"),
        ("report", "data.csv"),
        ("datasets", "nobody", "-o", "x.csv"),
    ],
)
def test_bad_input_is_3_in_one_line(words: tuple[str, ...], capfd: Any) -> None:
    assert run(*words) == 3
    said = capfd.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and said.err.startswith("texplainer: ")


def test_a_failing_model_is_4_in_one_line(capfd: Any) -> None:
    assert run("explain", "broken_module:always", "data.csv", "-o", "x.csv", "--drop", "target") == 4
    assert "no licence" in (said := capfd.readouterr().err) and said.count("\n") == 1


def test_undefined_rows_are_told_and_fail_when_strict_or_in_a_run(
    folder: Path, tmp_path: Path, capfd: Any
) -> None:
    words = ("explain", "broken_module:sometimes", "data.csv", "--drop", "target")
    young = pd.read_csv("data.csv").query("age < 1.4")
    young.to_csv(tmp_path / "young.csv", index=False)
    words += ("--background", str(tmp_path / "young.csv"), "--bounds", "none", "--step", "0.01")
    assert run(*words, "-o", str(tmp_path / "x.csv")) == 0
    said = capfd.readouterr().err
    found = results.load_explanation(tmp_path / "x.csv")
    old = (pd.read_csv("data.csv")["age"] > 1.5).to_numpy()
    assert (found.arrays["stability"][old] == "undefined").all()
    assert f"{(found.arrays['stability'] == 'undefined').sum()} rows are undefined; row " in said
    assert run(*words, "-o", str(tmp_path / "x.csv"), "--strict") == 1
    assert run(*words, "-o", f"{tmp_path}/shards/") == 1  # nobody watches a long run: its code must tell
    assert "rows are undefined" in capfd.readouterr().err


def test_a_missing_cell_is_told_by_its_row(tmp_path: Path, capfd: Any) -> None:
    table = pd.read_csv("data.csv")
    table.loc[7, "debt"] = None
    table.to_csv(tmp_path / "gap.csv", index=False)
    background = ("--background", "data.csv")
    assert (
        run("explain", "model.skops", str(tmp_path / "gap.csv"), *background, "-o", str(tmp_path / "x.npz"))
        == 0
    )
    assert "1 rows are undefined; row 7: value 'debt' is nan" in capfd.readouterr().err


def test_debug_shows_the_traceback(folder: Path) -> None:
    words = [COMMAND, "explain", "model.skops", "absent.csv", "-o", "x.csv"]
    plain = subprocess.run(words, capture_output=True, text=True)
    assert plain.returncode == 3 and "Traceback" not in plain.stderr
    full = subprocess.run([*words, "--debug"], capture_output=True, text=True)
    assert full.returncode != 0 and "Traceback" in full.stderr


# ---------------------------------------------------------------- options and pictures


def test_options_reach_the_explainer(tmp_path: Path) -> None:
    out = str(tmp_path / "x.npz")
    words = (
        "--scale",
        "log-odds",
        "--attribution",
        "slope",
        "--step",
        "0.01",
        "--smoothing",
        "0",
        "--bounds",
        "-9,9",
    )
    assert (
        run("explain", "model.skops", "data.csv", "-o", out, "--output", "0", *words, "--batch-rows", "64")
        == 0
    )
    found = results.load_explanation(out)
    assert (found.scale, found.attribution, found.engine) == ("log-odds", "slope", "finite-difference")
    assert found.output_names == ("0",)
    options = results.read_result(out)[0]["record"]["configuration"]["options"]
    assert options["bounds"] == [-9.0, 9.0] and options["step"] == 0.01 and options["batch_rows"] == 64
    assert run("verify", out, "--model", "model.skops", "--data", "data.csv", "-o", "rows.csv") == 0
    assert Path("rows.csv").read_text().splitlines()[:2] == ["row,outcome,difference", "0,identical,0.0"]


def test_the_choices_are_those_of_the_tables() -> None:
    from texplainer.attributions.table import ATTRIBUTIONS
    from texplainer.gradients.choose import ENGINES
    from texplainer.models.predictor import SCALES

    command = group.get_command(click.Context(group), "explain")
    assert command is not None
    offered = {p.name: set(p.type.choices) for p in command.params if isinstance(p.type, click.Choice)}
    assert offered["attribution"] == {"auto", *ATTRIBUTIONS}
    assert offered["engine"] == {"auto", *ENGINES}
    assert offered["scale"] == set(SCALES)


def test_one_row_is_drawn_with_bars(capsys: Any) -> None:
    assert run("explain", "model.skops", "data.csv", "--row", "17", "--top", "3") == 0
    said = capsys.readouterr().out
    assert said.startswith("row 17") and "█" in said and "│" in said and "1 other feature" in said
    assert re.match(r"slope per SD: (stable|unstable), changes by \d", said.rstrip().split("\n")[-1])
    table = said.split("\n")[1:6]
    assert (
        "contribution" in table[0] and "slope per SD" in table[0] and all(len(line) <= 80 for line in table)
    )


def test_a_function_of_a_module_needs_no_file(capsys: Any) -> None:
    assert run("explain", "shelf_module:score", "data.csv", "--drop", "target") == 0
    assert capsys.readouterr().out.startswith("row 0")


def test_quiet_when_nobody_watches(folder: Path, tmp_path: Path) -> None:
    words = [COMMAND, "explain", "model.skops", "data.csv", "-o", str(tmp_path / "x.csv")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.stdout == "" and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr


# ---------------------------------------------------------------- help, completion, start-up


def examples(name: str) -> list[str]:
    context = click.Context(group)
    command = group.get_command(context, name)
    assert command is not None
    return re.findall(r"^ +(texplainer .*)$", command.get_help(context), re.MULTILINE)


def test_every_command_has_help_with_an_example() -> None:
    for name in set(COMMANDS) - {"completion"}:
        assert examples(name), name
        assert all(line.startswith(f"texplainer {name}") for line in examples(name))


def test_the_examples_in_the_help_work_as_printed_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("datasets", "explain", "verify", "evaluate", "report"):
        for line in examples(name):
            execute(line)


def execute(line: str) -> None:
    """Run a line of a shell; texplainer in this process, which is what the installed command does."""
    words = shlex.split(line, comments=True)
    if words[0] == "texplainer":
        assert run(*words[1:]) == 0, line
    else:
        program = sys.executable if words[0] == "python" else words[0]
        subprocess.run([program, *words[1:]], check=True, capture_output=True)


@pytest.mark.skipif(os.name != "posix", reason="an interrupt is sent as a signal")
def test_serve_answers_until_it_is_interrupted(folder: Path) -> None:
    words = [COMMAND, "serve", "model.skops", "data.csv", "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            said = server.stdout.readline()
            address = re.search(r"http://127\.0\.0\.1:\S+", said)
            assert address is not None, said
            assert answers(address[0]) == 200
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=30)
    assert server.returncode == 0


def answers(address: str) -> int:
    """The status of a page, once its server listens."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(100):
        try:
            with direct.open(address, timeout=30) as answer:
                return answer.status
        except urllib.error.URLError:
            time.sleep(0.2)
    raise AssertionError(f"{address} does not answer")


def commands_of(page: str) -> list[str]:
    """The lines of a page's shell blocks that are ours to run; `no-test` in a comment leaves one out."""
    text = (Path(__file__).parents[2] / page).read_text()
    blocks = re.findall(r"(<!-- no-test -->\s*)?```bash\n(.*?)```", text, re.DOTALL)
    lines = [line.strip() for skip, block in blocks if not skip for line in block.splitlines()]
    ours = ("texplainer ", "python ", "openssl ")
    return [line for line in lines if line.startswith(ours) and "no-test" not in line]


@pytest.mark.parametrize("pages", [("README.md",), ("docs/cli.md", "docs/audit.md")])
def test_every_command_of_the_readme_and_the_guides_works(
    pages: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for page in pages:
        commands = commands_of(page)
        assert commands
        for line in commands:
            execute(line)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, capsys: Any) -> None:
    assert run("completion", shell) == 0
    assert "_TEXPLAINER_COMPLETE" in capsys.readouterr().out


def test_completion_completes(folder: Path) -> None:
    environment = os.environ | {
        "_TEXPLAINER_COMPLETE": "bash_complete", "COMP_WORDS": "texplainer ver", "COMP_CWORD": "1",
    }  # fmt: skip
    done = subprocess.run([COMMAND], capture_output=True, text=True, env=environment)
    assert "verify" in done.stdout and "explain" not in done.stdout


def test_help_imports_no_numerical_library() -> None:
    code = "import sys, texplainer.cli; print([m for m in ('numpy', 'scipy', 'sklearn', 'pyarrow') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
