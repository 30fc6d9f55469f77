"""The ASGI application: predictions, a description of the network, health, metrics and reloads."""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from nn_core.ext import NNCoreError
from nn_ext_serve import metrics
from nn_ext_serve.batching import Batcher, DeadlineError, OverloadError
from nn_ext_serve.bodies import BODY_ERRORS, MEDIA_TYPES, decoded, encoded
from nn_ext_serve.http import (
    Bodies,
    DisconnectedError,
    Receive,
    RefusedError,
    Reply,
    Scope,
    Send,
    headers_of,
    host_of,
    media_types,
    result_of,
)
from nn_ext_serve.predictor import NonFiniteError
from nn_ext_serve.tensors import TensorSpec

#: Bodies below this size are decoded in the event loop, which they hold up for less than a millisecond.
_SMALL: Final = 16 * 1024
_DECODERS: Final = 2
_METHODS: Final = {
    "/": ("GET", "HEAD"),
    "/predict": ("POST",),
    "/health/live": ("GET", "HEAD"),
    "/health/ready": ("GET", "HEAD"),
    "/metrics": ("GET", "HEAD"),
    "/reload": ("POST",),
}
_LOG: Final = logging.getLogger("nn_ext_serve")


class Application:
    """An ASGI application that answers requests by a `Batcher`; any ASGI server runs it.

    Args:
        batcher: It computes the answers; the caller closes it.
        name: The name of the network in its description.
        reload: A function that exchanges the network or its weights, or raises; it runs beside predictions, once at a time.
        has_reload_endpoint: Whether ``POST /reload`` calls it; otherwise only `reload` of this object does.
        body_limit: The most bytes of a request.
        bodies_limit: The most bytes of all requests that are being received or answered.
        body_timeout: Seconds within which a request must have arrived.
        hosts: Values of the header Host that are answered, without ports; None: all.

    Example:
        >>> predictor = Predictor(lambda n: (lambda x: Graph({"x": x}, {"y": x * 2}))(nn.Variable((n, 2))))
        >>> application = Application(Batcher(predictor), name="double")
    """

    def __init__(
        self,
        batcher: Batcher,
        *,
        name: str = "network",
        reload: Callable[[], None] | None = None,
        has_reload_endpoint: bool = False,
        body_limit: int = 8 * 2**20,
        bodies_limit: int = 256 * 2**20,
        body_timeout: float = 30.0,
        hosts: Collection[str] | None = None,
    ) -> None:
        self._batcher, self._name, self._reload = batcher, name, reload
        self._bodies = Bodies(body_limit, bodies_limit, body_timeout)
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._paths = [path for path in _METHODS if path != "/reload" or (has_reload_endpoint and reload is not None)]
        self._reloading = asyncio.Lock()
        self._decoders = ThreadPoolExecutor(_DECODERS, thread_name_prefix="serve-decode")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of ASGI; predictions are counted."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    async def reload(self) -> None:
        """Exchange the network or its weights; requests meanwhile are answered by the present ones.

        Raises:
            NNCoreError, OSError: what the exchange raises. The present ones stay.
        """
        if self._reload is None:
            return
        async with self._reloading:
            is_done = False
            try:
                await asyncio.get_running_loop().run_in_executor(None, self._reload)
                is_done = True
            finally:
                self._batcher.metrics.count_reload(is_done)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.monotonic()
        try:
            reply = await self._routed(scope, headers_of(scope), receive)
        except DisconnectedError:
            return
        except RefusedError as error:
            reply = error.reply
        except Exception:
            _LOG.exception("%s %s", scope["method"], scope["path"])
            reply = RefusedError(500, "an error of the server, which its log has").reply
        if scope["path"] == "/predict":
            self._batcher.metrics.count_request(reply.status, time.monotonic() - began)
        await reply.send(send)

    async def _routed(self, scope: Scope, headers: Mapping[str, str], receive: Receive) -> Reply:
        path, method, host = scope["path"], scope["method"], host_of(headers)
        if self._hosts is not None and host not in self._hosts:
            raise RefusedError(421, f"the header Host must be one of {sorted(self._hosts)}, got {host!r}")
        if path not in self._paths:
            raise RefusedError(404, f"the path must be one of {self._paths}, got {path!r}")
        methods = _METHODS[path]
        if method not in methods:
            raise RefusedError(
                405, f"the method of {path} must be one of {list(methods)}, got {method}", allow=", ".join(methods)
            )
        if method == "POST":
            return await (self._predicted(headers, receive) if path == "/predict" else self._reloaded())
        if path == "/metrics":
            return Reply(200, self._batcher.metrics.text().encode(), metrics.MEDIA_TYPE)
        return Reply(200, json.dumps(self._description() if path == "/" else {"status": "ok"}).encode())

    def _description(self) -> dict[str, Any]:
        predictor = self._batcher.predictor

        def listed(specs: Mapping[str, TensorSpec]) -> dict[str, Any]:
            return {name: {"shape": ["n", *spec.shape], "dtype": str(spec.dtype)} for name, spec in specs.items()}

        return {
            "name": self._name,
            "inputs": listed(predictor.inputs),
            "outputs": listed(predictor.outputs),
            "max_samples": predictor.max_batch,
            "media_types": list(MEDIA_TYPES),
        }

    async def _reloaded(self) -> Reply:
        try:
            await self.reload()
        except (NNCoreError, OSError) as error:
            raise RefusedError(500, f"reload: {error}") from error
        return Reply(200, b'{"status": "reloaded"}')

    async def _predicted(self, headers: Mapping[str, str], receive: Receive) -> Reply:
        try:
            return await self._prediction(headers, receive)
        except BODY_ERRORS as error:
            raise RefusedError(400, str(error)) from error
        except OverloadError as error:
            raise RefusedError(503, str(error), **{"retry-after": f"{error.retry_after:.0f}"}) from error
        except DeadlineError as error:
            raise RefusedError(503, str(error), **{"retry-after": "1"}) from error
        except NonFiniteError as error:
            raise RefusedError(500, str(error)) from error

    async def _prediction(self, headers: Mapping[str, str], receive: Receive) -> Reply:
        given, wanted = media_types(headers)
        self._batcher.require_room()  # before the body takes memory
        async with self._bodies.received(headers, receive) as body:
            inputs = await self._in_thread(len(body), decoded, given, body, self._batcher.predictor.inputs)
            outputs = await result_of(self._batcher.submit(inputs), receive, self._batcher.deadline)
            n_bytes = sum(values.nbytes for values in outputs.values())
            return Reply(200, await self._in_thread(n_bytes, encoded, wanted, outputs), wanted)

    async def _in_thread(self, n_bytes: int, function: Callable[..., Any], *args: Any) -> Any:
        """Return the result of a function, computed in another thread if that many bytes would hold the event loop up."""
        if n_bytes < _SMALL:
            return function(*args)
        return await asyncio.get_running_loop().run_in_executor(self._decoders, function, *args)


async def _lifespan(receive: Receive, send: Send) -> None:
    for event in ("startup", "shutdown"):
        if (await receive())["type"] == f"lifespan.{event}":
            await send({"type": f"lifespan.{event}.complete"})
