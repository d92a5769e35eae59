"""The audit record, signatures, and what `verify` catches."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import model_shelf
import numpy as np
import pandas as pd
import pytest

from texplainer import Explanation
from texplainer.cli import main
from texplainer.errors import InputError
from texplainer.files import audit, results
from texplainer.files import job as jobs
from texplainer.files import verify as verification

RESULTS = ["result.parquet", "result.arrow", "result.npz", "result.csv", "result.jsonl"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audit")
    model_shelf.skops(path)
    model_shelf.table().to_csv(path / "data.csv", index=False)
    for name in ("private", "other"):
        key = path / f"{name}.pem"
        subprocess.run(
            ["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True, capture_output=True
        )
        public = path / f"{name}.pub.pem"
        subprocess.run(
            ["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True, capture_output=True
        )
    job = jobs.prepare_job(str(path / "model.skops"), str(path / "data.csv"), options={"step": 0.01})
    for name in RESULTS:
        with results.ResultWriter(path / name, **job.facts) as writer:
            for _, piece in jobs.explain_blocks(job):
                writer.write(piece)
    with results.ResultWriter(path / "signed.parquet", key=path / "private.pem", **job.facts) as writer:
        for _, piece in jobs.explain_blocks(job):
            writer.write(piece)
    return path


def verify(folder: Path, result: str = "result.parquet", **changes: Any) -> verification.Verification:
    arguments = {"model": str(folder / "model.skops"), "data": str(folder / "data.csv")} | changes
    return verification.verify_result(folder / result, **arguments)


def run(*words: Any) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


@pytest.mark.parametrize("name", RESULTS)
def test_a_true_result_is_identical_row_by_row(folder: Path, name: str) -> None:
    check = verify(folder, name)
    assert check.outcome == "identical" and check.failures == ()
    assert check.rows.tolist() == list(range(120)) and set(check.outcomes) == {"identical"}


def test_the_record_names_everything(folder: Path) -> None:
    record = results.read_result(folder / "result.parquet")[0]["record"]
    for part in ("model", "data", "background"):
        assert len(record[part]["sha256"]) == 64
    assert record["configuration"]["options"] == {"step": 0.01, "columns": model_shelf.NAMES}
    assert len(record["configuration"]["sha256"]) == 64 and len(record["values"]["values"]) == 64
    assert {"python", "texplainer", "numpy", "sklearn", "skops"} <= set(record["software"])
    assert record["floats"]["mantissa_bits"] == 53 and record["floats"]["denormals"] is True
    assert not {"time", "date", "seconds"} & set(record)  # the same input gives the same bytes


def test_what_an_explainer_says_of_itself_is_recorded(tmp_path: Path) -> None:
    own = {"model": "a" * 64, "background": "b" * 64}
    made = Explanation.build(
        np.ones((2, 1)), data=np.ones((2, 1)), settings={"fingerprints": own, "step": "auto"}
    )
    made.save(tmp_path / "x.npz")
    record = results.read_result(tmp_path / "x.npz")[0]["record"]
    assert record["model"] == {"fingerprint": "a" * 64} and record["background"] == {"fingerprint": "b" * 64}
    assert record["data"]["fingerprint"] == record["values"]["data"]
    assert record["configuration"]["options"] == {"step": "auto"}


def test_saving_twice_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    loaded = results.load_explanation(folder / "result.parquet")
    for name in ("a.parquet", "b.parquet"):
        results.save_explanation(loaded, tmp_path / name)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


@pytest.mark.parametrize("name", RESULTS)
def test_one_changed_byte_in_a_value_is_caught(folder: Path, tmp_path: Path, name: str, capsys: Any) -> None:
    """Through the command: refused as damaged (3) or found different (1), never passed."""
    saved = folder / name
    target = tmp_path / name
    whole = bytearray(saved.read_bytes())
    if saved.suffix in (".csv", ".jsonl"):
        results.sidecar(target).write_bytes(results.sidecar(saved).read_bytes())
        line = bytes(whole).splitlines()[60 + (saved.suffix == ".csv")]
        at = bytes(whole).index(line) + line.index(b".", 2 * len(line) // 5) + 3  # a digit of a value
        whole[at] = ord("1") if whole[at] != ord("1") else ord("2")
    else:
        whole[len(whole) // 3] ^= 1
    target.write_bytes(whole)
    code = run("verify", target, "--model", folder / "model.skops", "--data", folder / "data.csv")
    said = capsys.readouterr()
    if saved.suffix in (".csv", ".jsonl"):
        assert code == 1 and "changed after saving" in said.out
    else:
        assert code in (1, 3) and (said.out + said.err).count("\n") >= 1


def forged(folder: Path, target: Path, row: int, change: Any) -> Path:
    """A result whose values were changed and whose fingerprints were made anew."""
    header = results.read_result(folder / "result.parquet")[0]["record"]
    loaded = results.load_explanation(folder / "result.parquet")
    values = loaded.arrays["values"].copy()
    values[row] = change(values[row])
    facts = {part: header[part] for part in ("model", "data", "background")}
    configuration = header["configuration"]["options"]
    results.save_explanation(
        replace(loaded, arrays={**loaded.arrays, "values": values}),
        target,
        configuration=configuration,
        **facts,
    )
    return target


def test_a_forged_value_with_fresh_fingerprints_is_caught_by_recomputing(
    folder: Path, tmp_path: Path
) -> None:
    path = forged(folder, tmp_path / "x.parquet", 17, lambda v: 1.001 * v)
    results.load_explanation(path)  # fingerprints alone cannot tell
    check = verify(folder, str(path))
    assert check.outcome == "different" and check.failures == ()
    assert np.nonzero(check.outcomes == "different")[0].tolist() == [17]


def test_a_last_bit_is_within_tolerance_and_told(folder: Path, tmp_path: Path) -> None:
    check = verify(folder, str(forged(folder, tmp_path / "x.parquet", 17, lambda v: np.nextafter(v, np.inf))))
    assert check.outcome == "within tolerance"
    assert check.counts == {"identical": 119, "within tolerance": 1, "different": 0}
    assert verify(folder, str(tmp_path / "x.parquet"), tolerance=0.0).outcome != "identical"


def test_another_model_is_caught(folder: Path, tmp_path: Path) -> None:
    import skops.io
    from sklearn.linear_model import LogisticRegression

    X, y = model_shelf.features()
    skops.io.dump(LogisticRegression().fit(X, y), tmp_path / "model.skops")
    check = verify(folder, model=str(tmp_path / "model.skops"))
    assert check.outcome == "different" and check.counts["different"] == 120
    assert any(f.startswith("the model is different") for f in check.failures)


def test_another_row_order_is_caught(folder: Path, tmp_path: Path) -> None:
    pd.read_csv(folder / "data.csv").iloc[::-1].to_csv(tmp_path / "data.csv", index=False)
    check = verify(folder, data=str(tmp_path / "data.csv"))
    assert check.outcome == "different" and check.counts["different"] > 100
    assert any(f.startswith("the data is different") for f in check.failures)


def test_fewer_rows_are_caught(folder: Path, tmp_path: Path) -> None:
    pd.read_csv(folder / "data.csv").iloc[:50].to_csv(tmp_path / "data.csv", index=False)
    check = verify(folder, data=str(tmp_path / "data.csv"))
    assert check.outcome == "different" and "the result has 120 rows, the data 50" in check.failures


def test_another_library_version_is_told_not_failed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = audit.software()
    monkeypatch.setattr(audit, "software", lambda: before | {"numpy": "99.0"})
    check = verify(folder)
    assert check.outcome == "identical"
    assert any("library numpy was" in note and "is 99.0" in note for note in check.notes)


def test_a_sample_recomputes_whole_blocks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs.ExplainJob, "block", property(lambda job: 10))
    check = verify(folder, rows=25)
    assert len(check.rows) == 30 and check.rows.tolist() == [*range(10), *range(40, 50), *range(80, 90)]


def test_a_background_file_must_be_shown_again(folder: Path, tmp_path: Path) -> None:
    data, model = str(folder / "data.csv"), str(folder / "model.skops")
    pd.read_csv(data).iloc[:60].to_parquet(tmp_path / "background.parquet")
    job = jobs.prepare_job(model, data, background=str(tmp_path / "background.parquet"))
    with results.ResultWriter(tmp_path / "x.npz", **job.facts) as writer:
        for _, piece in jobs.explain_blocks(job):
            writer.write(piece)
    with pytest.raises(InputError, match=r"background\.parquet; pass --background"):
        verify(folder, str(tmp_path / "x.npz"))
    ours = {"background": str(tmp_path / "background.parquet")}
    assert verify(folder, str(tmp_path / "x.npz"), **ours).outcome == "identical"


def test_a_result_saved_from_python_cannot_be_repeated(folder: Path, tmp_path: Path) -> None:
    results.save_explanation(results.load_explanation(folder / "result.npz"), tmp_path / "x.npz")
    with pytest.raises(InputError, match="saved from Python"):
        verify(folder, str(tmp_path / "x.npz"))


# ---------------------------------------------------------------- signatures


def test_a_signature_holds_for_its_key_only(folder: Path) -> None:
    header = results.read_result(folder / "signed.parquet")[0]
    assert audit.check_signature(header, folder / "private.pub.pem")[0]
    assert audit.check_signature(header)[0]
    assert audit.check_signature(header, folder / "other.pub.pem") == (
        False,
        f"signed with another key ({header['signature']['public_key'][:16]})",
    )
    assert not audit.check_signature({**header, "sha256": "0" * 64})[0]
    assert audit.check_signature(
        results.read_result(folder / "result.parquet")[0], folder / "private.pub.pem"
    ) == (
        False,
        "not signed",
    )


def test_verify_asks_for_the_signature(folder: Path) -> None:
    assert verify(folder, "signed.parquet", public_key=folder / "private.pub.pem").outcome == "identical"
    assert verify(folder, "signed.parquet", public_key=folder / "other.pub.pem").outcome == "different"
    assert verify(folder, "result.parquet", public_key=folder / "private.pub.pem").outcome == "different"


def test_a_key_of_another_kind_is_refused(folder: Path, tmp_path: Path) -> None:
    subprocess.run(["openssl", "genpkey", "-algorithm", "x25519", "-out", tmp_path / "k.pem"], check=True)
    with pytest.raises(InputError, match="ed25519"):
        audit.sign("x", tmp_path / "k.pem")
    (tmp_path / "k.pem").write_text("no key")
    with pytest.raises(InputError, match="not a private key"):
        audit.sign("x", tmp_path / "k.pem")
