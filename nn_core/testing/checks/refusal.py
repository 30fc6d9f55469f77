"""Checks of refusals: wrong calls raise the same exception on every backend, and others are refused before any work."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nn_core.context import context_scope
from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.dispatch.plugin_manager import PLUGINS, REFERENCE
from nn_core.engine.graph.apply import operator_of
from nn_core.errors import NNCoreError
from nn_core.testing.assertions import require
from nn_core.testing.cases import DTYPES, Case, ErrorCase, FunctionCase, context_of
from nn_core.testing.samples.registry import numbers_of, samples_of
from nn_core.typing import Backend, Refusal
from nn_core.variable import Variable


def check_error(case: ErrorCase) -> None:
    """A wrong call raises the exception of its sample, whose text names the function, at the latest when results are read."""
    sample = case.sample
    with context_scope(context_of(case.backend, "float32")):
        inputs = [
            None if array is None
            else Variable.from_numpy_array(array.astype(dtype_of("float32")) if array.dtype.kind == "f" else array)
            for array in numbers_of(case.spec, sample)
        ]  # fmt: skip
        try:
            results = operator_of(case.spec)(*inputs, **sample.args)
            for result in results if isinstance(results, tuple) else [results]:
                result.forward()
                result.data.get_data("r")  # devices tell of wrong values when the host waits for them
        except NNCoreError as error:
            require(
                isinstance(error, sample.error),  # a class of its own may be added below the one that packages know
                f"{case}: must raise {sample.error.__name__}, got {type(error).__name__}: {error}",
            )
            require(re.search(sample.match, str(error)), f"{case}: the text must match {sample.match!r}, got: {error}")
            require(str(error).startswith(f"{case.spec.api}: "), f"{case}: the text must name the function, got: {error}")
            return
    raise AssertionError(f"{case}: must raise {sample.error.__name__}, and it ran")


def check_refusal(case: FunctionCase) -> None:
    """For every sample and dtype: a kernel says at once and without work whether it takes a call, and keeps to it."""
    backend = PLUGINS.backend(case.backend)
    kernels = [backend.kernels.get(case.spec.name), PLUGINS.registry.kernel(case.backend, case.spec.name)]
    for kernel in kernels:
        if kernel is None:
            continue
        for dtype in DTYPES:
            for sample in samples_of(case.spec):
                each = Case(case.backend, case.spec, dtype, sample)
                call = Case(REFERENCE, case.spec, dtype, sample).prepared.call  # whatever the kernel says to it
                with _idle(backend, str(each)):
                    answers = [kernel.refuse(call), kernel.refuse(call)]
                require(answers[0] == answers[1], f"{each}: the same call must get one answer, got {answers}")
                refusal = answers[0]
                if refusal is None:
                    require(kernel.forward(call) is not None, f"{each}: the kernel takes the call, and prepares nothing")
                else:
                    require(isinstance(refusal, Refusal), f"{each}: refuse() returns a Refusal or None, got {refusal!r}")
                    require(refusal.reason.strip(), f"{each}: a refusal must have a reason")


@contextmanager
def _idle(backend: Backend, what: str) -> Iterator[None]:
    """Let every allocation and transfer of `backend` fail."""

    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError(f"{what}: refuse() must not allocate or transfer arrays")

    names = ("empty", "from_numpy", "to_numpy")
    own = {name: vars(backend)[name] for name in names if name in getattr(backend, "__dict__", {})}
    if not hasattr(backend, "__dict__"):
        yield
        return
    for name in names:
        setattr(backend, name, fail)
    try:
        yield
    finally:
        for name in names:
            delattr(backend, name)
        for name, value in own.items():
            setattr(backend, name, value)
