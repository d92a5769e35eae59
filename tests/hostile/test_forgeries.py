"""`verify` finds a forgery of any single claim, sealed anew; headers of the wrong kind give one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hostile_forgeries as forgeries
import model_shelf
import pytest

from texplainer.errors import InputError, ModelError
from texplainer.files import audit, results
from texplainer.files import job as jobs
from texplainer.files.verify import Verification, verify_result

OPTIONS = {"exact": {}, "finite differences": {"step": 0.01}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("forgeries")
    model_shelf.skops(path)
    model_shelf.table().to_csv(path / "data.csv", index=False)
    for name, options in OPTIONS.items():
        job = jobs.prepare_job(str(path / "model.skops"), str(path / "data.csv"), options=options)
        with results.ResultWriter(path / f"{name}.npz", **job.facts) as writer:
            for _, piece in jobs.explain_blocks(job):
                writer.write(piece)
    return path


def verify(folder: Path, result: Path) -> Verification:
    return verify_result(result, str(folder / "model.skops"), str(folder / "data.csv"))


def untouched(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Forge nothing: a file that was only sealed anew is a true one."""


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".arrow"])
def test_the_forger_alone_leaves_no_trace(folder: Path, tmp_path: Path, suffix: str) -> None:
    copy = forgeries.forge_file(folder / "exact.npz", tmp_path / f"x{suffix}", untouched)
    assert verify(folder, copy).outcome == "identical"


@pytest.mark.parametrize("name", OPTIONS)
def test_a_forged_array_is_found(folder: Path, tmp_path: Path, name: str) -> None:
    missed, tried = [], 0
    for word, forge in forgeries.array_forgeries(folder / f"{name}.npz"):
        tried += 1
        copy = forgeries.forge_file(folder / f"{name}.npz", tmp_path / "x.npz", forge)
        try:
            found = verify(folder, copy).outcome
        except InputError:
            continue  # refused is found
        if found != "different":
            missed.append(word)
    assert missed == [] and tried >= 20


@pytest.mark.parametrize("word", forgeries.HEADER_FORGERIES)
def test_a_forged_header_is_found(folder: Path, tmp_path: Path, word: str) -> None:
    copy = forgeries.forge_file(folder / "exact.npz", tmp_path / "x.npz", forgeries.HEADER_FORGERIES[word])
    try:
        found = verify(folder, copy)
    except (InputError, ModelError):
        return  # refused is found
    assert found.outcome == "different" and found.failures


def test_a_base_value_within_tolerance_is_not_called_identical(folder: Path, tmp_path: Path) -> None:
    forge = lambda h, a: h.update(base_values=[b * (1 + 1e-7) for b in h["base_values"]])  # noqa: E731
    found = verify(folder, forgeries.forge_file(folder / "exact.npz", tmp_path / "x.npz", forge))
    assert found.outcome == "within tolerance" and found.near == ("base_values",)
    assert "the header's base_values is within tolerance only" in found.notes


@pytest.mark.parametrize(
    "forge", [lambda h, a: a.pop("values"), lambda h, a: a.update(error=a["error"][:-1])]
)
def test_a_result_without_all_its_rows_is_refused_in_one_sentence(folder: Path, tmp_path: Path, forge: Any) -> None:  # fmt: skip
    copy = forgeries.forge_file(folder / "exact.npz", tmp_path / "x.npz", forge)
    for use in (results.load_explanation, lambda path: verify(folder, path)):
        with pytest.raises(InputError, match="is damaged"):
            use(copy)


def test_a_header_of_the_wrong_kind_gives_one_sentence(folder: Path, tmp_path: Path) -> None:
    for word, forge in forgeries.MALFORMED.items():
        copy = forgeries.forge_file(folder / "exact.npz", tmp_path / "x.npz", forge)
        for use in (results.load_explanation, lambda path: verify(folder, path)):
            with pytest.raises(InputError) as refusal:
                use(copy)
            assert "\n" not in str(refusal.value), word


SIGNATURES: dict[str, Any] = {
    "a text": "x",
    "a list": [1],
    "nothing in it": {},
    "no hexadecimal": {"algorithm": "Ed25519", "public_key": "zz", "value": "zz"},
    "too short": {"algorithm": "Ed25519", "public_key": "00", "value": "00"},
    "numbers": {"algorithm": "Ed25519", "public_key": 1, "value": 2},
    "another algorithm": {"algorithm": "none", "public_key": "00" * 32, "value": "00" * 64},
    "zeros": {"algorithm": "Ed25519", "public_key": "00" * 32, "value": "00" * 64},
}


@pytest.mark.parametrize("word", SIGNATURES)
def test_a_forged_signature_does_not_hold(word: str) -> None:
    header = audit.seal({"a": 1}) | {"signature": SIGNATURES[word]}
    assert audit.check_signature(header)[0] is False


def test_a_signature_is_of_its_header_and_its_key(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

    keys = {name: ed25519.Ed25519PrivateKey.generate() for name in ("own", "other")}
    for name, key in (keys | {"rsa": rsa.generate_private_key(65537, 2048)}).items():
        private = (
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        (tmp_path / name).write_bytes(key.private_bytes(*private))
        public = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        (tmp_path / f"{name}.pub").write_bytes(key.public_key().public_bytes(*public))
    signed = audit.seal({"a": 1}, tmp_path / "own")
    assert audit.check_signature(signed, tmp_path / "own.pub")[0]
    assert not audit.check_signature(signed, tmp_path / "other.pub")[0]
    moved = audit.seal({"a": 2}) | {"signature": signed["signature"]}
    assert not audit.check_signature(moved)[0]
    assert not audit.check_signature(audit.seal({"a": 1}), tmp_path / "own.pub")[0]
    for wrong in ("rsa.pub", "own"):
        with pytest.raises(InputError, match="key"):
            audit.check_signature(signed, tmp_path / wrong)
