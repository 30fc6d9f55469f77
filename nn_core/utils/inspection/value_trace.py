"""Find the function that first gives NaN or infinity."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import described, fitted
from nn_core.engine.graph.hooks import set_function_post_hook, unset_function_post_hook
from nn_core.errors import ArgumentError, ArgumentTypeError
from nn_core.function import Function
from nn_core.logger import logger
from nn_core.utils.inspection.base import FunctionHookCallbackBase
from nn_core.variable import Variable


class NanInfTracer(FunctionHookCallbackBase):
    """Names the functions whose results are NaN or infinite, in all passes of a ``with`` block.

    As in NNabla, its hooks may also be given to the passes that are to be looked at.

    Args:
        trace_nan: Look for NaN.
        trace_inf: Look for infinity.
        need_details: Log each function that has them; if not, only the first counts.

    Example:
        >>> import nn_core.functions as F
        >>> y = F.log(Variable.from_numpy_array([-1.0])) * 2
        >>> tracer = NanInfTracer()
        >>> with tracer.trace():
        ...     y.forward()
        Traceback (most recent call last):
            ...
        ValueError: forward of Log must be finite, got NaN in output 0
    """

    @fitted
    def __init__(self, trace_nan: bool = True, trace_inf: bool = True, need_details: bool = True) -> None:
        if not (trace_nan or trace_inf):
            raise ArgumentError("NanInfTracer: at least one of trace_nan and trace_inf must be True, got False for both")
        self.trace_nan = trace_nan
        self.trace_inf = trace_inf
        self.need_details = need_details
        self._found: list[str] = []

    @property
    def pre_hook(self) -> Callable[[Function], None]:
        """Does nothing; for interfaces that ask for it."""
        return lambda function: None

    @property
    def post_hook(self) -> Callable[[Function], None]:
        """The same as `forward_post_hook`."""
        return self.forward_post_hook

    @property
    def forward_post_hook(self) -> Callable[[Function], None]:
        """A hook that looks at the outputs of each function."""
        return lambda function: self._look("forward", function, "output", [v.data for v in _checked(function).results])

    @property
    def backward_post_hook(self) -> Callable[[Function], None]:
        """A hook that looks at the gradients of the inputs of each function."""
        return lambda function: self._look("backward", function, "gradient", _gradients(_checked(function).inputs))

    @contextmanager
    def trace(self) -> Iterator[None]:
        """Look at all functions that run during a ``with`` block, and raise a ValueError at its end if something was found."""
        self._found.clear()
        key = f"NanInfTracer {id(self)}"
        set_function_post_hook(key, _BothPasses(self))
        try:
            yield
        finally:
            unset_function_post_hook(key)
        self.check()

    def check(self) -> None:
        """Raise what was found since the last look.

        Raises:
            ValueError: when a function gave NaN or infinity; it names the first one.
        """
        if not self._found:
            return
        first = self._found[0]
        if self.need_details:
            for line in self._found:
                logger.error("%s", line)
        self._found.clear()
        raise ValueError(first)

    def _look(self, pass_name: str, function: Function, what: str, arrays: list[NdArray | None]) -> None:
        if self._found and not self.need_details:
            return
        for index, array in enumerate(arrays):
            kind = None if array is None else self._kind(array.get_data("r"))
            found = f"{pass_name} of {function.name} must be finite, got {kind} in {what} {index}"
            if kind is not None and found not in self._found:
                self._found.append(found)

    def _kind(self, values: np.ndarray[Any, Any]) -> str | None:
        if values.dtype.kind != "f":
            return None
        if self.trace_nan and bool(np.isnan(values).any()):
            return "NaN"
        return "infinity" if self.trace_inf and bool(np.isinf(values).any()) else None


class _BothPasses:
    """A hook that is set for all passes."""

    def __init__(self, tracer: NanInfTracer) -> None:
        self._forward, self.backward = tracer.forward_post_hook, tracer.backward_post_hook

    def __call__(self, function: Function) -> None:
        self._forward(function)


def _checked(function: object) -> Function:
    """Return what a hook was called with, which must be a function.

    Raises:
        ArgumentTypeError: when it is something else, such as a list of functions.
    """
    if not isinstance(function, Function):
        raise ArgumentTypeError(f"NanInfTracer: a hook must be called with a function, got {described(function)}")
    return function


def _gradients(inputs: list[Variable]) -> list[NdArray | None]:
    return [variable.grad if variable.need_grad and not variable.grad.is_unwritten else None for variable in inputs]
