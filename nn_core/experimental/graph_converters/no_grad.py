"""Copies of graphs for inference."""

from collections.abc import Sequence

from nn_core.experimental.graph_converters.graph_converter import FunctionModifier
from nn_core.function import Function
from nn_core.variable import Variable


class NoGradModifier(FunctionModifier):
    """Copy the graph so that nothing in it needs a gradient; values are shared with the original."""

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | Sequence[Variable] | None:
        """Apply the function to inputs that need no gradient."""
        frozen = [v if not v.need_grad else v.get_unlinked_variable(need_grad=False) for v in inputs]
        results: Variable | Sequence[Variable] = f.applied_to(*frozen)
        return results
