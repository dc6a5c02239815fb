"""A real Chromium without a window, driven through a pipe (its DevTools protocol): no driver and no port is needed.

Messages are JSON, each ended by a zero byte: ours on the browser's file descriptor 3, its own on 4.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--remote-debugging-pipe",
)
PATIENCE = 90.0
"""Seconds that an answer may take, on a machine that has much else to do."""


def installed() -> str | None:
    """The path of a Chromium, or None."""
    return next((found for name in NAMES if (found := shutil.which(name)) is not None), None)


class Browser:
    """One tab. ``errors`` keeps what it told its console or did not catch, ``requests`` every address it asked for."""

    def __init__(self, profile: Path):
        program = installed()
        assert program is not None
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_read, to_write)]  # neither is 3 or 4
        command = f'exec "$0" "$@" 3<&{ends[0]} 4>&{ends[1]}'
        arguments = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", command, *arguments], pass_fds=ends, stderr=subprocess.DEVNULL
        )
        for end in (to_read, to_write, *ends):
            os.close(end)
        self._number, self._pending = 0, b""
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._loaded = False
        self._session = ""
        target = next(each for each in self._targets() if each["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait(20)
        os.close(self._write)
        os.close(self._read)

    def open(self, address: str) -> None:
        """Open a page and wait until it has loaded; a new fragment of the same page loads nothing."""
        self.errors.clear()
        self.requests.clear()
        self._loaded = False
        self.send("Page.navigate", url="about:blank")
        self._wait_for_load()
        self._loaded = False
        self.requests.clear()
        self.send("Page.navigate", url=address)
        self._wait_for_load()

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression, as plain data."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"]["exception"].get("description", answer))
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """A real key, pressed and released: ("ArrowRight", 39), ("Tab", 9), ("Enter", 13), (" ", 32)."""
        text = {"Enter": "\r", " ": " "}.get(key)
        more = {"text": text} if text is not None else {}
        for kind in ("keyDown" if text is not None else "rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)
            more = {}

    def size(self, width: int, height: int) -> None:
        """Set the size of the window, in CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **metrics)

    def scheme(self, word: str) -> None:
        """Prefer ``light`` or ``dark``."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": word}])

    def picture(self, file: Path, whole: bool = True) -> None:
        """A screenshot, as PNG; ``whole``: all of the page and not the window alone."""
        taken = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(taken["data"]))

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol, and its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def _targets(self) -> list[dict[str, Any]]:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            found: list[dict[str, Any]] = self.send("Target.getTargets")["targetInfos"]
            if any(each["type"] == "page" for each in found):
                return found
            time.sleep(0.05)
        raise TimeoutError("the browser has opened no page")

    def _wait_for_load(self) -> None:
        while not self._loaded:
            self._next()

    def _next(self) -> dict[str, Any]:
        """The next message; what it tells of errors and requests is kept."""
        while b"\0" not in self._pending:
            if not select.select([self._read], [], [], PATIENCE)[0]:
                raise TimeoutError("the browser does not answer")
            got = os.read(self._read, 1 << 20)
            if not got:
                raise ConnectionError("the browser has ended")
            self._pending += got
        first, _, self._pending = self._pending.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        self._hear(message.get("method", ""), message.get("params", {}))
        return message

    def _hear(self, method: str, told: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(str(told["exceptionDetails"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.errors.append(told["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.errors.append(str(told["args"]))
