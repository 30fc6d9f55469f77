"""PythonFunction: a function of the graph whose forward and backward passes are methods in Python."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nn_core.context import Context, checked_context, get_current_context
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import HOST
from nn_core.engine.graph.node import Node, Storage
from nn_core.errors import ArgumentError
from nn_core.operators.spec.model import BackwardSpec, FunctionSpec, InputSpec, OutputSpec
from nn_core.typing import Array

#: Set by ``variable``: makes the Variables that the methods of a PythonFunction get.
WRAPPERS: dict[str, Any] = {}


class PythonFunction:
    """Base of functions written in Python.

    A subclass gives ``forward_impl(inputs, outputs)`` and ``backward_impl(inputs, outputs, propagate_down, accum)``. One with
    several outputs gives ``min_outputs()`` too, and one whose outputs do not have the shape of the first input
    ``setup_impl(inputs, outputs)``, which sets them by ``outputs[0].reset_shape(shape, True)``. The methods get Variables;
    ``accum`` tells for each input whether the gradient has to be added to what is there. A property ``args``, a mapping,
    shows its settings to hooks and to functions registered in ``nn_core.backward_functions``. Outputs are float32, or
    int64 where a subclass sets ``output_dtype = "int64"``. Networks with such functions are written into files where
    ``expressed(inputs)`` gives the same outputs by other functions.

    Example:
        >>> class Double(PythonFunction):
        ...     name = "Double"
        ...     def forward_impl(self, inputs, outputs): outputs[0].d = inputs[0].d * 2
        ...     def backward_impl(self, inputs, outputs, propagate_down, accum):
        ...         if propagate_down[0]:
        ...             inputs[0].g = outputs[0].g * 2 + (inputs[0].g if accum[0] else 0)
    """

    #: Of all outputs: "float32", or "int64" for whole numbers.
    output_dtype: str = "float32"

    def __init__(self, ctx: Context | None = None) -> None:
        self._ctx = None if ctx is None else checked_context("PythonFunction", ctx)

    @property
    def ctx(self) -> Context:
        """The context that the function was made with, else the current one."""
        return get_current_context() if self._ctx is None else self._ctx

    @property
    def name(self) -> str:
        """Name of the function; the name of the class unless overridden."""
        return type(self).__name__

    def min_outputs(self) -> int:
        """Return number of outputs when the caller does not say how many; one unless overridden."""
        return 1

    def setup_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Set the shapes of the outputs; that of the first input unless overridden."""
        if not isinstance(inputs, (list, tuple)):
            raise ArgumentError(f"{type(self).__name__}.setup_impl: inputs must be a list, got {type(inputs).__name__}")
        if not inputs:
            raise NotImplementedError(f"{type(self).__name__}: setup_impl() must be defined for a function without inputs")
        wrong = [value for value in (inputs[0], *outputs) if not hasattr(value, "reset_shape")]
        if wrong:
            kind = type(wrong[0]).__name__
            raise ArgumentError(f"{type(self).__name__}.setup_impl: inputs and outputs must be Variables, got {kind}")
        for output in outputs:
            output.reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Compute the data of the outputs."""
        raise NotImplementedError(f"{type(self).__name__}: forward_impl() must be defined")

    def backward_impl(
        self, inputs: Sequence[Any], outputs: Sequence[Any], propagate_down: Sequence[bool], accum: Sequence[bool]
    ) -> None:
        """Compute the gradients of the inputs for which `propagate_down` is true."""
        raise NotImplementedError(f"{type(self).__name__}: backward_impl() must be defined")

    def grad_depends_input_data(self, i: int, j: int) -> bool:
        """Return whether the gradient of input `i` reads the data of input `j`."""
        return True

    def grad_depends_output_data(self, i: int, o: int) -> bool:
        """Return whether the gradient of input `i` reads the data of output `o`."""
        return True

    def expressed(self, inputs: Sequence[Any]) -> Sequence[Any] | None:
        """Return the outputs by functions of nn_core, for files, which have no functions in Python; None: there are none."""
        return None

    def __call__(self, *inputs: Any, n_outputs: int = -1, outputs: Any = None) -> Any:
        return WRAPPERS["call"](self, inputs, self.min_outputs() if n_outputs < 0 else n_outputs, outputs)


def settings_of(function: PythonFunction) -> dict[str, Any]:
    """Return the settings that `function` shows as ``args``, a mapping; none if it has no such attribute."""
    settings = getattr(function, "args", None)
    return dict(settings) if isinstance(settings, Mapping) else {}


def spec_of_python(function: PythonFunction, n_inputs: int, n_outputs: int) -> FunctionSpec:
    """Return a specification that describes `function` to the engine."""
    inputs = tuple(InputSpec(f"x{i}", "", dtype="same", optional=True) for i in range(n_inputs))
    kind = "index" if function.output_dtype == "int64" else "float"
    outputs = tuple(OutputSpec(f"y{i}", "", dtype=kind) for i in range(n_outputs))
    name = str(function.name)
    return FunctionSpec(name, name, "python", "A function in Python.", inputs, outputs, backward=BackwardSpec())


class PythonForward:
    """Runner that calls ``forward_impl`` and brings its results to where the plan wants them."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    def __call__(self, *arrays: Array) -> None:
        node = self._node
        wrap = WRAPPERS["variable"]
        n_inputs = len(node.inputs)
        inputs = [
            None if value is None else wrap(_storage_over(array), value)
            for value, array in zip(node.inputs, arrays[:n_inputs], strict=True)
        ]
        outputs = [wrap(_storage_over(array), None) for array in arrays[n_inputs:]]
        # on fresh variables over the arrays of the plan: whatever the method does to them, the graph stays as it is
        node.python.forward_impl(inputs, outputs)
        for target, variable in zip(arrays, [*inputs, *outputs], strict=True):
            if variable is not None:  # a method may write to inputs too, such as statistics that it keeps in a parameter
                _bring(variable.storage.data, target)


class PythonBackward:
    """Runner that calls ``backward_impl`` on variables whose gradients are the plan's arrays."""

    __slots__ = ("_node", "_wanted")

    def __init__(self, node: Node, wanted: Sequence[bool]) -> None:
        self._node = node
        self._wanted = list(wanted)

    def __call__(self, *arrays: Array) -> None:
        node, n_inputs, n_outputs = self._node, len(self._node.inputs), len(self._node.storages)
        wrap = WRAPPERS["variable"]
        data, rest = arrays[:n_inputs], arrays[n_inputs:]
        results, gradients, targets = rest[:n_outputs], rest[n_outputs : 2 * n_outputs], rest[2 * n_outputs :]
        inputs = [
            None if value is None else wrap(_storage_over(array, target), value)
            for value, array, target in zip(node.inputs, data, targets, strict=True)
        ]
        outputs = [wrap(_storage_over(array, gradient), None) for array, gradient in zip(results, gradients, strict=True)]
        # never told to accumulate: adding up is the business of the engine
        node.python.backward_impl(inputs, outputs, self._wanted, [False] * n_inputs)
        for variable, target in zip(inputs, targets, strict=True):
            if variable is not None and target is not None:
                _bring(variable.storage.grad, target)


def _storage_over(array: Array, grad: Array | None = None) -> Storage:
    made = Storage(_array_over(array))
    if grad is not None:
        made.grad = _array_over(grad)
    return made


def _array_over(raw: Array) -> NdArray:
    array = NdArray(raw.shape)
    if isinstance(raw, np.ndarray):
        key = (HOST, raw.dtype.name)
        array.synced.copies[key] = raw
        array.synced.move_latest(key)
    else:
        array.data = raw
    return array


def _bring(array: NdArray, target: Array) -> None:
    synced = array.synced
    # a method may write into the array that it got, or put another in its place
    if synced.latest is None or synced.pending_fill is not None or synced.copies[synced.latest] is not target:
        target[...] = array.get_data("r")
