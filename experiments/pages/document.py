"""A page as a list of blocks, and two ways to write it: Markdown, and one self-contained HTML file."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from texplainer.datasets.store import in_place

PageBlock = tuple[str, Any]  # ("h1" | "h2" | "h3" | "p" | "list" | "table" | "figure", content)
TableCells = tuple[list[str], list[list[str]]]  # header, body


def write_blocks(blocks: Sequence[PageBlock], path: Path) -> list[Path]:
    """Write `<path>.md` and `<path>.html`."""
    paths = [path.with_name(path.name + suffix) for suffix in (".md", ".html")]
    for one, text in zip(paths, (as_markdown(blocks, path.parent), as_html(blocks)), strict=True):
        with in_place(one) as part:
            part.write_text(text)
    return paths


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


def as_html(blocks: Sequence[PageBlock]) -> str:
    """Write the page as one self-contained HTML file."""
    parts = []
    for kind, value in blocks:
        match kind:
            case "table":
                parts.append(to_html(*value))
            case "list":
                parts.append("<ul>" + "".join(f"<li>{escaped(item)}</li>" for item in value) + "</ul>")
            case "figure":
                svg = Path(str(value)).read_text()
                parts.append(f"<figure>{svg[svg.index('<svg') :]}</figure>")
            case _:
                parts.append(f"<{kind}>{escaped(value)}</{kind}>")
    title = f"<meta charset='utf-8'><title>{blocks[0][1]}</title>"
    body = "\n".join(parts)
    return f"<!doctype html>\n<html lang='en'><head>{title}{STYLE}</head>\n<body>\n{body}\n</body></html>\n"


def escaped(text: str) -> str:
    """Escape a text; the marks of code and of bold text go."""
    return html.escape(text).replace("`", "").replace("**", "")


STYLE = """<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid #e5e7eb; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { border-bottom: 2px solid #9ca3af; }
svg { max-width: 100%; height: auto; }
</style>"""


def markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown, numbers to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *body)) + "\n"


def to_html(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Write the same table in HTML; `**bold**` and `*control*` become elements."""

    def cell(text: str, tag: str = "td") -> str:
        for mark, element in (("**", "b"), ("*", "i")):
            if text.startswith(mark) and text.endswith(mark) and len(text) > 2 * len(mark):
                return f"<{tag}><{element}>{html.escape(text.strip('*'))}</{element}></{tag}>"
        return f"<{tag}>{html.escape(text)}</{tag}>"

    head = "".join(cell(text, "th") for text in header)
    rows = "\n".join(f"<tr>{''.join(cell(text) for text in row)}</tr>" for row in body)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n"
