"""Chromium without a window, driven by its DevTools protocol over a pair of pipes."""

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

#: Names of the program, in the order in which they are looked for.
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: Root may not use the sandbox, and containers have a small /dev/shm; pages come from this machine.
_OPTIONS: Final = (
    "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-extensions", "--hide-scrollbars", "--mute-audio",
)  # fmt: skip


def program() -> str | None:
    """Return the path of Chromium, or None."""
    return next((found for found in map(shutil.which, _NAMES) if found), None)


class Tab:
    """A page of the browser."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._rest = b""
        self._sent = 0
        self._session: str | None = None
        #: Events that have come since `events` was cleared: names and parameters.
        self.events: list[tuple[str, dict[str, Any]]] = []

    def attach(self) -> None:
        """Open an empty page, and ask for its events."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        # pages remember what a reader has chosen, such as the dark scheme
        self.call("Page.addScriptToEvaluateOnNewDocument", source="localStorage.clear(); sessionStorage.clear()")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command, and return its result."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._sent:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, of a promise when it is there."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression[:80]}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def visit(self, url: str) -> None:
        """Load a page, and wait until it is there with its fonts."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(name == "Page.loadEventFired" for name, _ in self.events):
            self._message()
        self.evaluate("document.fonts.ready.then(() => new Promise(requestAnimationFrame))")

    def resize(self, width: int, height: int = 900) -> None:
        """Give the window a size in CSS pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def _message(self) -> dict[str, Any]:
        """Read the next message; an event is kept."""
        while b"\0" not in self._rest:
            read = os.read(self._answers, 1 << 20)
            if not read:
                raise RuntimeError("the browser has ended")
            self._rest += read
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append((message["method"], message.get("params", {})))
        return message


@contextmanager
def browser(path: str) -> Iterator[Tab]:
    """Start Chromium with a profile of its own, and give its page."""
    to_read, commands = os.pipe()
    answers, to_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, Path(os.devnull).open("r+b") as nothing:
        actions = [  # the browser reads commands from 3 and writes answers to 4, which may be the numbers of our ends
            (os.POSIX_SPAWN_DUP2, to_read, 63),
            (os.POSIX_SPAWN_DUP2, to_write, 4),
            (os.POSIX_SPAWN_DUP2, 63, 3),
            *((os.POSIX_SPAWN_DUP2, nothing.fileno(), stream) for stream in range(3)),
        ]
        arguments = [path, *_OPTIONS, f"--user-data-dir={profile}"]
        process = os.posix_spawn(path, arguments, dict(os.environ), file_actions=actions, setpgroup=0)
        os.close(to_read)
        os.close(to_write)
        try:
            tab = Tab(commands, answers)
            tab.attach()
            yield tab
        finally:
            os.close(commands)
            os.close(answers)
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
