"""A pass and a fusion over graphs, a viewer that writes a graph as text, and a monitor."""

from collections.abc import Mapping

import nn_core as nn
from nn_core.experimental.graph_converters import FunctionModifier
from nn_core.ext import TracedCall
from nn_core.function import Function


class DropDropout(FunctionModifier):
    """Leave dropout out: ``GraphConverter(["drop_dropout"])``."""

    def modify(self, f: Function, inputs: list[nn.Variable]) -> nn.Variable | None:
        """Return the input in the place of the output."""
        return inputs[0] if f.info.type_name == "Dropout" else None


class SigmoidThenRelu:
    """Run ``F.relu(F.sigmoid(x))`` as ``F.sigmoid(x)`` where no gradients are computed: a sigmoid is never negative."""

    chain = ("Sigmoid", "ReLU")
    function = "Sigmoid"

    def settings(self, *args: Mapping[str, object]) -> Mapping[str, object]:
        """Return no parameters: a sigmoid has none."""
        return {}


class TextViewer:
    """Writes the functions of a graph, one a line."""

    def view(self, output: nn.Variable) -> str:
        """Return the text."""
        lines: list[str] = []
        output.visit(lambda function: lines.append(f"{function.name} {[v.shape for v in function.inputs]}"))
        return "\n".join(lines)


class LastValueMonitor:
    """Keeps the last value that it was given."""

    def __init__(self, name: str) -> None:
        self.name, self.value = name, float("nan")

    def add(self, index: int, value: float) -> None:
        """Keep `value`."""
        self.value = float(value)


class CallCounter:
    """Counts the runs of each function."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def __call__(self, call: TracedCall) -> None:
        """Count one run."""
        self.counts[call.function] = self.counts.get(call.function, 0) + 1
