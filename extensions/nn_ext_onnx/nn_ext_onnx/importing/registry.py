"""The table of operators: which converter builds which, from which version on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import product, zip_longest
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from onnx import helper

import nn_core as nn
from nn_ext_onnx.importing.values import Array, UnsupportedError, Value, is_tensor

#: The result of a converter: a variable, known numbers, a value, or a sequence of these for several outputs.
Made: TypeAlias = "nn.Variable | Array | Value | Sequence[nn.Variable | Array | Value | None]"


@dataclass(slots=True)
class Node:
    """One operator of the model, with the values that it reads.

    Attributes:
        proto: the node.
        inputs: its inputs; None where optional ones are left out.
        opset: version of the operator set of its domain.
        dtypes: of its outputs, as its schema infers them; None where it does not.
        shapes: of its outputs, where the schema infers all lengths.
        builder: what builds the graph, for subgraphs.
        origin: the levels that the first output is made of, where the converter says so.
    """

    proto: onnx.NodeProto
    inputs: list[Value | None]
    opset: int
    builder: Any
    dtypes: list[np.dtype[Any] | None] = field(default_factory=list)
    shapes: list[tuple[int, ...] | None] = field(default_factory=list)
    origin: Any = None

    @property
    def kind(self) -> str:
        """The name of the operator."""
        return str(self.proto.op_type)

    @property
    def x(self) -> nn.Variable:
        """The variable of the first input."""
        return self.variable(0)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first input."""
        return self[0].shape

    @property
    def ndim(self) -> int:
        """The number of axes of the first input."""
        return self[0].ndim

    def __getitem__(self, index: int) -> Value:
        value = self.optional(index)
        if value is None:
            raise UnsupportedError(f"input {index} must be given")
        return value

    def optional(self, index: int) -> Value | None:
        """Return an input, or None where it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def variable(self, index: int) -> nn.Variable:
        """Return the variable of an input."""
        return self[index].variable

    def optional_variable(self, index: int) -> nn.Variable | None:
        """Return the variable of an input, or None where it is left out."""
        value = self.optional(index)
        return None if value is None else value.variable

    def array(self, index: int) -> Array:
        """Return the numbers of an input that must be known when the graph is built."""
        return self[index].array

    def optional_array(self, index: int) -> Array | None:
        """Return the numbers of an input, or None where it is left out."""
        value = self.optional(index)
        return None if value is None else value.array

    def ints(self, index: int) -> tuple[int, ...]:
        """Return an input of integers as a tuple."""
        return tuple(int(v) for v in self.array(index).reshape(-1))

    def number(self, index: int, default: Any = None) -> Any:
        """Return the only number of an input."""
        array = self.optional_array(index)
        return default if array is None else array.reshape(-1)[0].item()

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute, texts decoded."""
        for attribute in self.proto.attribute:
            if attribute.name == name:
                value = helper.get_attribute_value(attribute)
                if isinstance(value, bytes):
                    return value.decode()
                if attribute.type == onnx.AttributeProto.STRINGS:
                    return [text.decode() for text in value]
                return list(value) if isinstance(value, (list, tuple)) else value
        return default

    def axes(self, index: int, name: str = "axes") -> tuple[int, ...] | None:
        """Axes that newer operators take as input `index`, older ones as an attribute; from 0 on."""
        given = self.attr(name)
        if given is None and self.optional(index) is not None:
            given = self.ints(index)
        return None if given is None else tuple(self.axis_of(axis) for axis in given)

    def gives(self, *dtypes: np.dtype[Any]) -> None:
        """Say the element types of the outputs, where no schema does."""
        self.dtypes = [known or said for known, said in zip_longest(self.dtypes, dtypes)]

    def axis_of(self, axis: int, ndim: int | None = None) -> int:
        """Return an axis counted from the start.

        Raises:
            UnsupportedError: when there is no such axis.
        """
        n = self.ndim if ndim is None else ndim
        if not -n <= axis < n:
            raise UnsupportedError(f"axis {axis} of a value with {n} axes")
        return axis % n


Converter: TypeAlias = "Callable[[Node], Made]"

#: Computes the outputs of an operator from numbers.
Computation: TypeAlias = "Callable[[Node], Sequence[Array]]"

#: By domain and name: converters by the version of the operator that they begin with.
OPERATORS: Final[dict[tuple[str, str], dict[int, Converter]]] = {}
#: Operators whose converters take integers as well; for others these are computed on the host.
WHOLE: Final[set[tuple[str, str]]] = set()
#: Operators whose converters give integers for floating-point numbers.
WHOLE_RESULTS: Final[set[tuple[str, str]]] = set()

#: Operators that are computed by nn_core when their inputs are known; ONNX's own implementations take long for some.
FROM_NUMBERS: Final[dict[tuple[str, str], Computation]] = {}


#: Operators on sequences and optional values, by name; they get the node, and the values around it.
SEQUENCES: Final[dict[str, Callable[[Node, Any], Sequence[Value | None]]]] = {}


def operator(
    *names: str, since: int = 1, domains: Sequence[str] = ("",), takes_whole: bool = False, gives_whole: bool = False
) -> Callable[[Converter], Converter]:
    """Register the decorated function for operators from version `since` on."""

    def decorate(function: Converter) -> Converter:
        for domain, name in product(domains, names):
            OPERATORS.setdefault((domain, name), {})[since] = function
            if takes_whole:
                WHOLE.add((domain, name))
            if gives_whole:
                WHOLE_RESULTS.add((domain, name))
        return function

    return decorate


def from_numbers(name: str, domain: str = "") -> Callable[[Computation], Computation]:
    """Register the decorated function for an operator whose inputs are known."""

    def decorate(function: Computation) -> Computation:
        FROM_NUMBERS[domain, name] = function
        return function

    return decorate


def find(domain: str, name: str, version: int) -> Converter | None:
    """Return the converter for a version of an operator: the newest one that is not newer."""
    found = OPERATORS.get((domain, name), {})
    fitting = [since for since in found if since <= version]
    return found[max(fitting)] if fitting else None


def find_sequence(node: Node) -> Callable[[Node, Any], Sequence[Value | None]] | None:
    """Return what builds an operator on sequences or optional values, None for operators on tensors.

    Raises:
        UnsupportedError: when the operator takes tensors only and gets something else.
    """
    if node.proto.domain in ("", "ai.onnx"):
        is_other = not all(map(is_tensor, node.inputs))
        if node.kind in SEQUENCES and (is_other or node.kind != "Identity"):
            return SEQUENCES[node.kind]
        if node.kind in ("If", "Loop", "Scan"):
            return None
    if not all(map(is_tensor, node.inputs)):
        raise UnsupportedError("a sequence or an optional value, where a tensor must be given")
    return None


def number_type(node: Node) -> AbstractContextManager[Any]:
    """Let functions of float64 compute in it, whatever the number type of the context is."""
    dtypes = [*node.dtypes, *(value.dtype for value in node.inputs if value is not None)]
    if not any(dtype is not None and dtype == np.float64 for dtype in dtypes):  # NumPy takes None for float64
        return nullcontext()
    return in_float64()


def in_float64() -> AbstractContextManager[Any]:
    """Let functions compute in float64, whatever the number type of the context is."""
    current = nn.get_current_context()
    wide = [f"{backend.partition(':')[0]}:double" for backend in current.backend]
    return nn.context_scope(nn.Context(wide, current.array_class, current.device_id))
