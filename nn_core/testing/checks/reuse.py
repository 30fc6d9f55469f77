"""Runners that are called again and again: they keep no array of an earlier call, and run in several threads at once."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nn_core.engine.graph.sandboxed_kernel import runner_of
from nn_core.testing.assertions import assert_identical
from nn_core.testing.cases import Case
from nn_core.testing.checks.forward import compare_outputs
from nn_core.testing.drawing import values
from nn_core.testing.expected import Numbers
from nn_core.testing.kernels import KernelRun
from nn_core.testing.operators import KEY
from nn_core.testing.perturbed_inputs import OTHER_KEY, other_numbers
from nn_core.typing import Array, Runner

#: Calls of each thread.
CALLS = 3


def check_reuse(case: Case) -> None:
    """A second call with other numbers gives their results and leaves the arrays of the first call alone."""
    first, second = _pair(case)
    expected = second.results()
    second.run.prepared = first.run.prepared
    compare_outputs(case, first.run.truth, first.results())
    kept = first.snapshot()
    for result, other in zip(second.results(), expected, strict=True):
        assert_identical(result, other, f"{case}: a second call with other numbers")
    for before, after in zip(kept, first.snapshot(), strict=True):
        assert_identical(after, before, f"{case}: an array of the first call after the second")
    first.take_numbers_of(second)
    for result, other in zip(first.results(fresh=False), expected, strict=True):
        assert_identical(result, other, f"{case}: a second call with other numbers in the same arrays")


def check_threads(case: Case) -> None:
    """Two threads that call a runner at the same time, on arrays of their own, get the results of calls in turn.

    Arrays of NumPy only: on other devices threads order their work by streams, which are the engine's.
    """
    calls = _pair(case)
    expected = [each.results() for each in calls]
    calls[1].run.prepared = calls[0].run.prepared
    if not all(isinstance(array, np.ndarray) for each in calls for array in each.arrays):
        return
    together = threading.Barrier(len(calls))
    found = _in_threads([partial(each.repeated, together) for each in calls])
    for given, true in zip(found, expected, strict=True):
        for results in given:
            for n, (result, other) in enumerate(zip(results, true, strict=True)):
                assert_identical(result, other, f"{case}: output {n} beside a call in another thread")


def _in_threads(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    found: list[Any] = [None] * len(tasks)
    errors: list[BaseException] = []

    def work(position: int) -> None:
        try:
            found[position] = tasks[position]()
        except BaseException as error:  # raised again in the thread of the test
            errors.append(error)

    threads = [threading.Thread(target=work, args=(position,)) for position in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found


def _pair(case: Case) -> tuple["_Calls", "_Calls"]:
    """Return a call, and the same with other numbers for which its results are different ones, where there are such
    numbers.
    """
    others, _ = other_numbers(case.spec, case.sample, case.dtype)
    inputs = tuple(None if array is None else values(array) for array in others)
    sample = replace(case.sample, name=f"{case.sample.name} again", inputs=inputs, gradient=False)
    return _Calls(KernelRun(case), KEY), _Calls(KernelRun(replace(case, sample=sample)), OTHER_KEY)


class _Calls:
    """Calls of a runner on arrays that stay the same."""

    def __init__(self, run: KernelRun, key: tuple[int, int]) -> None:
        self.run = run
        self._key = key
        self._dynamic = run.case.spec.has("dynamic_shape")
        self._seeded = run.case.spec.has("seeded")
        self._set_arrays()

    def _set_arrays(self) -> None:
        """Make new arrays for all that the call reads and writes; kernels of dynamic shape make their results."""
        self._inputs = [None if entry is None else entry.array for entry in self.run.inputs()]
        self._outputs: Sequence[Array] = [] if self._dynamic else [entry.array for entry in self.run.outputs()]

    @property
    def arrays(self) -> list[Array]:
        """All arrays but the key."""
        return [array for array in (*self._inputs, *self._outputs) if array is not None]

    def results(self, *, fresh: bool = True) -> list[Numbers]:
        """Return the outputs of a call, on new arrays unless they are to be those of the last."""
        if fresh:
            self._set_arrays()
        runner: Runner = runner_of(self.run.prepared.forward)
        inputs = [*self._inputs, *([] if self._dynamic else self._outputs)]
        made: Any = runner(*inputs, *([np.array(self._key, np.uint64)] if self._seeded else []))
        if self._dynamic:
            self._outputs = made
        return [self.run.numpy(array) for array in self._outputs]

    def repeated(self, together: threading.Barrier) -> list[list[Numbers]]:
        """Return the outputs of several calls that begin when all threads are ready for them."""
        found = []
        for _ in range(CALLS):
            together.wait()
            found.append(self.results())
        return found

    def snapshot(self) -> list[Numbers]:
        """Return the values of all arrays now; outputs that are private to the kernel are its own to change."""
        private = dict(self.run.prepared.private)
        kept = [array for array in self._inputs if array is not None]
        kept += [array for n, array in enumerate(self._outputs) if n not in private]
        return [self.run.numpy(array) for array in kept]

    def take_numbers_of(self, other: "_Calls") -> None:
        """Put the numbers of another call into the input arrays, and draw from its key."""
        self._key = other._key
        for array, new in zip(self._inputs, other.run.truth.inputs, strict=True):
            if array is not None and new is not None:
                array[...] = self.run.prepared.space.from_numpy(new.astype(str(array.dtype)))
