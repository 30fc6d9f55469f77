"""Every operator on raw arrays, at once: the F of gradient rules in ``backward()``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nn_core.context import Context
from nn_core.engine.arrays.synced import HOST, Space
from nn_core.engine.dispatch.given_dtypes import GivenDtypes, given_dtypes
from nn_core.engine.dispatch.registry import REGISTRY, spec_of_api
from nn_core.engine.graph.call import PreparedKernel, resolved_call
from nn_core.engine.graph.infer import input_entries
from nn_core.engine.graph.run import compute, fetch_raw
from nn_core.errors import ArgumentError
from nn_core.operators.spec.model import FunctionSpec
from nn_core.typing import Array


def bound_arguments(
    spec: FunctionSpec, positional: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Split what an operator was called with into its inputs and its settings."""
    keywords = dict(keywords)
    if spec.variadic:
        return tuple(positional), keywords
    inputs = list(positional[: len(spec.inputs)])
    for entry in spec.inputs[len(inputs) :]:
        if entry.name not in keywords and not entry.optional:
            raise ArgumentError(f"{spec.api}: input {entry.name} must be given, got none")
        inputs.append(keywords.pop(entry.name, None))
    settings = positional[len(spec.inputs) :]
    if len(settings) > len(spec.args):
        n_taken = len(spec.inputs) + len(spec.args)
        raise ArgumentError(f"{spec.api}: must get at most {n_taken} positional arguments, got {len(positional)}")
    for arg, value in zip(spec.args, settings, strict=False):
        keywords[arg.name] = value
    return tuple(inputs), keywords


class OperatorsOfPlugin:
    """The operators of one plugin in the F of gradient rules: ``F.<plugin>.<name>``.

    Args:
        plugin: Its name.
        make: Makes the function of an operator.
    """

    def __init__(self, plugin: str, make: Callable[[FunctionSpec], Callable[..., Any]]) -> None:
        self._plugin = plugin
        self._make = make

    def __getattr__(self, api: str) -> Callable[..., Any]:
        spec = REGISTRY.spec_of_plugin(self._plugin, api)
        if spec is None:
            raise AttributeError(f"F.{self._plugin}: must have an operator of a loaded plugin, got {api!r}")
        function = self._make(spec)
        setattr(self, api, function)
        return function


def operator_or_namespace(api: str, make: Callable[[FunctionSpec], Callable[..., Any]]) -> Any:
    """Return ``F.<api>`` of gradient rules: an operator, made by `make`, or the operators of a loaded plugin of that name."""
    if REGISTRY.spec_of_api(api) is None and REGISTRY.of_plugin(api):
        return OperatorsOfPlugin(api, make)
    return make(spec_of_api(api))


class ArrayFunctions:
    """Every operator under its API name, computing at once on raw arrays: the F of gradient rules in ``backward()``.

    Args:
        context: Context of the computation.
        space: Memory space of the arrays that it takes and returns; some functions may compute elsewhere.
    """

    def __init__(self, context: Context, space: Space = HOST) -> None:
        self._context = context
        self._space = space

    def __getattr__(self, api: str) -> Any:
        found = operator_or_namespace(api, self._operator)
        # an attribute from now on: rules ask for the same few functions in every pass
        setattr(self, api, found)
        return found

    def _operator(self, spec: FunctionSpec) -> Callable[..., Any]:
        def operator(*positional: Any, **keywords: Any) -> Any:
            return self.run(spec, *bound_arguments(spec, positional, keywords))

        operator.__name__ = spec.api
        return operator

    def run(self, spec: FunctionSpec, inputs: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """Return the results of a function of raw arrays."""
        shapes = [None if array is None else tuple(array.shape) for array in inputs]
        call = resolved_call(spec, given, shapes)
        if spec.has("view"):  # gradient rules never write to what they get: memory may be shared
            return inputs[0].reshape(call.output_shapes[0])
        kernel = call.kernel(self._context, _given_dtypes_of(spec, inputs) if call.takes_given else ())
        space = kernel.space
        arrays: list[Any] = [
            None if array is None else fetch_raw(self._moved(array, space), space, str(dtype))
            for array, dtype in zip(inputs, kernel.input_dtypes, strict=True)
        ]
        results = _computed(kernel, arrays)
        # a rule continues with arrays of one space, whichever backend had a kernel for this function
        if space is not self._space:
            results = [self._moved(result, self._space) for result in results]
        return results[0] if call.single else tuple(results[: call.n_visible])

    def _moved(self, array: Array, space: Space) -> Array:
        """Return `array`, which is on the host or where the differentiated function computes, in `space`."""
        if self._space is HOST and space is HOST:
            return array
        on_host = type(array) is np.ndarray or isinstance(array, np.generic)
        if on_host == (space is HOST):
            return array
        return self._space.to_numpy(array) if space is HOST else space.from_numpy(np.asarray(array))


def _given_dtypes_of(spec: FunctionSpec, inputs: Sequence[Any]) -> GivenDtypes:
    held = [None if array is None else str(array.dtype) for array in inputs]
    return given_dtypes(input_entries(spec, len(inputs)), held)


def _computed(kernel: PreparedKernel, arrays: Sequence[Array | None]) -> Sequence[Array]:
    if kernel.dynamic:
        results: Sequence[Array] = compute(kernel, arrays)
        return results
    made = [make() for make in kernel.makers]
    compute(kernel, [*arrays, *made])
    return made
