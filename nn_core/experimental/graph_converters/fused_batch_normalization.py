"""Batch normalization, addition and relu as one function."""

import numpy as np

from nn_core import function as operators
from nn_core.experimental.graph_converters.graph_converter import FunctionModifier
from nn_core.function import Function
from nn_core.variable import Variable


class FusedBatchNormalizationModifier(FunctionModifier):
    """Join batch normalization, addition (if there is one) and relu to FusedBatchNormalization, with its parameters.

    What other functions read in between stays apart.
    """

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        """Replace a relu that follows a batch normalization."""
        if f.name != "ReLU":
            return None
        found = self._normalization(f.inputs[0], inputs[0])
        if found is not None:
            return _fused(found, None)
        addition, new_addition = f.inputs[0].parent, inputs[0].parent
        if addition is None or new_addition is None or addition.name != "Add2" or not self.is_read_once(f.inputs[0]):
            return None
        for side in (0, 1):
            other = new_addition.inputs[1 - side]
            found = self._normalization(addition.inputs[side], new_addition.inputs[side])
            if found is not None and other.shape == found.outputs[0].shape:
                return _fused(found, other)
        return None

    def _normalization(self, original: Variable, copy: Variable) -> Function | None:
        """Return the batch normalization that only computes `copy` for one reader."""
        function = copy.parent
        if function is None or function.name != "BatchNormalization" or not self.is_read_once(original):
            return None
        return function if len(function.inputs) >= 3 - function.args["no_scale"] - function.args["no_bias"] else None


def _fused(f: Function, z: Variable | None) -> Variable:
    args = f.args
    x, *rest = f.inputs
    n_given = 2 - args["no_bias"] - args["no_scale"]
    shape = tuple(x.shape[axis] if axis in args["axes"] else 1 for axis in range(x.ndim))
    beta = _constant(shape, 0.0) if args["no_bias"] else rest[0]
    gamma = _constant(shape, 1.0) if args["no_scale"] else rest[n_given - 1]
    statistics = rest[n_given:] or [_constant(shape, 0.0), _constant(shape, 1.0)]
    settings = {name: args[name] for name in ("axes", "decay_rate", "eps", "batch_stat")}
    fused = operators.FusedBatchNormalization(f.context, **settings)
    result: Variable = fused(x, beta, gamma, *statistics, *(() if z is None else (z,)))
    return result


def _constant(shape: tuple[int, ...], value: float) -> Variable:
    return Variable.from_numpy_array(np.full(shape, value, np.float32))
