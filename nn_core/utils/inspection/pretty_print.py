"""Print the functions of a graph with their shapes, arguments and values."""

import sys
from collections.abc import Callable, Sequence
from typing import IO, Any, Final

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.graph.parameter_sources import scopes_of_parameters
from nn_core.function import Function
from nn_core.variable import Variable

#: The statistics of values in a summary.
_STATISTICS: Final[dict[str, Callable[[np.ndarray[Any, Any]], Any]]] = {
    "Med": np.median,
    "Ave": np.mean,
    "Std": np.std,
    "Min": np.min,
    "Max": np.max,
}


class PrettyPrinter:
    """Collects a description of each function that it is called with, as `Variable.visit` does.

    Args:
        summary: Describe values and gradients by median, mean, deviation, least and largest.
        hidden: Without effect; kept for programs that give it.

    Attributes:
        functions: A description of each function, as lines of text.
    """

    @fitted
    def __init__(self, summary: bool = False, hidden: bool = False) -> None:
        self.functions: list[str] = []
        self._summary = summary
        self._scopes = scopes_of_parameters()
        self._depths: dict[Any, int] = {}  # functions on the longest path to each storage

    def __call__(self, f: Function) -> None:
        scopes = [scope for scope in map(self.get_scope_name, f.inputs) if scope]
        scope = f"{scopes[0]}/" if scopes else ""
        lines = [
            f"{scope}{f.name}({f.info.type_name})",
            f"Depth = {self._depth_of(f)}",
            f"Args: {[f'{name}={value}' for name, value in f.info.args.items()]}",
            f"Inputs: {[variable.shape for variable in f.inputs]}",
            f"Outputs: {[variable.shape for variable in f.outputs]}",
            f"Backward Inputs: {[variable.need_grad for variable in f.inputs]}",
        ]
        if self._summary:
            for title, variables in (("Input", f.inputs), ("Output", f.outputs)):
                lines += _statistics(f"{title} Data:", [variable.data for variable in variables])
                lines += _statistics(f"{title} Grads:", [variable.grad for variable in variables])
        self.functions.append("\n\t".join(lines))

    def _depth_of(self, f: Function) -> int:
        """Return the number of functions on the longest path that ends in a function, and note it for those that follow."""
        depth = 1 + max([self._depths.get(variable.storage, 0) for variable in f.inputs], default=0)
        self._depths.update((variable.storage, depth) for variable in f.outputs)
        return depth

    def get_scope_name(self, x: Variable) -> str:
        """Return the scope of a parameter; "" for other variables."""
        return self._scopes.get(x.storage, "") if x.is_leaf else ""

    def __str__(self) -> str:
        return "\n".join(self.functions)


@fitted
def pprint(
    v: Variable,
    forward: bool = False,
    backward: bool = False,
    summary: bool = False,
    hidden: bool = False,
    printer: bool = False,
    file: IO[str] | None = None,
) -> PrettyPrinter | None:
    """Print the functions of the graph that ends in a variable.

    Args:
        v: The variable.
        forward: Run a forward pass first.
        backward: Run a backward pass after it.
        summary: Describe values and gradients, those that are in memory.
        hidden: Without effect; kept for programs that give it.
        printer: Return the printer.
        file: File to print to; None: standard output.

    Returns:
        The `PrettyPrinter` with `printer`, else None.

    Example:
        >>> import io, nn_core as nn, nn_core.functions as F
        >>> text = io.StringIO()
        >>> pprint(F.relu(nn.Variable((2, 3))), file=text)
        >>> text.getvalue().splitlines()[0]
        'ReLU(ReLU)'
    """
    if forward:
        v.forward()
    if backward:
        v.backward()
    found = PrettyPrinter(summary, hidden)
    v.visit(found)
    (sys.stdout if file is None else file).write(f"{found}\n")
    return found if printer else None


def _statistics(title: str, arrays: Sequence[NdArray]) -> list[str]:
    """Lines about arrays; those that hold nothing count as zeros."""
    values = [np.zeros(1) if array.is_unwritten else np.asarray(array.get_data("r"), np.float64) for array in arrays]
    numbers = {name: [float(f"{function(array):.7g}") for array in values] for name, function in _STATISTICS.items()}
    return [title, *[f"\t{name}:  {row}" for name, row in numbers.items()]]
