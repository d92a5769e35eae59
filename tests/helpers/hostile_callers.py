"""Threads, forks and odd inputs: the prediction that is explained is the model's answer to the user's own rows.

`python tests/helpers/hostile_callers.py --page docs/results/trust.md` writes the counts between the marks
`callers` of the page.
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pandas as pd
from hostile_page import between, table

import texplainer as tx
from texplainer.errors import InputError, ModelError

THREADS = 8
SECONDS = 60  # a case may take so long
FOLDER = Path(__file__).parents[1] / "hostile"
WORDS = ("equal", "refused", "wrong", "obscure", "hung")


def rows(seed: int, count: int = 60) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 4))


def _frame(x: np.ndarray, towns: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "town": towns})


def _by_town(frame: pd.DataFrame) -> np.ndarray:
    time.sleep(0.001)  # calls overlap
    return frame["a"].to_numpy() * 2 + [sum(map(ord, str(town))) % 7 for town in frame["town"]]


def _network() -> Any:
    import torch

    torch.manual_seed(0)
    parts = (torch.nn.Linear(4, 16), torch.nn.Dropout(0.5), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    return torch.nn.Sequential(*parts).train()


def subjects() -> dict[str, tuple[Any, Any, Callable[[int], Any]]]:
    """Ten kinds of model: the model, its background, the rows of a thread."""
    import lightgbm
    import xgboost
    from catboost import CatBoostClassifier
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    x = rows(0, 200)
    y = x[:, 0] * x[:, 1] + x[:, 2]
    two = (y > 0).astype(int)
    known = _frame(x, [("Oslo", "Rome", "Bonn")[i % 3] for i in range(len(x))])
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["town"]), remainder="passthrough"
    )

    def own(i: int) -> np.ndarray:
        return rows(100 + i, 12)

    def unseen(i: int) -> pd.DataFrame:
        return _frame(own(i), [f"town {i} {k}" for k in range(12)])

    plain = {
        "logistic regression": LogisticRegression().fit(x, two),
        "forest": RandomForestClassifier(10, random_state=0).fit(x, two),
        "histogram boosting": HistGradientBoostingRegressor(max_iter=20).fit(x, y),
        "XGBoost": xgboost.XGBClassifier(n_estimators=10, n_jobs=1).fit(x, two),
        "LightGBM": lightgbm.LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1).fit(x, two),
        "CatBoost": CatBoostClassifier(
            iterations=10, verbose=0, thread_count=1, allow_writing_files=False
        ).fit(x, two),
        "scikit-learn network": MLPRegressor(hidden_layer_sizes=(8,), max_iter=50, random_state=0).fit(x, y),
        "torch module in train mode": _network(),
    }
    found: dict[str, tuple[Any, Any, Callable[[int], Any]]] = {}
    for name, model in plain.items():
        narrow = np.float32 if name.startswith("torch") else np.float64
        found[name] = (model, x.astype(narrow), lambda i, narrow=narrow: own(i).astype(narrow))
    found["function, categories never seen"] = (_by_town, known, unseen)
    piped = make_pipeline(encoder, LogisticRegression()).fit(known, two)
    return found | {"pipeline, categories never seen": (piped, known, unseen)}


def threads(rounds: int = 3) -> dict[str, dict[str, int]]:
    """Explain in eight threads at once; each result must be that of its rows explained alone."""
    counts: dict[str, Counter[str]] = {}
    for name, (model, background, own) in subjects().items():
        alone = [tx.TExplainer(model, background)(own(i)) for i in range(THREADS)]
        shared = tx.TExplainer(model, background)
        found = counts[name] = Counter()
        for _ in range(rounds):
            barrier = Barrier(THREADS)

            def one(i: int, shared: Any = shared, own: Any = own, barrier: Barrier = barrier) -> Any:
                barrier.wait(60)
                try:
                    return shared(own(i))
                except Exception as error:
                    return error

            with ThreadPoolExecutor(THREADS) as pool:
                for answer, expected in zip(pool.map(one, range(THREADS)), alone, strict=True):
                    found[_compared(answer, expected)] += 1
        if hasattr(model, "modules") and not all(part.training for part in model.modules()):
            found["wrong"] += 1
    return {name: dict(found) for name, found in counts.items()}


def _compared(answer: Any, expected: Any) -> str:
    if isinstance(answer, Exception):
        return "refused" if isinstance(answer, (InputError, ModelError)) else "obscure"
    same = np.array_equal(answer.values, expected.values, equal_nan=True)
    return "equal" if same and np.array_equal(answer.predictions, expected.predictions) else "wrong"


def _together(groups: dict[str, dict[str, int]]) -> dict[str, int]:
    return dict(sum(map(Counter, groups.values()), Counter()))


def forks() -> dict[str, int]:
    """Use a model, fork, use it again: a right answer or an error with the remedy, never a wait."""
    import subprocess

    environment = _module("test_environment")
    counts: Counter[str] = Counter()
    models = {**environment.MODELS, "function": "model = lambda rows: rows[:, 0]"}
    for model in models.values():
        try:
            code = environment.forked(model).returncode
        except subprocess.TimeoutExpired:
            counts["hung"] += 1
            continue
        counts[{0: "equal", 7: "refused"}.get(code, "obscure")] += 1
    return dict(counts)


def dtypes() -> dict[str, dict[str, int]]:
    """Every odd column of `tests/hostile/test_dtypes.py`, read by three models."""
    odd = _module("test_dtypes")
    counts: dict[str, Counter[str]] = {}
    for name, make in odd.TABLES.items():
        for predict in odd.MODELS.values():
            data = make()
            library = "pandas, Arrow dtypes" if name.startswith("pandas arrow") else name.split()[0]
            counts.setdefault(library, Counter())[_asked(predict, data)] += 1
    return {name: dict(found) for name, found in counts.items()}


#: what is counted -> the file of its cases
FURTHER = {
    "containers of numbers": "test_odd_tables",
    "frames": "test_odd_frames",
    "rows by name, texts, times, masks": "test_odd_rows",
    "models": "test_odd_models",
    "values of arguments": "test_odd_values",
}


def further() -> dict[str, dict[str, int]]:
    """The cases of `tests/hostile/test_odd_*.py`: right, refused with a sentence, or neither."""
    counts: dict[str, dict[str, int]] = {}
    for what, file in FURTHER.items():
        cases = _module(file).CASES.values()
        counts[what] = dict(Counter(_tried(case) for case in cases))
    return counts


def _tried(case: Callable[[], Any]) -> str:
    def ring(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        case()
    except (InputError, ModelError, IndexError, KeyError):
        return "refused"
    except AssertionError:
        return "wrong"
    except TimeoutError:
        return "hung"
    except Exception:
        return "obscure"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "equal"


def _asked(predict: Callable[[Any], np.ndarray], data: Any) -> str:
    expected = predict(data)
    try:
        found = tx.TExplainer(predict, data)(data)
    except (InputError, ModelError) as error:
        return "refused" if "'c'" in str(error) or "complex" in str(error) else "obscure"
    except Exception:
        return "obscure"
    defined = found.diagnostics.stability != "undefined"
    same = np.allclose(np.ravel(found.predictions)[defined], expected[defined], rtol=1e-9)
    return "equal" if same else "wrong"


def _module(name: str) -> Any:
    spec: Any = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Run everything; write or print the counts."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--page", type=Path)
    page = options.parse_args().page
    warnings.simplefilter("ignore")
    groups = {
        "8 threads, ten kinds of model": _together(threads()),
        "forked after use": forks(),
        **{f"odd dtypes: {name}": found for name, found in dtypes().items()},
        **{f"odd {name}": found for name, found in further().items()},
    }
    lines = table("calls", WORDS, groups)
    print("\n".join(lines))
    if page:
        page.write_text(between(page.read_text(encoding="utf-8"), "callers", lines), encoding="utf-8")
    bad = sum(found.get(word, 0) for found in groups.values() for word in ("wrong", "obscure", "hung"))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
