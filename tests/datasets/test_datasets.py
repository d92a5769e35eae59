"""Data sets: generators against slow twins, loaders against known facts, the store against a real server."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texplainer import datasets
from texplainer.datasets import dataset, real, synthetic
from texplainer.datasets.dataset import Scaler, Table, fill_gaps, one_hot, prepare, table_digest
from texplainer.errors import InputError

DATA = Path(os.environ.get("TEXPLAINER_DATA") or Path(__file__).parents[3] / "shared" / "data")
AT_HAND = [name for name in datasets.names() if name not in datasets.real.SOURCES]
needs_data = pytest.mark.skipif(not (DATA / "heloc.csv").is_file(), reason=f"no reference data in {DATA}")


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("TEXPLAINER_DATA", str(DATA))
    monkeypatch.setenv("TEXPLAINER_CACHE", str(tmp_path))
    return DATA


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("TEXPLAINER_DATA", raising=False)
    monkeypatch.setenv("TEXPLAINER_CACHE", str(tmp_path))
    return tmp_path


# Every set obeys one contract. ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", AT_HAND)
def test_set_obeys_its_contract(name: str) -> None:
    check_contract(name)


@needs_data
@pytest.mark.parametrize("name", datasets.real.SOURCES)
def test_real_set_obeys_its_contract(name: str, reference: Path) -> None:
    check_contract(name)


def check_contract(name: str) -> None:
    data = datasets.load(name)
    entry = datasets.ENTRIES[name]
    rows, width = len(data.target), len(data.feature_names)
    assert data.X_train.shape == (len(data.train_rows), width)
    assert data.X_test.shape == (len(data.test_rows), width)
    assert len(data.columns) == entry.features
    assert rows == (51_235 if name == "higgs" else entry.rows)
    assert sorted(np.concatenate([data.train_rows, data.test_rows])) == list(range(rows))
    assert len(data.test_rows) == -(-rows // 5)
    assert np.isfinite(data.X_train).all() and np.isfinite(data.X_test).all()
    assert data.X_train.min() == 0.0 and data.X_train.max() <= 1.0 + 1e-12
    assert {column for group in data.groups.values() for column in group} <= set(data.feature_names)
    assert data.source and data.licence and len(data.checksum) == 64
    assert name in repr(data)
    if data.task == "classification":
        assert set(np.unique(data.target)) == set(range(len(data.class_names)))


def test_scaling_and_filling_learn_from_the_training_part_only() -> None:
    """Changing test rows, even wildly, changes nothing about the training part."""
    random = np.random.default_rng(0)
    column = random.normal(size=50)
    column[7] = np.nan
    target = random.integers(0, 2, 50)
    first = prepare(Table("t", {"a": column}, target))
    changed = column.copy()
    changed[first.test_rows] = 1e6 * (-1.0) ** np.arange(len(first.test_rows))
    second = prepare(Table("t", {"a": changed}, target))
    np.testing.assert_array_equal(first.X_train, second.X_train)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_scaler_and_its_inverse(seed: int) -> None:
    random = np.random.default_rng(seed)
    scaler = Scaler(random.normal(size=3), random.uniform(0.1, 9, 3))
    rows = random.normal(size=(5, 3))
    np.testing.assert_allclose(scaler.inverse(scaler(rows)), rows, rtol=1e-12, atol=1e-12)


def test_fill_takes_the_training_mean_and_mode() -> None:
    train = np.array([0, 1, 2])
    np.testing.assert_array_equal(fill_gaps(np.array([1.0, np.nan, 3.0, 100.0]), train), [1, 2, 3, 100])
    np.testing.assert_array_equal(
        fill_gaps(np.array(["b", "a", "b", "", "a", "a"]), train), ["b", "a", "b", "b", "a", "a"]
    )


def test_two_levels_give_one_column_more_give_one_each() -> None:
    assert list(one_hot("sex", np.array(["male", "female"]))) == ["sex_male"]
    three = one_hot("c", np.array(["x", "z", "y", "x"]))
    assert list(three) == ["c_x", "c_y", "c_z"]
    np.testing.assert_array_equal(sum(three.values()), np.ones(4))


def test_digest_sees_every_cell_and_name() -> None:
    columns = {"a": np.array([1.0, 2.0]), "b": np.array(["x", ""])}
    base = table_digest(columns, np.array([0, 1]))
    assert base == table_digest(dict(columns), np.array([0, 1]))
    assert base != table_digest({"A": columns["a"], "b": columns["b"]}, np.array([0, 1]))
    assert base != table_digest({"a": columns["a"], "b": np.array(["x", "y"])}, np.array([0, 1]))
    assert base != table_digest(columns, np.array([1, 1]))


def test_frames_carry_the_same_cells() -> None:
    data = datasets.load("mixed")
    pandas = data.frame("test", encoded=True)
    np.testing.assert_array_equal(pandas.to_numpy(), data.X_test)
    assert list(pandas.columns) == list(data.feature_names)
    polars = data.frame("train", backend="polars")
    assert polars.columns == list(data.columns)
    assert polars["colour"].to_list() == data.columns["colour"][data.train_rows].tolist()


# The generators. -----------------------------------------------------------------------------------------


def test_generators_leave_the_global_generator_alone() -> None:
    np.random.seed(5)
    before = np.random.get_state()[1].copy()  # type: ignore[index, union-attr]
    for name in ("4ft", "20ft", "16ft", "mixed"):
        first, second = datasets.load(name), datasets.load(name)
        np.testing.assert_array_equal(first.X_train, second.X_train)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # type: ignore[index]


def test_clusters_equal_a_slow_twin() -> None:
    """The published steps written as loops: same draws, same labels, same weights."""
    rows, features, clusters, distance, kept = 7, 4, 3, 5.0, 0.6
    table = synthetic.clusters(
        "t", features=features, clusters=clusters, rows_per_cluster=rows, distance=distance, kept=kept, seed=3
    )
    random = np.random.RandomState(3)
    weights = [random.uniform(1.0, -1.0) for _ in range(features)]
    samples, truth, chances = [], [], []
    for i in range(clusters):
        mask = [random.binomial(1, kept) for _ in range(features)]
        centre = np.zeros(features)
        centre[i] = distance
        for row in random.multivariate_normal(centre, np.eye(features), rows):
            samples.append(row)
            truth.append([m * w for m, w in zip(mask, weights, strict=True)])
            chances.append(1 / (1 + np.exp(-sum(a * b for a, b in zip(row, truth[-1], strict=True)))))
    best = min(np.linspace(0, 1, 1000), key=lambda t: abs(np.mean([c > t for c in chances]) - 0.5))
    np.testing.assert_allclose(np.column_stack(list(table.columns.values())), samples, atol=6e-7)
    np.testing.assert_allclose(table.truth, truth, atol=6e-7)  # type: ignore[arg-type]
    np.testing.assert_array_equal(table.target, [int(c > best) for c in chances])


@pytest.mark.parametrize(
    ("clusters", "features", "expected"),
    [
        (2, 3, [[5, 0, 0], [0, 5, 0]]),
        (4, 2, [[5, 0], [0, 5], [-5, 0], [0, -5]]),
        (5, 2, [[5, 0], [0, 5], [10, 0], [0, 10], [20, 0]]),
    ],
)
def test_cluster_centres(clusters: int, features: int, expected: list[list[float]]) -> None:
    np.testing.assert_array_equal(synthetic.cluster_centres(clusters, features, 5.0), expected)


def test_cluster_labels_are_balanced_and_follow_the_truth() -> None:
    data = datasets.load("20ft")
    assert abs(data.target.mean() - 0.5) < 0.01
    assert data.truth_train is not None
    # In scaled units the true log-odds are those of the raw units.
    raw = data.scaler.inverse(data.X_train)
    scaled = (data.X_train + data.scaler.low / data.scaler.span) * data.truth_train
    np.testing.assert_allclose(scaled.sum(1), (raw * data.truth_train / data.scaler.span).sum(1))
    predicted = scaled.sum(1) > np.median(scaled.sum(1))
    assert (predicted == data.y_train).mean() > 0.97


def test_four_features_truth_is_the_gradient_of_the_log_density_ratio() -> None:
    from scipy.stats import multivariate_normal

    table = synthetic.four_features()
    zero = multivariate_normal([0, 0], [[4.1, 3.9], [3.9, 4.1]])
    one = multivariate_normal([-2, 2], [[2, 0], [0, 1]])
    core = np.column_stack([table.columns["core_1"], table.columns["core_2"]])[::97]
    for j in range(2):
        step = 1e-5 * np.eye(2)[j]
        up, down = (one.logpdf(core + s) - zero.logpdf(core + s) for s in (step, -step))
        np.testing.assert_allclose(table.truth[::97, j], (up - down) / 2e-5, rtol=1e-5, atol=1e-6)  # type: ignore[index]
    assert not table.truth[:, 2:].any()  # type: ignore[index]


@pytest.mark.parametrize("name", ["mixed", "mixed_interaction"])
def test_mixed_truth_predicts_the_label(name: str) -> None:
    """The stated coefficients, applied to the encoded columns, explain the labels up to their own noise."""
    from sklearn.metrics import roc_auc_score

    data = datasets.load(name)
    raw = data.scaler.inverse(data.X_train)
    assert data.truth_train is not None
    assert roc_auc_score(data.y_train, (raw * data.truth_train / data.scaler.span).sum(1)) > 0.85
    assert set(data.groups) == {"side", "shape", "colour"}


# The real sets. ------------------------------------------------------------------------------------------


@needs_data
def test_real_sets_have_the_known_facts(reference: Path) -> None:
    banknote = datasets.load("banknote")
    means = [column.mean() for column in banknote.columns.values()]
    np.testing.assert_allclose(means, [0.4337, 1.9224, 1.3976, -1.1917], atol=5e-5)
    german = datasets.load("german")
    assert len(german.feature_names) == 23 and german.target.sum() == 700
    assert (german.columns["Checking account"] == "").sum() == 394
    heloc = datasets.load("heloc")
    assert len(heloc.feature_names) == 37 and heloc.target.sum() == 4735
    assert [len(group) for group in heloc.groups.values()] == [9, 7]
    higgs = datasets.load("higgs")
    assert "35,298 of the paper's 98,050" in higgs.note
    assert "15,937 more events" in higgs.note
    assert abs(higgs.target[:35_298].mean() - 0.5286) < 1e-4


@needs_data
def test_german_is_decoded_from_the_original_codes(reference: Path) -> None:
    """UCI's own file, rebuilt from the reference copy of its cells, gives the same content."""
    lines = (reference / "german_credit_full.csv").read_text().splitlines()[1:]
    rebuilt = "\n".join(line.replace(",", " ") for line in lines).encode()
    assert table_digest(*real.german_upstream(rebuilt)) in real.SOURCES["german"].checksums


@needs_data
def test_banknote_and_heloc_upstream_formats(reference: Path) -> None:
    body = (reference / "banknote.csv").read_bytes().split(b"\n", 1)[1]
    source = real.SOURCES["banknote"]
    assert table_digest(*source.upstream(body.replace(b"\n", b"\r\n"))) in source.checksums
    lines = (reference / "heloc.csv").read_text().splitlines()
    extended = "\n".join([lines[0] + ",Probabilities"] + [line + ",0.5" for line in lines[1:]])
    source = real.SOURCES["heloc"]
    assert table_digest(*source.upstream(extended.encode())) in source.checksums


def test_higgs_reads_the_attribute_format() -> None:
    head = "% note\n@RELATION h\n@ATTRIBUTE class {0,1}\n@ATTRIBUTE a NUMERIC\n@ATTRIBUTE b NUMERIC\n"
    text = head + "@DATA\n1,0.5,?\n0,2,3\n"
    columns, target = real.higgs_arff(text.encode())
    np.testing.assert_array_equal(target, [1, 0])
    np.testing.assert_array_equal(columns["b"], [np.nan, 3.0])


@needs_data
def test_an_altered_local_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    altered = (DATA / "banknote.csv").read_text().replace("3.6216", "3.6217")
    (tmp_path / "banknote.csv").write_text(altered)
    monkeypatch.setenv("TEXPLAINER_DATA", str(tmp_path))
    with pytest.raises(datasets.ChecksumError, match="is not the data set 'banknote'"):
        datasets.load("banknote")


# The dataset. ----------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    folder = tmp_path_factory.mktemp("served")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()


def numbers(data: bytes) -> dataset.Content:
    cells = np.array(data.decode().split(), dtype=float)
    return {"x": cells}, np.zeros(len(cells), int)


def small_source(url: str, **changes: object) -> dataset.Source:
    known = frozenset({table_digest(*numbers(b"1 2 3"))})
    fields: dict[str, object] = {
        "name": "small",
        "file": "small.txt",
        "url": url,
        "page": "https://example.org/small",
        "licence": "none",
        "local": numbers,
        "upstream": numbers,
        "checksums": known,
    }
    return dataset.Source(**{**fields, **changes})  # type: ignore[arg-type]


def test_download_then_cache(server: tuple[Path, str], offline: Path) -> None:
    folder, address = server
    (folder / "small.txt").write_bytes(b"1 2 3")
    source = small_source(f"{address}/small.txt")
    assert dataset.state(source) == "to download"
    columns, _ = dataset.fetch(source)
    np.testing.assert_array_equal(columns["x"], [1, 2, 3])
    (folder / "small.txt").unlink()  # the second time nothing is asked of the server
    assert dataset.state(source) == "cached"
    columns, _ = dataset.fetch(source, download=False)
    np.testing.assert_array_equal(columns["x"], [1, 2, 3])


def test_wrong_download_is_refused_and_not_kept(server: tuple[Path, str], offline: Path) -> None:
    folder, address = server
    (folder / "small.txt").write_bytes(b"1 2 4")
    source = small_source(f"{address}/small.txt")
    with pytest.raises(datasets.ChecksumError, match="SHA-256"):
        dataset.fetch(source)
    assert dataset.state(source) == "to download"


def test_published_checksum_is_verified(server: tuple[Path, str], offline: Path) -> None:
    import hashlib
    import json

    folder, address = server
    (folder / "data.txt").write_bytes(b"7 8")
    good = hashlib.md5(b"7 8").hexdigest()
    for md5, accepted in (("0" * 32, False), (good, True)):
        entry = {"url": f"{address}/data.txt", "md5_checksum": md5}
        (folder / "about.json").write_text(json.dumps({"data_set_description": entry}))
        source = small_source(f"{address}/about.json", published=real.openml_file)
        if accepted:
            np.testing.assert_array_equal(dataset.fetch(source)[0]["x"], [7, 8])
        else:
            with pytest.raises(datasets.ChecksumError, match="MD5"):
                dataset.fetch(source)


def test_a_damaged_cache_is_refused(server: tuple[Path, str], offline: Path) -> None:
    folder, address = server
    (folder / "small.txt").write_bytes(b"1 2 3")
    source = small_source(f"{address}/small.txt")
    dataset.fetch(source)
    dataset.cached_path(source).write_bytes(b"1 2 5")
    with pytest.raises(datasets.ChecksumError, match="damaged"):
        dataset.fetch(source)


def test_offline_error_says_what_to_do(offline: Path) -> None:
    source = small_source("http://127.0.0.1:9/nothing")
    with pytest.raises(datasets.DatasetUnavailable) as caught:
        dataset.fetch(source)
    message = str(caught.value)
    assert all(
        part in message
        for part in ("small.txt", "TEXPLAINER_DATA", str(offline), "https://example.org/small")
    )
    with pytest.raises(datasets.DatasetUnavailable, match="not allowed"):
        datasets.load("heloc", download=False)


def test_table_lists_every_set_with_its_state(offline: Path) -> None:
    records = {record["name"]: record for record in datasets.table()}
    assert set(records) == set(datasets.names())
    assert records["heloc"]["state"] == "to download"
    assert records["20ft"]["state"] == "generated"
    assert records["iris"]["state"] == "bundled with scikit-learn"


def test_names_are_forgiving_and_unknown_ones_are_not() -> None:
    assert datasets.load("20-FT").name == "20ft"
    with pytest.raises(InputError, match="unknown data set 'mnist'; known are 4ft"):
        datasets.load("mnist")


@pytest.mark.skipif(
    os.name != "posix", reason="leftovers are swept where processes can be asked after safely"
)
def test_what_a_killed_writer_left_is_swept_and_a_living_one_s_is_not(tmp_path: Path) -> None:
    target = tmp_path / "file [1].csv"
    code = (
        "import os, signal, sys; from pathlib import Path; from texplainer.datasets.dataset import in_place\n"
        "with in_place(Path(sys.argv[1])) as part:\n"
        "    part.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    assert len(list(tmp_path.iterdir())) == 1 and not target.exists()
    living = target.with_name(f".{os.getppid()}-{target.name}")
    living.write_text("of another")
    with dataset.in_place(target) as part:
        part.write_text("whole")
    assert {path.name for path in tmp_path.iterdir()} == {target.name, living.name}


# The same everywhere. ------------------------------------------------------------------------------------

CHECKSUMS = {
    "4ft": "8040d870d91a96fefeb391637c99726ed3aa08f1b4b7af99ce926bbba7bf9de5",
    "20ft": "4d1ad66e3d5f750848a905cadb42b1f2018ffb9dc0539a9cdbaa2601026c0d5d",
    "16ft": "3780728496e31ae0056a741fbb9651617026221a9c0d63727067ea9ef91a47d1",
    "mixed": "f04b22533b4ee8f446a419f89bb48e2eb7fc79a51a2a19b5ac8828e95552634d",
    "mixed_interaction": "322295fb47cc12323fb14feadde1f2978e280b6e46fae3333196fef5aa8dbda9",
    "applications": "ddfe68d56ddae247f654186d4a0c05f0f1ff5adb9a1e17d7da8eadc5a2329e9b",
}


@pytest.mark.parametrize("name", CHECKSUMS)
def test_synthetic_tables_are_the_same_bits_on_every_machine(name: str) -> None:
    """Cells are decimal numbers of six places: no machine's last bit can be seen in them."""
    data = datasets.load(name)
    assert data.checksum == CHECKSUMS[name]
    for column in data.columns.values():
        assert column.dtype.kind != "f" or np.array_equal(column, column.round(6), equal_nan=True)


def test_the_roots_of_4ft_are_roots_of_its_covariances() -> None:
    wide, round_ = (root.T @ root for root in synthetic.ROOTS)
    np.testing.assert_allclose(wide, [[4.1, 3.9], [3.9, 4.1]], atol=1e-12)
    np.testing.assert_allclose(round_, [[2.0, 0.0], [0.0, 1.0]], atol=1e-12)


def test_a_table_without_a_public_address_says_what_to_do(offline: Path) -> None:
    with pytest.raises(
        datasets.DatasetUnavailable, match=r"no public address.*known\. Put penguins\.csv.*TEXPLAINER_DATA"
    ):
        datasets.load("penguins")  # connecting to the internet would not help
    states = {record["name"]: record["state"] for record in datasets.table()}
    assert states["penguins"] == "to put into TEXPLAINER_DATA"


@needs_data
def test_further_tables_keep_categories_and_gaps(reference: Path) -> None:
    credit = datasets.load("credit_data")
    assert credit.class_names == ("bad", "good") and set(credit.groups) == {
        "Home",
        "Marital",
        "Records",
        "Job",
    }
    assert np.isnan(credit.columns["Income"]).any() and not np.isnan(credit.X_train).any()
    assert datasets.load("concrete").task == "regression"
