"""A browser for tests of pages: Chromium without a window, driven over a pipe by the DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--remote-debugging-pipe",
)  # fmt: skip
START = "import os, sys; [os.dup2(int(sys.argv[n]), n + 2) for n in (1, 2)]; os.execv(sys.argv[3], sys.argv[3:])"
"""What becomes the browser, with its two pipes at the descriptors 3 and 4."""
PATIENCE = 60.0
"""Seconds that an answer may take."""


def found() -> str | None:
    """The browser's program, where there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """A page at some width, and what it had to say: errors of its console, and addresses that it asked for."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.errors: list[str] = []
        self.requests: list[str] = []

    def ask(self, method: str, **arguments: Any) -> dict[str, Any]:
        return self._browser.ask(method, self._session, **arguments)

    def open(self, path: Path, width: int, *, dark: bool = False) -> None:
        """Show a file in a window of that width, and wait until all of it is there."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=path.as_uri())
        self._browser.wait_for("Page.loadEventFired", self._session)
        self.value("new Promise(done => requestAnimationFrame(() => done(1)))")

    def value(self, expression: str) -> Any:
        """What an expression is worth in the page."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def picture(self, path: Path) -> None:
        """Write all of the page as a picture."""
        shown = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shown["data"]))

    def hear(self, message: dict[str, Any]) -> None:
        """Take note of what the page does by itself."""
        told = message["params"]
        match message["method"]:
            case "Runtime.exceptionThrown":
                self.errors.append(json.dumps(told["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self.errors.append(json.dumps(told["args"]))
            case "Log.entryAdded":
                self.errors.append(told["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])
            case _:
                pass


class Browser:
    """A running browser: requests go down one pipe, answers and events come up another."""

    def __init__(self, down: int, up: int) -> None:
        self._down = down
        self._up = up
        self._unread = b""
        self._number = 0
        self._pages: dict[str, Page] = {}
        self._seen: list[tuple[str, str]] = []

    def page(self) -> Page:
        """A new, empty page."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        return page

    def ask(self, method: str, session: str | None = None, **arguments: Any) -> dict[str, Any]:
        """The answer to a request; events that come meanwhile are heard."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": arguments}
        if session is not None:
            message["sessionId"] = session
        os.write(self._down, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                assert "error" not in told, (method, told)
                return told["result"]

    def wait_for(self, event: str, session: str) -> None:
        """Wait for an event of a page."""
        while (event, session) not in self._seen:
            self._next()
        self._seen.remove((event, session))

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._unread:
            ready = select.select([self._up], [], [], max(0.0, end - time.monotonic()))[0]
            part = os.read(self._up, 1 << 20) if ready else b""
            assert part, "the browser has nothing to say"
            self._unread += part
        line, self._unread = self._unread.split(b"\0", 1)
        told: dict[str, Any] = json.loads(line)
        session = told.get("sessionId")
        if "method" in told and session is not None:
            self._seen.append((told["method"], session))
            if session in self._pages:
                self._pages[session].hear(told)
        return told


def _moved_up(descriptor: int) -> int:
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 20)
    os.close(descriptor)
    return moved


@contextlib.contextmanager
def browser(folder: Path) -> Generator[Browser]:
    """A browser with a profile of its own in a new folder."""
    program = found()
    assert program is not None
    requests, down = os.pipe()
    up, answers = os.pipe()
    requests, answers = _moved_up(requests), _moved_up(answers)  # not among those that are overwritten
    process = subprocess.Popen(
        [sys.executable, "-IS", "-c", START, str(requests), str(answers), program, *FLAGS, f"--user-data-dir={folder}"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(requests, answers),
    )  # fmt: skip
    os.close(requests)
    os.close(answers)
    try:
        yield Browser(down, up)
    finally:
        os.close(down)  # it ends when nobody speaks to it any more
        os.close(up)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
