"""From a graph of nn_core to a program."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

import numpy as np

import nn_core as nn
from nn_core.ext import ArgumentError, FunctionSpec, function_spec
from nn_core.function import Function
from nn_core.graph_rewriting import functions_of
from nn_ext_c.emitting.registry import Call, Emitter, NotExportableError, array_of, delivered
from nn_ext_c.emitting.topics import emitters
from nn_ext_c.plugin import KNOWN_OPERATORS
from nn_ext_c.program import Array, Buffer, Program, Value, whole

#: The number of entries after which the list of an error is cut.
_LISTED: Final = 40
#: Places are counted in float32, which has all integers up to here.
_LARGEST: Final = 2**24


def program_of(
    outputs: Mapping[str, nn.Variable],
    inputs: Mapping[str, nn.Variable],
    names: Mapping[nn.Variable, str],
    kept: Mapping[nn.Variable, Value] | None = None,
    beside: Program | None = None,
) -> Program:
    """Return the functions between `inputs` and `outputs` as a program in float32.

    Args:
        outputs: what is computed, by name.
        inputs: the leaves that the caller gives, by name.
        names: of constants.
        kept: the leaves that the context keeps between calls.
        beside: a program of the same source.

    Raises:
        ArgumentError: lists every function that cannot be exported, with its place and the reason.
    """
    drafting = Drafting(outputs, inputs, names, kept, beside)
    program = drafting.program
    for name, value in drafting.results().items():
        program.outputs[name] = delivered(program, name, value)
    program.keep_used()
    return program


def refuse(problems: Sequence[str]) -> None:
    """Raise one error for all problems, if there are any.

    Raises:
        ArgumentError: lists them.
    """
    if problems:
        shown = list(problems[:_LISTED])
        more = len(problems) - len(shown)
        lines = "\n  ".join([*shown, *([f"and {more} more"] if more else [])])
        raise ArgumentError(f"export: functions must be those that have a form in C, got\n  {lines}")


class Drafting:
    """A program that gets the steps of a graph; see `program_of`."""

    def __init__(
        self,
        outputs: Mapping[str, nn.Variable],
        inputs: Mapping[str, nn.Variable],
        names: Mapping[nn.Variable, str],
        kept: Mapping[nn.Variable, Value] | None = None,
        beside: Program | None = None,
    ) -> None:
        self.program = Program(beside)
        self.outputs, self.names = outputs, names
        self.problems: list[str] = []
        self.order = functions_of([output for output in outputs.values() if output.parent is not None])
        self.values: dict[Any, Value | None] = {key_of(variable): value for variable, value in (kept or {}).items()}
        for name, variable in inputs.items():
            value = whole(Buffer(variable.size, "float32", "input", name), variable.shape)
            self.program.inputs[name] = value
            self.values[key_of(variable)] = value

    def results(self) -> dict[str, Value]:
        """Convert all functions; return the outputs, which are not delivered to the caller.

        Raises:
            ArgumentError: see `program_of`.
        """
        for position, function in enumerate(self.order):
            if any(key_of(output) not in self.values for output in function.results):
                self._convert(position, function)
        refuse(self.problems)
        found = {name: self.value(variable) for name, variable in self.outputs.items()}
        return {name: value for name, value in found.items() if value is not None}  # none is None: nothing was refused

    def _convert(self, position: int, function: Function) -> None:
        shapes = [variable.shape for variable in function.inputs]
        where = f"{function.name} (function {position} of {len(self.order)}, inputs {shapes})"
        inputs = [None if v is None else self.value(v) for v in function.node.inputs]
        if any(value is None for value, given in zip(inputs, function.node.inputs, strict=True) if given is not None):
            self._note(function, None)  # an input has been refused, and so this function is not looked at
            problem = None if function.name in emitters() else "there is no way to write it"
        else:
            problem = self._emit(function, inputs)
        if problem is not None:
            self.problems.append(f"{where}: {problem}")
            self._note(function, None)

    def _emit(self, function: Function, inputs: Sequence[Value | None]) -> str | None:
        """Convert a function whose inputs are known, or say why not."""
        sizes = [variable.size for variable in (*function.inputs, *function.results)]
        if 0 in sizes:
            return "arrays must not be empty"
        if max(sizes) >= _LARGEST:
            return f"arrays must have fewer than {_LARGEST} elements, got {max(sizes)}"
        if not spec_of(function).has("seeded") and all(v is None or v.buffer.values is not None for v in inputs):
            self._note(function, self._computed(function, inputs))
            return None
        if function.node.python is not None:  # its name says nothing about what it computes
            return "a function in Python cannot be written"
        emit = emitters().get(function.name)
        if emit is None:
            return "there is no way to write it"
        refusal = unread(function)
        if refusal is not None:
            return refusal
        try:
            self._note(function, self._written(function, emit, inputs))
        except NotExportableError as error:
            return str(error)
        return None

    def _written(self, function: Function, emit: Emitter, inputs: Sequence[Value | None]) -> list[Value | None]:
        spec, args, inputs = KNOWN_OPERATORS.narrowed(spec_of(function), function.args, inputs)
        padded = list(inputs) if spec.variadic else [v for v, _ in zip_longest(inputs, spec.inputs)]
        settings = {name: tuple(v) if isinstance(v, list) else v for name, v in args.items()}
        shapes = [tuple(output.shape) for output in function.results]

        def run(arrays: Sequence[Array], changed: dict[str, Any]) -> list[Array]:
            return run_function(function, [nn.Variable.from_numpy_array(array) for array in arrays], changed)

        made = emit(Call(self.program, function.name, padded, settings, shapes, run))
        return [made] if isinstance(made, Value) else list(made)

    def _computed(self, function: Function, inputs: Sequence[Value | None]) -> list[Value | None]:
        """Return the results of a function of constants, as constants."""
        variables = [
            given if given.parent is None else nn.Variable.from_numpy_array(array_of(value, "an input"))
            for given, value in zip(function.inputs, (v for v in inputs if v is not None), strict=True)
        ]
        arrays = run_function(function, variables, {})
        return [self._constant(np.asarray(array, np.float32), function.name) for array in arrays]

    def _constant(self, array: Array, name: str) -> Value:
        """Return a constant; where all elements have the same bits, one of them is written."""
        if array.size and (array.view(np.uint32) == array.view(np.uint32).flat[0]).all():
            return self.program.constant(array.reshape(-1)[0], name=name).broadcast(array.shape)
        return self.program.constant(array, name=name)

    def _note(self, function: Function, values: Sequence[Value | None] | None) -> None:
        outputs = function.results
        for output, value in zip(outputs, [None] * len(outputs) if values is None else values, strict=True):
            self.values[key_of(output)] = value

    def value(self, variable: Any) -> Value | None:
        """Return what holds a variable: a constant for a leaf that nothing else gives; None where a function is refused."""
        key = key_of(variable)
        if key not in self.values:
            name = self.names.get(variable) or getattr(variable, "name", "") or "constant"
            self.values[key] = self.program.constant(np.asarray(variable.d, np.float32), name=name)
        return self.values[key]


def run_function(function: Function, inputs: Sequence[nn.Variable], settings: dict[str, Any]) -> list[Array]:
    """Return the results of a function on other inputs, with some settings changed."""
    with nn.context_scope(nn.Context(["reference:float"])), nn.auto_forward(False):
        made = function.applied_to(*inputs, **{k: v for k, v in settings.items() if function.args.get(k) != v})
        outputs = list(made) if isinstance(made, (list, tuple)) else [made]
        arrays = []
        for output in outputs:
            output.forward()
            arrays.append(np.array(output.d))
    return arrays


def key_of(variable: Any) -> Any:
    """Return a leaf by itself; a result by its function and its place."""
    function = variable.parent
    return (None, variable) if function is None else (function, function.results.index(variable))


def unread(function: Function) -> str | None:
    """Return the reason why what this package knows of a function is not all that its call sets, if so."""
    refusal = KNOWN_OPERATORS.refusal(spec_of(function), function.args, function.node.inputs)
    return None if refusal is None else refusal.reason


def spec_of(function: Function) -> FunctionSpec:
    """Return the specification of a function."""
    spec = function_spec(function.name)
    return function.node.spec if spec is None else spec
