"""A table of the functions of a network: shapes, parameters, multiply-adds and memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from nn_core.core.members import found_in
from nn_core.core.module import Module
from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.graph.modes import auto_forward
from nn_core.engine.graph.node import Node
from nn_core.engine.graph.parameter_sources import parameters_of
from nn_core.engine.graph.reshape import order_for_reader
from nn_core.engine.graph.scopes import scopes_of
from nn_core.engine.runtime.html import table
from nn_core.errors import ArgumentError
from nn_core.graph_rewriting import parameters_behind
from nn_core.typing import Shape
from nn_core.variable import Variable

#: Bytes of an element in the default context.
_ELEMENT_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Row:
    """One function.

    Attributes:
        function: Its name; "parameter" for one alone.
        scope: The scope of its parameters, or the one in which it was called where it has none. The name of a parameter alone.
        shapes: Shapes of its outputs.
        n_parameters: Elements of the parameters that it is the first one to use.
        n_multiply_adds: Multiplications with an addition; 0 for functions that are not sums of products, None where a
            function with weights is not known.
        n_bytes: Memory of the outputs in float32.
    """

    function: str
    scope: str
    shapes: tuple[Shape, ...]
    n_parameters: int
    n_multiply_adds: int | None
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The functions of a network in the order in which they run; ``print()`` shows a table.

    Attributes:
        rows: The functions.
        n_parameters: Elements of all parameters, shared ones once.
        n_trained: Elements of those that need a gradient.
    """

    rows: tuple[Row, ...]
    n_parameters: int
    n_trained: int

    @property
    def n_multiply_adds(self) -> int:
        """Multiply-adds of the functions for which they are known."""
        return sum(row.n_multiply_adds or 0 for row in self.rows)

    @property
    def n_bytes(self) -> int:
        """Memory of all outputs in float32; plans need less, since they reuse memory."""
        return sum(row.n_bytes for row in self.rows)

    def _repr_html_(self) -> str:
        head, *rows = self._lines()
        return table(head, rows, f"{self.n_trained:,} of the parameters are trained")

    def _lines(self) -> list[tuple[str, ...]]:
        """Return the cells of the table, with its head and the totals."""
        lines: list[tuple[str, ...]] = [("function", "scope", "output", "parameters", "multiply-adds", "memory")]
        for row in self.rows:
            shapes = ", ".join(map(str, row.shapes))
            counts = ("?" if row.n_multiply_adds is None else f"{row.n_multiply_adds:,}", _bytes(row.n_bytes))
            lines.append((row.function, row.scope, shapes, f"{row.n_parameters:,}", *counts))
        known = all(row.n_multiply_adds is not None for row in self.rows)
        total = f"{'' if known else 'at least '}{self.n_multiply_adds:,}"
        lines.append(("total", "", "", f"{self.n_parameters:,}", total, _bytes(self.n_bytes)))
        return lines

    def __str__(self) -> str:
        parts = [_ruled(_aligned(self._lines()))]
        if self.n_trained != self.n_parameters:
            parts.append(f"{self.n_trained:,} of the parameters are trained")
        return "\n".join(parts)

    __repr__ = __str__


@fitted
def summary(target: Any, *inputs: Any, **keywords: Any) -> Summary:
    """Summarize the graph of a variable, or of a module applied to inputs, or parameters alone.

    Nothing is computed. A module is called once, which makes its parameters if it was never called.

    Args:
        target: A Variable, a list of them, or a Module; Variables by name or the name of a scope, for a table of parameters.
        inputs: For a module, what to call it with: Variables, shapes as tuples of ints, or other arguments.
        keywords: Further arguments of the module.

    Returns:
        The functions with their output shapes, parameters, multiply-adds and memory; of parameters alone, a row for each, with
        its name as scope and its shape.

    Raises:
        ArgumentError: when `target` is something else, or inputs are given for a variable or missing for a module.

    Example:
        >>> import nn_core as nn
        >>> import nn_core.parametric_functions as PF
        >>> class Net(nn.Module):
        ...     def call(self, x):
        ...         return PF.affine(PF.convolution(x, 4, (3, 3), name="first"), 10)
        >>> table = summary(Net(), (1, 3, 8, 8))
        >>> table.n_parameters, table.n_multiply_adds
        (1562, 5328)
    """
    module = target if isinstance(target, Module) else None
    if module is not None:
        if not inputs and not keywords:
            raise ArgumentError(
                "summary: a module must be given with its inputs, got none\n"
                "  hint: summary(module, (1, 3, 32, 32)); print(module) needs no inputs"
            )
        with auto_forward(False):
            results = module(*map(_input, inputs), **{name: _input(value) for name, value in keywords.items()})
    else:
        if inputs or keywords:
            raise ArgumentError("summary: inputs must be given for modules only, got some for a variable")
        if isinstance(target, str) or _is_of_leaves(target):
            return _of_parameters(parameters_of("summary", target, argument="target"))
        results = target
    roots = tuple(variable for _, variable in found_in(results, (Variable,), ("result",)))
    if not roots:
        raise ArgumentError(f"summary: target must be a Variable, a list of them or a Module, got {type(target).__name__}")
    return _summarized(roots, module)


def _is_of_leaves(target: Any) -> bool:
    """Return whether these are parameters by name, rather than outputs by name."""
    members = target.values() if isinstance(target, Mapping) else ()
    return bool(members) and all(
        member.is_leaf if isinstance(member, Variable) else _is_of_leaves(member) for member in members
    )


def _of_parameters(parameters: Mapping[str, Variable]) -> Summary:
    rows = [
        Row("parameter", name, (value.shape,), value.size, 0, _ELEMENT_BYTES * value.size)
        for name, value in parameters.items()
    ]
    trained = {value.storage: value for value in parameters.values() if value.need_grad}
    alone = {value.storage: value for value in parameters.values()}
    return Summary(tuple(rows), _n_elements(alone), _n_elements(trained))


def _input(value: Any) -> Any:
    is_shape = isinstance(value, tuple) and all(type(length) is int for length in value)
    return Variable(value) if is_shape else value


def _summarized(roots: Sequence[Variable], module: Module | None) -> Summary:
    """Return the summary of a graph; a module has parameters that the graph may not use, a scope those of other graphs."""
    names = parameters_behind(roots) if module is None else module.get_parameters()
    known = {parameter.storage: name for name, parameter in names.items()}
    named = {parameter.storage: parameter for parameter in names.values()}
    used = {} if module is None else dict(named)
    seen: set[Any] = set()  # each parameter counts where it is used first
    rows: list[Row] = []
    nodes = list(order_for_reader(roots))
    for node, scope in zip(nodes, scopes_of(nodes, module), strict=True):
        parameters = _parameters(node, known)
        fresh = {value.storage: value for value in parameters if value.storage not in seen}
        seen.update(fresh)
        for storage, value in fresh.items():
            used.setdefault(storage, named.get(storage, value))
        has_weights = any(value.ndim > 1 for value in parameters)
        rows.append(_row(node, scope, _n_elements(fresh), has_weights))
    trained = {storage: parameter for storage, parameter in used.items() if parameter.need_grad}
    return Summary(tuple(rows), _n_elements(used), _n_elements(trained))


def _n_elements(parameters: Mapping[Any, Variable]) -> int:
    return sum(parameter.size for parameter in parameters.values())


def _row(node: Node, scope: str, n_parameters: int, has_weights: bool) -> Row:
    shapes = tuple(storage.data.shape for storage in node.storages[: node.n_visible])
    memory = _ELEMENT_BYTES * sum(map(prod, shapes))
    return Row(node.spec.name, scope, shapes, n_parameters, _multiply_adds(node, has_weights), memory)


def _parameters(node: Node, known: Mapping[Any, str]) -> list[Variable]:
    """Return the inputs of a node that are trained or have a name."""
    leaves = [value for value in node.inputs if isinstance(value, Variable) and value.is_leaf]
    return [value for value in leaves if value.need_grad or value.storage in known]


def _multiply_adds(node: Node, has_weights: bool) -> int | None:
    shapes = [() if value is None else value.shape for value in node.inputs]
    for suffix, count in _COUNTS.items():
        if node.spec.name.endswith(suffix):
            return count(shapes, node.storages[0].data.shape, node.args)
    is_product = has_weights and not node.spec.has("pointwise") and node.spec.topic not in _WITHOUT_PRODUCTS
    return None if is_product else 0


def _affine(shapes: Sequence[Shape], output: Shape, args: Mapping[str, Any]) -> int:
    return prod(output) * prod(shapes[0][args["base_axis"] :])


def _convolution(shapes: Sequence[Shape], output: Shape, args: Mapping[str, Any]) -> int:
    return prod(output) * prod(shapes[1][1:])


def _deconvolution(shapes: Sequence[Shape], output: Shape, args: Mapping[str, Any]) -> int:
    return prod(shapes[0]) * prod(shapes[1][1:])


def _batch_matmul(shapes: Sequence[Shape], output: Shape, args: Mapping[str, Any]) -> int:
    return prod(output) * shapes[0][-2 if args["transpose_a"] else -1]


#: By the end of a function's name, the longer first: quantized and pruned variants have the arguments of the original.
_COUNTS: Final[Mapping[str, Callable[[Sequence[Shape], Shape, Mapping[str, Any]], int]]] = {
    "Deconvolution": _deconvolution,
    "Convolution": _convolution,
    "Affine": _affine,
    "BatchMatmul": _batch_matmul,
}
#: Topics whose functions have parameters with several axes and sum no products of them.
_WITHOUT_PRODUCTS: Final = ("activation", "arithmetic", "indexing", "normalization", "quantization", "shape")


def _bytes(n_bytes: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} B"


def _ruled(table: Sequence[str]) -> str:
    """Return the lines of a table, with a rule under the first and above the last."""
    rule = "-" * max(map(len, table))
    return "\n".join([table[0], rule, *table[1:-1], rule, table[-1]])


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return the storages under one another, text to the left and numbers to the right; columns without text are left out."""
    columns = [column for column in zip(*lines, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    is_number = [column[0] in ("parameters", "multiply-adds", "memory") for column in columns]
    return [
        "  ".join(
            storage.rjust(width) if right else storage.ljust(width)
            for storage, width, right in zip(row, widths, is_number, strict=True)
        ).rstrip()
        for row in zip(*columns, strict=True)
    ]
