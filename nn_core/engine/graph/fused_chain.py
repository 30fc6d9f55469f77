"""Fusions of plugins, compared with the functions that they replace in the first pass, or all with NN_CORE_CHECK_KERNELS=1."""

import functools
import weakref
from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from nn_core.engine.graph.array_functions import ArrayFunctions
from nn_core.engine.graph.call import PreparedKernel
from nn_core.engine.graph.node import Node, Value
from nn_core.errors import PluginError
from nn_core.settings import settings
from nn_core.typing import Array, Runner, Step, extra

#: How far results may differ, relative to the largest one, by dtype: a fusion rounds elsewhere.
_TOLERANCES: Final = {"float64": 1e-8, "float32": 1e-3}
_COARSE: Final = 5e-2


class FusedChain:
    """The functions in whose place a plan runs one.

    Args:
        label: The fusion, for messages.
        nodes: The functions, each of which reads the result of the one before as its first input.
    """

    def __init__(self, label: str, nodes: Sequence[Node]) -> None:
        self._label = label
        self._nodes = tuple(nodes)
        #: those that draw random numbers give others each time
        self._is_repeatable = not any(node.spec.has("seeded") or node.spec.has("dynamic_shape") for node in nodes)

    def guarded(self, runner: Runner, kernel: PreparedKernel) -> Runner:
        """`runner`, which runs instead of the functions, compared with them."""
        return ComparedRunner(runner, kernel, self) if self._is_repeatable else runner

    def require_same(self, kernel: PreparedKernel, inputs: Sequence[Array | None], result: Array) -> None:
        """Refuse a result that is not that of the functions.

        Args:
            kernel: The kernel that has computed it.
            inputs: Copies of its inputs on the device.
            result: The result as an array of NumPy.
        """
        expected = np.asarray(kernel.backend.to_numpy(self._computed(kernel, inputs)), np.float64)
        found = result.astype(np.float64)
        tolerance = _TOLERANCES.get(kernel.output_dtypes[0], _COARSE)
        finite = np.abs(expected[np.isfinite(expected)])
        if not np.allclose(found, expected, rtol=tolerance, atol=tolerance * float(finite.max(initial=0)), equal_nan=True):
            names = ", ".join(node.spec.name for node in self._nodes)
            worst = float(np.nanmax(np.abs(found - expected), initial=0))
            raise PluginError(
                f"{self._label}: {kernel.spec.name} must give what its chain gives, {names}, got a difference of {worst:.3g}"
            )

    def _computed(self, kernel: PreparedKernel, inputs: Sequence[Array | None]) -> Array:
        """Return the result of the functions, one after the other."""
        functions, rest = ArrayFunctions(kernel.context, kernel.space), list(inputs)
        # in the shapes that the functions have them in, which a link may have changed
        value: Any = _in_shape_of(rest.pop(0), self._nodes[0].inputs[0])
        for node in self._nodes:
            others = [_in_shape_of(rest.pop(0), own) for own in node.inputs[1:]]
            value = functions.run(node.spec, (value, *others), dict(node.args))
        return value


def _in_shape_of(array: Array | None, value: Value | None) -> Array | None:
    if array is None or value is None or array.shape == value.storage.data.shape:
        return array
    reshaped: Array = array.reshape(value.storage.data.shape)
    return reshaped


class ComparedRunner:
    """A runner whose first call is compared with the functions that it replaces."""

    def __init__(self, runner: Runner, kernel: PreparedKernel, chain: FusedChain) -> None:
        self.inner = runner
        self._kernel = kernel
        self._chain = chain

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def bind(self, *arrays: Array) -> Step:
        """Return a step that is not compared any more, unless each call is to be."""
        if settings().check_kernels:
            return functools.partial(self, *arrays)
        binder = extra(self.inner, "bind")
        return functools.partial(self.inner, *arrays) if binder is None else cast("Step", binder(*arrays))

    def __call__(self, *arrays: Array) -> None:
        backend, n_inputs = self._kernel.backend, len(self._kernel.input_dtypes)
        # copies, since an output may be in the memory of an input
        copies = [
            None if array is None else backend.from_numpy(np.array(backend.to_numpy(array), order="C"))
            for array in arrays[:n_inputs]
        ]
        self.inner(*arrays)
        self._chain.require_same(self._kernel, copies, np.array(backend.to_numpy(arrays[n_inputs])))


#: The chain that each function of a plan stands for which a fusion has put there.
CHAINS: Final[weakref.WeakKeyDictionary[Node, FusedChain]] = weakref.WeakKeyDictionary()
