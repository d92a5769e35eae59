"""The benchmark as a user runs it: small runs, killed and resumed, listed, refused."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import experiments
from experiments import results
from experiments.paper import plan
from experiments.plan import QUICK
from texplainer.errors import InputError

pytest.importorskip("shap")
pytest.importorskip("lime")
pytest.importorskip("captum")

ROOT = Path(__file__).parents[2]
TREES = ("xrfc_4ft", "xrfc_20ft", "xrfc_4ft_forest", "xrfc_20ft_forest")  # run in processes: no torch to load
NETWORKS = ("3hnn_4ft", "faith_3hnn_4ft", "boxplots", "running_time")  # run in this one


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models are trained once for all tests of this file."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """An uninterrupted quick run of the tree experiments."""
    return in_process(tmp_path_factory.mktemp("whole") / "quick", cache, TREES)


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A quick run of the others."""
    return in_process(tmp_path_factory.mktemp("networks") / "quick", cache, NETWORKS)


def in_process(out: Path, cache: Path, names: tuple[str, ...], **options: int) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEXPLAINER_CACHE", str(cache))
        assert experiments.run_benchmark(names, quick=True, out=out, tell=lambda _: None, **options) == 0  # type: ignore[arg-type]
    return out


def start(out: Path, cache: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "experiments", *TREES, "--quick", "--out", str(out), *options]
    environment = {**os.environ, "TEXPLAINER_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def scores(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.glob("[!.]*.csv"))}


def page(out: Path) -> str:
    """The page of a run without the machine's load, which differs from run to run as times do."""
    text, loads = re.subn(
        r"Load when a run ended: [\d.]+ to [\d.]+\.", "", out.with_name("quick.md").read_text()
    )
    assert loads == 1
    return text


def test_every_run_is_finished_and_carries_the_hash_the_code_computes(networks: Path) -> None:
    for run in plan(NETWORKS, QUICK):
        assert results.finished(run, networks), run.name
        record = json.loads((networks / f"{run.name}.json").read_text())
        assert record["hash"] == run.hash
        assert not record.get("skipped"), run.name
        loaded = results.read_run(run.name, networks)
        assert set(run.experiment.lines) <= {explainer for explainer, _ in loaded.scores}
    complete = (networks / "tables.md").read_text()
    assert all(f"`{name}`" in complete for name in NETWORKS[:2])
    assert "boxplots.svg" in networks.with_name("quick.md").read_text()


@pytest.mark.parametrize(
    ("how", "after"), [(signal.SIGKILL, 0), (signal.SIGKILL, 1), (signal.SIGINT, 1), (signal.SIGKILL, 2)]
)
def test_killed_and_resumed_gives_the_same_tables(
    how: signal.Signals, after: int, whole: Path, cache: Path, tmp_path: Path
) -> None:
    out = tmp_path / "quick"
    process = start(out, cache)
    deadline = time.monotonic() + 300
    while (
        not (out.exists() and len(list(out.glob("[!.]*.json"))) >= after)
        and process.poll() is None
        and time.monotonic() < deadline
    ):
        time.sleep(0.01)
    os.kill(process.pid, how)
    process.wait(timeout=60)
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("[!.]*.json")}
    assert after <= len(before) < len(plan(TREES, QUICK))
    resumed = start(out, cache)
    _, messages = resumed.communicate(timeout=600)
    assert resumed.returncode == 0, messages
    assert f"{len(before)} of {len(plan(TREES, QUICK))} runs are finished" in messages
    for name, stamp in before.items():
        assert (out / name).stat().st_mtime_ns == stamp  # not repeated
    assert scores(out) == scores(whole)  # none lost, none different
    assert page(out) == page(whole)


def test_several_processes_give_the_same_scores(whole: Path, cache: Path, tmp_path: Path) -> None:
    out = in_process(tmp_path / "quick", cache, TREES, jobs=2)
    assert scores(out) == scores(whole)


def test_workers_do_not_outlive_a_killed_driver(cache: Path, tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    process = start(tmp_path / "quick", cache, "--jobs", "2")
    driver, deadline, workers = psutil.Process(process.pid), time.monotonic() + 60, []
    while len(workers) < 2 and time.monotonic() < deadline:
        workers = [child for child in driver.children() if "spawn_main" in " ".join(child.cmdline())]
        time.sleep(0.05)
    while any(worker.cpu_times().user < 1.0 for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)  # until they are at work
    process.kill()
    process.wait(timeout=60)
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert len(workers) == 2 and not alive


def test_nothing_is_left_to_do_the_second_time(
    whole: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    said: list[str] = []
    monkeypatch.setenv("TEXPLAINER_CACHE", str(cache))
    assert experiments.run_benchmark(TREES, quick=True, out=whole, tell=said.append) == 0
    assert said[0] == f"{len(plan(TREES, QUICK))} of {len(plan(TREES, QUICK))} runs are finished, 0 to do"


def test_list_shows_every_experiment_with_its_state(whole: Path) -> None:
    said: list[str] = []
    assert experiments.run_benchmark(list=True, quick=True, out=whole, tell=said.append) == 0
    assert len(said) == len(experiments.EXPERIMENTS)
    states = {line.split()[0]: line for line in said}
    assert states["xrfc_4ft"].endswith("finished") and "0 of 1" in states["running_time"]


def test_running_time_is_measured(networks: Path) -> None:
    result = results.read_run("running_time", networks)
    for times in result.scores.values():
        assert len(times) == len(QUICK.tasks) and 0 < times[0] < times[1]
    assert "ratio to T-Explainer slope" in (networks / "tables.md").read_text()


def test_missing_data_is_said_and_forgiven_only_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEXPLAINER_DATA", raising=False)
    monkeypatch.setenv("TEXPLAINER_CACHE", str(tmp_path))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(experiments, "plan", lambda names, sizes: plan(["3hnn_hel"], sizes))
    monkeypatch.setattr("texplainer.datasets.dataset.TIMEOUT", 0.001)  # no connection is made that fast
    for options, failed in ({"all": True}, 0), ({"names": ["3hnn_hel"]}, 1):
        said: list[str] = []
        assert (
            experiments.run_benchmark(**options, quick=True, out=tmp_path / "quick", tell=said.append)
            == failed
        )  # type: ignore[arg-type]
        assert "3hnn_hel: skipped: data set 'heloc' is not in the cache" in said[1]


def test_nothing_named_is_an_error() -> None:
    with pytest.raises(InputError, match="no experiment named"):
        experiments.run_benchmark()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no experiment named; name some (see --list)"),
        (["nobody"], "unknown experiment 'nobody'"),
        (["--all", "--jobs", "0"], "--jobs is 0; expected 1 or more"),
    ],
)
def test_the_command_refuses_in_one_line(words: list[str], said: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "experiments", *words, "-o", str(tmp_path / "out")]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 2 and said in found.stderr and "Traceback" not in found.stderr
    assert not (tmp_path / "out").exists()


# The wide evaluation. --------------------------------------------------------------------------------------

WIDE = ("wine_network_0", "wine_boosted_0", "diabetes_linear_0", "diabetes_svm_0", "gated_ramps_0")


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A quick run of some of the wide evaluation."""
    out = tmp_path_factory.mktemp("wide") / "quick"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEXPLAINER_CACHE", str(cache))
        assert experiments.run_benchmark(WIDE, wide=True, quick=True, out=out, tell=lambda _: None) == 0
    return out


def test_the_wide_evaluation_writes_one_page_per_question(wide: Path) -> None:
    for name in WIDE:
        assert json.loads((wide / f"{name}.json").read_text())["hash"]
    for spec in ("slope", "shapley", "variation"):
        text = wide.with_name(f"compare_{spec}.md").read_text()
        assert text.split("\n\n")[1].startswith("| Criterion | Rank ")  # the table comes first
        assert text.index("## Cost") < text.index("## How") < text.index("## Limits")
        assert (wide / f"compare_{spec}_cost.svg").is_file() and f"compare_{spec}_cost.svg" in text
        assert "Average ranks over data sets, all" in (wide / f"compare_{spec}.md").read_text()


def test_the_wide_evaluation_goes_on_where_it_stopped(wide: Path, cache: Path) -> None:
    pages = {path.name: path.read_bytes() for path in wide.parent.glob("*.md")}
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEXPLAINER_CACHE", str(cache))
        assert experiments.run_benchmark(WIDE, wide=True, quick=True, out=wide, tell=said.append) == 0
    assert said[0] == f"{len(WIDE)} of {len(WIDE)} runs are finished, 0 to do"
    assert pages == {path.name: path.read_bytes() for path in wide.parent.glob("*.md")}


def test_the_same_seed_gives_the_same_scores(wide: Path) -> None:
    from experiments.plan import WIDE_QUICK
    from experiments.runs import execute
    from experiments.wide.experiments import wide_plan

    again = execute(wide_plan(["gated_ramps_0"], WIDE_QUICK)[0])
    assert results.to_csv(again.scores) == (wide / "gated_ramps_0.csv").read_text()
