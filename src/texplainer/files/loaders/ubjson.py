"""A walk over UBJSON that checks that every length stays inside the file.

XGBoost's own reader trusts the lengths it finds and crashes the process on a file that ends early.
Nothing is decoded here, arrays of numbers are stepped over. Format: https://ubjson.org.
"""

from __future__ import annotations

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
