"""A pass that counts functions, and a viewer that writes a graph as text."""

from collections import Counter

import nn_core as nn


def count_functions(output: nn.Variable) -> dict[str, int]:
    """How often each function is called in the graph of `output`."""
    found: Counter[str] = Counter()
    output.visit(lambda function: found.update([function.name]))
    return dict(found)


class TextViewer:
    """Writes the functions of a graph, one a line."""

    def view(self, output: nn.Variable) -> str:
        """The text."""
        lines: list[str] = []
        output.visit(lambda function: lines.append(f"{function.name} {[v.shape for v in function.inputs]}"))
        return "\n".join(lines)
