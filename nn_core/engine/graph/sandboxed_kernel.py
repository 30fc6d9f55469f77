"""Kernels that are not trusted: those of other packages, and all with NN_CORE_CHECK_KERNELS=1.

An output that a kernel leaves out must not show what its memory held before. The kernels of nn_core and of its backends are
tested for that, by the conformance kit with poisoned memory; a kernel of another package is

- refused when it leaves out elements of an output, or changes an input, in the first call of what it prepared;
- given read-only views of its inputs in every further call, where arrays are NumPy's, since other functions read them too;
- given new memory full of NaN (0, where a dtype has none) in every further call, since it may skip elements in some calls
  only. The memory of a plan is new once: what is left out when a graph is run again shows values that the graph has computed.

Reference kernels of other packages return all of their results, and are compared in the first call alone.

With NN_CORE_CHECK_KERNELS=1 every call of every kernel is checked, whether inputs are changed included. That is slow.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar, cast

import numpy as np

from nn_core.engine.dispatch.blame import TRUSTED, require_real
from nn_core.engine.dispatch.known import table_kernel
from nn_core.engine.dispatch.registry import REGISTRY
from nn_core.engine.error_messages.refusal import described
from nn_core.errors import PluginError
from nn_core.typing import Array, ArrayDesc, Backend, Call, Kernel, Refusal, Runner, Step, extra

#: Outputs are filled with this byte before a kernel runs; an element that still has it was not written.
POISON: Final = 0xA5
#: Elements of fewer bytes may hold the poison by chance.
_TELLING_BYTES: Final = 4


T = TypeVar("T")
#: The outputs of a runner: descriptions of arrays by their places among its arguments.
_Written: TypeAlias = Mapping[int, ArrayDesc | None]


def guarded_kernel(kernel: Kernel, backend: Backend, *, always: bool) -> Kernel:
    """`kernel`, or one that makes sure of its outputs where it comes from another package.

    Args:
        kernel: The kernel.
        backend: Whose arrays it works on.
        always: Check every call of every kernel, and its inputs too.
    """
    if always:
        return GuardedKernel(kernel, backend, _Checked)
    implementation = table_kernel(kernel)
    if is_trusted(type(implementation).__module__):
        runs_foreign_code = getattr(implementation, "runs_foreign_code", False)  # as a reference kernel of a plugin
        return GuardedKernel(kernel, backend, _ComparedOnce) if runs_foreign_code else kernel
    return GuardedKernel(kernel, backend, _Filled)


class GuardedKernel:
    """A kernel whose runners are refused when they leave outputs unwritten.

    Args:
        kernel: The kernel.
        backend: Whose arrays it works on.
        guard: Wraps a runner: ``guard(runner, call, backend, owner, written, read)``, the last two being places of arrays.
    """

    def __init__(self, kernel: Kernel, backend: Backend, guard: Callable[..., Runner]) -> None:
        self._kernel = kernel
        self._backend = backend
        self._guard = guard
        self._owner = REGISTRY.owner_of_kernel(table_kernel(kernel))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def refuse(self, call: Call) -> Refusal | None:
        """As the kernel."""
        return self._kernel.refuse(call)

    def forward(self, call: Call) -> Runner:
        """Return the runner of the kernel, guarded."""
        runner = self._kernel.forward(call)
        names = [entry.name for entry in call.spec.inputs]
        updated = {names.index(name) for name in call.spec.updates}
        n_inputs = len(call.inputs)
        # kernels of dynamic shapes make their outputs themselves: there is nothing to poison
        outputs = {} if call.spec.has("dynamic_shape") else dict(enumerate(call.outputs, n_inputs))
        return self._guard(runner, call, self._backend, self._owner, outputs, [i for i in range(n_inputs) if i not in updated])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return the runner of the kernel, guarded; None where it has none."""
        runner = self._kernel.backward(call, wanted)
        if runner is None:
            return None
        n_aux = sum(entry.aux for entry in call.spec.outputs)
        n_read = len(call.inputs) + 2 * len(call.outputs) - n_aux
        return self._guard(runner, call, self._backend, self._owner, dict(enumerate(call.inputs, n_read)), range(n_read))


class _Checked:
    """A runner and what it may write."""

    def __init__(
        self, runner: Runner, call: Call, backend: Backend, owner: str, written: _Written, read: Sequence[int]
    ) -> None:
        self._runner = runner
        self.owner = owner
        self._name = f"{call.spec.api} on backend {backend.name!r}{f', kernel of plugin {owner!r}' if owner else ''}"
        self._backend = backend
        self._written = written
        self._read = read

    def __call__(self, *arrays: Array) -> Any:
        return self.run(arrays)

    def run(self, arrays: Sequence[Array], by_chance: int = 0) -> Any:
        """Run, and return what the kernel returns.

        Refuse changed inputs, and unwritten outputs but for so many elements that may be the poison by chance.
        """
        places = self._places_written(arrays)
        written = [arrays[i] for i in places]
        others = [array for i, array in enumerate(arrays) if i not in places]
        read = [(i, arrays[i]) for i in self._read if arrays[i] is not None and not _overlaps(arrays[i], written)]
        # copies, since the arrays themselves are what a wrong kernel changes
        before = [np.array(self._backend.to_numpy(array)) for _, array in read]
        poisoned = [array for array in written if _poison(array, others)]
        results = self._runner(*arrays)
        self._require_unchanged(read, before)
        self._require_written(poisoned, by_chance)
        return self.real(results)

    def real(self, results: Any) -> Any:
        """Return the results that a kernel of dynamic shapes returns, which must be real numbers; None from other kernels."""
        for result in results if isinstance(results, (tuple, list)) else ():  # others may return what they have written
            require_real(f"{self._name}: a kernel", result)
        return results

    def shown(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the arrays, those that the kernel only reads as read-only views where they are NumPy's."""
        written = [arrays[i] for i in self._places_written(arrays)]
        shown = list(arrays)
        for place in self._read:
            array = arrays[place]
            if type(array) is np.ndarray and not _overlaps(array, written):
                shown[place] = read_only(array)
        return shown

    def callable_step(self, step: Any) -> Step:
        """Return what `bind` of a runner has returned, which must be a function."""
        if not callable(step):
            raise PluginError(f"{self._name}: bind() must return a function without arguments, got {described(step)}")
        return cast("Step", step)

    def refuse_write(self, error: ValueError) -> None:
        """Raise what the error of a write to a read-only view means; other errors are not ours."""
        if is_write(error):
            raise PluginError(f"{self._name}: a kernel must not change its inputs, got: {error}") from error

    def _places_written(self, arrays: Sequence[Array]) -> list[int]:
        return [i for i in self._written if i < len(arrays) and arrays[i] is not None]

    def _require_unchanged(self, read: Sequence[tuple[int, Array]], before: Sequence[Array]) -> None:
        for (position, array), values in zip(read, before, strict=True):
            if _bytes(self._backend.to_numpy(array)) != _bytes(values):
                raise PluginError(f"{self._name}: a kernel must not change its inputs, got array {position} changed")

    def _require_written(self, poisoned: Sequence[Array], by_chance: int = 0) -> None:
        for array in poisoned:
            left = np.asarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
            count = int((left == POISON).all(axis=1).sum())
            if count > min(by_chance, array.size - 1):
                raise PluginError(f"{self._name}: a kernel must write all of its outputs, got {count} elements unwritten")


class _Reading:
    """A runner on inputs that are read-only views; a write is refused by name."""

    def __init__(self, runner: Runner, checked: _Checked) -> None:
        self.inner = runner
        self._checked = checked

    def __call__(self, *arrays: Array) -> Any:
        try:
            return self._checked.real(self.inner(*arrays))
        except ValueError as error:
            self._checked.refuse_write(error)
            raise


class _ComparedOnce:
    """A runner of a reference kernel, which writes no input that is read-only; those of its first call are compared.

    Attributes:
        inner: The runner of the kernel, which steps of plans call.
        owner: The plugin of the kernel, where that is not the plugin of the function.
    """

    def __init__(
        self, runner: Runner, call: Call, backend: Backend, owner: str, written: _Written, read: Sequence[int]
    ) -> None:
        self.inner = runner
        self._checked = _Checked(runner, call, backend, owner, {}, read)
        self.owner = owner
        self._is_checked = False

    def __call__(self, *arrays: Array) -> Any:
        if not self._is_checked:
            results = self._checked.run(arrays)
            self._is_checked = True
            return results
        return self.inner(*arrays)

    def bind(self, *arrays: Array) -> Step:
        """Return a step on memory that a plan keeps."""
        return functools.partial(self.inner, *arrays)


class _Filled:
    """A runner whose outputs are checked in its first call, and full of NaN or 0 before it runs in others.

    Attributes:
        inner: The runner of the kernel, which steps of plans call.
        owner: The plugin of the kernel, where that is not the plugin of the function.
    """

    def __init__(
        self, runner: Runner, call: Call, backend: Backend, owner: str, written: _Written, read: Sequence[int]
    ) -> None:
        self.inner = runner
        self._in_place = call.spec.has("inplace_ok")
        self._checked = _Checked(runner, call, backend, owner, written, read)
        self.owner = owner
        self._reading = _Reading(runner, self._checked)
        self._is_checked = False
        self._blanks = {place: _blank(desc.dtype) for place, desc in written.items() if desc is not None}

    def __getattr__(self, name: str) -> Any:
        # runners may have extras: one that adds to gradients must not find them filled
        return getattr(self.inner, name)

    def __call__(self, *arrays: Array) -> Any:
        if not self._is_checked:
            results = self._checked.run(arrays, by_chance=1)
            self._is_checked = True  # of two threads that are here at once, both check
            return results
        self._fill(arrays)
        return self._reading(*self._checked.shown(arrays))

    def bind(self, *arrays: Array) -> Step:
        """Return a step on memory that a plan keeps, which is filled once; backends look into their steps to merge them."""
        self._fill(arrays)
        binder, shown = extra(self.inner, "bind"), self._checked.shown(arrays)
        if binder is None:
            return functools.partial(self._reading, *shown)
        return self._checked.callable_step(binder(*shown))

    def _fill(self, arrays: Sequence[Array]) -> None:
        for place, blank in self._blanks.items():
            array = arrays[place] if place < len(arrays) else None
            if array is None or (self._in_place and self._is_shared(array, arrays)):
                continue
            array[...] = blank

    def _is_shared(self, array: Array, arrays: Sequence[Array]) -> bool:
        return not isinstance(array, np.ndarray) or _overlaps(array, [other for other in arrays if other is not array])


def runner_of(runner: T) -> T:
    """Return the runner of the kernel itself, where `runner` guards it."""
    return cast("T", runner.inner) if isinstance(runner, (_Filled, _Reading, _ComparedOnce)) else runner


def read_only(array: Array) -> Array:
    """Return a view of an array of NumPy that cannot be written; any other array itself."""
    if type(array) is not np.ndarray or not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def is_write(error: Exception) -> bool:
    """Return whether an exception is that of NumPy where a read-only array is written."""
    return isinstance(error, ValueError) and "read-only" in str(error)


def is_trusted(module: str | None) -> bool:
    """Return whether the conformance kit runs on what a module defines in the tests of nn_core."""
    return (module or "").partition(".")[0] in TRUSTED


def _blank(dtype: str) -> float:
    """Return the value that shows best that nobody has written it."""
    return float("nan") if "float" in dtype else 0.0


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
