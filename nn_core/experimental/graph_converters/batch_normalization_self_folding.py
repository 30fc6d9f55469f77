"""Batch normalization as one multiplication and one addition."""

import numpy as np

import nn_core.functions as F
from nn_core.experimental.graph_converters.batch_normalization_folding import linear_form
from nn_core.experimental.graph_converters.graph_converter import FunctionModifier
from nn_core.function import Function
from nn_core.parametric_functions.scope import set_parameter
from nn_core.variable import Variable


class BatchNormalizationSelfFoldingModifier(FunctionModifier):
    """Replace batch normalizations with running statistics by ``c0 * x + c1``.

    Args:
        name: scope of the parameters ``c0-<name>-<number>`` and ``c1-<name>-<number>``.
    """

    def __init__(self, name: str = "bn-self-folding") -> None:
        super().__init__()
        self.name = name
        self._count = 0

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        """Replace a batch normalization."""
        if f.name != "BatchNormalization":
            return None
        form = linear_form(type(self).__name__, f, inputs)
        c0, c1 = (
            self._parameter(f"c{index}-{self.name}-{self._count}", values)
            for index, values in enumerate((form.scale, form.shift))
        )
        self._count += 1
        result: Variable = F.add2(F.mul2(c0, inputs[0]), c1)
        return result

    def finish_up(self) -> None:
        """Count the parameters of the next graph from 0."""
        super().finish_up()
        self._count = 0

    def _parameter(self, name: str, values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Variable:
        parameter = Variable.from_numpy_array(values.astype(np.float32), need_grad=True)
        parameter.name = name
        set_parameter(f"{self.name}/{name}", parameter)
        return parameter
