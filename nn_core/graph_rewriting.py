"""Copies of graphs: walk one, name its ends, apply its functions to other inputs, and put others in the place of some.

Everything that changes networks (the converters of ``nn_core.experimental.graph_converters``, exporters) is a small
function on top of this. The graph that is copied stays as it is.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from nn_core.engine.graph.companions import copy_companions
from nn_core.engine.graph.lengths import KINDS, recomputed, renewed
from nn_core.engine.graph.node import Node
from nn_core.engine.graph.parameter_sources import known_parameters
from nn_core.errors import ArgumentError
from nn_core.function import Function
from nn_core.variable import Variable

#: Called with a function and its inputs in the copy; returns what stands for its outputs, or None for a plain copy.
Rewrite: TypeAlias = Callable[[Function, list[Variable]], Variable | Sequence[Variable] | None]

#: A leaf by its data; the output of a function by the function and its place. A variable that was unlinked from an
#: output shares the data of that output and is a leaf nevertheless.
_Key: TypeAlias = tuple[Function | None, Any]
_T = TypeVar("_T")


def functions_of(outputs: Iterable[Variable]) -> list[Function]:
    """Return the functions that `outputs` depend on, each after those that compute its inputs.

    Example:
        >>> import nn_core.functions as F
        >>> [function.name for function in functions_of([F.tanh(F.exp(Variable((2,))))])]
        ['Exp', 'Tanh']
    """
    found: dict[Function, None] = {}
    for output in outputs:
        output.visit(found.setdefault)
    return list(found)


def parameters_behind(outputs: Iterable[Variable]) -> dict[str, Variable]:
    """Return the parameters of the current scope, and of the modules on whose parameters `outputs` depend, by name.

    Example:
        >>> import nn_core as nn
        >>> net = nn.Sequential(nn.layers.Affine(3), nn.layers.BatchNorm())
        >>> list(parameters_behind([net(nn.Variable((8, 4)))]))[:3]
        ['@affine_0/affine/W', '@affine_0/affine/b', '@batchnorm_1/bn/beta']
    """
    computed = [output for output in outputs if output.parent is not None]
    used = {variable.storage for function in functions_of(computed) for variable in function.inputs}
    return known_parameters(used)


def network_ports(
    outputs: Any,
    inputs: Mapping[str, Variable] | Sequence[Variable] | None = None,
    *,
    parameters: Iterable[Variable] = (),
    caller: str = "export",
) -> tuple[dict[str, Variable], dict[str, Variable]]:
    """Return the outputs and the inputs of a network by name, from what a user gives to an exporter.

    Args:
        outputs: a Variable, which becomes "y"; a sequence of them, which become "y0", "y1", ...; a mapping from names; or a
            network with mappings `outputs` and `inputs`, as `nn_core.utils` loads it.
        inputs: the inputs, by name or in order; in order they keep their own names, else "x", with numbers where names meet.
            None: the inputs of the network that was given, or else all leaves that are neither trained nor parameters.
        parameters: leaves that are no inputs unless they are given as such, besides the parameters of the current scope and of
            modules.
        caller: the name that errors begin with.

    Raises:
        ArgumentError: when there are no outputs, when something is no Variable, or when an input is given twice.

    Example:
        >>> import nn_core.functions as F
        >>> outputs, inputs = network_ports([F.tanh(Variable((2, 3), name="image"))])
        >>> list(outputs), list(inputs)
        (['y'], ['image'])
    """
    if hasattr(outputs, "outputs") and hasattr(outputs, "inputs"):
        inputs = outputs.inputs if inputs is None else inputs
        outputs = outputs.outputs
    wanted = _named_outputs(outputs, caller)
    if inputs is None:
        inputs = _free_leaves(wanted.values(), {*parameters, *parameters_behind(wanted.values()).values()})
    listed = list(inputs.values() if isinstance(inputs, Mapping) else inputs)
    wrong = [variable for variable in listed if not isinstance(variable, Variable)]
    if wrong:
        raise ArgumentError(f"{caller}: inputs must be Variables, got {wrong[0]!r}")
    if len(set(listed)) < len(listed):
        raise ArgumentError(f"{caller}: inputs must be given once each, got a Variable twice")
    return wanted, dict(inputs) if isinstance(inputs, Mapping) else _named_inputs(listed, wanted)


def _named_outputs(outputs: Any, caller: str) -> dict[str, Variable]:
    if isinstance(outputs, Mapping):
        named = dict(outputs)
    else:
        listed = [outputs] if isinstance(outputs, Variable) else list(outputs)
        named = {f"y{n}" if len(listed) > 1 else "y": output for n, output in enumerate(listed)}
    wrong = [type(output).__name__ for output in named.values() if not isinstance(output, Variable)]
    if wrong or not named:
        raise ArgumentError(f"{caller}: outputs must be Variables, got {wrong or 'none'}")
    return named


def _free_leaves(outputs: Iterable[Variable], parameters: set[Variable]) -> list[Variable]:
    found: dict[Variable, None] = {}
    for function in functions_of([output for output in outputs if output.parent is not None]):
        for variable in function.inputs:
            if variable.parent is None and variable not in parameters and not variable.need_grad:
                found[variable] = None
    return list(found)


def _named_inputs(inputs: Iterable[Variable], taken: Container[str]) -> dict[str, Variable]:
    """Return inputs by their names, which are made different from each other and from those that are `taken`."""
    named: dict[str, Variable] = {}
    for variable in inputs:
        stem = variable.name or "x"
        name, count = stem, 0
        while name in named or name in taken:
            count += 1
            name = f"{stem}_{count}"
        named[name] = variable
    return named


def followed_settings(function: Function) -> dict[str, Any]:
    """Return the settings of a function that follow from shapes of variables, as they were given: numbers, or tuples.

    Example:
        >>> import nn_core.functions as F
        >>> x = Variable((2, 6))
        >>> followed_settings(F.reshape(x, (x.shape[0], 3, 2)).parent)
        {'shape': (2, 3, 2)}
    """
    return dict(getattr(function.node.setup, "lengths", {}))


def follows_shapes(number: object) -> bool:
    """Return whether a number remembers of which shapes it was computed, as ``x.shape[0]`` of a static graph does.

    Example:
        >>> x = Variable((2, 6))
        >>> follows_shapes(x.shape[0] * 3), follows_shapes(int(x.shape[0]))
        (True, False)
    """
    return type(number) in KINDS


def holds_values(variable: Variable) -> bool:
    """Return whether a variable has values of its own: they were written, filled in, or computed by a function.

    A leaf without any is an input that is to be given, also when a pass has read the zeros that stand for them; one with
    values that no name stands for is a constant of the graph.

    Example:
        >>> import nn_core.functions as F
        >>> x, total = Variable((2, 6)), F.sum(F.constant(2.0, (3,)))
        >>> total.forward()
        >>> holds_values(x), holds_values(total.get_unlinked_variable())
        (False, True)
    """
    return variable.data.synced.holds_values


def followed(number: Any, read: Callable[[Variable, int], _T], operate: Callable[..., _T]) -> _T:
    """Express a number for which `follows_shapes` holds in other terms: compute it again from the shapes it was read from.

    Args:
        number: The number.
        read: Returns what stands for the length of an axis of a variable.
        operate: Called with an operation on numbers, such as ``operator.add`` or ``math.floor``, which is known by its
            ``__name__``, and with what stands for its operands; those that follow no shape are plain numbers.

    Example:
        >>> x = Variable((2, 6))
        >>> texts = lambda operation, *operands: f"{operation.__name__}({', '.join(map(str, operands))})"
        >>> followed(x.shape[0] * 3 + 1, lambda variable, axis: f"n{axis}", texts)
        'add(mul(n0, 3), 1)'
    """
    return recomputed(number, lambda length: read(length.origin.value, length.axis), operate)


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
        #: whether parts that were built for the shapes of the original may have to be built again
        self._has_other_shapes = False
        for original, replacement in (inputs or {}).items():
            for what, value in (("keys", original), ("values", replacement)):
                if not isinstance(value, Variable):
                    raise ArgumentError(f"GraphCopy: {what} of inputs must be Variables, got {type(value).__name__}")
            self._copies[_key(original)] = replacement
            self._has_other_shapes = self._has_other_shapes or original.plain_shape != replacement.plain_shape

    def __getitem__(self, original: Variable) -> Variable:
        """Return the counterpart of `original` in the copy: itself if it is a leaf that nothing replaces.

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
        if all(_key(output) in self._copies for output in function.results) or self._is_rebuilt(function):
            return
        for before in _part_of(function):
            self.add(before)
        self._add_alone(function)

    def _add_alone(self, function: Function) -> None:
        outputs = function.results
        inputs = [self[variable] for variable in function.inputs]
        made = None if self._rewrite is None else self._rewrite(function, inputs)
        is_plain = made is None
        results = _listed(function.applied_to(*inputs, **self._lengths_of(function)) if made is None else made)
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
        if is_plain:
            self._add_companions(function.node, results[0].producer)

    def _add_companions(self, node: Node, copy: Node | None) -> None:
        """Let the copy show what the original does; results that only some calls show have copies here."""
        if copy is None:
            return
        copy_companions(node, copy)
        copy.scope = node.scope
        for place in range(node.n_visible, len(node.storages)):
            if node.output(place) is not None:
                self._copies[Function(node), place] = copy.value(place)  # type: ignore[assignment]  # a Variable

    def _is_rebuilt(self, function: Function) -> bool:
        """Build the part that a function ends anew if its sources have other shapes in the copy; whether they have."""
        derivation = function.node.derivation
        if derivation is None or not self._has_other_shapes:
            return False
        for source in derivation.watched:
            for before in functions_of([source]):
                self.add(before)
        if derivation.fits(self.__getitem__):
            return False
        for original, made in derivation.rebuilt(self.__getitem__):
            made.name = made.name or original.name
            self._copies.setdefault(_key(original), made)
        return True

    def _lengths_of(self, function: Function) -> dict[str, Any]:
        """Return the settings of a function that follow from the shapes of variables, for the counterparts of these."""
        setup = function.node.setup
        if not setup.sources:
            return {}
        for source in setup.sources:
            for before in functions_of([source]):  # perhaps none of the results depends on its values
                self.add(before)
        return renewed(dict(setup.lengths), self.__getitem__)


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
    order = _functions_after(outputs, set(inputs or ()))
    inside = {part for function in order for part in _part_of(function)}
    for function in order:
        if function not in inside:  # else it is added, if at all, with the function that ends its part
            copy.add(function)
    return [copy[output] for output in outputs]


def without_python(outputs: Sequence[Variable]) -> list[Variable]:
    """Return `outputs`, or where a PythonFunction says by which functions it is expressed, those of a copy that has these.

    Example:
        >>> from nn_core.function import PythonFunction
        >>> import nn_core.functions as F
        >>> class Double(PythonFunction):
        ...     def expressed(self, inputs): return [inputs[0] * 2]
        >>> (y,) = without_python([Double()(Variable((3,)))])
        >>> y.parent.name
        'MulScalar'
    """

    def rewrite(function: Function, inputs: Sequence[Variable | None]) -> Sequence[Variable] | None:
        return None if function.node.python is None else function.node.python.expressed(inputs)

    if all(function.node.python is None for function in functions_of([o for o in outputs if o.parent is not None])):
        return list(outputs)
    return copy_graph(outputs, rewrite=rewrite)


def _functions_after(outputs: Sequence[Variable], ends: set[Variable]) -> list[Function]:
    """Return the functions between `ends` and `outputs`, each after those that compute its inputs."""
    order = functions_of(outputs)
    if not any(end.parent is not None for end in ends):
        return order
    stops = {_key(end) for end in ends}
    needed = {_key(output) for output in outputs} - stops
    kept: list[Function] = []
    for function in reversed(order):
        if any(_key(output) in needed for output in function.results):
            kept.append(function)
            needed |= {_key(variable) for variable in function.inputs} - stops
    return kept[::-1]


def _part_of(function: Function) -> list[Function]:
    """Return the functions of a part of the graph that is built again for other shapes, before its last one."""
    derivation = function.node.derivation
    if derivation is None:
        return []
    outside = {function, *functions_of(derivation.sources)}
    return [part for part in functions_of(function.results) if part not in outside]


def _key(variable: Variable) -> _Key:
    function = variable.parent
    return (None, variable) if function is None else (function, variable.output_index)


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
