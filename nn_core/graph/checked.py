"""Kernels whose calls are checked one by one (NN_CORE_CHECK_KERNELS=1): slow, and the place to look when results are off."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nn_core.errors import PluginError
from nn_core.typing import Array, Backend, Call, Kernel, Refusal, Runner

#: Outputs are filled with this byte before a kernel runs; an element that still has it was not written.
POISON: Final = 0xA5
#: Elements of fewer bytes may hold the poison by chance.
_TELLING_BYTES: Final = 4


class CheckedKernel:
    """A kernel that is refused when it leaves outputs unwritten, changes inputs, or refuses with something else.

    Args:
        kernel: The kernel.
        backend: Whose arrays it works on.
    """

    def __init__(self, kernel: Kernel, backend: Backend) -> None:
        self._kernel = kernel
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def refuse(self, call: Call) -> Refusal | None:
        """As the kernel."""
        return self._kernel.refuse(call)

    def forward(self, call: Call) -> Runner:
        """The runner of the kernel, checked."""
        runner = self._kernel.forward(call)
        # such a kernel makes its outputs itself: there is nothing to poison
        if call.spec.has("dynamic_shape"):
            return runner
        names = [entry.name for entry in call.spec.inputs]
        updated = {names.index(name) for name in call.spec.updates}
        n_inputs = len(call.inputs)
        outputs = range(n_inputs, n_inputs + len(call.outputs))
        return _Checked(runner, call, self._backend, outputs, [i for i in range(n_inputs) if i not in updated])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """The runner of the kernel, checked; None where it has none."""
        runner = self._kernel.backward(call, wanted)
        if runner is None:
            return None
        n_aux = sum(entry.aux for entry in call.spec.outputs)
        n_read = len(call.inputs) + 2 * len(call.outputs) - n_aux
        return _Checked(runner, call, self._backend, range(n_read, n_read + len(call.inputs)), range(n_read))


class _Checked:
    """A runner and what it may write."""

    def __init__(
        self, runner: Runner, call: Call, backend: Backend, written: Sequence[int], read: Sequence[int]
    ) -> None:
        self._runner = runner
        self._name = f"{call.spec.api} on backend {backend.name!r}"
        self._backend = backend
        self._written = written
        self._read = read

    def __call__(self, *arrays: Array) -> None:
        places = self._places_written(arrays)
        written = [arrays[i] for i in places]
        others = [array for i, array in enumerate(arrays) if i not in places]
        read = [(i, arrays[i]) for i in self._read if arrays[i] is not None and not _overlaps(arrays[i], written)]
        # copies, since the arrays themselves are what a wrong kernel changes
        before = [np.array(self._backend.to_numpy(array)) for _, array in read]
        poisoned = [array for array in written if _poison(array, others)]
        self._runner(*arrays)
        self._require_unchanged(read, before)
        self._require_written(poisoned)

    def _places_written(self, arrays: Sequence[Array]) -> list[int]:
        return [i for i in self._written if i < len(arrays) and arrays[i] is not None]

    def _require_unchanged(self, read: Sequence[tuple[int, Array]], before: Sequence[Array]) -> None:
        for (position, array), values in zip(read, before, strict=True):
            if _bytes(self._backend.to_numpy(array)) != _bytes(values):
                raise PluginError(f"{self._name}: a kernel must not change its inputs, got array {position} changed")

    def _require_written(self, poisoned: Sequence[Array]) -> None:
        for array in poisoned:
            left = np.asarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
            count = int((left == POISON).all(axis=1).sum())
            if count:
                raise PluginError(f"{self._name}: a kernel must write all of its outputs, got {count} elements unwritten")


def _poison(array: Array, others: Sequence[Array]) -> bool:
    """Fill an output with poison, if it is a C-contiguous array of the host that shares no memory with an input."""
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous or array.itemsize < _TELLING_BYTES:
        return False
    if _overlaps(array, others):  # the kernel works in place
        return False
    array.reshape(-1).view(np.uint8)[...] = POISON
    return bool(array.size)


def _overlaps(array: Array, others: Sequence[Array]) -> bool:
    if not isinstance(array, np.ndarray):
        return False
    return any(isinstance(other, np.ndarray) and np.may_share_memory(array, other) for other in others)


def _bytes(array: Any) -> bytes:
    return np.ascontiguousarray(array).tobytes()
