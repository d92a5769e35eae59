"""The explorer under fire: no request ends in a 500, no connection stays for nothing, crowds are answered."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from page_subjects import NAMES, fitted

import texplainer as tx
from texplainer import app
from texplainer.app import server

TOKEN = "the-right-token"
CELLS = dict.fromkeys(NAMES, 0.5)
GOOD = {"host": "127.0.0.1:5000", "x-token": TOKEN, "content-type": "application/json"}

#: question, headers (changes), body
REQUESTS: dict[str, tuple[str, dict[str, str], Any]] = {
    "a lone bracket as host": ("about", {"host": "["}, {}),
    "an address that never closes": ("about", {"host": "[::1"}, {}),
    "no host": ("about", {"host": ""}, {}),
    "a foreign host": ("about", {"host": "evil.example"}, {}),
    "an origin of brackets": ("about", {"origin": "[[["}, {}),
    "another token": ("about", {"x-token": "\u00ff\u00fe"}, {}),
    "no JSON": ("about", {}, b"{"),
    "bytes that are no text": ("about", {}, b"\xff\xfe\x00"),
    "nested 100,000 deep": ("about", {}, b"[" * 100_000 + b"]" * 100_000),
    "objects nested deep": ("explain", {}, b'{"cells":' * 20_000 + b"1" + b"}" * 20_000),
    "a list": ("explain", {}, []),
    "a number": ("explain", {}, 3),
    "null": ("explain", {}, None),
    "no cells": ("explain", {}, {}),
    "cells of another kind": ("explain", {}, {"cells": [1, 2]}),
    "a missing cell": ("explain", {}, {"cells": {}}),
    "a number of 400 digits": ("explain", {}, {"cells": {**CELLS, NAMES[0]: 10**400}}),
    "a number of 5,000 digits": ("explain", {}, b'{"cells": {"a": 1' + b"0" * 5000 + b"}}"),
    "1e999": ("explain", {}, b'{"cells": {"%s": 1e999}}' % NAMES[0].encode()),
    "not a number": ("explain", {}, b'{"cells": {"%s": NaN}}' % NAMES[0].encode()),
    "a list as a cell": ("explain", {}, {"cells": {**CELLS, NAMES[0]: [1]}}),
    "an object as a cell": ("explain", {}, {"cells": {**CELLS, NAMES[0]: {"a": 1}}}),
    "a truth as a cell": ("explain", {}, {"cells": {**CELLS, NAMES[0]: True}}),
    "a text as a cell": ("explain", {}, {"cells": {**CELLS, NAMES[0]: "<script>alert(1)</script>"}}),
    "a huge cell": ("explain", {}, {"cells": {**CELLS, NAMES[0]: 1e308}}),
    "a row of another kind": ("row", {}, {"row": "x"}),
    "a row as a list": ("row", {}, {"row": [0]}),
    "a row as a fraction": ("row", {}, {"row": 1.5}),
    "a row below zero": ("row", {}, {"row": -1}),
    "a row of 400 digits": ("row", {}, {"row": 10**400}),
    "a row to explain from of another kind": ("explain", {}, {"cells": CELLS, "row": {}}),
    "an explainer of another kind": ("compare", {}, {"cells": CELLS, "explainer": ["x"]}),
    "an unknown explainer": ("compare", {}, {"cells": CELLS, "explainer": "x"}),
    "a share of another kind": ("stability", {}, {"cells": CELLS, "share": "x"}),
    "a share of 400 digits": ("stability", {}, {"cells": CELLS, "share": 10**400}),
    "a share as a list": ("stability", {}, {"cells": CELLS, "share": [1]}),
    "another content": ("about", {"content-type": "text/html"}, {}),
    "too much": ("about", {}, b'{"a": "' + b"x" * 2_000_000 + b'"}'),
}


@pytest.fixture(scope="module")
def made() -> Any:
    model, rows = fitted()
    explainer = tx.TExplainer(model, rows, feature_names=NAMES)
    return app.create(explainer, rows[:20], others={"other": explainer}, token=TOKEN)


def send(made: Any, question: str, headers: dict[str, str], body: Any) -> httpx.Response:
    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app=made, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000") as client:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            raw = [(k.encode(), v.encode("latin-1")) for k, v in {**GOOD, **headers}.items()]
            return await client.post(f"/api/{question}", content=content, headers=raw)

    return asyncio.run(go())


@pytest.mark.parametrize("name", REQUESTS)
def test_a_bad_request_is_told_so(made: Any, name: str) -> None:
    response = send(made, *REQUESTS[name])
    assert response.status_code in (200, 403, 422), response.text
    assert response.status_code != 200 or name in ("a huge cell",)
    assert len(response.text) < 2000


def test_a_bug_is_an_answer_too(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tx.TExplainer, "__call__", lambda *_, **__: 1 / 0)
    response = send(made, "explain", {}, {"cells": CELLS})
    assert response.status_code == 422 and "ZeroDivisionError" in response.json()["message"]


@pytest.fixture
def address(made: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.5)
    with server.running(made) as found:
        yield urlsplit(found)


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"POST /api/about HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        b"POST /api/about HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Token: the-right-token\r\n"
        b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_a_connection_that_asks_nothing_whole_is_closed(address: Any, start: bytes) -> None:
    with socket.create_connection((address.hostname, address.port), timeout=15) as connection:
        connection.sendall(start)
        answers = list(iter(lambda: connection.recv(4096), b""))  # ends when the server closes, or times out
        assert not any(b" 200 " in answer for answer in answers)


@pytest.mark.parametrize("stay", [0, 100])
def test_requests_whose_client_has_left_are_not_computed(stay: int) -> None:
    """300 questions to a model that does not answer: most clients leave, the others and the next are answered."""
    computed: list[int] = []
    free = threading.Event()

    def slow(question: dict[str, Any]) -> dict[str, Any]:
        computed.append(question["number"])
        free.wait(60)
        return question

    made = server.guarded([server.Route("/api/slow", server._answer(slow), methods=["POST"])], TOKEN)
    headers = [(name.encode(), value.encode()) for name, value in GOOD.items()]
    scope = {"type": "http", "method": "POST", "path": "/api/slow", "query_string": b"", "headers": headers}

    async def go() -> list[int]:
        left, answered = asyncio.Event(), []

        async def ask(number: int, leaves: bool) -> None:
            body = json.dumps({"number": number}).encode()
            messages = [{"type": "http.request", "body": body, "more_body": False}]

            async def receive() -> Any:
                if messages:
                    return messages.pop()
                await (left.wait() if leaves else asyncio.Future())
                return {"type": "http.disconnect"}

            async def send(message: Any) -> None:
                if message["type"] == "http.response.body":
                    answered.extend([json.loads(message["body"])["number"]] if not leaves else [])

            await made(dict(scope), receive, send)

        patient = [asyncio.create_task(ask(number, False)) for number in range(stay)]
        crowd = [asyncio.create_task(ask(number, True)) for number in range(stay, 300)]
        while not computed:
            await asyncio.sleep(0)
        left.set()
        try:
            await asyncio.wait_for(asyncio.gather(*crowd), 30)
        finally:
            free.set()
        await asyncio.wait_for(asyncio.gather(*patient, ask(300, False)), 30)
        return answered

    assert sorted(asyncio.run(go())) == [*range(stay), 300]
    assert len(computed) <= server.TURNS + stay + 1


@pytest.mark.filterwarnings("ignore")  # filters belong to the process: threads change each other's
def test_a_crowd_is_answered(address: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE_SECONDS", 10.0)  # as served: on a busy machine a crowd sends slowly
    random = np.random.default_rng(0)

    async def go() -> list[int]:
        limits = httpx.Limits(max_connections=200)
        base = f"http://{address.hostname}:{address.port}"
        async with httpx.AsyncClient(base_url=base, limits=limits, timeout=60) as client:
            bodies = [
                {"cells": {name: float(random.normal()) for name in NAMES}, "row": 0} for _ in range(200)
            ]
            tasks = [client.post("/api/explain", json=b, headers={"x-token": TOKEN}) for b in bodies]
            return [response.status_code for response in await asyncio.gather(*tasks)]

    assert asyncio.run(go()) == [200] * 200
