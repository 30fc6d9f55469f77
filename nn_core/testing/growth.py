"""Operators as a version to come may have them: with one more argument, and one more optional input."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from nn_core.engine.dispatch.known import without
from nn_core.engine.graph.apply import apply
from nn_core.engine.graph.call import forget
from nn_core.engine.graph.infer import input_entries
from nn_core.errors import NNCoreError
from nn_core.operators.reference.registry import KERNELS
from nn_core.operators.rules.registry import GRADIENTS, SHAPE_RULES
from nn_core.operators.spec.model import ArgSpec, FunctionSpec, InputSpec
from nn_core.testing.assertions import require
from nn_core.testing.samples.registry import numbers_of, samples_of
from nn_core.variable import Variable

#: A version that no table knows.
LATER: Final = "999.0"
ARGUMENT: Final = ArgSpec("later_argument", "float", "Added to the result.", default=0.0, since=LATER)
INPUT: Final = InputSpec("later_input", "Not read.", optional=True, since=LATER)


def grown_spec(spec: FunctionSpec) -> FunctionSpec:
    """`spec` with an argument and, unless its last input is variadic, an optional input that are new."""
    inputs = spec.inputs if spec.variadic else (*spec.inputs, INPUT)
    return replace(spec, args=(*spec.args, ARGUMENT), inputs=inputs)


@contextmanager
def grown(spec: FunctionSpec) -> Iterator[FunctionSpec]:
    """Let an operator have them, in this process and until the end of the scope: its rules and its reference kernel too.

    The reference kernel adds the argument to the first result. Not for threads: everything that was prepared is dropped.
    """
    before = {name: getattr(spec, name) for name in ("args", "inputs")}
    later, n_inputs = grown_spec(spec), len(spec.inputs)
    wrapped: list[tuple[dict[str, Any], Callable[..., Any]]] = [
        (SHAPE_RULES, lambda rule: _first_arguments(rule, spec, n_inputs)),
        (GRADIENTS, lambda rule: _with_gradient(rule, spec)),
        (KERNELS, lambda kernel: _added(kernel, spec, n_inputs)),
    ]
    own = [(table, table[spec.name]) for table, _ in wrapped if spec.name in table]
    try:
        for table, wrap in wrapped:
            if spec.name in table:
                table[spec.name] = wrap(table[spec.name])
        _change(spec, args=later.args, inputs=later.inputs)
        yield spec
    finally:
        for table, entry in own:
            table[spec.name] = entry
        _change(spec, **before)


def _change(spec: FunctionSpec, **fields: Any) -> None:
    from nn_core.operators.rules import arguments

    for name, value in fields.items():
        object.__setattr__(spec, name, value)  # every module holds this very object
    arguments._PREPARED.pop(spec, None)
    input_entries.cache_clear()
    without.cache_clear()
    forget()


def _first_arguments(rule: Callable[..., Any], spec: FunctionSpec, n_inputs: int) -> Callable[..., Any]:
    def shapes(*inputs: Any, **args: Any) -> Any:
        args.pop(ARGUMENT.name, None)
        return rule(*(inputs if spec.variadic else inputs[:n_inputs]), **args)

    return shapes


def _with_gradient(rule: Callable[..., Any], spec: FunctionSpec) -> Callable[..., Any]:
    def gradients(F: Any, g: Any) -> Any:
        found = rule(F, g)
        given = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        return given if spec.variadic or len(g._wanted) == len(given) else (*given, None)

    return gradients


def _added(kernel: Callable[..., Any], spec: FunctionSpec, n_inputs: int) -> Callable[..., Any]:
    def results(xp: Any, *inputs: Any, **args: Any) -> Any:
        added = args.pop(ARGUMENT.name, 0.0)
        found = kernel(xp, *(inputs if spec.variadic else inputs[:n_inputs]), **args)
        if not added:
            return found
        first, *others = found if isinstance(found, tuple) else (found,)
        return (first + added, *others) if others else first + added

    return results


def check_exporter(export: Callable[[dict[str, Any], dict[str, Any]], object], spec: FunctionSpec) -> bool:
    """Export an operator that has grown: as before where a call sets nothing new, and not at all where it does.

    Args:
        export: Takes Variables by name, outputs and inputs, and returns what is written.
        spec: The operator.

    Returns:
        Whether the exporter takes one of the samples of the operator at all.
    """
    for sample in samples_of(spec):
        call = partial(_exported, export, spec, numbers_of(spec, sample))
        try:
            before = call(sample.args)
        except NNCoreError:
            continue
        with grown(spec):
            require(call(sample.args) == before, f"{spec.name}: what is written must be as before the operator has grown")
            _require_refused(call, {**sample.args, ARGUMENT.name: 1.0}, f"argument {ARGUMENT.name}")
            if not spec.variadic and spec.inputs:
                _require_refused(partial(call, later=True), sample.args, f"input {INPUT.name}")
        return True
    return False


def _exported(
    export: Callable[..., object], spec: FunctionSpec, arrays: Sequence[Any], args: Mapping[str, Any], later: bool = False
) -> object:
    given = [None if array is None else Variable.from_numpy_array(np.asarray(array, np.float32)) for array in arrays]
    added = [Variable.from_numpy_array(np.ones((), np.float32))] if later else [None] * (len(spec.inputs) - len(given))
    made = apply(spec, (*given, *added), args)
    results = [result for result in (made if isinstance(made, (tuple, list)) else [made]) if result is not None]
    inputs = {f"x{place}": variable for place, variable in enumerate((*given, *added)) if variable is not None}
    return export({f"y{place}": result for place, result in enumerate(results)}, inputs)


def _require_refused(call: Callable[[Mapping[str, Any]], object], args: Mapping[str, Any], what: str) -> None:
    try:
        call(args)
    except NNCoreError as error:
        require(what in str(error), f"the refusal must name {what}, got: {error}")
        return
    raise AssertionError(f"a call with {what} must be refused, and it was exported")


__all__ = ["ARGUMENT", "INPUT", "LATER", "check_exporter", "grown", "grown_spec"]
