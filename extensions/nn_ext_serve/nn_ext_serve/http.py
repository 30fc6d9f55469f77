"""The parts of HTTP that the application needs: replies, headers, and bodies of limited size."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from nn_ext_serve.batching import DeadlineError
from nn_ext_serve.bodies import JSON, MEDIA_TYPES

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass(slots=True)
class Reply:
    """An answer of HTTP."""

    status: int
    body: bytes
    media_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)

    async def send(self, send: Send) -> None:
        """Send it to an ASGI server."""
        headers = {"content-type": self.media_type, "content-length": str(len(self.body)), **self.headers}
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": pairs})
        await send({"type": "http.response.body", "body": self.body})


class RefusedError(Exception):
    """The end of a request that gets a reply other than what it asked for."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.reply = Reply(status, json.dumps({"error": message}).encode(), JSON, headers)


class DisconnectedError(Exception):
    """The end of a request whose client is gone: nobody reads a reply."""


class Bodies:
    """Receives bodies, and limits what one may take, what all take together, and the time."""

    def __init__(self, limit: int, total_limit: int, timeout: float) -> None:
        self._limit, self._total_limit, self._timeout = limit, total_limit, timeout
        self._total = 0

    @asynccontextmanager
    async def received(self, headers: Mapping[str, str], receive: Receive) -> AsyncIterator[bytes]:
        """Yield the body of a request, which counts as memory until the block ends.

        Raises:
            RefusedError: when it is too large (413), all are (503), or it takes too long (408).
            DisconnectedError: when the client goes away.
        """
        parts: list[bytes] = []
        try:
            try:
                await asyncio.wait_for(self._receive(headers, receive, parts), self._timeout)
            except asyncio.TimeoutError as error:
                raise RefusedError(408, f"the body must arrive within {self._timeout:g} s", connection="close") from error
            yield b"".join(parts)
        finally:
            self._total -= sum(map(len, parts))

    async def _receive(self, headers: Mapping[str, str], receive: Receive, parts: list[bytes]) -> None:
        length = headers.get("content-length", "0")
        self._require_size(int(length) if length.isdecimal() else 0)
        size, has_more = 0, True
        while has_more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise DisconnectedError
            part = message.get("body", b"")
            parts.append(part)
            size += len(part)
            self._total += len(part)
            self._require_size(size)
            has_more = message.get("more_body", False)

    def _require_size(self, n_bytes: int) -> None:
        if n_bytes > self._limit:
            raise RefusedError(413, f"a request must have at most {self._limit} bytes, got {n_bytes}", connection="close")
        if self._total > self._total_limit:
            text = f"all requests together must have at most {self._total_limit} bytes, got {self._total}"
            raise RefusedError(503, text, **{"retry-after": "1", "connection": "close"})


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers of a request by their names in small letters."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def host_of(headers: Mapping[str, str]) -> str:
    """Return the header Host without its port, in small letters."""
    host = headers.get("host", "").lower()
    name, _, port = host.rpartition(":")
    return name if port.isdecimal() and name else host


def media_types(headers: Mapping[str, str]) -> tuple[str, str]:
    """Return the media types of the body and of the reply, which is that of the body unless Accept names another one.

    A web page of another site can send none of them before its browser has asked, which is refused.

    Raises:
        RefusedError: when the body has another one (415), or the reply must (406).
    """
    given = _bare(headers.get("content-type", ""))
    if given not in MEDIA_TYPES:
        raise RefusedError(415, f"the header Content-Type must be one of {list(MEDIA_TYPES)}, got {given!r}")
    accepted = list(map(_bare, headers.get("accept", "*/*").split(",")))
    known = [part for part in accepted if part in MEDIA_TYPES]
    if known:
        return given, given if given in known else known[0]
    if {"*/*", "application/*", ""}.isdisjoint(accepted):
        raise RefusedError(406, f"the header Accept must name one of {list(MEDIA_TYPES)}, got {headers['accept']!r}")
    return given, given


def _bare(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


async def result_of(future: "Future[Any]", receive: Receive, deadline: float) -> Any:
    """Return the result of a future; it is cancelled when the client goes away, or when it has not begun at the deadline.

    Raises:
        DisconnectedError: when the client is gone.
        DeadlineError: when nothing has begun in time.
    """
    result = asyncio.wrap_future(future)
    gone = asyncio.ensure_future(_disconnect(receive))
    try:
        for timeout in (deadline, None):
            await asyncio.wait((result, gone), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if result.done():
                return result.result()
            if gone.done():
                raise DisconnectedError
            if future.cancel():
                raise DeadlineError(f"predict: must begin within {deadline:g} s, got no free worker")
        raise AssertionError(future)  # the second time there is no timeout
    finally:
        gone.cancel()
        result.cancel()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
