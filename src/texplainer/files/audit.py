"""The audit record: what a result was computed from, and on what machine.

Every saved result carries the fingerprints of model, data, background, configuration and of each array, the
versions of the libraries and the facts about floating point that can move a last bit. The header that holds
all this has a fingerprint of its own, which can be signed with an Ed25519 key.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.models.libraries import LIBRARIES
from texplainer.support import hashing

#: packages whose versions are noted when they are in use, besides those of models
PACKAGES = ("numpy", "scipy", "narwhals", "pandas", "pyarrow", "skops", "numba")

#: encodings of the curve's points of small order (without the sign): "signatures" of such a key fit anything
SMALL_ORDER = frozenset(
    [
        bytes(32),
        bytes([1]) + bytes(31),
        *(bytes([low]) + b"\xff" * 30 + b"\x7f" for low in (0xEC, 0xED, 0xEE)),
        bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
        bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    ]
)


def audit_record(
    configuration: Mapping[str, Any],
    arrays: Mapping[str, str],
    *,
    model: Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
    background: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Build the audit record; `arrays` are the hashes of the saved arrays."""
    return {
        "model": dict(model or {}),
        "data": dict(data or {}),
        "background": dict(background or {}),
        "configuration": {"options": dict(configuration), "sha256": hashing.of_facts(configuration)},
        "values": dict(arrays),
        "software": software(),
        "floats": floats(),
    }


def software() -> dict[str, str]:
    """The versions of Python, texplainer and of every numerical library in use."""
    from texplainer import __version__

    out = {"python": platform.python_version(), "texplainer": __version__}
    for package in (*PACKAGES, *LIBRARIES):
        if sys.modules.get(package) is not None:
            out[package] = str(getattr(sys.modules[package], "__version__", "unknown"))
    return out


def floats() -> dict[str, Any]:
    """Properties of the machine that can change results by round-off."""
    from threadpoolctl import threadpool_info

    libraries = {
        f"{pool.get('internal_api')} {pool.get('version')} {pool.get('architecture', '')}".strip()
        for pool in threadpool_info()
    }
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "byte_order": sys.byteorder,
        "mantissa_bits": sys.float_info.mant_dig,
        "rounding": sys.float_info.rounds,
        "denormals": bool(np.finfo(np.float64).tiny / 2 > 0),
        "long_double_bits": int(np.finfo(np.longdouble).nmant),
        "thread_pools": sorted(libraries),
    }


def seal(header: Mapping[str, Any], key: Any = None) -> dict[str, Any]:
    """Add a header's own fingerprint, and its signature if the path of a private key (PEM) is given."""
    content = {name: value for name, value in header.items() if name not in ("sha256", "signature")}
    sealed = {**content, "sha256": hashing.of_facts(content)}
    if key is not None:
        sealed["signature"] = sign(sealed["sha256"], Path(key))
    return sealed


def broken_seal(header: Mapping[str, Any]) -> bool:
    """Return whether a header was changed after it was written."""
    return seal(header)["sha256"] != header.get("sha256")


def sign(text: str, key: Path) -> dict[str, str]:
    """Sign a text with an Ed25519 private key in PEM."""
    serialization, ed25519 = _cryptography()
    try:
        private = serialization.load_pem_private_key(key.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise InputError(f"{key} is not a private key in PEM without a password ({error}).") from error
    if not isinstance(private, ed25519.Ed25519PrivateKey):
        raise InputError(f"{key} is another kind of key; make one with: openssl genpkey -algorithm ed25519.")
    public = private.public_key().public_bytes_raw()
    return {"algorithm": "Ed25519", "public_key": public.hex(), "value": private.sign(text.encode()).hex()}


def check_signature(header: Mapping[str, Any], key: Any = None) -> tuple[bool, str]:
    """Return whether a header's signature is valid, with a message; `key` is the public key's path."""
    found = header.get("signature")
    if found is None:
        return key is None, "not signed"
    _, ed25519 = _cryptography()
    from cryptography.exceptions import InvalidSignature

    wanted = None if key is None else _public_key(Path(key))
    try:
        raw, signature = (bytes.fromhex(found[name]) for name in ("public_key", "value"))
        if found["algorithm"] != "Ed25519":
            return False, "the signature is of another kind"
        if raw[:31] + bytes([raw[31] & 127]) in SMALL_ORDER:
            return False, "the signature's key is weak: anybody can sign with it"
        if wanted is not None and wanted != raw:
            return False, f"signed with another key ({raw.hex()[:16]})"
        ed25519.Ed25519PublicKey.from_public_bytes(raw).verify(signature, str(header.get("sha256")).encode())
    except (InvalidSignature, ValueError, TypeError, KeyError, IndexError):
        return False, "the signature is invalid"
    return True, f"signed with the key {raw.hex()[:16]}" + (
        "" if key else " (pass --public-key to check the signer)"
    )


def _public_key(path: Path) -> bytes:
    """The raw bytes of a public key in PEM."""
    serialization, ed25519 = _cryptography()
    try:
        public = serialization.load_pem_public_key(path.read_bytes())
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} is not a public key in PEM ({error}).") from error
    if not isinstance(public, ed25519.Ed25519PublicKey):
        raise InputError(f"{path} is another kind of key; expected a public key of Ed25519.")
    return public.public_bytes_raw()


def differing_facts(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Describe the differences between two mappings."""
    return [
        f"{name} was {then.get(name, 'absent')}, is {now.get(name, 'absent')}"
        for name in sorted({*then, *now})
        if name in then and name in now and then[name] != now[name]
    ]


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError as error:
        raise InputError(
            "signatures need the package cryptography: pip install 'texplainer[sign]'."
        ) from error
    return serialization, ed25519
