"""Model files from strangers: nothing runs, nothing crashes, one line says what is wrong."""

from __future__ import annotations

import io
import json
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import model_shelf
import numpy as np
import pytest

from texplainer.cli import main
from texplainer.errors import InputError
from texplainer.files import models
from texplainer.files.loaders import safety
from texplainer.files.loaders import skops as skops_files

SAFE = [
    "model.skops",
    "model.onnx",
    "model.json",
    "model.ubj",
    "model.txt",
    "model.cbm",
    "model.pt2",
    "model.pt",
]


class Evil:
    """A pickle that creates a file when it is opened."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelf")
    model_shelf.fill(folder)
    return folder


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "executed"


def explain(model: Path, data: Path, capfd: Any, *words: str) -> tuple[int, str]:
    """Exit code and all that was printed."""
    out = str(model.with_name("result.parquet"))
    with pytest.raises(SystemExit) as left:
        main(["explain", str(model), str(data), "-o", out, *words])
    printed = capfd.readouterr()
    return int(left.value.code or 0), printed.out + printed.err


def refused(model: Path, shelf: Path, capfd: Any, *words: str) -> str:
    """The one line of a refusal with exit code 3."""
    extra = ("--module", "shelf_module:network") if model.suffix == ".pt" else ()
    code, said = explain(model, shelf / "data.csv", capfd, "--drop", "target", *extra, *words)
    assert code == 3, said
    assert said.count("\n") == 1 and said.startswith("texplainer: "), said
    return said


@pytest.fixture(autouse=True)
def module_on_path(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shelf)


# ---------------------------------------------------------------- pickles


@pytest.mark.parametrize("suffix", [*models.safe_suffixes(), *models.UNSAFE])
def test_a_pickle_is_never_executed_whatever_its_name(
    shelf: Path, tmp_path: Path, mark: Path, capfd: Any, suffix: str
) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(pickle.dumps(Evil(mark)))
    refused(path, shelf, capfd)
    assert not mark.exists()


def test_the_same_pickle_runs_when_it_is_allowed(shelf: Path, tmp_path: Path, mark: Path, capfd: Any) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(Evil(mark)))
    code, said = explain(path, shelf / "data.csv", capfd, "--allow-pickle")
    assert mark.exists()  # the test above can fail
    assert code == 3 and "runs any code in the file" in said


def test_a_pickle_as_data_or_result_is_never_executed(
    shelf: Path, tmp_path: Path, mark: Path, capfd: Any
) -> None:
    for suffix in (".csv", ".parquet", ".arrow", ".feather", ".jsonl", ".npz"):
        path = tmp_path / f"file{suffix}"
        path.write_bytes(pickle.dumps(Evil(mark)))
        with pytest.raises(SystemExit) as left:
            main(["explain", str(shelf / "model.skops"), str(path), "-o", str(tmp_path / "out.csv")])
        assert left.value.code == 3
        with pytest.raises(SystemExit) as left:
            main(["verify", str(path), "--model", "m", "--data", "d"])
        assert left.value.code == 3
    assert not mark.exists()


def test_an_object_array_in_an_npz_is_not_unpickled(tmp_path: Path, mark: Path, capfd: Any) -> None:
    path = tmp_path / "result.npz"
    header = np.frombuffer(
        json.dumps({"layout": {"entries": {"values": "values"}, "text": {}}}).encode(), np.uint8
    )
    np.savez(path, header=header, values=np.array([Evil(mark)], dtype=object))
    with pytest.raises(SystemExit) as left:
        main(["verify", str(path), "--model", "m", "--data", "d"])
    assert left.value.code == 3 and not mark.exists()


def rewritten(source: Path, target: Path, change: dict[str, bytes]) -> Path:
    """A zip archive with some entries replaced or added, by the end of their names."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        root = old.namelist()[0].split("/")[0]
        for name in old.namelist():
            end = next((e for e in change if name.endswith(e)), None)
            new.writestr(name, old.read(name) if end is None else change[end])
        for name, content in change.items():
            if not any(old_name.endswith(name) for old_name in old.namelist()):
                new.writestr(f"{root}/{name}", content)
    return target


@pytest.mark.parametrize("entry", ["data/sample_inputs/model.pt", "data/weights/weight_0"])
def test_a_pickle_inside_an_exported_program_is_not_executed(
    shelf: Path, tmp_path: Path, mark: Path, capfd: Any, entry: str
) -> None:
    import torch

    evil = io.BytesIO()
    torch.save(Evil(mark), evil)
    change = {entry: evil.getvalue()}
    with zipfile.ZipFile(shelf / "model.pt2") as archive:
        name = next(n for n in archive.namelist() if n.endswith("model_weights_config.json"))
        config = archive.read(name).replace(b'"use_pickle": false', b'"use_pickle": true')
        assert b"true" in config
    if "weights" in entry:
        change["model_weights_config.json"] = config
    refused(rewritten(shelf / "model.pt2", tmp_path / "model.pt2", change), shelf, capfd)
    assert not mark.exists()


@pytest.mark.parametrize("entry", ["data/constants/opaque_obj_0", "data/aotinductor/model/lib.so", "extra/x"])
def test_an_exported_program_may_hold_tensors_only(
    shelf: Path, tmp_path: Path, capfd: Any, entry: str
) -> None:
    path = rewritten(shelf / "model.pt2", tmp_path / "model.pt2", {entry: b"x"})
    assert entry in refused(path, shelf, capfd)


def in_expression(program: str, code: str) -> str:
    at = program.index('"expr_str": "') + len('"expr_str": "')
    return program[:at] + code + program[program.index('"', at) :]


def in_guard(program: str, code: str) -> str:
    return json.dumps(json.loads(program) | {"guards_code": [code]})


def in_name(program: str, code: str) -> str:
    return program.replace('"input"', f'"input={code}"')


def in_operator(program: str, code: str) -> str:
    return program.replace("torch.ops.aten.tanh.default", "torch.ops.load_library")


@pytest.mark.parametrize("inject", [in_expression, in_guard, in_name, in_operator])
def test_code_in_the_texts_of_an_exported_program_is_not_executed(
    shelf: Path, tmp_path: Path, mark: Path, capfd: Any, inject: Any
) -> None:
    with zipfile.ZipFile(shelf / "model.pt2") as archive:
        name = next(n for n in archive.namelist() if n.endswith("models/model.json"))
        program = archive.read(name).decode()
    evil = inject(program, f"__import__('pathlib').Path('{mark}').touch()")
    assert evil != program
    path = rewritten(shelf / "model.pt2", tmp_path / "model.pt2", {"models/model.json": evil.encode()})
    assert "forged" in refused(path, shelf, capfd)
    assert not mark.exists()


def test_pickled_code_among_weights_is_not_executed(
    shelf: Path, tmp_path: Path, mark: Path, capfd: Any
) -> None:
    import torch

    torch.save({"0.weight": Evil(mark)}, tmp_path / "model.pt")
    refused(tmp_path / "model.pt", shelf, capfd)
    assert not mark.exists()


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("name", SAFE)
@pytest.mark.parametrize("harm", ["empty", "truncated", "noise", "text"])
def test_a_damaged_model_gives_exit_code_3_and_one_line(
    shelf: Path, tmp_path: Path, capfd: Any, name: str, harm: str
) -> None:
    whole = (shelf / name).read_bytes()
    harmed = {
        "empty": b"",
        "truncated": whole[: len(whole) // 2],
        "noise": np.random.default_rng(0).bytes(2000),
        "text": b"id,name\n1,two\n",
    }
    path = tmp_path / name
    path.write_bytes(harmed[harm])
    assert str(path) in refused(path, shelf, capfd)


def test_every_shorter_ubj_file_is_refused_before_xgboost_meets_it(shelf: Path) -> None:
    whole = (shelf / "model.ubj").read_bytes()
    safety.check_ubjson(whole)
    for end in range(0, len(whole), 97):
        with pytest.raises(ValueError):
            safety.check_ubjson(whole[:end])
    with pytest.raises(ValueError, match="follow its end"):
        safety.check_ubjson(whole + b"Z")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("model.txt", b"leaf_value=", b"leaf_value=*"),
        ("model.txt", b"left_child=", b"left_child=7"),
        ("model.json", b'"left_children":[1', b'"left_children":[99999'),
    ],
)
def test_a_tree_that_crashes_its_library_is_refused(
    shelf: Path, tmp_path: Path, capfd: Any, name: str, old: bytes, new: bytes
) -> None:
    whole = (shelf / name).read_bytes()
    assert old in whole
    path = tmp_path / name
    path.write_bytes(whole.replace(old, new, 1))
    assert "damaged" in refused(path, shelf, capfd)


def test_a_tree_that_points_outside_itself_is_refused_where_its_library_lives(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XGBoost reads whatever memory is there: it crashes on one machine, gives a number on another."""
    monkeypatch.setattr(models, "try_in_child", lambda *_: None)
    path = tmp_path / "model.json"
    whole = (shelf / "model.json").read_bytes()
    path.write_bytes(whole.replace(b'"left_children":[1', b'"left_children":[999', 1))
    with pytest.raises(InputError, match="a reference outside the tree or a cycle; it is damaged"):
        models.load_model(path)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("model.txt", rb"left_child=(-?\d+)", b"left_child=0"),
        ("model.txt", rb"left_child=(-?\d+)", b"left_child=1"),
        ("model.txt", rb"left_child=(-?\d+)", b"left_child=Z"),  # read as 0
        ("model.txt", rb"left_child=(-?\d+) ", b"left_child=2@"),
        ("model.txt", rb"\nend of trees", b"\0\nend of trees"),
        ("model.json", rb'"left_children":\[(\d+)', b'"left_children":[0'),
        ("model.json", rb'"right_children":\[(\d+)', b'"right_children":[1'),
    ],
)
def test_a_tree_that_runs_in_a_circle_is_refused_before_anybody_walks_it(
    shelf: Path, tmp_path: Path, name: str, old: bytes, new: bytes
) -> None:
    whole = (shelf / name).read_bytes()
    path = tmp_path / name
    path.write_bytes(re.sub(old, new, whole, count=1))
    assert path.read_bytes() != whole
    with pytest.raises(InputError, match="a cycle; it is damaged"):  # a trial that hangs ends otherwise
        models.load_model(path)


@pytest.mark.parametrize(
    ("library", "kind", "old", "new"),
    [
        ("lightgbm", "LGBMClassifier", rb"left_child=-?\d+", b"left_child=7654321"),
        (
            "xgboost",
            "XGBClassifier",
            rb"left_children\[\$l#L(.{8})....",
            b"left_children[$l#L\\1\x00\xff\xff\xff",
        ),
    ],
)
def test_a_forged_booster_inside_a_skops_file_is_refused(
    tmp_path: Path, library: str, kind: str, old: bytes, new: bytes
) -> None:
    """The archive is sound, the booster's own reader would crash."""
    make = getattr(pytest.importorskip(library), kind)
    skops_io = pytest.importorskip("skops.io")
    X, y = model_shelf.features()
    skops_io.dump(make(n_estimators=3, n_jobs=1).fit(X, y), tmp_path / "whole.skops")
    models.load_model(tmp_path / "whole.skops")
    with (
        zipfile.ZipFile(tmp_path / "whole.skops") as whole,
        zipfile.ZipFile(tmp_path / "x.skops", "w") as new_one,
    ):
        for name in whole.namelist():
            new_one.writestr(name, re.sub(old, new, whole.read(name), count=1, flags=re.DOTALL))
    with pytest.raises(InputError, match=r"damaged|cannot be read"):
        models.load_model(tmp_path / "x.skops")


LIES = {
    "an array of 64 GB": lambda name, data: _array_header() + data[-64:] if name.endswith(".npy") else data,
    "JSON without an end": lambda name, data: b'{"a":' * 100_000 if name.endswith(".json") else data,
}


def _array_header() -> bytes:
    out = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": (2**33,)}
    np.lib.format.write_array_header_1_0(out, about)
    return out.getvalue()


@pytest.mark.parametrize("lie", LIES)
def test_a_skops_file_that_claims_too_much_is_refused(
    shelf: Path, tmp_path: Path, capfd: Any, lie: str
) -> None:
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(shelf / "model.skops") as whole, zipfile.ZipFile(path, "w") as forged:
        for name in whole.namelist():
            forged.writestr(name, LIES[lie](name, whole.read(name)))
    assert "skops file" in refused(path, shelf, capfd)


def test_weights_that_claim_too_much_are_refused(shelf: Path, tmp_path: Path, capfd: Any) -> None:
    import torch

    wide = torch.zeros(1).as_strided((2**17, 2**17), (0, 0))
    torch.save({"0.weight": wide, "0.bias": torch.zeros(8)}, tmp_path / "model.pt")
    assert "does not hold the weights" in refused(tmp_path / "model.pt", shelf, capfd)


def test_a_missing_file_and_an_unknown_suffix(shelf: Path, tmp_path: Path, capfd: Any) -> None:
    assert "no file" in refused(tmp_path / "absent.onnx", shelf, capfd)
    (tmp_path / "model.h5").write_bytes(b"x")
    assert ".onnx, .skops" in refused(tmp_path / "model.h5", shelf, capfd)


def test_a_module_or_function_that_is_not_there(shelf: Path, capfd: Any) -> None:
    assert "was not found" in refused(Path("nowhere:predict"), shelf, capfd)
    assert "has no" in refused(Path("shelf_module:absent"), shelf, capfd)


def test_weights_without_their_network(shelf: Path, capfd: Any) -> None:
    code, said = explain(shelf / "model.pt", shelf / "data.csv", capfd, "--drop", "target")
    assert code == 3 and "--module" in said


# ---------------------------------------------------------------- archives


def bomb(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("schema.json", "w") as entry,
    ):
        for _ in range(80):
            entry.write(bytes(2**20))


def traversal(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../evil.npy", b"x")


def absolute(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("C:\\evil.npy", b"x")


def twice(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("schema.json", b"{}")
        archive.writestr("schema.json", b"[]")


def link(path: Path) -> None:
    entry = zipfile.ZipInfo("schema.json")
    entry.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(entry, b"/etc/passwd")


@pytest.mark.parametrize("suffix", [".skops", ".npz", ".pt2", ".pt"])
@pytest.mark.parametrize("make", [bomb, traversal, absolute, twice, link])
def test_archives_that_could_do_harm_are_refused(
    shelf: Path, tmp_path: Path, capfd: Any, suffix: str, make: Any
) -> None:
    path = tmp_path / f"model{suffix}"
    make(path)
    with pytest.raises(InputError):
        safety.check_archive(path)
    if suffix == ".npz":
        with pytest.raises(SystemExit) as left:
            main(["verify", str(path), "--model", "m", "--data", "d"])
        assert left.value.code == 3
    else:
        refused(path, shelf, capfd)


# ---------------------------------------------------------------- skops


class Stranger:
    """A type nobody has listed."""

    def __init__(self) -> None:
        self.weight = 1.0

    def predict(self, X: Any) -> np.ndarray:
        return self.weight * np.asarray(X)[:, 0]


def test_a_type_that_is_not_listed_is_named_and_refused_unless_trusted(
    shelf: Path, tmp_path: Path, capfd: Any
) -> None:
    import skops.io

    path = tmp_path / "model.skops"
    skops.io.dump(Stranger(), path)
    name = f"{Stranger.__module__}.Stranger"
    assert f"--trust {name}" in refused(path, shelf, capfd)
    code, said = explain(path, shelf / "data.csv", capfd, "--drop", "target", "--trust", name)
    assert code == 0, said


@pytest.mark.parametrize("kind", ["forest", "gradient boosting", "histogram boosting", "xgboost", "lightgbm"])
def test_the_list_holds_the_types_of_tree_models(tmp_path: Path, kind: str) -> None:
    import lightgbm
    import skops.io
    import xgboost
    from sklearn import ensemble

    model = {
        "forest": ensemble.RandomForestClassifier(3, random_state=0),
        "gradient boosting": ensemble.GradientBoostingClassifier(n_estimators=3, random_state=0),
        "histogram boosting": ensemble.HistGradientBoostingClassifier(max_iter=3),
        "xgboost": xgboost.XGBClassifier(n_estimators=3, n_jobs=1),
        "lightgbm": lightgbm.LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1),
    }[kind]
    X, y = model_shelf.features()
    model.fit(X, y)
    skops.io.dump(model, tmp_path / "model.skops")
    loaded = models.load_model(tmp_path / "model.skops")
    assert (loaded.predict_proba(X) == model.predict_proba(X)).all()


@pytest.mark.parametrize("field", ["left_child", "feature"])
def test_a_forged_tree_is_refused_before_it_is_followed(tmp_path: Path, field: str) -> None:
    from sklearn.ensemble import RandomForestClassifier

    X, y = model_shelf.features()
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y)
    skops_files.check_trees(tmp_path, model)
    tree = model.estimators_[1].tree_
    state = tree.__getstate__()
    nodes = state["nodes"].copy()
    nodes[field][0] = 10**6
    tree.__setstate__({**state, "nodes": nodes})
    with pytest.raises(InputError, match="forged"):
        skops_files.check_trees(tmp_path, model)
    nodes[field][0] = 0  # a circle, or an honest feature
    tree.__setstate__({**state, "nodes": nodes})
    if field == "left_child":
        with pytest.raises(InputError, match="forged"):
            skops_files.check_trees(tmp_path, model)


def test_a_forged_histogram_tree_is_refused(tmp_path: Path) -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    X, y = model_shelf.features()
    model = HistGradientBoostingClassifier(max_iter=2).fit(X, y)
    skops_files.check_trees(tmp_path, model)
    model._predictors[0][0].nodes["feature_idx"][0] = 4  # one beyond the last
    with pytest.raises(InputError, match="forged"):
        skops_files.check_trees(tmp_path, model)


def test_a_booster_is_loaded_where_its_library_has_threads_already(tmp_path, monkeypatch):
    """A forked child must not wait for threads of OpenMP's that only its parent has."""
    xgb = pytest.importorskip("xgboost")
    X = np.random.default_rng(0).normal(size=(3000, 5))
    model = xgb.XGBClassifier(n_estimators=30, n_jobs=2).fit(X, X[:, 0] > 0)
    model.predict(X)
    model.save_model(tmp_path / "m.ubj")
    if safety._may_fork():  # a forked child that hangs is followed by a fresh one
        monkeypatch.setattr(safety, "_fresh", lambda *_: pytest.fail("the forked child did not end"))
    loaded = models.load_model(tmp_path / "m.ubj")
    loaded = getattr(loaded, "model", loaded)
    assert type(loaded).__module__.startswith("xgboost")
