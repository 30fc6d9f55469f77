"""Graphs for inference from graphs for training."""

from collections.abc import Sequence

from nn_core.experimental.graph_converters.batch_norm_batchstat import BatchNormBatchStatModifier
from nn_core.experimental.graph_converters.graph_converter import FunctionModifier
from nn_core.experimental.graph_converters.remove_function import RemoveFunctionModifier


class TestModeModifier(list[FunctionModifier]):
    """Use running statistics, and leave out functions that only training has.

    Args:
        rm_funcs: names of operators to leave out, such as "Dropout".
    """

    __test__ = False  # no test class of pytest

    def __init__(self, rm_funcs: Sequence[str] = ()) -> None:
        super().__init__([BatchNormBatchStatModifier(), RemoveFunctionModifier(rm_funcs)])
