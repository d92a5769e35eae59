"""A seeded fuzz: flipped bytes, random arguments, killed runs, forgeries. Prints counts; can write the page.

python tests/helpers/hostile_fuzz.py                          the long form (make test-hostile)
python tests/helpers/hostile_fuzz.py --page docs/results/trust.md
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent))

import hostile_forgeries as forgeries
import model_shelf
from hostile_kills import kill_runs
from hostile_page import write_page

import texplainer as tx
from texplainer.errors import InputError, ModelError, Unsupported
from texplainer.files import job as jobs
from texplainer.files import models, results, survey
from texplainer.files.verify import verify_result

SECONDS = 60  # an explanation may take so long
FILE_SECONDS = 180  # and one file: longer than the trial of a model in a process of its own may take
BATCH = 25
RESULTS = (".npz", ".parquet", ".arrow", ".csv", ".jsonl")
TABLES = ("data.csv", "data.csv.gz", "data.tsv", "data.jsonl", "data.parquet", "data.arrow")
MODELS = (
    "model.skops",
    "forest.skops",
    "model.onnx",
    "model.json",
    "model.ubj",
    "model.txt",
    "model.cbm",
    "model.pt",
)
Outcome = str


def main() -> None:
    """Run everything and print or write the counts."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--flips", type=int, default=10_000)
    options.add_argument("--arguments", type=int, default=2_000)
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--page", type=Path)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        counts: dict[str, Any] = {
            "flips": flips(folder, given.flips, given.seed),
            "pickles": pickles(folder),
            "arguments": arguments(given.arguments, given.seed),
            "forgeries": forged(folder),
            "kills": kill_runs(folder, given.kills, given.seed),
        }
    counts["seconds"] = round(time.monotonic() - began)
    print(json.dumps(counts, indent=1))
    if given.page:
        write_page(given.page, {**counts, "flips": by_kind(counts["flips"])})
    sys.exit(0 if sound(counts) else 1)


#: what must never happen
BAD = ("crashed", "hung", "loaded different", "raw error", "executed", "wrong", "missed", "lost", "twice", "failed")  # fmt: skip


def sound(counts: dict[str, Any]) -> bool:
    """Whether nothing happened that must not."""
    groups = [counts[name] for name in ("flips", "pickles", "arguments", "forgeries", "kills")]
    return not any(part.get(word) for group in groups for part in (group, *_parts(group)) for word in BAD)


def _parts(group: dict[str, Any]) -> list[dict[str, int]]:
    return [part for part in group.values() if isinstance(part, dict)]


# ---------------------------------------------------------------- files


def prepare(folder: Path) -> None:
    """Every kind of file once."""
    model_shelf.fill(folder)
    frame = model_shelf.table()
    frame.to_csv(folder / "data.csv.gz", index=False)
    frame.to_csv(folder / "data.tsv", index=False, sep="\t")
    job = jobs.prepare_job(str(folder / "model.skops"), str(folder / "data.csv"))
    for suffix in RESULTS:
        with results.ResultWriter(folder / f"result{suffix}", **job.facts) as writer:
            for _, piece in jobs.explain_blocks(job):
                writer.write(piece)


def flips(folder: Path, count: int, seed: int) -> dict[str, dict[str, int]]:
    """Flip one byte at a time in copies of every file and read them, in children that may die."""
    random = np.random.default_rng(seed)
    names = [f"result{suffix}" for suffix in RESULTS] + list(TABLES) + list(MODELS)
    places: dict[str, list[tuple[int, int]]] = {}
    for i, name in enumerate(names):
        share = count // len(names) + (i < count % len(names))
        size = (folder / name).stat().st_size
        places[name] = [(int(random.integers(size)), int(random.integers(1, 256))) for _ in range(share)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the files are read in children
        outcomes = pool.map(lambda name: _read_all(folder, name, places[name]), names)
    return {name: dict(Counter(found)) for name, found in zip(names, outcomes, strict=True)}


def by_kind(flips: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """The counts of all saved results, of all tables and of all models."""
    kinds: dict[str, Counter[str]] = {}
    for name, found in flips.items():
        kind = {"result": "saved results", "data": "tables"}.get(name.split(".")[0], "models")
        kinds.setdefault(kind, Counter()).update(found)
    return {kind: dict(found) for kind, found in kinds.items()}


def _read_all(folder: Path, name: str, places: list[tuple[int, int]]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    context = _clean_context()
    while len(outcomes) < len(places):
        batch = places[len(outcomes) : len(outcomes) + BATCH]
        describe, tell = context.Pipe(duplex=False)
        child = context.Process(target=_read_batch, args=(folder, name, batch, tell))
        child.start()
        tell.close()
        found = 0
        try:
            while found < len(batch) and describe.poll(FILE_SECONDS):
                outcomes.append(describe.recv())
                found += 1
        except EOFError:
            pass
        if found < len(batch):
            child.join(1)  # its end of the pipe is closed a moment before it is gone
            outcomes.append("hung" if child.is_alive() else "crashed")
        child.kill()
        child.join()
    return outcomes[: len(places)]


def _clean_context() -> Any:
    """Children of a server that has imported the libraries and run nothing: no thread to wait for in vain."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["hostile_fuzz"])
    here, path = str(Path(__file__).parent), os.environ.get("PYTHONPATH")
    if here not in (path or "").split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (here, path)))  # where the server finds it
    return context


def _read_batch(folder: Path, name: str, places: list[tuple[int, int]], tell: Any) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    threadpool_limits(1)
    whole = (folder / name).read_bytes()
    read, truth = _reader(folder, name)
    with tempfile.TemporaryDirectory() as place:
        target = Path(place) / name
        beside = results.sidecar(folder / name)
        if beside.exists():
            results.sidecar(target).write_bytes(beside.read_bytes())
        for at, flip in places:
            content = bytearray(whole)
            content[at] ^= flip
            target.write_bytes(content)
            tell.send(_outcome(read, target, truth))
    os._exit(0)


def _reader(folder: Path, name: str) -> tuple[Callable[[Path], Any], Any]:
    """How a file is read, and what it must hold if it is read (None: whatever it now says)."""
    if name.startswith("result"):
        return lambda path: results.load_explanation(path).arrays, results.load_explanation(folder / name).arrays  # fmt: skip
    if name.startswith("data"):
        return _read_table, None
    sys.path.insert(0, str(folder))
    consent = models.Consent(module="shelf_module:network")
    return lambda path: models.load_model(path, consent) and None, None


def _read_table(path: Path) -> None:
    found = survey.survey(path)
    for piece in survey.pieces(found, found.names, 50):
        piece.to_dict("list")


def _outcome(read: Callable[[Path], Any], path: Path, truth: Any) -> Outcome:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = read(path)
    except InputError as error:
        return "refused" if "\n" not in str(error) else "raw error"
    except Exception:
        return "raw error"
    if truth is None:
        return "read"
    same = set(found) == set(truth) and all(_equal(found[name], truth[name]) for name in truth)
    return "read, the same" if same else "loaded different"


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype.kind == "f" and b.dtype.kind == "f":
        return np.array_equal(a, b, equal_nan=True)
    return a.shape == b.shape and a.tolist() == b.tolist()


class Evil:
    """A pickle that creates a file when it is opened."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def pickles(folder: Path) -> dict[str, int]:
    """A pickle that would run code, under every name that is read."""
    counts: Counter[str] = Counter(executed=0)
    place = folder / "pickles"
    place.mkdir()
    mark = place / "executed"
    names = [f"model{suffix}" for suffix in (*models.safe_suffixes(), *models.UNSAFE)]
    for name in (*names, *TABLES, *(f"result{suffix}" for suffix in RESULTS)):
        path = place / name
        path.write_bytes(pickle.dumps(Evil(mark)))
        read, _ = _reader(folder, name)
        counts[_outcome(read, path, None)] += 1
        counts["executed"] += mark.exists()
        mark.unlink(missing_ok=True)
    return dict(counts)


# ---------------------------------------------------------------- arguments

VALUES: dict[str, list[Any]] = {
    "output": [None, "all", "predicted", 0, 1, -1, 7, "no", [0, 1], 1.5, np.nan],
    "scale": ["auto", "probability", "log-odds", "raw", "log", "", None, 3],
    "engine": ["auto", "closed-form", "autodiff", "tree", "finite-difference", "magic", None],
    "step": ["auto", "paper", 0.01, 1e-300, 1e300, 0.0, -1.0, np.nan, np.inf, "x", None],
    "smoothing": ["auto", 0, 0.1, 5.0, -1.0, np.nan, np.inf, "x", None],
    "attribution": ["auto", "slope", "shapley", "variation", "gradient", "scaled", "", None],
    "categorical": [None, [], ["x0"], ["nope"], {"g": ["x0", "x1"]}, {"x0": "ordinal"}, 3, "x0", [99]],
    "bounds": ["background", None, (0.0, 1.0), (1.0, 0.0), (np.nan, 1.0), "x", (1,), 3],
    "batch_rows": [1, 2, 100, 0, -5],
    "feature_names": [None, ["x0", "x1", "x2"], ["a"], ["a", "a", "a"], []],
}
CELLS = [0.0, 1.0, -1e300, 1e300, 1e-300, np.nan, np.inf, -np.inf, 5.0]


def arguments(count: int, seed: int) -> dict[str, int]:
    """Random settings and cells: an answer of the right shape, or a clear refusal."""
    random = np.random.default_rng(seed)
    return dict(Counter(_try_arguments(random) for _ in range(count)))


def _try_arguments(random: np.random.Generator) -> Outcome:
    settings = {
        name: values[int(random.integers(len(values)))]
        for name, values in VALUES.items()
        if random.random() < 0.3
    }
    background = random.normal(size=(20, 3))
    rows = random.normal(size=(3, 3))
    if random.random() < 0.5:
        rows[tuple(random.integers(3, size=2))] = CELLS[int(random.integers(len(CELLS)))]
    if random.random() < 0.2:
        background[tuple(random.integers((20, 3)))] = CELLS[int(random.integers(len(CELLS)))]
    try:
        with _alarm(SECONDS):
            found = tx.TExplainer(_MODEL, background, **settings)(rows, progress=False)
    except Hung:
        return "hung"
    except (InputError, ModelError, Unsupported) as error:
        return "refused" if str(error) else "wrong"
    except Exception as error:
        print("wrong:", type(error).__name__, error, settings, file=sys.stderr)
        return "wrong"
    undefined = found.arrays["stability"] == "undefined"
    fine = len(found) == 3 and np.isfinite(found.arrays["values"][~undefined]).all()
    return "explained" if fine else "wrong"


class Hung(BaseException):
    """It took too long."""


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise Hung

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _fitted() -> Any:
    from sklearn.linear_model import LogisticRegression

    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    return LogisticRegression().fit(X, X[:, 0] > 0)


_MODEL = _fitted()


# ---------------------------------------------------------------- forgeries


def forged(folder: Path) -> dict[str, int]:
    """Forge one claim at a time."""
    counts: Counter[str] = Counter()
    source, target = folder / "result.npz", folder / "forged.npz"
    every = [*forgeries.array_forgeries(source), *forgeries.HEADER_FORGERIES.items(), *forgeries.MALFORMED.items()]  # fmt: skip
    for _, forge in every:
        forgeries.forge_file(source, target, forge)
        try:
            found = verify_result(target, str(folder / "model.skops"), str(folder / "data.csv"))
            counts["found" if found.outcome == "different" else "missed"] += 1
        except (InputError, ModelError):
            counts["found"] += 1
    return dict(counts)


if __name__ == "__main__":
    main()
