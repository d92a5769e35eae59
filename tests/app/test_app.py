"""The explorer's answers and its guard, asked over HTTP without a network."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import httpx
import numpy as np
import pytest
from page_subjects import NAMES, fitted
from sklearn.linear_model import LogisticRegression

import texplainer as tx
from texplainer import app
from texplainer.errors import InputError

TOKEN = "the-right-token"


@pytest.fixture(scope="module")
def bench():
    model, rows = fitted()
    explainer = tx.TExplainer(model, rows, feature_names=NAMES, scale="probability")  # with a bend
    other = tx.TExplainer(model, rows, feature_names=NAMES, attribution="shapley")
    made = app.create(explainer, rows[:20], others={"other": other}, token=TOKEN)
    return made, explainer, rows


def send(made, question, content=None, *, method="POST", headers=None, address="http://127.0.0.1:5000"):
    async def go():
        transport = httpx.ASGITransport(app=made, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url=address) as client:
            extra = {"x-token": TOKEN} if headers is None else headers
            return await client.request(method, question, json=content, headers=extra)

    return asyncio.run(go())


def ask(bench, question, **content):
    response = send(bench[0], f"/api/{question}", content)
    assert response.status_code == 200, response.text
    return response.json()


def test_about_says_what_there_is(bench):
    about = ask(bench, "about")
    assert [f["name"] for f in about["features"]] == list(NAMES) and about["rows"] == 20
    assert about["others"] == ["other"] and about["outputs"] == ["1"]
    assert about["features"][0]["low"] == pytest.approx(bench[2][:, 0].min())


def test_a_row_is_explained_as_the_explainer_does(bench):
    _, explainer, rows = bench
    answer, direct = ask(bench, "row", row=3), explainer(rows[3:4])
    np.testing.assert_allclose(answer["predictions"], direct.predictions)
    np.testing.assert_allclose(np.array(answer["attributions"][0]["values"])[:, 0], direct.values[0])
    np.testing.assert_allclose(answer["surrogate"], direct.predictions)  # the row has not moved
    assert answer["attributions"][0]["stability"] == direct.diagnostics.stability[0]


def test_both_questions_are_answered_side_by_side(bench):
    _, explainer, rows = bench
    local, shares = ask(bench, "row", row=3)["attributions"]
    direct = explainer(rows[3:4], attribution="shapley")
    np.testing.assert_allclose(np.array(shares["values"])[:, 0], direct.values[0])
    assert local["question"] == "What would a small change do?"
    assert shares["adds_up"] and shares["axis"] == ["contribution to the probability of class 1"]
    assert shares["relative_change"] is not None and local["relative_change"][0] > 0


def test_what_if_moves_prediction_surrogate_and_attributions(bench):
    _, explainer, rows = bench
    moved = rows[3].copy()
    moved[1] += 0.5
    cells = dict(zip(NAMES, moved.tolist(), strict=True))
    answer, anchor = ask(bench, "explain", cells=cells, row=3), explainer(rows[3:4])
    direct = explainer(moved[None])
    np.testing.assert_allclose(answer["predictions"], direct.predictions)
    np.testing.assert_allclose(np.array(answer["attributions"][0]["values"])[:, 0], direct.values[0])
    np.testing.assert_allclose(answer["surrogate"], anchor.surrogate((moved - rows[3])[None]))


def test_categories_move_the_surrogate_by_their_effect():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    random = np.random.default_rng(1)
    table = pd.DataFrame({"size": random.normal(size=80), "colour": random.choice(["red", "blue"], 80)})
    encode = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
    model = make_pipeline(encode, LogisticRegression()).fit(table, (table["size"] > 0).astype(int))
    made = app.create(tx.TExplainer(model, table), table[:5], token=TOKEN)
    row = send(made, "/api/row", {"row": 0}).json()
    other = {"red": "blue", "blue": "red"}[row["cells"]["colour"]]
    answer = send(made, "/api/explain", {"cells": {**row["cells"], "colour": other}, "row": 0}).json()
    assert answer["surrogate"] == pytest.approx(answer["predictions"])  # one swap alone is known exactly
    assert answer["predictions"] != row["predictions"]
    wrong = send(made, "/api/explain", {"cells": {**row["cells"], "colour": "green"}})
    assert wrong.status_code == 422 and "'green' is not a category of 'colour'" in wrong.json()["message"]


def test_rows_may_hold_categories_that_the_background_lacks():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    random = np.random.default_rng(2)
    colours = pd.CategoricalDtype(["blue", "grey", "red"])
    drawn = pd.Categorical(random.choice(["blue", "red"], 80), dtype=colours)
    table = pd.DataFrame({"size": random.normal(size=80), "colour": drawn})
    worth = {"blue": 1.0, "grey": 2.0, "red": 4.0, "green": 8.0}
    model = lambda t: t["size"] * 3 + t["colour"].astype(str).map(worth)  # noqa: E731
    rows = table[:3].assign(colour=["green", "red", "blue"])
    made = app.create(tx.TExplainer(model, table), rows, token=TOKEN)
    assert send(made, "/api/about", {}).json()["features"][1]["levels"][-1] == "green"
    row = send(made, "/api/row", {"row": 0}).json()
    assert row["cells"]["colour"] == "green"
    assert row["predictions"] == pytest.approx([3 * rows["size"].iloc[0] + 8])
    assert send(made, "/api/find", {"words": "colour = green"}).json()["rows"] == [0]
    for colour in ("red", "grey"):
        answer = send(made, "/api/explain", {"cells": {**row["cells"], "colour": colour}, "row": 0}).json()
        expected = pytest.approx(answer["predictions"]) if colour == "red" else None
        assert answer["surrogate"] == expected  # the background has no grey to swap in


def test_other_explainers_and_stability(bench):
    cells = ask(bench, "row", row=0)["cells"]
    other = ask(bench, "compare", cells=cells, explainer="other")
    assert other["attributions"][0]["name"] == "shapley"
    near = ask(bench, "stability", cells=cells, share=0.05)
    low, values, high = (np.array(near[name]) for name in ("low", "values", "high"))
    assert np.all(low <= high) and values.shape == low.shape == (3, 1)
    assert 0 < near["median"] <= near["worst"]
    assert near == ask(bench, "stability", cells=cells, share=0.05)  # the same changes every time
    wide = ask(bench, "stability", cells=cells, share=0.5)
    assert wide["worst"] > near["worst"]


def test_the_overview_is_a_report_of_the_rows(bench):
    overview = ask(bench, "overview")
    assert overview["rows"] == 20 and overview["kind"] == "explanation"


@pytest.mark.parametrize(
    ("question", "content", "words"),
    [
        ("row", {"row": 99}, "row 99 does not exist; expected a number from 0 to 19"),
        ("row", {"row": "x"}, "row 'x' does not exist"),
        ("explain", {"cells": {"age": "old", "income": 1, "<script>": 1}}, "'old' in 'age' is not a number"),
        ("explain", {"cells": {"age": "1e999", "income": 1, "<script>": 1}}, "not a number"),
        ("explain", {"cells": {"age": 1}}, "the value of 'income' is missing"),
        ("explain", {"cells": [1, 2, 3]}, "does not contain values"),
        (
            "compare",
            {"cells": {}, "explainer": "nobody"},
            "explainer 'nobody' is unknown; expected one of: other",
        ),
        ("stability", {"cells": dict.fromkeys(NAMES, 0), "share": 7}, "expected more than 0"),
    ],
)
def test_a_wrong_value_gets_a_message(bench, question, content, words):
    response = send(bench[0], f"/api/{question}", content)
    assert response.status_code == 422 and words in response.json()["message"]


def test_missing_cells_and_values_out_of_range_are_answered(bench):
    cells = dict.fromkeys(NAMES, 0.0)
    answer = ask(bench, "explain", cells={**cells, "age": 1e6})
    assert "age is outside the data's range" in answer["notes"][0]
    answer = ask(bench, "explain", cells={**cells, "age": ""})
    local = answer["attributions"][0]
    assert local["stability"] == "undefined" and "missing values" in local["reason"]


def test_broken_questions_are_refused_with_a_word(bench):
    async def raw(body, kind="application/json"):
        transport = httpx.ASGITransport(app=bench[0])
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:1") as client:
            return await client.post(
                "/api/row", content=body, headers={"x-token": TOKEN, "content-type": kind}
            )

    for body, kind, words in (
        (b"{", "application/json", "not JSON"),
        (b"[]", "application/json", "expected an object"),
        (b"{}", "text/plain", "expected content-type application/json"),
        (b" " * 1_100_000, "application/json", "larger than"),
    ):
        response = asyncio.run(raw(body, kind))
        assert response.status_code == 422 and words in response.json()["message"]


@pytest.mark.parametrize(
    ("headers", "address", "words"),
    [
        ({}, "http://127.0.0.1:5000", "token is missing or wrong"),
        ({"x-token": "wrong"}, "http://127.0.0.1:5000", "token is missing or wrong"),
        ({"x-token": TOKEN, "origin": "http://evil.example"}, "http://127.0.0.1:5000", "another page"),
        ({"x-token": TOKEN, "origin": "null"}, "http://127.0.0.1:5000", "another page"),
        ({"x-token": TOKEN, "origin": "http://127.0.0.1:81"}, "http://127.0.0.1:5000", "another page"),
        ({"x-token": TOKEN}, "http://evil.example", "on this machine only"),
        ({"x-token": TOKEN}, "http://127.0.0.1.evil.example", "on this machine only"),
    ],
)
def test_the_guard_refuses(bench, headers, address, words):
    for question, method in (("/api/about", "POST"), ("/", "GET"), ("/nothing", "GET")):
        response = send(bench[0], question, {}, method=method, headers=headers, address=address)
        assert response.status_code == 403 and words in response.text


def test_the_page_lets_only_its_own_script_run(bench):
    one, two = (send(bench[0], f"/?token={TOKEN}", method="GET", headers={}) for _ in range(2))
    assert one.status_code == 200 and "default-src 'none'" in one.headers["content-security-policy"]
    assert one.headers["content-security-policy"] != two.headers["content-security-policy"]
    assert one.headers["cache-control"] == "no-store" and one.headers["x-frame-options"] == "DENY"


def test_the_token_is_not_on_the_command_line_of_the_browser(monkeypatch):
    """The browser is given a file that only the user can read, which is gone afterwards."""
    import webbrowser
    from urllib.request import url2pathname

    seen = []

    def interrupt(address):
        page = Path(url2pathname(address.removeprefix("file://")))
        seen.append((address, page, page.read_text(), page.parent.stat().st_mode & 0o077))
        raise KeyboardInterrupt

    monkeypatch.setattr(webbrowser, "open", interrupt)
    told = []
    model, rows = fitted((8,))
    app.serve(model, rows, say=told.append)
    address, page, text, others = seen[0]
    printed = told[0].split()[1]
    assert "token" not in address and printed in text and others == 0 and not page.parent.exists()


def test_tabs_may_ask_at_once(bench):
    _, explainer, rows = bench
    expected = explainer(rows[:20]).values
    found: dict[int, np.ndarray] = {}

    def one(row):
        found[row] = np.array(ask(bench, "row", row=row)["attributions"][0]["values"])[:, 0]

    threads = [threading.Thread(target=one, args=(row,)) for row in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(np.stack([found[row] for row in range(20)]), expected)


def test_the_server_listens_on_loopback_only_and_stops(bench):
    import socket

    with app.running(bench[0]) as address:
        port = httpx.URL(address).port
        assert address.startswith("http://127.0.0.1:") and httpx.get(address).status_code == 200
        own = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
        for elsewhere in (own | {"127.0.0.2"}) - {"127.0.0.1"}:
            with pytest.raises(OSError):
                socket.create_connection((elsewhere, port), timeout=2).close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(address)


def test_serve_ends_in_peace_however_early_it_is_interrupted():
    """The page answers before the call that tells its address returns."""
    model, rows = fitted()
    said = []

    def say(text):
        said.append(text)
        if len(said) == 1:
            raise KeyboardInterrupt

    app.serve(model, rows, open_browser=False, say=say)
    assert said[0].startswith("Open http://127.0.0.1:") and said[1:] == ["Stopped."]


def test_serve_says_where_and_an_explainer_that_does_not_fit_is_a_message(bench):
    from texplainer.app import _others

    model, rows = fitted()
    others = _others(model, rows, {})
    assert "T-Explainer, gradient" in others and "T-Explainer, slope" not in others
    with pytest.raises(InputError, match="shap cannot explain"):
        app._other("shap", object(), rows, {})


def test_images_are_explored_as_pictures():
    images = np.random.default_rng(0).random((2, 6, 6))
    explainer = tx.ImageExplainer(lambda x: x.mean(axis=(1, 2)), segments=(2, 2), baseline=0.0)
    made = app.create(explainer, images, title="Two images", token=TOKEN)
    page = send(made, "/", method="GET")
    assert page.status_code == 200 and "Two images" in page.text and "data:image/png;base64," in page.text
    policy = page.headers["content-security-policy"]
    assert "nonce-" in policy and page.text.count("<script") == page.text.count("<script nonce=")
    assert send(made, "/", method="GET", headers={}).status_code == 403
    with pytest.raises(InputError, match="shape"):
        app.create(explainer, images[:0], token=TOKEN)
