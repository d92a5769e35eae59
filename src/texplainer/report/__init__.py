"""Explanations and evaluations as one self-contained HTML page.

The page holds its numbers as JSON and draws them itself: no server, no network, no other file. Names and data
are untrusted text; they enter the page inside escaped JSON and reach the screen only as text
nodes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from texplainer.errors import InputError
from texplainer.files.paths import as_path
from texplainer.report import payloads
from texplainer.support.messages import describe

#: script files, in the order in which they need each other
SCRIPTS = (
    "dom.js",
    "charts.js",
    "attributions.js",
    "clouds.js",
    "tables.js",
    "row.js",
    "sections.js",
    "images.js",
    "evaluation.js",
    "report.js",
)


def write(subject: Any, path: Any, *, title: str = "", pictures: Mapping[str, Any] | None = None) -> Path:
    """Write a report to `path` and return the path.

    Parameters
    ----------
    subject
        An Explanation or an Evaluation, or several by name: `{"3H-NN on 4-FT": explanation}`.
    path
        The HTML file to write.
    title
        The page's heading.
    pictures
        Additional matplotlib figures by caption.
    """
    target = as_path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page(subject, title=title, pictures=pictures), encoding="utf-8")
    return target.resolve()


def page(subject: Any, *, title: str = "", pictures: Mapping[str, Any] | None = None) -> str:
    """The report as HTML text."""
    parts = subject if isinstance(subject, Mapping) else {"": subject}
    content = {
        "title": title or "Explanation of the model's predictions",
        "parts": [_payload(part) | {"name": str(name)} for name, part in parts.items()],
        "pictures": [{"caption": str(c), "svg": _svg(figure)} for c, figure in (pictures or {}).items()],
    }
    return fill_places(
        asset("page.html"),
        title=escape(content["title"]),
        style=asset("style.css") + asset("report.css"),
        content=embed(content),
        script="\n".join(asset(name) for name in SCRIPTS),
    )


def fill_places(template: str, **places: str) -> str:
    """Fill {{places}} in one pass: what is filled in is not read again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda place: places[place[1]], template)


def asset(name: str, package: str = "texplainer.report") -> str:
    """One of a page's own files."""
    return files(package).joinpath("assets", name).read_text(encoding="utf-8")


def embed(content: Any) -> str:
    """Return JSON that cannot close the surrounding script element."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    for character, escaped in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(character, escaped)
    return text


def _payload(part: Any) -> dict[str, Any]:
    if "segments" in getattr(part, "arrays", ()):
        return payloads.images_payload(part)
    if hasattr(part, "arrays"):
        return payloads.explanation_payload(part)
    if not hasattr(part, "per_row"):
        raise InputError(
            f"report got {describe(part)}; expected an Explanation or an Evaluation, or several by name. "
            "Pass what explainer(X) or texplainer.evaluate returns."
        )
    return payloads.evaluation_payload(part)


def _svg(figure: Any) -> str:
    """A matplotlib figure as SVG in a data address, so that nothing in it can run."""
    import base64
    from io import BytesIO

    buffer = BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
