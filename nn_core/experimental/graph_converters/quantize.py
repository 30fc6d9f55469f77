"""Graphs that record the ranges of values, and graphs that round values to 8-bit levels within these ranges."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import nn_core.functions as F
from nn_core.errors import ArgumentError
from nn_core.experimental.graph_converters.graph_converter import FunctionModifier
from nn_core.experimental.quantization import scales
from nn_core.experimental.quantization.choices import RecorderPosition
from nn_core.experimental.quantization.config import QATConfig
from nn_core.experimental.quantization.ranks import UNRANKED, first_layers, is_parameter, last_layers
from nn_core.function import Function
from nn_core.parametric_functions.scope import parameter_scope
from nn_core.variable import Variable

_CALLBACKS: Final = {
    kind.name(): kind
    for kind in (
        scales.AbsMaxRecorderCallback,
        scales.MaxMaxRecorderCallback,
        scales.MaxMvaRecorderCallback,
        scales.MinMaxMinMaxRecorderCallback,
        scales.MinMaxMvaRecorderCallback,
    )
}
#: Functions with a weight and a bias as their second and third input.
_INNER_PRODUCTS: Final = ("Affine", "Convolution", "Deconvolution")


class QuantizeNonQNNToRecordingModifier(FunctionModifier):
    """Put recorders before the functions that are to be quantized.

    The range of an input is a parameter in the scope ``<function>-<rank>``: ``M-x0`` of the first value, ``M-w0`` of the
    first parameter, and so on; ``M-y0`` of a result.

    Args:
        functions_ranks: The functions of the graph in order; see `nn_core.utils.qnn.FunctionsRankRecorder`.
        config: What to record; None: `nn_core.utils.qnn.QATConfig()`.
        training: Whether forward passes change the ranges.
    """

    def __init__(
        self, functions_ranks: Mapping[Function, int], config: QATConfig | None = None, training: bool = True
    ) -> None:
        super().__init__()
        self.functions_ranks = functions_ranks
        self.config = QATConfig() if config is None else config
        self.training = training
        self._first, self._last = first_layers(functions_ranks), last_layers(functions_ranks)

    def get_function_rank(self, f: Function) -> int:
        """Return the rank of a function; -1 when it was not counted."""
        return self.functions_ranks.get(f, UNRANKED)

    def check(self, f: Function) -> bool:
        """Tell whether the inputs of `f` are to be recorded."""
        if self.config.record_layers and f.name not in self.config.record_layers:
            return False
        skipped = f in self._first and f.name in self.config.skip_inputs_layers
        return not skipped and not (f in self._last and f.name in self.config.skip_outputs_layers)

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | Sequence[Variable] | None:
        """Apply `f` to its inputs by recorders."""
        if not self.check(f):
            return None
        results = f.applied_to(*self.add_recorder(f, inputs, self.config))
        if self.config.recorder_position is RecorderPosition.BOTH and isinstance(results, Variable):
            with parameter_scope(self._scope_of(f)):
                return self._record(results, "y0", self.config.recorder_activation)
        return results

    def add_recorder(self, f: Function, inputs: Sequence[Variable], cfg: QATConfig) -> list[Variable]:
        """Record the inputs of a function.

        Args:
            f: The function in the original graph.
            inputs: Its inputs in the new one.
            cfg: How to record.

        Returns:
            The results of the recorders.
        """
        recorded, counts = [], {"x": 0, "w": 0}
        with parameter_scope(self._scope_of(f)):
            for original, variable in zip(f.inputs, inputs, strict=True):
                kind = "w" if is_parameter(original) else "x"
                callback = cfg.recorder_weight if kind == "w" else cfg.recorder_activation
                recorded.append(self._record(variable, f"{kind}{counts[kind]}", callback))
                counts[kind] += 1
        return recorded

    def _record(self, variable: Variable, name: str, callback: Any) -> Variable:
        result: Variable = callback()(variable, training=self.training, name=name)
        return result

    def _scope_of(self, f: Function) -> str:
        return f"{f.name}-{self.get_function_rank(f)}"


class QuantizeRecordingToTrainingModifier(FunctionModifier):
    """Put the rounding to 8-bit levels in the place of recorders.

    The scale of a bias is that of the first value times that of the first parameter, as integer arithmetic needs it.

    Args:
        functions_ranks: No effect: the names of the ranges say which function they belong to.
        config: How to quantize; None: `nn_core.utils.qnn.QATConfig()`.
    """

    def __init__(self, functions_ranks: Mapping[Function, int] | None = None, config: QATConfig | None = None) -> None:
        super().__init__()
        self.functions_ranks = functions_ranks
        self.config = QATConfig() if config is None else config
        self.config.require_supported(type(self).__name__)

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        """Replace a recorder.

        Raises:
            ArgumentError: when its range is no parameter of the current scope.
        """
        if f.name not in _CALLBACKS:
            return None
        scope, _, end = self._name_of(f.inputs[-1]).rpartition("/")
        if not end.startswith("M-"):
            raise ArgumentError(
                f"{type(self).__name__}: the range of {f!r} must be a parameter of the current scope, got none"
            )
        name, x = end.removeprefix("M-"), inputs[0]
        is_bias = name == "w1" and scope.rpartition("/")[2].partition("-")[0] in _INNER_PRODUCTS
        if is_bias and self.config.skip_bias:
            return x
        with parameter_scope(scope):
            scale, zero_point = scales.put_scale("b" if is_bias else name, self._scale(f, name, is_bias), x.ndim)
        levels = F.quantize_linear(x, scale, zero_point, self.config.round_mode, self.config.narrow_range)
        result: Variable = F.dequantize_linear(levels, scale, zero_point)
        return result

    def _scale(self, recorder: Function, name: str, is_bias: bool) -> float:
        pow2 = self.config.pow2
        if not is_bias:
            return _CALLBACKS[recorder.name].scale_of(name, pow2)
        of_value: float = self.config.recorder_activation.scale_of("x0", pow2)
        of_weight: float = self.config.recorder_weight.scale_of("w0", pow2)
        return of_value * of_weight
