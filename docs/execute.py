"""Run the Python of pages while the site is built and show its outputs; copy figures of results pages.

`python docs/execute.py` renews the figures of docs/compare.md; a test fails if one is out of date.

All blocks of a page run in one namespace, in a folder of their own; what they print, the value of a last
expression and the figures they draw follow them. An error fails the build, also a missing library or data set.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import html
import io
import os
import re
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
#: pages whose Python runs: folders, and pages of the user guide
RUN = ("tutorials/", "reference/", "index.md", "from_shap.md", "guide.md", "models.md", "tables.md")
RUN += ("stability.md", "reasons.md", "categorical.md", "interactions.md")
#: a figure of a results page: <!-- page \| row \| column -->6.0<!-- end -->
FIGURE = re.compile(r"<!-- (.+?) -->(.*?)<!-- end -->")
RESULTS = Path(__file__).parent / "results"
COMPARE = Path(__file__).parent / "compare.md"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the outputs of every block behind it."""
    source = page.file.src_uri
    markdown = FIGURE.sub(r"\2", markdown)
    if not source.startswith(RUN) or not BLOCK.search(markdown):
        return markdown
    import matplotlib

    matplotlib.use("Agg")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shown = BLOCK.sub(lambda block: block.group(0) + outputs(block.group(1), namespace, source), markdown)
    return shown.replace(os.path.realpath(folder) + os.sep, "")  # a page does not tell where it was built


def with_figures(markdown: str) -> str:
    """The page with every figure as the results pages have it now."""
    return FIGURE.sub(lambda one: f"<!-- {one.group(1)} -->{figure(one.group(1))}<!-- end -->", markdown)


def figure(place: str) -> str:
    """The cell of the first table that has the row and the column."""
    name, row, column = (part.strip(" \\") for part in place.split(r"\|"))
    heads: list[str] = []
    for line in (RESULTS / f"{name}.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            heads = []
        elif not heads:
            heads = cells
        elif cells[0] == row and column in heads:
            return cells[heads.index(column)]
    raise SystemExit(f"docs/results/{name}.md does not have {place!r}, which docs/compare.md shows")


def outputs(code: str, namespace: dict[str, Any], source: str) -> str:
    """Run a block; give what it printed, its last value and its figures as Markdown.

    A block that begins with the comment "not run" is only shown.
    """
    if code.startswith("# not run"):
        return ""
    import matplotlib.pyplot as plt

    printed = io.StringIO()
    tree = ast.parse(code, source)
    last = (
        ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    )
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(tree, source, "exec"), namespace)
            value = None if last is None else eval(compile(last, source, "eval"), namespace)
    except Exception as error:
        raise SystemExit(f"{source}: a block failed\n{code}\n{traceback.format_exc()}") from error
    shown = [_text(printed.getvalue())] if printed.getvalue().strip() else []
    shown += [_picture(plt.figure(number)) for number in plt.get_fignums()]
    if not plt.get_fignums() and value is not None:
        shown.append(_value(value))
    plt.close("all")
    return "".join(shown)


def _text(text: str) -> str:
    return f"\n```text\n{text.rstrip()}\n```\n"


def _value(value: Any) -> str:
    if hasattr(value, "to_html"):  # a table
        return f'\n<div class="table">{value.to_html(border=0, max_rows=12)}</div>\n\n'
    return _text(repr(value))


def _picture(figure: Any) -> str:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110, bbox_inches="tight")
    words = html.escape(figure.axes[0].get_xlabel() if figure.axes else "", quote=True)
    data = base64.b64encode(file.getvalue()).decode()
    return f'\n<img alt="{words}" src="data:image/png;base64,{data}">\n\n'


if __name__ == "__main__":
    COMPARE.write_text(with_figures(COMPARE.read_text(encoding="utf-8")), encoding="utf-8")
