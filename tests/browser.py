"""A headless browser driven through two pipes: open a page, evaluate JavaScript, take screenshots.

Chromium's debugging protocol, https://chromedevtools.github.io/devtools-protocol/: JSON messages with a zero byte
after each, on descriptors 3 and 4. Nothing but the browser is needed.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "no chromium for tests of pages; `apt-get install chromium` installs it"
TIMEOUT = 600.0
LAUNCH = """
import fcntl, os, sys
high = [fcntl.fcntl(int(pipe), fcntl.F_DUPFD, 10) for pipe in sys.argv[1:3]]
for wanted, pipe in zip((3, 4), high):
    os.dup2(pipe, wanted)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Moves the pipes to descriptors 3 and 4, by way of high numbers, since 3 and 4 may be in use."""


def program() -> str | None:
    """The path of the browser, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """An open page, its console messages and its requests."""

    def __init__(self, ours: int, theirs: int) -> None:
        self._write, self._read, self._rest, self._last, self._session = ours, theirs, b"", 0, ""
        self.complaints: list[str] = []
        """Console messages, exceptions, failed loads."""
        self.loaded: list[str] = []
        """Requested addresses."""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def look(self, *, width: int, height: int = 844, scheme: str = "light", media: str = "screen") -> None:
        """Set the size of the screen, the color scheme and the medium."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                   mobile=width < 600)  # fmt: skip
        wanted = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("Emulation.setEmulatedMedia", media=media, features=wanted)

    def open(self, path: Path | str) -> None:
        """Open a file or an address, and wait until it is loaded."""
        self._loads = False
        self._call("Page.navigate", url=path if isinstance(path, str) else path.resolve().as_uri())
        end = time.monotonic() + TIMEOUT
        while not self._loads:
            self._handle(self._message(end))

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def picture(self, path: Path, *, whole: bool = False) -> None:
        data = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def printed(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self._call("Page.printToPDF", printBackground=False)["data"])

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        os.write(
            self._write, json.dumps(message | ({"sessionId": self._session} if self._session else {})).encode() + b"\0"
        )
        end = time.monotonic() + TIMEOUT
        while True:
            answer = self._message(end)
            if answer.get("id") != self._last:
                self._handle(answer)
            elif "error" in answer:
                raise AssertionError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def _handle(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.consoleAPICalled":
                self.complaints.append(f"console.{params['type']}: {params['args']}")
            case "Runtime.exceptionThrown":
                self.complaints.append(f"exception: {params['exceptionDetails']}")
            case "Log.entryAdded":
                self.complaints.append(f"log: {params['entry']['text']}")
            case "Network.requestWillBeSent":
                self.loaded.append(params["request"]["url"])
            case "Page.loadEventFired":
                self._loads = True

    def _message(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], max(0.0, end - time.monotonic()))[0]:
                raise AssertionError(f"the browser did not answer within {TIMEOUT:.0f} s")
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise AssertionError("the browser is gone")
            self._rest += piece
        whole, _, self._rest = self._rest.partition(b"\0")
        return json.loads(whole)


@contextlib.contextmanager
def browser() -> Iterator[Page]:
    """A page in a browser that is closed afterwards."""
    path = program()
    assert path is not None, MISSING
    to_browser, ours = os.pipe()
    theirs, from_browser = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={profile}"]  # fmt: skip
        command = [sys.executable, "-c", LAUNCH, str(to_browser), str(from_browser), path, *options]
        running = subprocess.Popen(
            command, pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Page(ours, theirs)
        finally:
            os.close(ours)
            os.close(theirs)
            running.terminate()
            running.wait(10)
