"""Copies of graphs on other inputs."""

from collections.abc import Mapping

from nn_core.errors import ShapeError
from nn_core.experimental.graph_converters.graph_converter import FunctionModifier
from nn_core.variable import Variable


class IdentityModifier(FunctionModifier):
    """Copy the graph, on other inputs.

    Args:
        inputs: variables of the graph, and what takes their place; the others are shared.
        copy_value: whether the new ones take over the values of the old ones.

    Raises:
        ShapeError: when values are to be copied between different shapes.
    """

    def __init__(self, inputs: Mapping[Variable, Variable] | None = None, copy_value: bool = False) -> None:
        super().__init__()
        self.inputs = dict(inputs or {})
        if copy_value:
            for original, replacement in self.inputs.items():
                if original.shape != replacement.shape:
                    raise ShapeError(
                        f"IdentityModifier: with copy_value, inputs must keep the shape {original.shape}, "
                        f"got {replacement.shape}"
                    )
                replacement.data.copy_from(original.data)

    def replaced_inputs(self) -> Mapping[Variable, Variable]:
        """Return the inputs that were given."""
        return self.inputs
