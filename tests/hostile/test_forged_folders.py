"""`verify` on a folder of shards: true ones pass, a change of any column, record or claim is found."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import model_shelf
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from texplainer.cli import main
from texplainer.errors import InputError
from texplainer.execution import manifest, plan
from texplainer.execution.verify_folder import verify_folder
from texplainer.files import audit

BLOCK = plan.BLOCKS[True]
ROWS = 9000  # three shards of one block


def run(*words: Any) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("folders")
    model_shelf.skops(path)
    frame = model_shelf.table()
    rows = np.random.default_rng(0).integers(0, len(frame), ROWS)
    moved = frame.iloc[rows].reset_index(drop=True)
    pd.DataFrame(moved).to_csv(path / "data.csv", index=False)
    assert run("explain", path / "model.skops", path / "data.csv", "-o", path / "run", "--on", "serial", "--shard-rows", BLOCK) == 0  # fmt: skip
    return path


def verify(made: Path, folder: Path, **more: Any) -> Any:
    return verify_folder(folder, str(made / "model.skops"), str(made / "data.csv"), **more)


def test_a_true_folder_is_identical(made: Path, capsys: Any) -> None:
    found = verify(made, made / "run")
    assert found.failures == () and found.outcome == "identical" and found.total == ROWS
    assert len(found.rows) == ROWS
    words = ("--model", made / "model.skops", "--data", made / "data.csv")
    assert run("verify", made / "run", *words, "--rows", 100) == 0
    assert f"identical: {BLOCK} of {ROWS} rows" in capsys.readouterr().out


def test_a_run_from_files_is_resumed(made: Path, capsys: Any) -> None:
    words = (made / "model.skops", made / "data.csv", "-o", made / "run", "--on", "serial")
    assert run("explain", *words) == 0
    assert "3 of 3 shards existed before" in capsys.readouterr().err


def reseal(folder: Path, change: Callable[[dict[str, Any], list[dict[str, Any]]], None]) -> None:
    """Change the manifest and seal it anew, with the digests of the shards as they are."""
    path = folder / manifest.FILE
    header, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "file" in line and (folder / line["file"]).is_file():
            line["sha256"] = plan.digest_file(folder / line["file"])
            line["bytes"] = (folder / line["file"]).stat().st_size
    change(header, lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in [audit.seal(header), *lines]))


def forged_column(folder: Path, name: str) -> None:
    path = folder / "part-00000001.parquet"
    table = pq.read_table(path)
    column = table[name].to_pylist()
    cell = column[7]
    other = {bool: lambda: not cell, str: lambda: "forged", int: lambda: cell + 1}
    column[7] = other.get(type(cell), lambda: 1e6)()
    at = table.column_names.index(name)
    table = table.set_column(at, name, pa.array(column, table.schema.field(name).type))
    pq.write_table(table, path)


def test_a_forged_cell_of_any_column_is_found(made: Path, tmp_path: Path) -> None:
    names = pq.read_schema(made / "run" / "part-00000001.parquet").names
    missed = []
    for name in [n for i, n in enumerate(names) if i < 4 or n.split("/")[0] != names[i - 1].split("/")[0]]:
        shutil.rmtree(tmp_path / "x", ignore_errors=True)
        shutil.copytree(made / "run", tmp_path / "x")
        forged_column(tmp_path / "x", name)
        reseal(tmp_path / "x", lambda header, lines: None)
        found = verify(made, tmp_path / "x")
        if found.outcome != "different" or found.counts["different"] != 1:
            missed.append(name)
    assert missed == []


MANIFESTS: dict[str, Callable[[dict[str, Any], list[dict[str, Any]]], None]] = {
    "another scale": lambda h, lines: h.update(scale="raw"),
    "another attribution": lambda h, lines: h.update(attribution="variation"),
    "another engine": lambda h, lines: h.update(engine="tree"),
    "other names": lambda h, lines: h["features"].reverse(),
    "other outputs": lambda h, lines: h.update(outputs=["yes"]),
    "other base values": lambda h, lines: h.update(base_values=[0.5]),
    "another plan": lambda h, lines: h["plan"].update(block=512),
    "another model": lambda h, lines: h["record"]["model"].update(sha256="0" * 64),
    "other data": lambda h, lines: h["record"]["data"].update(sha256="0" * 64),
    "another fingerprint": lambda h, lines: h["fingerprint"].update(model="0" * 64),
    "an entry more": lambda h, lines: h.update(certified=True),
    "a shard less": lambda h, lines: lines.pop(0) and None,
    "other rows of a shard": lambda h, lines: lines[0].update(stop=5),
    "fewer undefined rows": lambda h, lines: lines[0].update(undefined=3),
    "fewer evaluations": lambda h, lines: lines[0].update(evaluations=1),
    "another input": lambda h, lines: lines[0].update(input="0" * 64),
}


@pytest.mark.parametrize("word", MANIFESTS)
def test_a_forged_manifest_is_found(made: Path, tmp_path: Path, word: str) -> None:
    shutil.copytree(made / "run", tmp_path / "x")
    reseal(tmp_path / "x", MANIFESTS[word])
    assert verify(made, tmp_path / "x", rows=1).failures


def test_a_changed_byte_a_lost_and_a_foreign_shard_are_found(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "run", tmp_path / "x")
    path = tmp_path / "x" / "part-00000000.parquet"
    whole = bytearray(path.read_bytes())
    (tmp_path / "x" / "part-00000002.parquet").unlink()
    (tmp_path / "x" / "part-00000009.parquet").write_bytes(bytes(whole))
    assert {f.split()[0] for f in verify(made, tmp_path / "x", rows=1).failures} >= {"part-00000009.parquet", "part-00000002.parquet"}  # fmt: skip
    whole[len(whole) // 2] ^= 1
    path.write_bytes(bytes(whole))
    try:
        assert verify(made, tmp_path / "x", rows=1).outcome == "different"
    except InputError as refusal:
        assert "\n" not in str(refusal)


# ---------------------------------------------------------------- signatures


@pytest.fixture(scope="module")
def signed(made: Path) -> Path:
    pytest.importorskip("cryptography")
    for name in ("private", "other"):
        key, public = made / f"{name}.pem", made / f"{name}.pub.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
        subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True)
    words = (made / "model.skops", made / "data.csv", "-o", made / "signed", "--on", "serial")
    assert run("explain", *words, "--sign", made / "private.pem") == 0
    return made / "signed"


def failures(made: Path, folder: Path, key: str = "private.pub.pem") -> tuple[str, ...]:
    return verify(made, folder, public_key=made / key, rows=1).failures


def test_a_signed_folder_is_its_signers_only(made: Path, signed: Path) -> None:
    assert failures(made, signed) == ()
    assert "signed with the key" in verify(made, signed, rows=1).notes[0]
    assert "another key" in failures(made, signed, "other.pub.pem")[0]
    assert failures(made, made / "run") == ("not signed",)


def test_a_signature_stays_when_the_run_is_resumed_and_goes_when_it_starts_anew(made: Path, signed: Path, tmp_path: Path) -> None:  # fmt: skip
    folder = Path(shutil.copytree(signed, tmp_path / "copy"))
    words = ("explain", made / "model.skops", made / "data.csv", "-o", folder, "--on", "serial")
    assert run(*words) == 0 and failures(made, folder) == ()
    assert run(*words, "--restart") == 0 and failures(made, folder) == ("not signed",)


@pytest.mark.parametrize("forge", ["record", "header", "signature", "no json"])
def test_a_folder_forged_under_its_signature_is_found(made: Path, signed: Path, tmp_path: Path, forge: str) -> None:  # fmt: skip
    folder = Path(shutil.copytree(signed, tmp_path / "copy"))
    path = folder / manifest.FILE
    header, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    if forge == "record":
        lines[0]["seconds"] = 1e6
    elif forge == "header":
        header["record"]["software"]["python"] = "2.7"
        header = audit.seal(header)
    else:
        (folder / "_signature.json").write_text("{}" if forge == "signature" else "no")
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *lines)))
    assert "the signature is invalid" in failures(made, folder)


def test_a_wrong_key_is_told_before_the_work(made: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "k.pem").write_text("no key")
    words = (made / "model.skops", made / "data.csv", "-o", tmp_path / "run", "--on", "serial")
    assert run("explain", *words, "--sign", tmp_path / "k.pem") == 3
    assert "not a private key" in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_a_folder_with_identifiers_is_verified_and_a_changed_one_is_found(
    tmp_path: Path, capsys: Any
) -> None:
    model_shelf.skops(tmp_path)
    frame = model_shelf.table().assign(customer_id=[f"c{i:04}" for i in range(len(model_shelf.table()))])
    frame.to_csv(tmp_path / "data.csv", index=False)
    words = ("explain", tmp_path / "model.skops", tmp_path / "data.csv", "--id-column", "customer_id")
    assert run(*words, "-o", tmp_path / "run", "--on", "serial") == 0
    found = verify(tmp_path, tmp_path / "run")
    assert found.failures == () and found.outcome == "identical" and found.total == len(frame)
    shard = next((tmp_path / "run").glob("part-*.parquet"))
    table = pq.read_table(shard)
    labels = table["index"].to_pylist()
    assert labels == frame["customer_id"].tolist()
    at = table.column_names.index("index")
    pq.write_table(table.set_column(at, "index", pa.array(["x", *labels[1:]])), shard)
    found = verify(tmp_path, tmp_path / "run")
    assert found.outcome == "different" and found.differing.get("index") == 1
