"""Runners that are called again and again: they keep no array of an earlier call, and run in several threads at once."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nn_core.graph.checked import runner_of
from nn_core.testing.assertions import assert_identical, require
from nn_core.testing.cases import Case
from nn_core.testing.checks.forward import compare_outputs
from nn_core.testing.drawing import values
from nn_core.testing.kernels import KernelRun
from nn_core.testing.operators import KEY
from nn_core.testing.samples.registry import numbers_of
from nn_core.testing.truth import Numbers
from nn_core.typing import Array

#: Calls of each thread.
CALLS = 3


def check_reuse(case: Case) -> None:
    """A second call with other numbers gives their results and leaves the arrays of the first call alone."""
    if case.spec.has("dynamic_shape"):
        return
    first, second = _Calls(KernelRun(case)), _Calls(_with_other_numbers(case))
    expected = second.results()
    second.run.prepared = first.run.prepared
    compare_outputs(case, first.run.truth, first.results())
    kept = first.snapshot()
    for result, other in zip(second.results(), expected, strict=True):
        assert_identical(result, other, f"{case}: a second call with other numbers")
    for before, after in zip(kept, first.snapshot(), strict=True):
        assert_identical(after, before, f"{case}: an array of the first call after the second")
    first.overwrite_inputs(second.run.truth.inputs)
    for result, other in zip(first.results(fresh=False), expected, strict=True):
        assert_identical(result, other, f"{case}: a second call with other numbers in the same arrays")


def check_threads(case: Case) -> None:
    """Two threads that call a runner at the same time, on arrays of their own, get the results of calls in turn.

    Arrays of NumPy only: on other devices threads order their work by streams, which are the engine's.
    """
    if case.spec.has("dynamic_shape"):
        return
    calls = [_Calls(KernelRun(case)), _Calls(_with_other_numbers(case))]
    expected = [each.results() for each in calls]
    calls[1].run.prepared = calls[0].run.prepared
    if not all(isinstance(array, np.ndarray) for each in calls for array in each.arrays if array is not None):
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


def _with_other_numbers(case: Case) -> KernelRun:
    """The same call with inputs that are drawn anew, or with the given ones from their last element to their first."""
    given, drawn = (numbers_of(case.spec, case.sample, draw) for draw in (0, 1))
    if all(map(_are_equal, given, drawn)):
        drawn = tuple(map(_backwards, given))
    inputs = tuple(None if array is None else values(array) for array in drawn)
    return KernelRun(replace(case, sample=replace(case.sample, name=f"{case.sample.name} again", inputs=inputs)))


def _are_equal(one: Numbers | None, other: Numbers | None) -> bool:
    return one is other or (one is not None and other is not None and one.tobytes() == other.tobytes())


def _backwards(array: Numbers | None) -> Numbers | None:
    """Real numbers in the opposite order, in which matrices stay symmetric or positive definite; others are indices."""
    return np.flip(array).copy() if array is not None and array.dtype.kind == "f" else array


class _Calls:
    """Calls of a runner on arrays that stay the same."""

    def __init__(self, run: KernelRun) -> None:
        self.run = run
        self.arrays = self._new_arrays()

    def _new_arrays(self) -> list[Array | None]:
        inputs, outputs = self.run.inputs(), self.run.outputs()
        self._n_inputs = len(inputs)
        key = [np.array(KEY, np.uint64)] if self.run.case.spec.has("seeded") else []
        return [*(None if entry is None else entry.array for entry in (*inputs, *outputs)), *key]

    def results(self, *, fresh: bool = True) -> list[Numbers]:
        """The outputs of a call, on new arrays unless they are to be those of the last."""
        if fresh:
            self.arrays = self._new_arrays()
        runner_of(self.run.prepared.forward)(*self.arrays)
        return [self.run.numpy(array) for array in self._outputs()]

    def repeated(self, together: threading.Barrier) -> list[list[Numbers]]:
        """The outputs of several calls that begin when all threads are ready for them."""
        found = []
        for _ in range(CALLS):
            together.wait()
            found.append(self.results())
        return found

    def snapshot(self) -> list[Numbers]:
        """The values of all arrays now; outputs that are private to the kernel are its own to change."""
        private = dict(self.run.prepared.private)
        kept = [array for array in self.arrays[: self._n_inputs] if array is not None]
        kept += [array for n, array in enumerate(self._outputs()) if n not in private]
        return [self.run.numpy(array) for array in kept]

    def overwrite_inputs(self, numbers: Sequence[Numbers | None]) -> None:
        """Put other numbers into the input arrays."""
        for array, new in zip(self.arrays[: self._n_inputs], numbers, strict=True):
            if array is not None and new is not None:
                require(tuple(array.shape) == new.shape, f"{self.run.case}: samples must have one shape each time")
                array[...] = self.run.prepared.space.from_numpy(new.astype(str(array.dtype)))

    def _outputs(self) -> Sequence[Array]:
        return self.arrays[self._n_inputs : self._n_inputs + len(self.run.prepared.output_shapes)]
