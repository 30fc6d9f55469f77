"""Drawings of graphs: with Graphviz where that is installed, as a page for browsers where it is not."""

import importlib
import importlib.util
import shutil
import tempfile
import webbrowser
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nn_core.engine.error_messages.refusal import checked_count, fitted
from nn_core.engine.graph.parameter_sources import ParameterSource
from nn_core.engine.runtime.html import framed
from nn_core.errors import ArgumentError
from nn_core.experimental.viewers.dot import drawn_parts
from nn_core.experimental.viewers.dot import graph_dot as graph_dot
from nn_core.experimental.viewers.dumped import DumpGraph as DumpGraph
from nn_core.experimental.viewers.page import graph_page as graph_page
from nn_core.experimental.viewers.parts import Parts
from nn_core.variable import Variable


@dataclass(frozen=True)
class InlineGraph:
    """A drawing of a graph that a notebook shows.

    Attributes:
        page: The drawing as a page in HTML.
        height: Pixels of the output.
    """

    page: str = field(repr=False)
    height: int

    def _repr_html_(self) -> str:
        return framed(self.page, self.height)


class SimpleGraph:
    """Draws the graph that ends in a variable.

    Pictures need the package graphviz and the program ``dot``; the formats "html" and "dot" need nothing.

    Args:
        format: Format of the pictures: "png", "svg", "pdf" and what else ``dot`` writes; "html"; "dot".
        verbose: With the arguments of functions, and whether variables need gradients.
        fname_color_map: Colours of functions by the names of their types.
        vname_color_map: Colours of variables by name.

    Example:
        >>> import nn_core.functions as F
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = SimpleGraph(format="html").save(F.relu(Variable((2, 3))), f"{folder}/graph")
        ...     "ReLU" in Path(path).read_text()
        True
    """

    @fitted
    def __init__(
        self,
        format: str = "png",  # noqa: A002  # NNabla's name
        verbose: bool = False,
        fname_color_map: Mapping[str, str] | None = None,
        vname_color_map: Mapping[str, str] | None = None,
    ) -> None:
        self._format = format
        self._verbose = verbose
        self._functions = dict(fname_color_map or {})
        self._variables = dict(vname_color_map or {})

    def create_graphviz_digraph(
        self,
        vleaf: Variable,
        params: ParameterSource | None = None,
        format: str | None = None,  # noqa: A002
    ) -> Any:
        """Return the drawing as a ``graphviz.Digraph``.

        Args:
            vleaf: The variable.
            params: Parameters by name; None: those of the present scope.
            format: Format of its pictures; None: that of this object.

        Raises:
            ArgumentError: when the package graphviz is not installed.
        """
        try:
            graphviz = importlib.import_module("graphviz")
        except ImportError as error:
            raise ArgumentError(
                f"SimpleGraph: pictures need the package graphviz, got: {error}\n"
                "  hint: pip install graphviz, and install the program dot; or use format='html', which needs neither"
            ) from error
        digraph = graphviz.Digraph(format=format or self._format, node_attr={"style": "filled", "fontname": "sans-serif"})
        nodes, edges = drawn_parts(Parts.of(vleaf, params), self._verbose, self._functions, self._variables)
        for name, attributes in nodes:
            digraph.node(name, **attributes)
        digraph.edges(edges)
        return digraph

    def save(
        self,
        vleaf: Variable,
        fpath: str | Path,
        cleanup: bool = False,
        format: str | None = None,  # noqa: A002
    ) -> str:
        """Write the drawing to ``<fpath>.<format>``.

        Args:
            vleaf: The variable.
            fpath: Path of the file without the format.
            cleanup: Remove the file in the DOT language that Graphviz draws from.
            format: The format; None: that of this object.

        Returns:
            The path of the file.

        Raises:
            ArgumentError: when the format needs Graphviz, and that is not installed.
        """
        chosen = format or self._format
        path = Path(f"{fpath}.{chosen}")
        if chosen == "html":
            path.write_text(graph_page(vleaf), encoding="utf-8", errors="backslashreplace")
        elif chosen == "dot":
            path.write_text(graph_dot(vleaf, self._verbose), encoding="utf-8", errors="backslashreplace")
        else:
            digraph = self.create_graphviz_digraph(vleaf, format=chosen)
            if shutil.which("dot") is None:
                raise ArgumentError(
                    f"SimpleGraph: format {chosen!r} needs the program dot of Graphviz, got none on the PATH\n"
                    "  hint: install Graphviz; or use format='html', which a browser shows"
                )
            return str(digraph.render(str(fpath), cleanup=cleanup))
        return str(path)

    def inline(self, vleaf: Variable, height: int = 480, params: ParameterSource | None = None) -> "InlineGraph":
        """Return the drawing for the output of a notebook's cell; it needs no Graphviz.

        Args:
            vleaf: The variable.
            height: Pixels of the output; a larger drawing is scrolled.
            params: Parameters by name; None: those of the present scope.

        Raises:
            ArgumentError: when `height` is not a positive number.

        Example:
            >>> import nn_core.functions as F
            >>> "ReLU" in SimpleGraph().inline(F.relu(Variable((2, 3))))._repr_html_()
            True
        """
        return InlineGraph(graph_page(vleaf, params=params), checked_count("SimpleGraph.inline: height", height))

    def view(
        self,
        vleaf: Variable,
        fpath: str | Path | None = None,
        cleanup: bool = True,
        format: str | None = None,  # noqa: A002
        params: ParameterSource | None = None,
    ) -> str:
        """Write the drawing and show it; as a page in the browser when there is no Graphviz.

        Args:
            vleaf: The variable.
            fpath: Path of the file without the format; None: one in the folder of temporary files.
            cleanup: Remove the file in the DOT language that Graphviz draws from.
            format: The format; None: that of this object.
            params: Parameters by name; None: those of the present scope.

        Returns:
            The path of the file.
        """
        place = Path(tempfile.mkdtemp(prefix="nn_core_graph_")) / "graph" if fpath is None else Path(fpath)
        chosen = format or self._format
        if chosen != "html" and shutil.which("dot") and importlib.util.find_spec("graphviz"):
            digraph = self.create_graphviz_digraph(vleaf, params, chosen)
            return str(digraph.render(str(place), view=True, cleanup=cleanup))
        path = Path(f"{place}.html")
        path.write_text(graph_page(vleaf, params=params), encoding="utf-8", errors="backslashreplace")
        webbrowser.open(path.resolve().as_uri())
        return str(path)
