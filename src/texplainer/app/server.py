"""The explorer's web side: one page, a handful of questions, a guard before them all.

The server listens on the loopback address only. Every request must carry the token that was printed when it
started, name this machine as its host (a foreign name that resolves here is refused: DNS rebinding) and come
from the page itself (a foreign Origin is refused). Nothing is logged or stored. The page keeps the token for
its tab and removes it from the address. A request whose client has left is dropped before it is computed.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from texplainer import report
from texplainer.app.workbench import Workbench
from texplainer.errors import InputError, ModelError

LOOPBACK = "127.0.0.1"
HOSTS = ("127.0.0.1", "localhost")
MOST_BYTES = 1_000_000
IDLE_SECONDS = 10.0  # after which a connection that asks nothing is looked at, and closed the next time
TURNS = 8  # questions that are computed at once; the others wait, and are dropped if their client leaves
#: keeps the token for reloads of this tab, out of the address and its history
KEEP_TOKEN = """<script>{
  const token = new URLSearchParams(location.search).get("token");
  if (token) { sessionStorage.setItem("token", token); history.replaceState(null, "", location.pathname); }
}</script>"""
#: a page that was loaded again asks with the token of its tab
ASK_AGAIN = """<script>{
  const token = sessionStorage.getItem("token");
  if (token) location.replace("/?token=" + encodeURIComponent(token));
}</script>"""
QUESTIONS = ("about", "row", "find", "explain", "curve", "recourse", "compare", "stability", "overview")
SCRIPTS = ("dom.js", "charts.js", "attributions.js", "clouds.js", "tables.js", "row.js")


def web_application(workbench: Workbench, token: str) -> Starlette:
    """The web application of one workbench."""
    routes = [Route("/", _page)]
    routes += [
        Route(f"/api/{name}", _answer(getattr(workbench, name)), methods=["POST"]) for name in QUESTIONS
    ]
    return guarded(routes, token)


def guarded(routes: list[Route], token: str) -> Starlette:
    """Return an application that checks every request."""
    app = Starlette(routes=routes)
    app.add_middleware(Guard, token=token)  # type: ignore[arg-type]
    app.state.token = token
    return app


NO_TOKEN = "Refused: the token is missing or wrong. Open the address that was printed at startup."


class Guard:
    """Rejects requests that do not come from the page, on this machine, with the right token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept a request, or respond with 403 and the reason."""
        if scope["type"] == "http":
            request = Request(scope)
            refusal = self._refusal(request)
            if refusal:
                again = refusal == NO_TOKEN and request.url.path == "/" and not request.url.query
                answer = (
                    answer_page(ASK_AGAIN + refusal, 403)
                    if again
                    else PlainTextResponse(refusal, 403, HEADERS)
                )
                await answer(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _refusal(self, request: Request) -> str:
        host = request.headers.get("host", "")
        if _host_name(host) not in HOSTS:
            return "Refused: this address is available on this machine only."
        origin = request.headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return "Refused: the request comes from another page."
        given = request.headers.get("x-token") or request.query_params.get("token", "")
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return NO_TOKEN
        return ""


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:  # such as a lone bracket
        return None


HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


async def _page(request: Request) -> Response:
    return answer_page(explorer_page())


def answer_page(html: str, status: int = 200) -> Response:
    """Return a page that may run only its own scripts; all other text is escaped."""
    nonce = secrets.token_urlsafe(16)
    html = html.replace("<head>", f"<head>{KEEP_TOKEN}", 1)
    html = html.replace("<script", f'<script nonce="{nonce}"')
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return HTMLResponse(html, status, HEADERS | {"Content-Security-Policy": policy})


def explorer_page() -> str:
    """The explorer's HTML: its own files, and the report's charts and tables."""
    own = ("sections.js",)
    scripts = [report.asset(name) for name in (*SCRIPTS, *own)]
    scripts += [report.asset(name, str(__package__)) for name in ("panels.js", "app.js")]
    return report.fill_places(
        report.asset("index.html", str(__package__)),
        style=report.asset("style.css") + report.asset("app.css", str(__package__)),
        script="\n".join(scripts),
    )


def _answer(ask: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Request], Any]:
    """A question as an endpoint: JSON in, JSON out; what a person got wrong comes back as a message."""

    async def endpoint(request: Request) -> Response:
        try:
            question = await _read(request)
            answer = asyncio.ensure_future(_in_turn(ask, question))
            left = asyncio.ensure_future(_left(request))
            await asyncio.wait({answer, left}, return_when=asyncio.FIRST_COMPLETED)
            left.cancel()
            if not answer.done():
                answer.cancel()
                return Response(status_code=400)
            return JSONResponse(answer.result(), headers=HEADERS)
        except (InputError, ModelError) as error:
            return JSONResponse({"message": str(error)}, 422, HEADERS)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # whatever was asked, the page gets an answer
            words = f"the request failed ({type(error).__name__}: {error})"[:500]
            return JSONResponse({"message": words}, 422, HEADERS)

    return endpoint


_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def _in_turn(
    ask: Callable[[dict[str, Any]], dict[str, Any]], question: dict[str, Any]
) -> dict[str, Any]:
    """Compute an answer in a thread; while it waits for its turn it can be cancelled."""
    turns = _TURNS.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(TURNS))
    await turns.acquire()
    work = asyncio.ensure_future(run_in_threadpool(ask, question))

    def end(done: asyncio.Future[Any]) -> None:
        turns.release()
        if not done.cancelled():
            done.exception()  # of an answer that nobody waits for

    work.add_done_callback(end)
    return await asyncio.shield(work)  # a thread cannot be stopped: its turn ends when it does


async def _left(request: Request) -> None:
    """Return when the client closes its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _read(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").split(";")[0] != "application/json":
        raise InputError("the request is not JSON; expected content-type application/json.")
    body = b""
    try:
        async with asyncio.timeout(IDLE_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise InputError(f"the request is larger than {MOST_BYTES:,} bytes.")
    except TimeoutError:
        raise InputError(f"the request did not arrive within {IDLE_SECONDS:g} s.") from None
    try:
        question = json.loads(body or b"{}")
    except RecursionError:
        raise InputError("the request is nested too deeply.") from None
    except ValueError as error:
        raise InputError(f"the request is not JSON ({error}).") from None
    if not isinstance(question, dict):
        raise InputError(f"the request is a {type(question).__name__}; expected an object.")
    return question


class ImpatientProtocol(H11Protocol):
    """An HTTP server that closes connections without a complete request."""

    def connection_made(self, transport: Any) -> None:
        """Look at the connection from time to time."""
        super().connection_made(transport)
        self._seen: Any = None
        self.loop.call_later(IDLE_SECONDS, self._look)

    def _look(self) -> None:
        if self.transport.is_closing():
            return
        busy = self.cycle is not None and not self.cycle.response_complete
        if not busy and self.cycle is self._seen:
            self.transport.close()
            return
        self._seen = self.cycle
        self.loop.call_later(IDLE_SECONDS, self._look)


@contextmanager
def running(app: Starlette, port: int = 0) -> Iterator[str]:
    """Serve on the loopback address while the block runs; gives the address to open."""
    import uvicorn

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((LOOPBACK, port))
    listener.listen()  # before the address is told, so that the first visitor is not refused
    config = uvicorn.Config(
        app, http=ImpatientProtocol, ws="none", log_level="critical", access_log=False, lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{listener.getsockname()[1]}/?token={app.state.token}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()
