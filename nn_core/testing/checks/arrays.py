"""The arrays of a backend: memory that plans cut into arrays of other dtypes."""

from typing import Any, Final

import numpy as np

from nn_core.engine.dispatch.plugin_manager import PLUGINS
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
    where = f"backend {name!r}: arrays must"
    for dtype in ("float32", "int64", "bool"):
        kind = np.dtype(dtype)
        shape = (2, _BYTES // 4 // kind.itemsize)
        try:
            part, same = [_cut(memory, kind, shape) for _ in range(2)]
        except Exception as error:  # of a library that nobody knows
            raise AssertionError(f"{where} have memory[:stop].view(dtype).reshape(shape), got {error!r}") from error
        require(part.dtype == kind, f"{where} be viewed as {dtype}, got {part.dtype}")
        part[...] = 1
        found = np.asarray(backend.to_numpy(same))
        expected = np.ones(shape, kind)
        is_shared = found.dtype == kind and np.array_equal(found, expected)
        require(is_shared, f"{where} share memory with what memory[:stop].view({dtype}).reshape(shape) shows, got a copy")


def _cut(memory: Any, kind: "np.dtype[Any]", shape: tuple[int, int]) -> Any:
    return memory[: _BYTES // 2].view(kind).reshape(shape)
