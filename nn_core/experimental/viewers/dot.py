"""Graphs in the DOT language, which Graphviz and others draw."""

import json
from collections.abc import Mapping
from typing import Any, Final

from nn_core.experimental.viewers.parts import Call, Parts, Value, arguments_text
from nn_core.variable import Variable

_FUNCTION, _VARIABLE, _PARAMETER, _EDGE = "#2f5d8a", "#eeeeee", "#f6d5d5", "#555555"

#: Colours of functions and variables by name.
Colors = Mapping[str, str]

#: A part of a drawing: its name there, and its attributes.
Drawn = tuple[str, dict[str, str]]

_NO_COLORS: Final[Colors] = {}


def drawn_parts(
    parts: Parts, verbose: bool = False, functions: Colors = _NO_COLORS, variables: Colors = _NO_COLORS
) -> tuple[list[Drawn], list[tuple[str, str]]]:
    """Return a graph for Graphviz: nodes with their attributes, and edges."""
    nodes = [_drawn_value(value, verbose, variables) for value in parts.values]
    nodes += [_drawn_call(call, verbose, functions) for call in parts.calls]
    edges = [(f"v{number}", f"f{call.number}") for call in parts.calls for number in call.inputs]
    edges += [(f"f{call.number}", f"v{number}") for call in parts.calls for number in call.outputs]
    return nodes, edges


def graph_dot(variable: Variable, verbose: bool = False) -> str:
    """Return the graph that ends in `variable` in the DOT language; nothing needs to be installed.

    Args:
        variable: The variable.
        verbose: With the arguments of functions, and whether variables need gradients.

    Raises:
        ArgumentError: when it is no Variable.

    Example:
        >>> import nn_core.functions as F
        >>> print(graph_dot(F.relu(Variable((2, 3)))))
        digraph {
          node [fontname="sans-serif", style="filled"]
          "v0" [label="(2, 3)", fillcolor="#eeeeee", shape="ellipse"]
          "v1" [label="(2, 3)", fillcolor="#eeeeee", shape="ellipse"]
          "f0" [label="ReLU", fillcolor="#2f5d8a", fontcolor="white", shape="box"]
          "v0" -> "f0"
          "f0" -> "v1"
        }
    """
    nodes, edges = drawn_parts(Parts.of(variable), verbose)
    lines = [f"  {_quoted(name)} {_attributes(attributes)}" for name, attributes in nodes]
    lines += [f"  {_quoted(start)} -> {_quoted(end)}" for start, end in edges]
    style = '  node [fontname="sans-serif", style="filled"]'
    return "\n".join(["digraph {", style, *lines, "}"])


def _drawn_value(value: Value, verbose: bool, colors: Colors) -> Drawn:
    text = "\n".join([part for part in (value.name, str(value.variable.shape)) if part])
    if verbose:
        text += f"\nneed_grad={value.variable.need_grad}"
    color = colors.get(value.name, _PARAMETER if value.is_parameter else _VARIABLE)
    return f"v{value.number}", {"label": text, "fillcolor": color, "shape": "ellipse"}


def _drawn_call(call: Call, verbose: bool, colors: Colors) -> Drawn:
    lines = [call.name, call.scope, arguments_text(call.arguments) if verbose else ""]
    text = "\n".join([line for line in lines if line])
    color = colors.get(call.name, _FUNCTION)
    return f"f{call.number}", {"label": text, "fillcolor": color, "fontcolor": "white", "shape": "box"}


def _attributes(attributes: Mapping[str, Any]) -> str:
    return "[" + ", ".join(f"{name}={_quoted(value)}" for name, value in attributes.items()) + "]"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # DOT escapes quotation marks and line ends as JSON does
