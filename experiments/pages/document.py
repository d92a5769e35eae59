"""A page as a list of blocks, written in Markdown."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from texplainer.datasets.dataset import in_place

PageBlock = tuple[str, Any]  # ("h1" | "h2" | "h3" | "p" | "list" | "table" | "figure", content)
TableCells = tuple[list[str], list[list[str]]]  # header, body


def write_markdown(blocks: Sequence[PageBlock], path: Path) -> Path:
    """Write a page; return its path."""
    with in_place(path) as part:
        part.write_text(as_markdown(blocks, path.parent))
    return path


def as_markdown(blocks: Sequence[PageBlock], beside: Path) -> str:
    """Write the page in Markdown; figures by relative path."""
    lines = []
    for kind, value in blocks:
        match kind:
            case "h1" | "h2" | "h3":
                lines.append(f"{'#' * int(kind[1])} {value}\n")
            case "list":
                lines += [*(f"- {item}" for item in value), ""]
            case "table":
                lines.append(markdown(*value))
            case "figure":
                lines.append(f"![figure]({os.path.relpath(str(value), beside)})\n")
            case _:
                lines.append(f"{value}\n")
    return "\n".join(lines).rstrip() + "\n"


def markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown, numbers to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *body)) + "\n"
