"""Graphs without some functions."""

from collections.abc import Sequence

from nn_core.errors import ShapeError
from nn_core.experimental.graph_converters.graph_converter import FunctionModifier
from nn_core.function import Function
from nn_core.variable import Variable


class RemoveFunctionModifier(FunctionModifier):
    """Leave functions out: what reads them gets their first input instead.

    Args:
        rm_funcs: names of operators, such as "Dropout".
    """

    def __init__(self, rm_funcs: Sequence[str] = ()) -> None:
        super().__init__()
        self.rm_funcs = tuple(rm_funcs)

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        """Give the first input of functions that are to go.

        Raises:
            ShapeError: when its shape is not that of the output.
        """
        if f.info.type_name not in self.rm_funcs:
            return None
        if len(f.results) != 1 or not inputs or f.results[0].shape != f.inputs[0].shape:
            raise ShapeError(
                f"RemoveFunctionModifier: a function can only go if its output has the shape of its first input, got {f!r}"
            )
        return inputs[0]
