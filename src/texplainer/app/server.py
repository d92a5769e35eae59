"""The explorer's web side: one page, a handful of questions, a guard before them all.

The server listens on the loopback address only. Every request must carry the token that was printed
when it started, name this machine as its host (a foreign name that resolves here is refused: DNS
rebinding) and come from the page itself (a foreign Origin is refused). Nothing is logged or stored.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from texplainer import report
from texplainer.app.workbench import Workbench
from texplainer.errors import InputError, ModelError

LOOPBACK = "127.0.0.1"
HOSTS = ("127.0.0.1", "localhost")
MOST_BYTES = 1_000_000
QUESTIONS = ("about", "row", "explain", "compare", "stability", "overview")
SCRIPTS = ("dom.js", "charts.js", "clouds.js", "tables.js")


def create(workbench: Workbench, token: str) -> Starlette:
    """The web application of one workbench."""
    routes = [Route("/", _page)]
    routes += [
        Route(f"/api/{name}", _answer(getattr(workbench, name)), methods=["POST"]) for name in QUESTIONS
    ]
    app = Starlette(routes=routes)
    app.add_middleware(Guard, token=token)  # type: ignore[arg-type]
    app.state.token = token
    return app


class Guard:
    """Refuses whatever does not come from the page with the right token on this very machine."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer 403 with the reason."""
        if scope["type"] == "http":
            refusal = self._refusal(Request(scope))
            if refusal:
                await PlainTextResponse(refusal, 403, HEADERS)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _refusal(self, request: Request) -> str:
        host = request.headers.get("host", "")
        if urlsplit(f"//{host}").hostname not in HOSTS:
            return "Refused: this address is served to the machine itself only."
        origin = request.headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return "Refused: the request comes from another page."
        given = request.headers.get("x-token") or request.query_params.get("token", "")
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return "Refused: the token is missing or wrong. Open the address that was printed at the start."
        return ""


HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


async def _page(request: Request) -> Response:
    """The page, whose own script alone may run."""
    nonce = secrets.token_urlsafe(16)
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return HTMLResponse(page(nonce), headers=HEADERS | {"Content-Security-Policy": policy})


def page(nonce: str) -> str:
    """The explorer's HTML: its own files, and the report's charts and tables."""
    own = ("sections.js",)
    scripts = [*(report.asset(n) for n in (*SCRIPTS, *own)), report.asset("app.js", "texplainer.app")]
    return report.fill(
        report.asset("index.html", "texplainer.app"),
        nonce=nonce,
        style=report.asset("style.css") + report.asset("app.css", "texplainer.app"),
        script="\n".join(scripts),
    )


def _answer(ask: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Request], Any]:
    """A question as an endpoint: JSON in, JSON out; what a person got wrong comes back as a message."""

    async def endpoint(request: Request) -> Response:
        try:
            question = await _read(request)
            return JSONResponse(await run_in_threadpool(ask, question), headers=HEADERS)
        except (InputError, ModelError) as error:
            return JSONResponse({"message": str(error)}, 422, HEADERS)

    return endpoint


async def _read(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").split(";")[0] != "application/json":
        raise InputError("the question is no JSON; expected content-type application/json.")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise InputError(f"the question is larger than {MOST_BYTES:,} bytes.")
    try:
        question = json.loads(body or b"{}")
    except ValueError as error:
        raise InputError(f"the question is no JSON ({error}).") from None
    if not isinstance(question, dict):
        raise InputError(f"the question is a {type(question).__name__}; expected an object.")
    return question


@contextmanager
def running(app: Starlette, port: int = 0) -> Iterator[str]:
    """Serve on the loopback address while the block runs; gives the address to open."""
    import uvicorn

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((LOOPBACK, port))
    listener.listen()  # before the address is told, so that the first visitor is not refused
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{listener.getsockname()[1]}/?token={app.state.token}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()
