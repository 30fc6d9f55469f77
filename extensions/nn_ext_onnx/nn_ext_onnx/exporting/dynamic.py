"""Models whose inputs have axes of any length.

The graph is copied for a few lengths. Where shapes differ between the copies, converters get lengths that remember where they
were read, and the model computes what follows from them. So the nodes and constants of all copies must be the same: what still
differs was turned into a plain number somewhere, and is refused with the name of the function.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

import nn_core as nn
from nn_core.ext import ArgumentError, NNCoreError
from nn_core.function import Function
from nn_core.graph_rewriting import copy_graph, followed_settings
from nn_ext_onnx.exporting.graphs import Draft, Sizes, draft

#: Names of axes by their numbers, for inputs and outputs by name.
Axes: TypeAlias = dict[str, dict[int, str]]
_Ports: TypeAlias = Mapping[str, nn.Variable]
#: Outputs and inputs of a graph by name.
Network: TypeAlias = tuple[dict[str, nn.Variable], dict[str, nn.Variable]]
#: Other lengths that are tried beside the present one, n: some near it, which tell whether it must be divisible, and some far
#: from it, in front of which roundings do not hide that a number does not follow. One of each must work, or two that are far.
_NEAR: Final = (1, 2, 4, 8, 16, 32, -1, -8)
_FAR: Final[tuple[Callable[[int], int], ...]] = (
    lambda n: 2 * n + 3,
    lambda n: 2 * n,
    lambda n: 3 * n,
    lambda n: n // 2,
    lambda n: n // 3,
)


def batch_axes(inputs: _Ports, name: str) -> Axes:
    """Return the first axes of the inputs whose length is the batch: the length of the first axis of the first input.

    Raises:
        ArgumentError: when no input has an axis.
    """
    first = next((v for v in inputs.values() if v.ndim), None)
    if first is None:
        raise ArgumentError("export: an input must have an axis for the batch, got none")
    return {key: {0: name} for key, v in inputs.items() if v.ndim and v.shape[0] == first.shape[0]}


def checked_axes(given: Mapping[str, Any], inputs: _Ports, outputs: _Ports) -> Axes:
    """Return names of axes as `export_model` takes them, with those that have none.

    Raises:
        ArgumentError: when there is no such input, output or axis, or axes of one name have different lengths.
    """
    ports = {**inputs, **outputs}
    unknown = [name for name in given if name not in ports]
    if unknown:
        raise ArgumentError(f"export: dynamic_axes must name inputs and outputs ({', '.join(ports)}), got {unknown[0]!r}")
    axes = {name: _named(name, wanted, ports[name].ndim) for name, wanted in given.items()}
    lengths: dict[str, int] = {}
    for name, variable in inputs.items():
        for axis, symbol in axes.get(name, {}).items():
            length = int(variable.shape[axis])
            if lengths.setdefault(symbol, length) != length:
                raise ArgumentError(
                    f"export: axes of one name must have one length, got {lengths[symbol]} and {length} for {symbol!r}"
                )
    if not lengths:
        raise ArgumentError("export: dynamic_axes must name an axis of an input, got none")
    return axes


def _named(name: str, wanted: Any, ndim: int) -> dict[int, str]:
    listed = dict(wanted) if isinstance(wanted, Mapping) else {axis: f"{name}_{axis}" for axis in wanted}
    for axis, symbol in listed.items():
        if isinstance(axis, bool) or not isinstance(axis, int) or not isinstance(symbol, str):
            raise ArgumentError(f"export: dynamic_axes must be names by numbers of axes, got {listed!r} for {name!r}")
        if not -ndim <= axis < ndim:
            raise ArgumentError(f"export: dynamic_axes of {name!r} must be axes from {-ndim} to {ndim - 1}, got {axis}")
    return {axis % ndim: symbol for axis, symbol in listed.items()}


def with_dynamic_axes(
    outputs: _Ports, inputs: _Ports, parameters: _Ports, opset: int, axes: Axes, hint: str
) -> tuple[Draft, Axes, list[Network]]:
    """Convert a graph so that axes of its inputs may have any length.

    Returns:
        The nodes; the names of the axes of inputs and outputs that are not fixed; and copies of the graph with other lengths.

    Raises:
        ArgumentError: when the graph does not work with other lengths, or has numbers that would have to follow them.
    """
    return _Copies(outputs, inputs, parameters, opset, axes, hint).result()


class _Copies:
    def __init__(self, outputs: _Ports, inputs: _Ports, parameters: _Ports, opset: int, axes: Axes, hint: str) -> None:
        self.outputs, self.inputs, self.parameters, self.opset = outputs, inputs, parameters, opset
        self.axes, self.hint = axes, f"hint: {hint}"
        self.present = {
            symbol: int(inputs[name].shape[axis]) for name in inputs for axis, symbol in axes.get(name, {}).items()
        }
        #: functions with a shape in numbers that begins with the length of a first axis, which follows it nevertheless
        self.rewritten: set[Function] = set()

    def result(self) -> tuple[Draft, Axes, list[Network]]:
        lengths = self._other_lengths()
        try:
            others = [self._copy(wanted) for wanted in lengths]
        except NNCoreError as error:
            names = " and ".join(self.present)
            raise ArgumentError(
                f"export: the graph must work for any {names}, got for {lengths[0]} or {lengths[1]}: {error}\n  {self.hint}"
            ) from error
        copies = [self._copy({}), *others]
        sizes = Sizes(copies)
        drafts = [draft(*copy, self.parameters, self.opset, sizes) for copy in copies]
        for other in drafts[1:]:
            self._require_equal(drafts[0], other)
        return drafts[0], self._named_axes(copies, [self.present, *lengths]), others

    # -- copies ----------------------------------------------------------------------------------------------------

    def _other_lengths(self) -> list[dict[str, int]]:
        """Return lengths of all axes for two further copies; each works for itself."""
        working = [(symbol, self._working(symbol, number)) for number, symbol in enumerate(self.present)]
        return [{symbol: found[place] for symbol, found in working} for place in range(2)]

    def _working(self, symbol: str, number: int) -> tuple[int, int]:
        """Find two other lengths of one axis for which the graph works; `number` says where to begin, so that axes differ."""
        present = self.present[symbol]
        failures: list[tuple[int, NNCoreError]] = []

        def first(lengths: Iterable[int]) -> int | None:
            for length in lengths:
                if length > 1 and length != present and self._works(symbol, length, failures):
                    return length
            return None

        turned = number % 3
        far = first(make(present) for make in (*_FAR[turned:], *_FAR[:turned]))
        near = first(present + step for step in (*_NEAR[turned:], *_NEAR[:turned]) if present + step != far)
        if far is not None and near is None:
            near = first(make(present) for make in _FAR if make(present) != far)
        if far is None or near is None:
            length, error = failures[0] if failures else (present, ArgumentError("no other length that could be tried"))
            raise ArgumentError(
                f"export: the graph must work for any {symbol}, got for {length} in place of {present}: {error}\n  {self.hint}"
            ) from error
        return near, far

    def _works(self, symbol: str, length: int, failures: list[tuple[int, NNCoreError]]) -> bool:
        try:
            self._copy({symbol: length})
        except NNCoreError as error:
            failures.append((length, error))
            return False
        return True

    def _copy(self, lengths: Mapping[str, int]) -> Network:
        """Return outputs and inputs of a copy with other lengths."""
        replaced = {name: self._resized(name, variable, lengths) for name, variable in self.inputs.items()}
        changed = {self.inputs[name]: variable for name, variable in replaced.items() if variable is not self.inputs[name]}
        firsts = {self.present[symbol]: replaced[name] for name, symbol in self._first_axes()}

        def rewrite(function: Function, inputs: list[nn.Variable]) -> Any:
            """Shapes that were given as numbers and begin with the length of a first axis follow it."""
            if function.name not in ("Reshape", "Broadcast") or followed_settings(function):
                return None
            shape = function.args["shape"]
            if not shape or shape[0] not in firsts:
                return None
            if inputs[0].shape != function.inputs[0].shape:
                self.rewritten.add(function)
            if function not in self.rewritten:
                return None
            return function.applied_to(*inputs, shape=(firsts[shape[0]].shape[0], *shape[1:]))

        with nn.auto_forward(False):
            copies = copy_graph(list(self.outputs.values()), changed, rewrite)
        return dict(zip(self.outputs, copies, strict=True)), replaced

    def _first_axes(self) -> list[tuple[str, str]]:
        return [(name, self.axes[name][0]) for name in reversed(list(self.inputs)) if 0 in self.axes.get(name, {})]

    def _resized(self, name: str, variable: nn.Variable, lengths: Mapping[str, int]) -> nn.Variable:
        named = self.axes.get(name, {})
        shape = tuple([lengths.get(named.get(axis, ""), int(length)) for axis, length in enumerate(variable.shape)])
        if shape == variable.shape:
            return variable
        if np.dtype(variable.data.dtype).kind in "iub":
            return nn.Variable.from_numpy_array(np.zeros(shape, dtype=variable.data.dtype))
        return nn.Variable(shape, need_grad=variable.need_grad)

    # -- comparisons -----------------------------------------------------------------------------------------------

    def _require_equal(self, made: Draft, other: Draft) -> None:
        nodes, others = made.graph.nodes, other.graph.nodes
        place = next((place for place, pair in enumerate(zip(nodes, others, strict=False)) if pair[0] != pair[1]), None)
        if place is None and len(nodes) != len(others):
            place = min(len(nodes), len(others)) - 1
        if place is not None:
            raise self._refusal(made.function_at(place), f"a node {nodes[place].op_type}")
        for place, node in enumerate(nodes):
            for name in node.input:
                if not _same(made.graph.constants.get(name), other.graph.constants.get(name)):
                    raise self._refusal(made.function_at(place), f"a constant of a node {node.op_type}")

    def _refusal(self, function: str, what: str) -> ArgumentError:
        names = " and ".join(self.present)
        return ArgumentError(
            f"export: what follows {names} must be computed from shapes, got {what} with numbers for the present ones, of "
            f"{function}\n  {self.hint}"
        )

    def _named_axes(self, copies: Sequence[tuple[_Ports, _Ports]], lengths: Sequence[Mapping[str, int]]) -> Axes:
        """Return the names of all axes that are not fixed."""
        named = {name: dict(self.axes.get(name, {})) for name in self.inputs}
        symbols = {tuple([size[symbol] for size in lengths]): symbol for symbol in reversed(list(self.present))}
        for name in self.outputs:
            shapes = [tuple(map(int, outputs[name].shape)) for outputs, _ in copies]
            axes = {axis: self._name(name, axis, found, symbols) for axis, found in enumerate(zip(*shapes, strict=True))}
            named[name] = {axis: symbol for axis, symbol in axes.items() if symbol}
        return named

    def _name(self, output: str, axis: int, found: tuple[int, ...], symbols: Mapping[tuple[int, ...], str]) -> str:
        """Return the name of an axis of an output with these lengths; empty if it is fixed."""
        wanted, is_fixed = self.axes.get(output, {}).get(axis), len(set(found)) == 1
        symbol = "" if is_fixed else symbols.get(found, f"{output}_{axis}")
        if wanted is None or wanted == symbol:
            return symbol
        if is_fixed or wanted in self.present:
            raise ArgumentError(
                f"export: axis {axis} of output {output!r} must follow the inputs as {wanted!r}, got lengths {found}"
            )
        return wanted


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and (_is_one_memory(a, b) or np.array_equal(a, b, equal_nan=True))


def _is_one_memory(a: Any, b: Any) -> bool:
    """Return whether two arrays show the same elements, as those of one parameter do."""
    return bool(a.ctypes.data == b.ctypes.data and a.strides == b.strides and a.dtype == b.dtype)
