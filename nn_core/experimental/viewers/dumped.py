"""Write a graph when training starts."""

from typing import Any

from nn_core.engine.error_messages.refusal import fitted
from nn_core.experimental.viewers.dot import graph_dot
from nn_core.experimental.viewers.page import graph_page
from nn_core.training.triggers import once
from nn_core.variable import Variable


class DumpGraph:
    """An extension of the trainer that writes the graph of a variable when training starts.

    Args:
        variable: The variable, such as the loss.
        path: The file, in the folder of the trainer: .html for a page that a browser shows, else DOT for Graphviz.
    """

    name = "DumpGraph"
    phase = "read"
    every = once()
    first_rank_only = True

    @fitted
    def __init__(self, variable: Variable, path: str = "graph.html") -> None:
        self._variable = variable
        self._path = path

    def start(self, trainer: Any) -> None:
        """Write the file."""
        is_page = self._path.endswith((".html", ".htm"))
        text = graph_page(self._variable) if is_page else graph_dot(self._variable)
        (trainer.out / self._path).write_text(text, encoding="utf-8", errors="backslashreplace")

    def __call__(self, trainer: Any) -> None:
        """Do nothing: the graph is written already."""
