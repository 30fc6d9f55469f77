"""A graph as C that trains: one function computes the loss and its gradients, and changes the parameters.

The gradients are a graph, too (`nn.grad`), so they are written with the functions of inference. Parameters, the states of the
solver and running statistics are in the context, where inference reads them.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

import nn_core as nn
from nn_core.ext import ArgumentError
from nn_core.function import Function
from nn_core.graph_rewriting import functions_of, parameters_behind
from nn_core.solvers import Solver
from nn_ext_c.emitting.normalization import statistics
from nn_ext_c.emitting.registry import Call, copied, delivered
from nn_ext_c.graphs import Drafting, program_of, spec_of
from nn_ext_c.loops import number
from nn_ext_c.ports import check_name, network_of, save_source, target_of
from nn_ext_c.program import Argument, Array, Buffer, Program, Step, Value, whole
from nn_ext_c.source import Entry, Kept, Source, written
from nn_ext_c.updates import rule_of, update

#: Functions with running statistics that are written.
_NORMALIZATIONS: Final = ("BatchNormalization", "FusedBatchNormalization", "SyncBatchNormalization")


@dataclass(slots=True)
class _Memory:
    """Numbers that the context keeps, one after another."""

    member: str
    values: list[Array] = field(default_factory=list)
    pointers: dict[Buffer, str] = field(default_factory=dict)
    size: int = 0

    def new(self, values: Array) -> Value:
        """Return a place for an array, which has these values after a reset."""
        buffer = Buffer(values.size, kind="kept")
        self.pointers[buffer] = f"context->{self.member} + {self.size}" if self.size else f"context->{self.member}"
        self.values.append(values.reshape(-1))
        self.size += values.size
        return whole(buffer, values.shape)

    def initial(self) -> dict[str, Array]:
        """Return the constant to which a reset sets the numbers, by its name; none where all are zero."""
        return {f"initial_{self.member}": np.concatenate(self.values)} if any(array.any() for array in self.values) else {}

    def reset(self) -> str:
        """Return the statement that sets all numbers."""
        start = "".join(f"{{{constant}}}[i]" for constant in self.initial()) or "0.0f"
        return f"for (int32_t i = 0; i < {self.size}; ++i) {{{{ context->{self.member}[i] = {start}; }}}}"


def export_training_source(
    loss: nn.Variable,
    inputs: Mapping[str, nn.Variable] | Sequence[nn.Variable] | None = None,
    *,
    solver: Solver,
    outputs: Any = None,
    output_inputs: Mapping[str, nn.Variable] | Sequence[nn.Variable] | None = None,
    weight_decay: float = 0.0,
    name: str = "network",
) -> Source:
    """Return the training of a graph as the texts of a header and a source of C.

    ``NAME_reset`` sets a context to the parameters and the states of the solver as they are now, ``NAME_train`` does an update
    and gives the loss before it, and ``NAME_run`` computes `outputs` with the parameters of the context. ``learning_rate`` of
    the context may be changed between updates. A call that returns 1 has changed nothing.

    Args:
        loss: a scalar.
        inputs: the leaves of the loss that ``NAME_train`` gets, by name or in order. By default these are all leaves that are
            neither parameters of the current scope nor trained; all others are written as constants.
        solver: Sgd, Momentum, Nesterov, Adagrad, RMSprop or Adam, with its learning rate. It trains its parameters, or
            without any all that the loss depends on and whose `need_grad` is set.
        outputs: what ``NAME_run`` computes, as of `export_source`; without it, there is no such function.
        output_inputs: the leaves that ``NAME_run`` gets.
        weight_decay: this times each parameter is added to its gradient, as by `Solver.weight_decay`.
        name: the stem of all names in C.

    Raises:
        ArgumentError: lists every function that cannot be exported and where it is; or when the loss is no scalar, or depends
            on nothing that is trained.
    """
    return _source(loss, inputs, solver, outputs, output_inputs, weight_decay, name, name)


def export_training(
    path: str | os.PathLike[str],
    loss: nn.Variable,
    inputs: Mapping[str, nn.Variable] | Sequence[nn.Variable] | None = None,
    *,
    solver: Solver,
    outputs: Any = None,
    output_inputs: Mapping[str, nn.Variable] | Sequence[nn.Variable] | None = None,
    weight_decay: float = 0.0,
    name: str | None = None,
) -> Source:
    """Write the training of a graph as NAME.h and NAME.c; see `export_training_source`.

    Args:
        path: a folder, or the path of either file, with the suffix or without.
        loss: see `export_training_source`.
        inputs: see `export_training_source`.
        solver: see `export_training_source`.
        outputs: see `export_training_source`.
        output_inputs: see `export_training_source`.
        weight_decay: see `export_training_source`.
        name: the stem of all names in C; by default that of the file, with underscores for what names cannot hold.

    Returns:
        The texts, and the memory that they need.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import nn_core.functions as F, nn_core.parametric_functions as PF, nn_core.solvers as S
        >>> x, t = nn.Variable((4, 3)), nn.Variable((4, 1))
        >>> loss = F.mean(F.squared_error(PF.affine(x, 1), t))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = export_training(f"{folder}/line.c", loss, {"x": x, "t": t}, solver=S.Sgd(lr=0.1))
        ...     sorted(path.name for path in Path(folder).iterdir())
        ['line.c', 'line.h']
        >>> made.kept_bytes  # three weights, a bias, the learning rate and the number of updates
        24
    """
    target, stem = target_of(path, name)
    source = _source(loss, inputs, solver, outputs, output_inputs, weight_decay, stem, target.name)
    save_source(source, target)
    return source


def _source(
    loss: nn.Variable, inputs: Any, solver: Solver, outputs: Any, output_inputs: Any, weight_decay: float, name: str, file: str
) -> Source:
    check_name(name)
    rule_of(solver)
    if not isinstance(loss, nn.Variable) or loss.size != 1:
        raise ArgumentError(f"export_training: loss must be a Variable of one number, got {loss!r}\n  hint: F.mean(loss)")
    wanted, leaves = network_of({"loss": loss}, inputs)
    with nn.auto_forward(False):
        training = _Training(wanted["loss"], leaves, solver, weight_decay)
        entries = [Entry("train", training.program, "TRAIN_")]
        if outputs is not None:
            made, given = network_of(outputs, output_inputs)
            entries.append(Entry("run", program_of(made, given, training.names, training.kept, training.program)))
    return written(entries, name, training.notes(), file, training.memory())


class _Training:
    """The program of an update, and what the context keeps.

    Attributes:
        program: computes the loss and changes what is kept.
        kept: where each parameter and each running statistic is.
        names: of constants.
    """

    def __init__(self, loss: nn.Variable, inputs: Mapping[str, nn.Variable], solver: Solver, weight_decay: float) -> None:
        self._solver = solver
        named = {variable: key for key, variable in parameters_behind([loss]).items()}
        order = functions_of([loss] if loss.parent is not None else [])
        _refuse_random(order)
        trained = _trained(solver, named, order)
        self.names: dict[nn.Variable, str] = named | {variable: key for key, variable in trained.items()}
        self._parameters, self._states = _Memory("parameters"), _Memory("states")
        self.kept = {variable: self._parameters.new(np.array(variable.d, np.float32)) for variable in trained.values()}
        moving = [f for f in order if f.node.rewritten()]
        self._keep_statistics(moving)
        self._states_of_solver = solver.get_states() if solver.get_parameters() else {}
        self._updates = max((state.t for state in self._states_of_solver.values()), default=0)
        self._rate, self._count = (Buffer(1, dtype, "kept") for dtype in ("float32", "uint32"))
        drafting, gradients = self._drafted(loss, inputs, trained)
        self.program = drafting.program
        _schedule(self.program, self._changes(moving, trained, gradients, drafting, weight_decay))
        self.program.keep_used()

    def _changes(
        self,
        moving: Sequence[Function],
        trained: Mapping[str, nn.Variable],
        gradients: Mapping[str, Value],
        drafting: Drafting,
        weight_decay: float,
    ) -> list[Step]:
        """Return the steps that change what is kept: running statistics, the number of updates, parameters and states."""
        steps = [step for f in moving for step in self._moved(f, drafting)]
        steps.append(Step("count", "updates[0] += 1u;", [Argument("updates", whole(self._count, (1,)), True)]))
        steps += [self._updated(key, variable, gradients[key], weight_decay) for key, variable in trained.items()]
        return steps

    def _updated(self, key: str, variable: nn.Variable, gradient: Value, weight_decay: float) -> Step:
        """Return the step that changes a parameter; its states begin as those of the solver are."""
        state = self._states_of_solver.get(key)
        start = {} if state is None else state.pstate
        memory = [self._states.new(_numbers(start.get(name), variable.shape)) for name in self._solver.state_names]
        if gradient.buffer.kind == "kept":  # another parameter, which changes as well
            gradient = copied(self.program, "copy", gradient)
        rate, count = whole(self._rate, (1,)), whole(self._count, (1,))
        return update(self._solver, self.kept[variable], gradient, memory, rate, count, weight_decay)

    def _drafted(
        self, loss: nn.Variable, inputs: Mapping[str, nn.Variable], trained: Mapping[str, nn.Variable]
    ) -> tuple[Drafting, dict[str, Value]]:
        """Return the program that computes the loss, and the gradients by the names of the parameters."""
        gradients = nn.grad([loss], list(trained.values()))
        # those of the last layers first, which need no gradient of another layer that is held for them
        outputs = {f"gradient {key}": g for key, g in reversed([*zip(trained, gradients, strict=True)])}
        drafting = Drafting({"loss": loss, **outputs}, inputs, self.names, self.kept)
        results = drafting.results()
        drafting.program.outputs["loss"] = delivered(drafting.program, "loss", results["loss"])
        return drafting, {key: results[f"gradient {key}"] for key in trained}

    def _keep_statistics(self, moving: Sequence[Function]) -> None:
        """Give running statistics a place in the context.

        Raises:
            ArgumentError: when another function than a normalization rewrites its inputs.
        """
        others = sorted({f.name for f in moving if f.name not in _NORMALIZATIONS})
        if others:
            raise ArgumentError(
                f"export_training: only batch normalizations may rewrite their inputs, got {', '.join(others)}"
            )
        for function in moving:
            for variable in _statistics(function):
                if variable not in self.kept:
                    self.kept[variable] = self._parameters.new(np.array(variable.d, np.float32))

    def _moved(self, function: Function, drafting: Drafting) -> list[Step]:
        """Return the steps that move the running statistics of a normalization towards those of the batch."""
        x = drafting.value(function.inputs[0])
        assert x is not None
        axes = [axis for axis in range(len(x.shape)) if axis not in {a % len(x.shape) for a in function.args["axes"]}]
        count = math.prod(x.shape[axis] for axis in axes)
        decay = function.args["decay_rate"]
        call = Call(Program(), "statistics", [x], {}, [], lambda arrays, changed: [])
        # the running variance is the unbiased one
        found = zip(_statistics(function), statistics(call, x, axes), (1.0, count / max(count - 1, 1)), strict=True)
        for variable, value, factor in found:
            place = self.kept[variable]
            call.map(
                f"{number(decay)} * a + {number((1 - decay) * factor)} * b", place, value.broadcast(place.shape), into=place
            )
        return call.program.steps

    def memory(self) -> Kept:
        """Return what the context keeps."""
        parts = [part for part in (self._parameters, self._states) if part.size]
        return Kept(
            [
                *(f"float {part.member}[{part.size}];" for part in parts),
                "float learning_rate; /* of the next updates */",
                "uint32_t updates;    /* done so far */",
            ],
            {
                **self._parameters.pointers,
                **self._states.pointers,
                self._rate: "&context->learning_rate",
                self._count: "&context->updates",
            },
            {name: values for part in parts for name, values in part.initial().items()},
            [
                *(part.reset() for part in parts),
                f"context->learning_rate = {number(self._solver.learning_rate())};",
                f"context->updates = {self._updates}u;",
            ],
            4 * (sum(part.size for part in parts) + 2),
        )

    def notes(self) -> list[str]:
        """Return lines about the interface."""
        lines = ["Numbers are float32. The parameters of a context:"]
        start = 0
        for variable, value in self.kept.items():
            name = self.names.get(variable) or variable.name or "a parameter"
            shape = ", ".join(map(str, value.shape))
            lines.append(f"  parameters[{start}] to [{start + value.size - 1}]: {name} ({shape})")
            start += value.size
        return lines


def _numbers(state: nn.Variable | None, shape: tuple[int, ...]) -> Array:
    return np.zeros(shape, np.float32) if state is None else np.array(state.d, np.float32)


def _statistics(function: Function) -> list[nn.Variable]:
    """Return the inputs that a function rewrites."""
    rewritten = {value.storage for value in function.node.rewritten()}
    return [variable for variable in function.inputs if variable.storage in rewritten]


def _trained(solver: Solver, named: Mapping[nn.Variable, str], order: Sequence[Function]) -> dict[str, nn.Variable]:
    """Return the parameters that are trained, by name: not the running statistics, which move by themselves.

    Raises:
        ArgumentError: when there are none.
    """
    moving = {variable for function in order for variable in _statistics(function)}
    read = {variable for function in order for variable in function.inputs} - moving
    given = solver.get_parameters() or {key: variable for variable, key in named.items()}
    found = {key: variable for key, variable in given.items() if variable.need_grad and variable in read}
    if not found:
        raise ArgumentError(
            "export_training: loss must depend on a parameter that is trained, got none\n"
            "  hint: solver.set_parameters(...), or set need_grad"
        )
    return found


def _refuse_random(order: Sequence[Function]) -> None:
    """Refuse functions that draw numbers: C has no generator, and without one dropout would do nothing.

    Raises:
        ArgumentError: when there is one.
    """
    # recurrent networks draw numbers for their dropout alone
    found = sorted({f.name for f in order if spec_of(f).has("seeded") and f.args.get("dropout", 1) != 0})
    if found:
        raise ArgumentError(f"export_training: functions must draw no random numbers, got {', '.join(found)}")


def _schedule(program: Program, updates: Sequence[Step]) -> None:
    """Put each update behind the last step that reads what it writes, but behind all that may end the call with an error.

    Early updates free the memory of gradients.
    """
    steps = program.steps
    last = {buffer: position for position, step in enumerate(steps) for buffer in (*step.read, *step.written)}
    earliest = max((position for position, step in enumerate(steps) if step.can_fail), default=-1)
    after: dict[int, list[Step]] = {}
    for step in updates:
        position = max([earliest, *(last.get(buffer, -1) for buffer in (*step.read, *step.written))])
        after.setdefault(position, []).append(step)
        last |= dict.fromkeys((*step.read, *step.written), position)
    program.steps = [*after.get(-1, [])]
    for position, step in enumerate(steps):
        program.steps += [step, *after.get(position, [])]
