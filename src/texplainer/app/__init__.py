"""The explorer: a local page to try a model's explanations, row by row and what-if by what-if.

`serve(model, data)` starts it; nothing leaves the machine.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

from texplainer.attributions.table import GENERAL, attribution_of
from texplainer.errors import InputError
from texplainer.explainer import TExplainer
from texplainer.images.image_explainer import ImageExplainer
from texplainer.types import Explain

try:
    import starlette as _starlette  # noqa: F401  # an extra: say so at once
    import uvicorn as _uvicorn  # noqa: F401
except ModuleNotFoundError as _error:
    raise ImportError(
        f"the explorer needs {_error.name}, which is not installed. Install it with: "
        "pip install 'texplainer[app]'"
    ) from _error

from texplainer.app import pictures
from texplainer.app.server import running
from texplainer.app.server import web_application as _create
from texplainer.app.workbench import Workbench

__all__ = ["create", "running", "serve"]


def create(
    explainer: TExplainer | ImageExplainer,
    data: Any,
    *,
    others: Mapping[str, Explain] | None = None,
    title: str = "",
    token: str | None = None,
) -> Any:
    """Return the explorer as a Starlette application, for your own server.

    Parameters
    ----------
    explainer
        The explainer; for images, the page shows each image with its segments.
    data
        The rows to choose from, a table or images.
    others
        Further explainers by name, to compare with.
    title
        The page's heading.
    token
        The token that every request must contain; by default a random one, in `app.state.token`.
    """
    token = token or secrets.token_urlsafe(24)
    if isinstance(explainer, ImageExplainer):
        return pictures.picture_application(explainer, data, title, token)
    built: dict[str, Callable[[], Explain]] = {}
    for name, explain in (others or {}).items():
        built[name] = lambda explain=explain: explain
    bench = Workbench(explainer, data, built, title)
    if not len(bench.rows):
        raise InputError("the data has 0 rows; expected at least 1 to explore.")
    return _create(bench, token)


def serve(
    model: Any,
    data: Any,
    *,
    background: Any = None,
    port: int = 0,
    open_browser: bool = True,
    title: str = "",
    say: Callable[[str], Any] = print,
    **options: Any,
) -> None:
    """Explore a model in the browser until interrupted.

    Parameters
    ----------
    model
        Any model TExplainer takes, or an ImageExplainer.
    data
        The rows to explore, or the images.
    background
        Rows of the training data; `data` by default.
    port
        The port on the loopback address; 0 chooses a free one.
    open_browser
        Whether to open the page at once.
    title
        The page's heading.
    say
        Called with the address to open.
    **options
        Passed on to TExplainer.
    """
    token = secrets.token_urlsafe(24)
    if isinstance(model, ImageExplainer):
        made = pictures.picture_application(model, data, title, token)
    else:
        rows = data if background is None else background
        explainer = TExplainer(model, rows, **options)
        made = _create(Workbench(explainer, data, _others(model, rows, options), title), token)
    with running(made, port) as address, TemporaryDirectory(prefix="texplainer-") as folder:
        try:  # from here on: whoever reads the address may interrupt before the call that tells it returns
            say(f"Open {address} (this machine only; stop with Ctrl-C)")
            if open_browser:
                _open_in_browser(address, Path(folder) / "open.html")
            Event().wait()
        except KeyboardInterrupt:
            say("Stopped.")


def _open_in_browser(address: str, page: Path) -> None:
    """Open an address by a private file: other users of the machine can read a browser's command line."""
    import webbrowser

    page.write_text(f'<meta http-equiv="refresh" content="0; url={address}">', encoding="utf-8")
    webbrowser.open(page.as_uri())


def _others(model: Any, background: Any, options: Mapping[str, Any]) -> dict[str, Callable[[], Explain]]:
    """T-Explainer's other attributions, and SHAP and LIME where they are installed."""
    own = attribution_of(options.get("attribution", "auto"), options.get("step", "auto"))
    found: dict[str, Callable[[], Explain]] = {}
    for attribution in GENERAL:
        if attribution != own:
            made = {**options, "attribution": attribution}
            found[f"T-Explainer, {attribution}"] = lambda made=made: TExplainer(model, background, **made)
    for name, label in (("shap", "SHAP"), ("lime", "LIME")):
        if find_spec(name) is not None:
            found[label] = lambda name=name: _other(name, model, background, options)
    return found


def _other(name: str, model: Any, background: Any, options: Mapping[str, Any]) -> Explain:
    from texplainer import explainers

    choice = {key: options[key] for key in ("output", "scale") if key in options}
    try:
        return explainers.EXPLAINERS[name](model, background, **choice)
    except Exception as error:  # another explainer that does not fit is a message, not a broken page
        raise InputError(f"{name} cannot explain this model: {error}") from error
