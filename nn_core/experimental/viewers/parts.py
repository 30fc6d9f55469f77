"""The functions and variables of a graph, as what drawings are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nn_core.engine.error_messages.refusal import described
from nn_core.engine.graph.parameter_sources import ParameterSource, parameters_of
from nn_core.errors import ArgumentError
from nn_core.function import Function
from nn_core.graph_rewriting import parameters_behind
from nn_core.variable import Variable


@dataclass(frozen=True, slots=True)
class Value:
    """A variable.

    Attributes:
        number: Its number in the drawing.
        name: The last part of the name of a parameter, else its own name; "" without.
        is_parameter: Whether it is one.
        is_leaf: Whether no function computes it.
        variable: The variable.
    """

    number: int
    name: str
    is_parameter: bool
    is_leaf: bool
    variable: Variable


@dataclass(frozen=True, slots=True)
class Call:
    """A function with the numbers of its inputs and outputs.

    Attributes:
        number: Its number in the drawing.
        name: Name of its type.
        scope: The scope of its parameters; "" without.
        arguments: Its arguments.
        inputs: Numbers of its inputs.
        outputs: Numbers of its outputs.
    """

    number: int
    name: str
    scope: str
    arguments: Mapping[str, Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """A graph in the order in which it runs."""

    values: list[Value] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    @staticmethod
    def of(leaf: Variable, params: ParameterSource | None = None) -> "Parts":
        """Return the graph that ends in `leaf`.

        Args:
            leaf: The variable.
            params: Parameters by name, a module, or the name of a scope; None: those of the current scope and of modules.

        Raises:
            ArgumentError: when `leaf` is no Variable.
        """
        if not isinstance(leaf, Variable):
            raise ArgumentError(f"viewers: the end of a graph must be a Variable, got {described(leaf)}")
        names = parameters_behind([leaf]) if params is None else parameters_of("viewers", params)
        return _Collector(names).collect(leaf)


class _Collector:
    def __init__(self, params: Mapping[str, Variable]) -> None:
        self._names = {variable.storage: name for name, variable in params.items()}
        self._numbers: dict[Any, int] = {}
        self._parts = Parts()

    def collect(self, leaf: Variable) -> Parts:
        leaf.visit(self._add)
        self._number(leaf)  # a variable without a function
        return self._parts

    def _add(self, function: Function) -> None:
        inputs = tuple(self._number(variable) for variable in function.inputs)
        outputs = tuple(self._number(variable) for variable in function.results)
        scopes = [self._names[v.storage].rpartition("/")[0] for v in function.inputs if v.storage in self._names]
        name, arguments = function.info.type_name, dict(function.info.args)
        number = len(self._parts.calls)
        self._parts.calls.append(Call(number, name, scopes[0] if scopes else "", arguments, inputs, outputs))

    def _number(self, variable: Variable) -> int:
        # The storage belongs to a leaf, the producer and the place to a result: in-place functions share arrays.
        key = variable.storage if variable.is_leaf else (variable.producer, variable.output_index)
        known = self._numbers.get(key)
        if known is not None:
            return known
        number = self._numbers[key] = len(self._parts.values)
        parameter = self._names.get(variable.storage) if variable.is_leaf else None
        name = variable.name or "" if parameter is None else parameter.rpartition("/")[2]
        self._parts.values.append(Value(number, name, parameter is not None, variable.is_leaf, variable))
        return number


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Return the arguments of a function in one line."""
    return ", ".join(f"{name}={_plain(value)}" for name, value in arguments.items())


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
