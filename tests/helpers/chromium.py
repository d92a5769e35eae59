"""A real headless Chromium, driven over the DevTools protocol through a pipe: no driver, no extra package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import threading
import time
from typing import Any

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
    "--remote-debugging-pipe",
)


def found() -> str | None:
    """Where Chromium is, if it is installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One browser process; `page()` opens a tab."""

    def __init__(self, profile: str) -> None:
        read_commands, self._out = os.pipe()
        self._in, write_answers = os.pipe()

        def wire() -> None:  # Chromium reads commands on descriptor 3 and answers on 4
            high = [os.dup(fd) if fd in (3, 4) else fd for fd in (read_commands, write_answers)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [str(found()), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            close_fds=False,
            preexec_fn=wire,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_answers)
        self._count, self._answers, self.events = 0, {}, []
        self._arrived = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        buffer = b""
        while chunk := os.read(self._in, 1 << 16):
            *messages, buffer = (buffer + chunk).split(b"\0")
            with self._arrived:
                for message in map(json.loads, messages):
                    if "id" in message:
                        self._answers[message["id"]] = message
                    else:
                        self.events.append(message)
                self._arrived.notify_all()

    def send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._count += 1
        order = {"id": self._count, "method": method, "params": params}
        if session:
            order["sessionId"] = session
        number = self._count
        os.write(self._out, json.dumps(order).encode() + b"\0")
        with self._arrived:
            if not self._arrived.wait_for(lambda: number in self._answers, timeout=60):
                raise TimeoutError(f"Chromium did not answer {method}")
            answer = self._answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def page(self) -> Page:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session)

    def close(self) -> None:
        try:
            self.send("Browser.close")
        except (OSError, TimeoutError):
            self.process.terminate()
        self.process.wait(timeout=20)
        self._reader.join(timeout=5)
        os.close(self._out)
        os.close(self._in)


class Page:
    """One tab, with everything it asked of the network and complained about."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.send(method, self.session, **params)

    def open(self, address: str, ready: str) -> None:
        """Go to an address and wait until its page, not the one before, is ready."""
        self.run("window.left = true")
        self.send("Page.navigate", url=address)
        self.until(f"!window.left && ({ready})")

    def run(self, script: str) -> Any:
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"]["exception"].get("description", script))
        return answer["result"].get("value")

    def until(self, script: str, seconds: float = 40) -> Any:
        """Wait until a script gives something true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                value = self.run(f"(() => {{ try {{ return {script}; }} catch {{ return null; }} }})()")
            except RuntimeError:  # the page was left while it was asked
                value = None
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"never came true: {script}\npage: {self.run('document.body.innerText')[:800]}")

    def hover(self, selector: str) -> None:
        box = self.run(
            f"(() => {{ const n = document.querySelector({json.dumps(selector)}); n.scrollIntoView({{block: 'center'}});"
            " const b = n.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])

    def click(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def _heard(self, method: str) -> list[dict[str, Any]]:
        events = [e for e in self.browser.events if e.get("sessionId") == self.session]
        return [e["params"] for e in events if e["method"] == method]

    def requests(self) -> list[str]:
        """Addresses asked for, data addresses aside."""
        sent = [p["request"]["url"] for p in self._heard("Network.requestWillBeSent")]
        return [url for url in sent if not url.startswith("data:")]

    def complaints(self) -> list[str]:
        """Errors and warnings in the console, and uncaught exceptions."""
        thrown = [str(p["exceptionDetails"]) for p in self._heard("Runtime.exceptionThrown")]
        logged = [p["entry"]["text"] for p in self._heard("Log.entryAdded") if p["entry"]["level"] != "info"]
        said = [
            str(p["args"])
            for p in self._heard("Runtime.consoleAPICalled")
            if p["type"] in ("error", "warning")
        ]
        return thrown + logged + said

    def media(self, **features: str) -> None:
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.send("Emulation.setEmulatedMedia", features=wanted)

    def picture(self, path: Any) -> None:
        shot = self.send("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot))
