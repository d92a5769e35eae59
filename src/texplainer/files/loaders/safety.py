"""Files from strangers: what is checked before their contents are used.

`try_in_child`: model files are tried in a child process first, because some readers crash, or take all memory, on
damaged ones. The child has limits of memory and time and ends with its parent. It loads the model, asks it for a
few rows, and reports only how it ended. It is forked where that is possible: the library is imported already.
OpenMP's threads do not exist in a fork, and a thread that had used them would wait for them without end; the
trial is made in a new thread. What a damaged file makes its reader read beyond its arrays is not the same in a
thread, so a second trial is made as the parent will load it; if that one waits, it is not judged. Where a process
cannot be forked, or the child hangs, a new interpreter is asked: not multiprocessing's, which runs the user's
script a second time.

`check_archive`: npz, skops and torch files are zip archives. An archive can name files outside its folder, hold
one name twice (so that two readers see two contents), share its bytes between entries or unpack to a thousand
times its size. Its directory tells all this.

`check_parquet`: the footer of a Parquet file tells what its row groups decompress to.

`check_xgboost`, `check_lightgbm`: every index of every node lies inside what it refers to. The libraries do not
check their files: XGBoost reads memory outside its arrays, LightGBM follows a cycle without end. Where no node
has two parents and the root has none, every walk from the root ends.

`check_ubjson`: every length stays inside the file. XGBoost's own reader crashes the process on a file that ends
early. Nothing is decoded here, arrays of numbers are stepped over. Format: https://ubjson.org.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import multiprocessing
import os
import re
import stat
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path, PurePosixPath
from typing import Any

from threadpoolctl import threadpool_limits

from texplainer.errors import InputError
from texplainer.support.process import end_with

TRIAL_SECONDS = {"fork": 5, "fresh": 120}
FREE_BYTES = 3 * 2**30  # on top of a multiple of the file
TIMES_SIZE = 50
LEAST_SECONDS = 1.0  # given to the second trial
TOO_MUCH = 77  # the exit code of a child that ran out of its memory


def try_in_child(path: Path, library: str, trial: Callable[..., object], *given: str) -> None:
    """Load a model in another process; reject a file that crashes its library or exceeds the limits.

    `trial(*given, path)`, a function of a module, loads it there and predicts once. An error of the library
    itself is raised by the second load, in this process.
    """
    limit = FREE_BYTES + TIMES_SIZE * path.stat().st_size
    code = _forked(path, trial, given, limit) if _may_fork() else None
    code = _fresh(path, trial, given, limit) if code is None else code
    if code is None:
        raise InputError(f"{path} keeps {library} busy for over {TRIAL_SECONDS['fresh']} s; it is damaged.")
    if code == TOO_MUCH:
        raise InputError(f"{path} makes {library} ask for over {limit / 2**30:.0f} GB; it is damaged.")
    if code < 0:
        raise InputError(f"{path} makes {library} crash (signal {-code}); it is damaged.")
    if code > 0:
        raise InputError(f"{path} makes {library} end its process (exit code {code}); it is damaged.")


def _may_fork() -> bool:
    """Whether this process can be forked; a worker of a pool may not have children of multiprocessing's."""
    alone = threading.active_count() == 1 and not multiprocessing.current_process().daemon
    return alone and hasattr(os, "fork") and sys.platform != "darwin"


def _forked(path: Path, trial: Callable[..., object], given: tuple[str, ...], limit: int) -> int | None:
    """How a forked child ended; None if it did not."""
    context: Any = multiprocessing.get_context("fork")
    child = context.Process(target=_trial, args=(path, trial, given, os.getpid(), limit))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numerical libraries have threads of their own
        child.start()
    child.join(TRIAL_SECONDS["fork"])
    if child.exitcode is None:
        child.kill()
        child.join()
        return None
    return int(child.exitcode)


def _fresh(path: Path, trial: Callable[..., object], given: tuple[str, ...], limit: int) -> int | None:
    """How a new interpreter ended; None if it did not."""
    code = (
        f"import sys; sys.path[:] = {[str(place) for place in sys.path]!r}\n"
        f"from texplainer.files.loaders.safety import _trial\n"
        f"from {trial.__module__} import {trial.__name__} as trial\n"
        f"_trial({str(path)!r}, trial, {given!r}, {os.getpid()}, {limit})"
    )
    try:
        return subprocess.run(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            timeout=TRIAL_SECONDS["fresh"],
        ).returncode
    except subprocess.TimeoutExpired:
        return None


def _trial(
    path: str | Path, trial: Callable[..., object], given: tuple[str, ...], parent: int, limit: int
) -> None:
    """In the child process: load, predict once, and exit with a code."""
    end_with(parent if os.name == "posix" else os.getppid())  # elsewhere a launcher may stand between
    faulthandler.disable()  # a crash is an answer here, not news
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # readers write their last words there
        os.dup2(nowhere, stream)
    _limit_memory(limit)
    began = time.monotonic()
    asked = threading.Thread(target=_ask, args=(Path(path), trial, given))
    asked.start()
    asked.join()
    again = threading.Timer(max(LEAST_SECONDS, 3 * (time.monotonic() - began)), os._exit, (0,))
    again.daemon = True
    again.start()
    _ask(Path(path), trial, given)
    os._exit(0)


def _ask(path: Path, trial: Callable[..., object], given: tuple[str, ...]) -> None:
    """Load and ask; what the library refuses by itself is left to it, but for memory."""
    try:
        with threadpool_limits(1):
            trial(*given, path)
    except BaseException as error:
        if isinstance(error, MemoryError) or "alloc" in str(error):
            os._exit(TOO_MUCH)


def _limit_memory(limit: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit += _own_data()
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    with contextlib.suppress(ValueError, OSError):  # macOS may refuse
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _own_data() -> int:
    """Bytes this process has already: a forked child has all its parent's, whose tables may be large."""
    try:
        found = re.search(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError):
        return 0
    return int(found[1]) * 1024 if found else 0


#: an archive may unpack to this many times its size, and always to FREE_UNPACKED
MOST_EXPANSION = 100
FREE_UNPACKED = 64 * 2**20
MOST_CELLS = 1000  # bytes of a result's cells to a byte of its file
FREE_PARQUET = 2**30  # columns of one value are small on the disk
MOST_ENTRIES = 100_000


def check_archive(path: Path) -> None:
    """Reject an archive that is damaged or unsafe to unpack."""
    size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"{path} is not a zip archive, or is damaged ({error}).") from error
    if len(entries) > MOST_ENTRIES:
        raise InputError(f"{path} holds {len(entries)} entries; expected at most {MOST_ENTRIES}.")
    names = [entry.filename for entry in entries]
    twice = (
        next((name for name, count in Counter(names).items() if count > 1), None)
        if len(set(names)) < len(names)
        else None
    )
    if twice is not None:
        raise InputError(f"{path} holds the entry {twice!r} twice; it was not written by a saver.")
    for entry in entries:
        _check_entry(path, entry)
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > max(FREE_UNPACKED, MOST_EXPANSION * size):
        raise InputError(
            f"{path} of {size:,} bytes would unpack to {unpacked:,} bytes; expected at most "
            f"{MOST_EXPANSION} times its size. It looks like a zip bomb."
        )
    if sum(entry.compress_size for entry in entries) > size:
        raise InputError(f"{path} has entries that share their bytes. It looks like a zip bomb.")


def check_parquet(path: Path, footer: Any) -> None:
    """Reject a Parquet file that would decompress to far more than its size; `footer` is pyarrow's."""
    size = path.stat().st_size
    unpacked = sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))
    if unpacked > max(FREE_PARQUET, MOST_EXPANSION * size):
        raise InputError(
            f"{path} of {size:,} bytes would decompress to {unpacked:,} bytes; expected at most "
            f"{MOST_EXPANSION} times its size. If you trust it, write it again with dictionaries."
        )


def check_parquet_result(path: Path, footer: Any) -> None:
    """Reject also a result with far more cells than its size can hold: a result is loaded as a whole."""
    check_parquet(path, footer)
    cells, size = footer.num_rows * footer.num_columns, path.stat().st_size
    if 8 * cells > max(FREE_PARQUET, MOST_CELLS * size):
        raise InputError(
            f"{path} of {size:,} bytes holds {footer.num_rows:,} rows of {footer.num_columns:,} columns; such a "
            "result has more bytes. It is damaged."
        )


def _check_entry(path: Path, entry: zipfile.ZipInfo) -> None:
    name = PurePosixPath(entry.filename.replace("\\", "/"))
    drive = len(name.parts) > 0 and name.parts[0].endswith(":")
    if name.is_absolute() or ".." in name.parts or drive or not name.parts:
        raise InputError(f"{path} holds the entry {entry.filename!r}, which points outside the archive.")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise InputError(f"{path} holds the symbolic link {entry.filename!r}; expected plain entries.")
    if entry.flag_bits & 1:
        raise InputError(f"{path} holds the encrypted entry {entry.filename!r}; save it without a password.")


_CYCLE = "contains a tree with a reference outside the tree or a cycle"
_CATEGORIES = "contains a tree with a reference to categories that do not exist"
_CATEGORICAL = 1  # the bit of LightGBM's decision types


def check_xgboost(path: Path | str, model: Any) -> None:
    """Reject a loaded Booster with an invalid tree."""
    check_xgboost_json(path, bytes(model.save_raw("json")))


def check_xgboost_json(path: Path | str, content: bytes) -> None:
    """Reject a file in XGBoost's JSON format with an invalid tree, before its library evaluates it."""
    learner = json.loads(content)["learner"]
    width = int(learner["learner_model_param"]["num_feature"])
    sizes = [int(learner["learner_model_param"].get(name, 1)) for name in ("num_class", "num_target")]
    groups = max(1, *sizes)
    boosting = learner["gradient_booster"]
    found = boosting.get("gbtree", boosting).get("model", {})
    if "weights" in found:  # of a linear model
        _demand(
            path, len(found["weights"]) == (width + 1) * groups, "has weights of another number of classes"
        )
        return
    trees = found.get("trees", ())
    for tree in trees:
        left, right = tree["left_children"], tree["right_children"]
        inner = [i for i, child in enumerate(left) if child != -1]
        _demand(path, _ends([side[i] for side in (left, right) for i in inner], (), len(left)), _CYCLE)
        _demand(
            path,
            all(0 <= tree["split_indices"][i] < width for i in inner),
            f"contains a tree that refers to a feature beyond the model's {width}",
        )
        split_types = tree.get("split_type") or [0] * len(left)
        known = tree.get("categories_nodes", ())
        segments = zip(tree.get("categories_segments", ()), tree.get("categories_sizes", ()), strict=True)
        _demand(
            path,
            all(split_types[i] == 0 or i in known for i in inner)
            and all(at >= 0 and 0 <= size <= len(tree["categories"]) - at for at, size in segments),
            _CATEGORIES,
        )
    leaves = {int(tree["tree_param"].get("size_leaf_vector", 1)) for tree in trees}
    if leaves and max(leaves) > 1:  # a leaf's second child is the position of its values
        places = [
            (child, len(tree["leaf_weights"]) // groups)
            for tree in trees
            for leaf, child in zip(tree["left_children"], tree["right_children"], strict=True)
            if leaf == -1 and "leaf_weights" in tree
        ]
        _demand(
            path,
            leaves == {groups} and all(0 <= at < count for at, count in places),
            f"has leaves of another number of values than its {groups} classes",
        )
        return
    info, rounds = found.get("tree_info", ()), found.get("iteration_indptr", ())
    _demand(
        path,
        len(info) == len(trees)
        and (groups == 1 or set(info) == set(range(groups)))
        and set(info) <= {*range(groups)},
        f"declares {groups} classes, but its trees belong to others",
    )
    _demand(
        path,
        not rounds or (rounds[0] == 0 and rounds[-1] == len(trees) and list(rounds) == sorted(rounds)),
        f"lists rounds that do not consist of its {len(trees)} trees",
    )
    drops = boosting.get("weight_drop")
    _demand(path, drops is None or len(drops) == len(trees), "has weights of another number of trees")


def check_lightgbm(path: Path | str, text: bytes) -> None:
    """Reject a model file with an invalid tree, before its library evaluates it."""
    header, _, rest = text.partition(b"\nTree=")
    body = b"Tree=" + rest.partition(b"\nend of trees")[0]
    starts = [found.start() for found in re.finditer(rb"^Tree=", body, re.MULTILINE)] if rest else []
    fields = _fields(path, header)
    (last,), (classes,), (rounds,) = (
        _numbers(path, fields, name, 1)
        for name in (b"max_feature_idx", b"num_class", b"num_tree_per_iteration")
    )
    objective = re.search(rb"\bnum_class:(\d+)", fields.get(b"objective", b""))
    _demand(
        path,
        classes == rounds == int(objective[1] if objective else classes)
        and (classes == 1 or (len(starts) > 0 and len(starts) % classes == 0)),
        f"declares {classes} classes, but has {len(starts)} trees of others",
    )
    sizes = _numbers(path, fields, b"tree_sizes") if b"tree_sizes" in fields else None
    at = None if sizes is None else [*accumulate(sizes, initial=0)][:-1]
    _demand(
        path,
        at in (None, starts) and b"\0" not in text and body.count(b"Tree=") == max(1, len(starts)),
        _CYCLE,
    )
    for start, end in pairwise([*starts, len(body)]):
        _check_lightgbm_tree(path, _fields(path, body[start:end]), last + 1)


def _check_lightgbm_tree(path: Path | str, tree: Mapping[bytes, bytes], width: int) -> None:
    nodes = _numbers(path, tree, b"num_leaves", 1)[0] - 1
    # a word that is not a number is read as 0, the root
    children = [*_numbers(path, tree, b"left_child", nodes), *_numbers(path, tree, b"right_child", nodes)]
    _demand(path, _ends(children, range(-nodes - 1, 0), nodes), _CYCLE)
    thresholds, coefficients = (tree.get(n, b"").split() for n in (b"threshold", b"leaf_coeff"))
    kinds = _numbers(path, tree, b"decision_type") or [0] * nodes
    counts = _numbers(path, tree, b"num_features") or [0] * (nodes + 1)  # of the leaves' linear models
    linear = _numbers(path, tree, b"leaf_features")
    _demand(
        path,
        len(thresholds) == len(kinds) == nodes == len(counts) - 1
        and len(tree.get(b"leaf_value", b"").split()) == nodes + 1
        and min(counts) >= 0
        and sum(counts) == len(linear) == len(coefficients),
        "contains a tree whose lists differ in length",
    )
    _demand(
        path,
        all(0 <= j < width for j in (*_numbers(path, tree, b"split_feature", nodes), *linear)),
        f"contains a tree that refers to a feature beyond the model's {width}",
    )
    ends = _numbers(path, tree, b"cat_boundaries") or [0]
    sets = [word for word, kind in zip(thresholds, kinds, strict=True) if kind & _CATEGORICAL]
    _demand(
        path,
        ends == sorted(ends)
        and (ends[0], len(tree.get(b"cat_threshold", b"").split())) == (0, ends[-1])
        and (_numbers(path, tree, b"num_cat") or [0]) == [len(ends) - 1]
        and all(word.isdigit() and int(word) < len(ends) - 1 for word in sets),
        _CATEGORIES,
    )


def check_boosters(path: Path | str, model: Any) -> None:
    """Refuse a model with such a tree in any booster it holds."""
    for booster in _boosters(model, set()):
        if type(booster).__module__.startswith("lightgbm."):
            check_lightgbm(path, booster.model_to_string().encode())
        else:
            check_xgboost(path, booster)


def _boosters(part: Any, seen: set[int]) -> Iterator[Any]:
    if id(part) in seen:
        return
    seen.add(id(part))
    library = type(part).__module__.split(".")[0]
    if type(part).__name__ == "Booster" and library in {"xgboost", "lightgbm"}:
        yield part
    elif isinstance(part, Mapping):
        for value in part.values():
            yield from _boosters(value, seen)
    elif isinstance(part, (list, tuple)):
        for value in part:
            yield from _boosters(value, seen)
    elif library in {"sklearn", "imblearn", "xgboost", "lightgbm"} and hasattr(part, "__dict__"):
        yield from _boosters(vars(part), seen)


def _demand(path: Path | str, holds: bool, found: str) -> None:
    if not holds:
        raise InputError(f"{path} {found}; it is damaged.")


def _fields(path: Path | str, text: bytes) -> dict[bytes, bytes]:
    """The lines `name=value`; of two with one name, another reader may take the other."""
    pairs = [line.partition(b"=")[::2] for line in text.splitlines() if b"=" in line]
    _demand(path, len({name for name, _ in pairs}) == len(pairs), "states one entry of a tree twice")
    return {name: value.strip() for name, value in pairs}


def _numbers(
    path: Path | str, fields: Mapping[bytes, bytes], name: bytes, count: int | None = None
) -> list[int]:
    """The whole numbers of a line."""
    words = fields.get(name, b"").split()
    sound = all(re.fullmatch(rb"-?\d{1,9}", word) for word in words) and count in (None, len(words))
    _demand(path, sound, _CYCLE)
    return [int(word) for word in words]


def _ends(pointers: Sequence[int], leaves: Sequence[int], nodes: int) -> bool:
    """Whether every walk from node 0 ends: `leaves` are pointers that end one."""
    inner = [pointer for pointer in pointers if pointer not in leaves]
    return len(set(inner)) == len(inner) and all(0 < pointer < nodes for pointer in inner)


_SIZES = {"Z": 0, "N": 0, "T": 0, "F": 0, "i": 1, "U": 1, "C": 1, "I": 2, "l": 4, "d": 4, "L": 8, "D": 8}
_INTEGERS = {"i": 1, "U": 1, "I": 2, "l": 4, "L": 8}
MOST_DEPTH = 100


def check_ubjson(content: bytes) -> None:
    """Raise ValueError unless the bytes are one whole UBJSON value and nothing else."""
    end = _value(content, 1, _marker(content, 0), 0)
    if end != len(content):
        raise ValueError(f"{len(content) - end} bytes follow its end")


def _value(content: bytes, at: int, kind: str, depth: int) -> int:
    """Step over the value of a kind whose payload starts at `at`; the position after it."""
    if depth > MOST_DEPTH:
        raise ValueError(f"it is nested more than {MOST_DEPTH} deep")
    if kind in _SIZES:
        return _inside(content, at + _SIZES[kind])
    if kind in "SH":
        length, at = _integer(content, at)
        return _inside(content, at + length)
    if kind in "[{":
        return _container(content, at, kind, depth)
    raise ValueError(f"byte {at - 1} is {kind!r}, which starts no value")


def _container(content: bytes, at: int, kind: str, depth: int) -> int:
    """Step over an array or object: of one type and counted, counted, or up to its closing mark."""
    item = count = None
    if _marker(content, at) == "$":
        item, at = _marker(content, at + 1), at + 2
    if _marker(content, at) == "#":
        count, at = _integer(content, at + 1)
    if item is not None and count is None:
        raise ValueError(f"a typed container at byte {at} has no count")
    if kind == "[" and item in _SIZES and count is not None:
        return _inside(content, at + _SIZES[item] * count)
    done = 0
    while count is None or done < count:
        if count is None and _marker(content, at) == ("]" if kind == "[" else "}"):
            return at + 1
        if kind == "{":
            length, at = _integer(content, at)
            at = _inside(content, at + length)
        inner = item
        if inner is None:
            inner, at = _marker(content, at), at + 1
        at = _value(content, at, inner, depth + 1)
        done += 1
    return at


def _integer(content: bytes, at: int) -> tuple[int, int]:
    kind = _marker(content, at)
    if kind not in _INTEGERS:
        raise ValueError(f"byte {at} is {kind!r}; a length should stand there")
    end = _inside(content, at + 1 + _INTEGERS[kind])
    value = int.from_bytes(content[at + 1 : end], "big", signed=kind != "U")
    if value < 0:
        raise ValueError(f"the length at byte {at} is {value}")
    return value, end


def _marker(content: bytes, at: int) -> str:
    return chr(content[_inside(content, at + 1) - 1])


def _inside(content: bytes, at: int) -> int:
    if at > len(content):
        raise ValueError(f"it ends after {len(content)} bytes, before it is complete")
    return at
