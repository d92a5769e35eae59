"""Run the Python of tutorials and reference pages while the site is built, and show what it gives.

All blocks of a page run in one namespace, in a folder of their own; what they print, the value of a last
expression and the figures they draw follow them. An error fails the build. Where a page needs a data set that
is neither here nor to be had, its code stands without outputs and a note says so.
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
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
RUN = ("tutorials/", "reference/", "index.md")
NOTE = (
    '\n!!! note "Without its data"\n    This page was built where its data set could not be had; '
    "the outputs are left out. Set `TEXPLAINER_DATA` to the folder that holds it and build again.\n\n"
)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the outputs of every block behind it."""
    source = page.file.src_uri
    if not source.startswith(RUN) or not BLOCK.search(markdown):
        return markdown
    import matplotlib

    matplotlib.use("Agg")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return BLOCK.sub(
                lambda block: block.group(0) + outputs(block.group(1), namespace, source), markdown
            ).replace(os.path.realpath(folder) + os.sep, "")  # a page does not tell where it was built
        except NoDataError:
            return re.sub(r"\n", NOTE, markdown, count=1)


class NoDataError(Exception):
    """A page's data set is not here."""


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
        if "TEXPLAINER_DATA" in str(error) and "TEXPLAINER_DATA" not in os.environ:
            raise NoDataError from error
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
