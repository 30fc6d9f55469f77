"""The arrays of a backend: memory that plans cut into arrays of other dtypes."""

from typing import Any, Final

import numpy as np

from nn_core.dispatch.plugins import PLUGINS
from nn_core.testing.assertions import require
from nn_core.typing import extra

_BYTES: Final = 64


def check_arrays(name: str, device_id: str = "0") -> None:
    """Plans can cut the arrays of the backend called `name` out of its memory, as docs/array_contract.md says.

    Raises:
        AssertionError: when they cannot.
    """
    backend = PLUGINS.backend(name)
    use_device = extra(backend, "use_device")
    if use_device is not None:
        use_device(device_id)
    memory = backend.empty((_BYTES,), "uint8")
    memory[...] = 0
    where = f"backend {name!r}: arrays must"
    for dtype in ("float32", "int64", "bool"):
        kind = np.dtype(dtype)
        try:
            part: Any = memory[8:40].view(kind).reshape((2, 16 // kind.itemsize))
        except Exception as error:  # of a library that nobody knows
            raise AssertionError(f"{where} have memory[start:stop].view(dtype).reshape(shape), got {error!r}") from error
        require(part.dtype == kind, f"{where} be viewed as {dtype}, got {part.dtype}")
        part[...] = 1
        expected = np.zeros(_BYTES, np.uint8)
        expected[8:40].view(kind)[...] = 1
        require(
            np.asarray(backend.to_numpy(memory)).tobytes() == expected.tobytes(),
            f"{where} share memory with what memory[start:stop].view({dtype}).reshape(shape) shows, got a copy",
        )
        memory[...] = 0
