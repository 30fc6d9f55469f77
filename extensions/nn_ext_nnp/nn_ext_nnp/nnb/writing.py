"""Lay networks out for NNabla's C runtime, and write them as NNB files."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import yaml

import nn_core as nn
from nn_core.ext import ArgumentError
from nn_ext_nnp.document import Document
from nn_ext_nnp.initial import generated
from nn_ext_nnp.network import Network, NetworkPlan, PlannedFunction, PlannedVariable, build, plan_network
from nn_ext_nnp.nnb.binary import StoredFunction, StoredNetwork, StoredVariable, pack
from nn_ext_nnp.nnb.codes import codes_of, settings_of
from nn_ext_nnp.nnb.functions import FAULTS, by_name, by_number, reason_against
from nn_ext_nnp.nnb.memory import share_buffers
from nn_ext_nnp.nnb.numbers import FLOAT32, NAMES, SIGN, encoded
from nn_ext_nnp.nnb.options import NnbOptions
from nn_ext_nnp.nnp_graph import put_parameters

Array = np.ndarray[Any, Any]

_LOGGER: Final = logging.getLogger("nn_core.nnp")

#: Functions whose weights are stored with outputs first, and the place of these.
TRANSPOSED: Final = {"Affine": 1}


@dataclass(frozen=True, slots=True)
class RuntimeNetwork:
    """The network of an executor as the C runtime takes it.

    Attributes:
        name: of the network.
        names: of its variables, by their numbers.
        stored: buffers, variables and functions.
        types: the type of each variable as a file of settings says it.
        functions: names of the functions.
    """

    name: str
    names: list[str]
    stored: StoredNetwork
    types: dict[str, str]
    functions: list[str]


def nnb_bytes(document: Document, options: NnbOptions) -> bytes:
    """Return the bytes of an NNB file with the network of an executor.

    Raises:
        ArgumentError: when there is no such executor, or something that NNB files cannot hold; functions are all named.
    """
    network = runtime_network(document, options)
    missing = missing_in_runtime(network.stored)
    if missing:
        _LOGGER.warning("NNB: NNabla's C runtime cannot run this file, since it does not have %s", ", ".join(missing))
    return pack(network.stored)


def missing_in_runtime(stored: StoredNetwork) -> list[str]:
    """Return the functions of a network that NNabla's C runtime does not compute, sorted."""
    known = by_number()
    return sorted({known[function.number].name for function in stored.functions if not known[function.number].runs})


def runtime_network(document: Document, options: NnbOptions) -> RuntimeNetwork:
    """Return the network of an executor, laid out.

    Raises:
        ArgumentError: when there is no such executor, or something that the runtime does not take; functions are all named.
    """
    executor, plan = executor_plan(document, options.executor)
    with nn.parameter_scope("", {}):
        put_parameters(document.parameters, document.name)
        network = build(plan, options.batch_size if options.batch_size > 0 else None)
        writer = _Writer(plan, network, executor, options)
        stored = writer.result()
        types = {name: options.type_of(name, name in writer.data).name for name in writer.names}
    functions = [function.name for function in plan.functions]
    return RuntimeNetwork(executor.network_name, writer.names, stored, types, functions)


def executor_plan(document: Document, index: int) -> tuple[Any, NetworkPlan]:
    """Return an executor, and the part of its network that its outputs need.

    Raises:
        ArgumentError: when there is no such executor, or it names what there is not.
    """
    executors = document.proto.executor
    if not 0 <= index < len(executors):
        raise ArgumentError(f"C runtime: the executor must be one of the {len(executors)} of {document.name}, got {index}")
    executor = executors[index]
    networks = {network.name: network for network in document.proto.network}
    if executor.network_name not in networks:
        given = executor.network_name
        raise ArgumentError(f"C runtime: executor {executor.name!r} must name one of {list(networks)}, got {given!r}")
    plan = plan_network(networks[executor.network_name], document.name)
    wanted = [output.variable_name for output in executor.output_variable]
    unknown = [name for name in (*wanted, *(d.variable_name for d in executor.data_variable)) if name not in plan.variables]
    if unknown or not wanted:
        raise ArgumentError(
            f"C runtime: executor {executor.name!r} must name variables and at least one output, got {unknown}"
        )
    plan.functions = _needed(plan.functions, {plan.variables[name] for name in wanted})
    return executor, plan


def _needed(functions: Sequence[PlannedFunction], wanted: set[PlannedVariable]) -> list[PlannedFunction]:
    kept: list[PlannedFunction] = []
    for function in reversed(functions):
        if wanted & set(function.outputs):
            wanted |= set(function.inputs)
            kept.append(function)
    return kept[::-1]


class _Writer:
    """One network on its way into a file."""

    def __init__(self, plan: NetworkPlan, network: Network, executor: Any, options: NnbOptions) -> None:
        self.plan, self.network, self.executor, self.options = plan, network, executor, options
        self.inputs = [d.variable_name for d in executor.data_variable]
        self.outputs = [o.variable_name for o in executor.output_variable]
        made = {v.name for function in plan.functions for v in function.outputs}
        used = {v.name for function in plan.functions for v in function.inputs}.union(made, self.inputs, self.outputs)
        self.names = [name for name in plan.variables if name in used]
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.data = self._data(made.union(self.inputs))
        self._check_options({function.name for function in plan.functions})

    def _data(self, given: Collection[str]) -> dict[str, Array]:
        """Return the values of all variables but those that are `given` or computed."""
        generators = self.executor.generator_variable
        drawn = {g.variable_name: generated(g.type, g.multiplier, self.shape(g.variable_name)) for g in generators}
        return {name: self._values(name, drawn) for name in self.names if name not in given}

    def _check_options(self, functions: set[str]) -> None:
        unknown = sorted({*self.options.types} - {*self.names}) + sorted({*self.options.implementations} - functions)
        if unknown:
            raise ArgumentError(f"C runtime: settings must name variables and functions of the network, got {unknown[0]!r}")

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a variable; that of an input that nothing reads is what the file says."""
        if name in self.network.variables:
            return self.network.variables[name].shape
        samples = self.network.batch_size
        return tuple(samples if length < 1 else length for length in self.plan.variables[name].shape)

    def result(self) -> StoredNetwork:
        """Return the whole network."""
        self._check_functions()
        self._transpose()
        variables = [self._variable(name) for name in self.names]
        functions = [self._function(function) for function in self.plan.functions]
        unit = self.options.version == 3
        sizes = {
            number: int(np.prod(variable.shape, dtype=np.int64)) * (self._bytes(number) if unit else 1)
            for number, variable in enumerate(variables)
            if variable.data is None
        }
        walked = [(function.inputs, function.outputs) for function in functions]
        outputs = [self.numbers[name] for name in self.outputs]
        buffers, places = share_buffers(walked, sizes, outputs)
        for number, place in places.items():
            variables[number].buffer = place
        level = max((by_name()[function.type].level for function in self.plan.functions), default=1)
        inputs = [self.numbers[name] for name in self.inputs]
        return StoredNetwork(self.options.version, level, buffers, variables, functions, inputs, outputs)

    def _values(self, name: str, drawn: dict[str, Array]) -> Array:
        variable = self.plan.variables[name]
        if name in drawn:
            return drawn[name]
        if not variable.is_parameter and not variable.proto.HasField("initializer"):
            raise ArgumentError(f"C runtime: executor {self.executor.name!r} must set every input, got none for {name!r}")
        if name not in self.network.variables:  # an output that is a parameter
            raise ArgumentError(f"C runtime: outputs of executor {self.executor.name!r} must be computed, got {name!r}")
        return np.array(self.network.variables[name].d, np.float32)

    def _check_functions(self) -> None:
        known = by_name()
        wrong: dict[str, str] = {}
        for function in self.plan.functions:
            entry = known.get(function.type)
            if entry is None or function.type in FAULTS:
                wrong[function.type] = f"{function.type} ({reason_against(function.type)})"
            elif entry.level > self.options.level:
                wrong[function.type] = f"{function.type} (it needs API level {entry.level})"
        if wrong:
            listed = ", ".join(wrong.values())
            raise ArgumentError(f"C runtime: functions must be those of API level {self.options.level}, got {listed}")

    def _transpose(self) -> None:
        """Put the outputs of weights first."""
        done: set[str] = set()
        for function in self.plan.functions:
            if function.type not in TRANSPOSED:
                continue
            name = function.inputs[TRANSPOSED[function.type]].name
            others = [f for f in self.plan.functions if f.type not in TRANSPOSED and name in {v.name for v in f.inputs}]
            if name not in self.data or others or name in {v.name for v in (function.inputs[0], *function.inputs[2:])}:
                raise ArgumentError(
                    f"C runtime: weights of {function.name!r} must be data that only functions of this kind read, got {name!r}"
                )
            if name not in done:
                values = self.data[name]
                self.data[name] = values.reshape(values.shape[0], -1).T
                done.add(name)

    def _variable(self, name: str) -> StoredVariable:
        kind = self.options.type_of(name, name in self.data)
        if name in self.data:
            data, fraction = encoded(self.data[name], kind, f"C runtime: {name!r}")
            return StoredVariable(self.shape(name), kind.code, fraction, data)
        if kind.code not in (FLOAT32, SIGN) and kind.fraction is None:
            raise ArgumentError(
                f"C runtime: the type of {name!r}, which is computed, must say the digits after the point, as "
                f"{NAMES[kind.code]}_4, got {NAMES[kind.code]}"
            )
        return StoredVariable(self.shape(name), kind.code, kind.fraction or 0)

    def _bytes(self, number: int) -> int:
        return self.options.type_of(self.names[number], is_parameter=False).n_bytes

    def _function(self, function: PlannedFunction) -> StoredFunction:
        entry = by_name()[function.type]
        built = self.network.variables[function.outputs[0].name].parent
        inferred = built.args if built is not None and built.name == function.type else {}
        return StoredFunction(
            entry.number,
            [self.numbers[v.name] for v in function.inputs],
            [self.numbers[v.name] for v in function.outputs],
            settings_of(function.proto, self.network.batch_size, inferred),
            codes_of(function.type),
            self.options.implementations.get(function.name, 0),
        )


def template_text(document: Document, options: NnbOptions) -> str:
    """Return the settings with which a network would be written, in YAML.

    Raises:
        ArgumentError: when the network cannot be written.
    """
    made = runtime_network(document, options)
    settings = {"functions": {name: {"implement": 0} for name in made.functions}, "variables": made.types}
    return yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
