"""Batch normalization by its running statistics."""

from nn_core.experimental.graph_converters.graph_converter import FunctionModifier
from nn_core.function import Function
from nn_core.variable import Variable

_NAMES = ("BatchNormalization", "FusedBatchNormalization", "SyncBatchNormalization", "FusedConvolution")


class BatchNormBatchStatModifier(FunctionModifier):
    """Let batch normalizations use running statistics, as they do in inference."""

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        """Apply batch normalizations with ``batch_stat=False``."""
        if f.info.type_name not in _NAMES or not f.info.args["batch_stat"]:
            return None
        result: Variable = f.applied_to(*inputs, batch_stat=False)
        return result
