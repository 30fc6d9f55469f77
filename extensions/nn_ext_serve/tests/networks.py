"""A network whose answers say which weights it has, and a client of an application without a socket."""

import asyncio
import json
import time
from typing import Any

import numpy as np

import nn_core as nn
from nn_core.function import PythonFunction
from nn_ext_serve import Application, Graph

#: So many weights are multiplied: an answer that is no power of one of them comes from a mixture.
DEPTH = 4


def weights(value: float) -> dict[str, nn.Variable]:
    """Return the parameters of `scaled`, which all have one value."""
    return {f"w{i}": nn.Variable.from_numpy_array(np.full((1, 3), value, np.float32)) for i in range(DEPTH)}


class Pause(PythonFunction):
    """The identity, while which other threads run."""

    @property
    def name(self) -> str:
        return "Pause"

    def min_outputs(self) -> int:
        return 1

    def setup_impl(self, inputs, outputs) -> None:
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs, outputs) -> None:
        time.sleep(0.0002)
        outputs[0].data.copy_from(inputs[0].data)

    def backward_impl(self, inputs, outputs, propagate_down, accum) -> None:
        raise NotImplementedError


def scaled(shared: dict[str, nn.Variable], *, pauses: bool = False) -> Any:
    """Return a builder of x * w0 * w1 * ..."""

    def build(n: int) -> Graph:
        x = nn.Variable((n, 3))
        y = x
        for weight in shared.values():
            y = Pause()(y * weight) if pauses else y * weight
        return Graph({"x": x}, {"y": y})

    return build


class Client:
    """Calls an ASGI application in its own event loop, as a server would."""

    def __init__(self, application: Application) -> None:
        self._application = application

    def __call__(
        self, path: str, body: bytes | None = None, *, method: str = "", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        return asyncio.run(self.call(path, body, method=method, **headers))

    def json(self, content: Any) -> tuple[int, Any]:
        """Send JSON to /predict; return the status and the content of the reply."""
        status, _, body = self("/predict", json.dumps(content).encode(), content_type="application/json")
        return status, json.loads(body)

    async def call(self, path, body=None, *, method="", parts=None, is_cut=False, gone=None, **headers):
        """Return the status, the headers and the body of a reply; (0, {}, b"") when there is none."""
        method = method or ("GET" if body is None and parts is None else "POST")
        sent = list(parts) if parts is not None else [body or b""]
        messages = [
            {"type": "http.request", "body": part, "more_body": is_cut or i + 1 < len(sent)} for i, part in enumerate(sent)
        ]
        named = {name.replace("_", "-"): value for name, value in {"host": "localhost:8000", **headers}.items()}
        scope = {
            "type": "http",
            "path": path,
            "method": method,
            "headers": [(k.encode(), v.encode()) for k, v in named.items()],
        }
        replies: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop(0)
            await (gone.wait() if gone is not None else asyncio.Event().wait())
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            replies.append(message)

        await self._application(scope, receive, send)
        if not replies:
            return 0, {}, b""
        start, end = replies
        return start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, end["body"]
