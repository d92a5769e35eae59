"""Model files of every format, made by the real libraries on one small table."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

NAMES = ["age", "income", "debt", "years at job"]
MODULE = """
import numpy as np
import torch

def score(table):
    rows = np.asarray(table, dtype=float)
    return 1 / (1 + np.exp(-(rows[:, 0] - rows[:, 1] * rows[:, 2] + np.sin(rows[:, 3]))))

def network():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
"""


@cache
def table() -> pd.DataFrame:
    """120 rows, four numeric columns and the target last."""
    rows = np.random.default_rng(0).normal(size=(120, 4))
    frame = pd.DataFrame(rows, columns=NAMES)
    frame["target"] = (rows[:, 0] - rows[:, 1] + 0.5 * rows[:, 2] ** 2 > 0.3).astype(int)
    return frame


def features() -> tuple[pd.DataFrame, np.ndarray]:
    """X and y."""
    return table()[NAMES], table()["target"].to_numpy()


def skops(folder: Path) -> Any:
    import skops.io
    from sklearn.neural_network import MLPClassifier

    X, y = features()
    model = MLPClassifier((8,), solver="lbfgs", alpha=0.1, random_state=0).fit(X, y)
    skops.io.dump(model, folder / "model.skops")
    return model


def forest(folder: Path) -> Any:
    import skops.io
    from sklearn.ensemble import RandomForestClassifier

    X, y = features()
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y)
    skops.io.dump(model, folder / "forest.skops")
    return model


def onnx(folder: Path) -> Any:
    import onnxruntime
    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression

    X, y = features()
    model = LogisticRegression().fit(X.to_numpy(), y)
    graph = to_onnx(model, X.to_numpy()[:1], options={"zipmap": False}, target_opset=17)
    (folder / "model.onnx").write_bytes(graph.SerializeToString())
    return onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])


def xgboost(folder: Path) -> Any:
    import xgboost as library

    X, y = features()
    model = library.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1).fit(X, y)
    for suffix in ("json", "ubj"):
        model.save_model(folder / f"model.{suffix}")
    return model.get_booster()


def lightgbm(folder: Path) -> Any:
    import lightgbm as library

    X, y = features()
    model = library.LGBMClassifier(n_estimators=8, num_leaves=5, n_jobs=1, verbose=-1).fit(X, y)
    model.booster_.save_model(folder / "model.txt")
    return model.booster_


def catboost(folder: Path) -> Any:
    import catboost as library

    X, y = features()
    model = library.CatBoostClassifier(
        iterations=8, depth=3, thread_count=1, verbose=0, allow_writing_files=False, random_seed=0
    ).fit(X, y)
    model.save_model(str(folder / "model.cbm"))
    return model


def _network() -> Any:
    import torch

    network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    weights = np.random.default_rng(1)
    with torch.no_grad():
        for part in network.parameters():
            part.copy_(torch.as_tensor(weights.normal(size=part.shape)))
    return network.eval()


def torch_program(folder: Path) -> Any:
    import torch

    network = _network()
    rows = torch.export.Dim("rows")
    program = torch.export.export(network, (torch.zeros(3, 4),), dynamic_shapes=({0: rows},))
    torch.export.save(program, folder / "model.pt2")
    return network


def torch_state(folder: Path) -> Any:
    import torch

    network = _network()
    torch.save(network.state_dict(), folder / "model.pt")
    return network


def function(folder: Path) -> Any:
    scope: dict[str, Any] = {}
    exec(MODULE, scope)
    return scope["score"]


def pickled(folder: Path) -> Any:
    import pickle

    import joblib
    from sklearn.linear_model import LogisticRegression

    X, y = features()
    model = LogisticRegression().fit(X, y)
    (folder / "model.pkl").write_bytes(pickle.dumps(model))
    joblib.dump(model, folder / "model.joblib")
    return model


#: what is passed on the command line -> (its maker, further arguments)
SHELF: dict[str, tuple[Callable[[Path], Any], tuple[str, ...]]] = {
    "model.skops": (skops, ()),
    "forest.skops": (forest, ()),
    "model.onnx": (onnx, ("--drop", "target")),
    "model.json": (xgboost, ()),
    "model.ubj": (xgboost, ()),
    "model.txt": (lightgbm, ()),
    "model.cbm": (catboost, ()),
    "model.pt2": (torch_program, ("--drop", "target")),
    "model.pt": (torch_state, ("--drop", "target", "--module", "shelf_module:network")),
    "shelf_module:score": (function, ("--drop", "target")),
    "model.pkl": (pickled, ("--allow-pickle",)),
    "model.joblib": (pickled, ("--allow-pickle",)),
}


def fill(folder: Path) -> dict[str, Any]:
    """Write every model, the module and the table in four formats; the models in memory, by file name."""
    (folder / "shelf_module.py").write_text(MODULE)
    frame = table()
    frame.to_csv(folder / "data.csv", index=False)
    frame.to_parquet(folder / "data.parquet", index=False)
    frame.to_feather(folder / "data.arrow")
    lines = [json.dumps(row) for row in frame.to_dict("records")]
    (folder / "data.jsonl").write_text("\n".join(lines) + "\n")
    made: dict[Any, Any] = {}
    for maker, _ in SHELF.values():
        if maker not in made:
            made[maker] = maker(folder)
    return {name: made[maker] for name, (maker, _) in SHELF.items()}
