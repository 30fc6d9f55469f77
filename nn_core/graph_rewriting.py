"""Copies of graphs: walk one, apply its functions to other inputs, and put others in the place of some.

Everything that changes networks (the converters of ``nn_core.experimental.graph_converters``, exporters) is a small
function on top of this. The graph that is copied stays as it is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from nn_core.errors import ArgumentError
from nn_core.function import Function
from nn_core.variable import Variable

#: Called with a function and its inputs in the copy; returns what stands for its outputs, or None for a plain copy.
Rewrite: TypeAlias = Callable[[Function, list[Variable]], Variable | Sequence[Variable] | None]

#: A leaf by its data; the output of a function by the function and its place. A variable that was unlinked from an
#: output shares the data of that output and is a leaf nevertheless.
_Key: TypeAlias = tuple[Function | None, Any]


def functions_of(outputs: Iterable[Variable]) -> list[Function]:
    """The functions that `outputs` depend on, each after those that compute its inputs.

    Example:
        >>> import nn_core.functions as F
        >>> [function.name for function in functions_of([F.tanh(F.exp(Variable((2,))))])]
        ['Exp', 'Tanh']
    """
    found: dict[Function, None] = {}
    for output in outputs:
        output.visit(found.setdefault)
    return list(found)


class GraphCopy:
    """A copy that grows function by function.

    Args:
        inputs: variables of the original, leaves or outputs of functions, and what takes their place. What only they
            depend on need not be copied.
        rewrite: puts something else in the place of functions.
    """

    def __init__(self, inputs: Mapping[Variable, Variable] | None = None, rewrite: Rewrite | None = None) -> None:
        self._rewrite = rewrite
        self._copies: dict[_Key, Variable] = {}
        for original, replacement in (inputs or {}).items():
            for what, value in (("keys", original), ("values", replacement)):
                if not isinstance(value, Variable):
                    raise ArgumentError(f"GraphCopy: {what} of inputs must be Variables, got {type(value).__name__}")
            self._copies[_key(original)] = replacement

    def __getitem__(self, original: Variable) -> Variable:
        """The counterpart of `original` in the copy: itself if it is a leaf that nothing replaces.

        Raises:
            ArgumentError: when it is the output of a function that has not been copied.
        """
        found = self._copies.get(_key(original))
        if found is not None:
            return found
        if original.parent is not None:
            raise ArgumentError(f"GraphCopy: the function of a variable must have been copied, got {original.parent!r}")
        return original

    def add(self, function: Function) -> None:
        """Copy one function; those that compute its inputs must have been copied before.

        Raises:
            ArgumentError: when the rewriting gives another number of outputs.
        """
        outputs = function.outputs
        if all(_key(output) in self._copies for output in outputs):
            return
        inputs = [self[variable] for variable in function.inputs]
        made = None if self._rewrite is None else self._rewrite(function, inputs)
        is_plain = made is None
        results = _listed(function.applied_to(*inputs) if made is None else made)
        if len(results) != len(outputs):
            raise ArgumentError(
                f"GraphCopy: what stands for {function.name} must have {len(outputs)} outputs, got {len(results)}"
            )
        for original, result in zip(outputs, results, strict=True):
            if is_plain:
                _take_over_properties(function, original, result)
            if not result.name:
                result.name = original.name
            self._copies.setdefault(_key(original), result)


def copy_graph(
    outputs: Sequence[Variable], inputs: Mapping[Variable, Variable] | None = None, rewrite: Rewrite | None = None
) -> list[Variable]:
    """Copy the graph of `outputs`: new functions and variables between the same leaves.

    Parameters and inputs are shared with the original unless `inputs` replaces them. Names, flags and contexts are
    kept. When inputs of other shapes take the place of the old ones, shapes are inferred anew.

    Args:
        outputs: variables to copy.
        inputs: variables of the original, leaves or not, and what takes their place.
        rewrite: called with each function and its new inputs; returns the variables that stand for its outputs, or
            None to copy it as it is.

    Returns:
        The copies of `outputs`.

    Example:
        >>> import nn_core.functions as F
        >>> x = Variable((2, 3))
        >>> (y,) = copy_graph([F.tanh(F.exp(x))], {x: Variable((5, 3))}, lambda f, ins: ins[0] if f.name == "Tanh" else None)
        >>> y.shape, y.parent.name
        ((5, 3), 'Exp')
    """
    copy = GraphCopy(inputs, rewrite)
    for function in _functions_after(outputs, set(inputs or ())):
        copy.add(function)
    return [copy[output] for output in outputs]


def _functions_after(outputs: Sequence[Variable], ends: set[Variable]) -> list[Function]:
    """The functions between `ends` and `outputs`, each after those that compute its inputs."""
    order = functions_of(outputs)
    if not any(end.parent is not None for end in ends):
        return order
    stops = {_key(end) for end in ends}
    needed = {_key(output) for output in outputs} - stops
    kept: list[Function] = []
    for function in reversed(order):
        if any(_key(output) in needed for output in function.outputs):
            kept.append(function)
            needed |= {_key(variable) for variable in function.inputs} - stops
    return kept[::-1]


def _key(variable: Variable) -> _Key:
    function = variable.parent
    return (None, variable) if function is None else (function, function.outputs.index(variable))


def _listed(results: Any) -> list[Variable]:
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _take_over_properties(function: Function, original: Variable, copy: Variable) -> None:
    """Set what programs may set on the output of a function. Parents decide about gradients unless told otherwise."""
    if original.persistent:
        copy.persistent = True
    if original.recompute:
        copy.recompute = True
    if function.need_grad and not original.need_grad and copy.need_grad:
        copy.need_grad = False
