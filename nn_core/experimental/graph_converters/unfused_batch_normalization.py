"""FusedBatchNormalization as the functions that it stands for."""

import nn_core.functions as F
from nn_core import function as operators
from nn_core.experimental.graph_converters.graph_converter import FunctionModifier
from nn_core.function import Function
from nn_core.variable import Variable


class UnfusedBatchNormalizationModifier(FunctionModifier):
    """Replace FusedBatchNormalization by batch normalization, addition and relu, with its parameters."""

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        """Replace a FusedBatchNormalization."""
        if f.name != "FusedBatchNormalization":
            return None
        settings = {name: f.args[name] for name in ("axes", "decay_rate", "eps", "batch_stat")}
        y = operators.BatchNormalization(f.context, **settings)(*inputs[:5])
        result: Variable = F.relu(y if len(inputs) < 6 else F.add2(y, inputs[5]))
        return result
