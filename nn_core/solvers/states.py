"""States of a solver, in memory and in files."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.errors import ArgumentError, FileFormatError, ShapeError, quoted
from nn_core.files import Entry, extension_of, read_entries, write_entries, written_extension
from nn_core.solvers.parameter_groups import USUAL, Settings
from nn_core.solvers.update import Member
from nn_core.typing import Array, Shape
from nn_core.variable import Variable

#: Attribute of a file, and key of a state, for the groups of the parameters.
GROUPS: Final = "groups"


#: Files hold numbers of updates as integers of 64 bits with a sign.
_MAX_T: Final = 2**63


class SolverState:
    """The state that a solver keeps for one parameter.

    Attributes:
        pstate: Arrays by name, such as the moving means of Adam; they share memory with the solver's. None: an empty one.
        t: Number of updates so far.

    Example:
        >>> solver = S.Momentum()
        >>> solver.set_parameters({"w": nn.Variable((2, 3))})
        >>> state = solver.get_states()["w"]
        >>> list(state.pstate), state.t
        (['m'], 0)
    """

    def __init__(self, pstate: dict[str, Variable] | None = None, t: int = 0) -> None:
        self.pstate = {} if pstate is None else pstate
        self.t = t

    def __repr__(self) -> str:
        return f"SolverState(t={self.t}, pstate={self.pstate})"


class Slot:
    """One parameter of a solver, with its states, its number of updates and the settings of its groups."""

    __slots__ = ("member", "settings", "t")

    def __init__(self, variable: Variable, states: Sequence[NdArray], t: int = 0, settings: Settings = USUAL) -> None:
        self.member = Member(variable, states)
        self.settings = settings
        self.t = t

    @property
    def is_frozen(self) -> bool:
        """Whether its group or its `need_grad` says that it stays; a variable whose flag was never set may be changed by
        hand-made gradients.
        """
        return self.settings.is_frozen or self.variable._need_grad is False

    @property
    def variable(self) -> Variable:
        """The parameter."""
        return self.member.variable


#: Shapes of states for that of a parameter. A parameter with more than two axes is a matrix of its first axis and all others.
#: None has more elements than the parameter.
STATE_KINDS: Final[Mapping[str, Callable[[Shape], Shape]]] = {
    "whole": lambda shape: shape,
    "number": lambda shape: (),
    "rows or whole": lambda shape: shape if len(shape) < 2 else shape[:1],
    "columns or number": lambda shape: () if len(shape) < 2 else (prod(shape[1:]),),
    "number or whole": lambda shape: shape if len(shape) < 2 else (),
}


class StateLayout(Protocol):
    """Part of a solver that says which states it keeps for a parameter."""

    state_names: tuple[str, ...]
    state_kinds: tuple[str, ...]


def new_slot(variable: Variable, layout: StateLayout) -> Slot:
    """Return a parameter that was never updated, with states of zero."""
    states = [NdArray.of_shape(STATE_KINDS[kind](tuple(variable.plain_shape))) for kind in kinds_of_states(layout)]
    for array in states:
        array.zero()
    return Slot(variable, states)


def kinds_of_states(layout: StateLayout) -> tuple[str, ...]:
    """Return the kinds of all states."""
    return layout.state_kinds or ("whole",) * len(layout.state_names)


class StatesOfFile(NamedTuple):
    """Content of a file of states: states by name of the parameter, numbers, and groups as a text."""

    states: dict[str, SolverState]
    numbers: dict[str, float]
    groups: Any


class States:
    """The states of the parameters of one solver.

    Args:
        solver: Name of the method, for messages.
        names: Names of the states of each parameter.
        slots: The parameters by name.
    """

    def __init__(self, solver: str, names: Sequence[str], slots: Mapping[str, Slot]) -> None:
        self._solver = solver
        self._names = names
        self._slots = slots

    def as_arrays(self, *, with_arrays: bool = True) -> dict[str, dict[str, Any]]:
        """Return the arrays of each parameter by name, and its `t`; the arrays are those in memory, or left out."""
        return {
            key: {"t": slot.t, **{name: array.get_data("r") for name, array in self._arrays(slot) if with_arrays}}
            for key, slot in self._slots.items()
        }

    def set_arrays(self, states: Mapping[str, Mapping[str, Any]], function: str) -> None:
        """Copy what `as_arrays` gave, all of it or nothing; there must be one for each parameter."""
        if set(states) != set(self._slots):
            expected, given = (", ".join(sorted(names)) or "none" for names in (self._slots, states))
            raise ArgumentError(f"{function}: there must be states of {expected}, got {given}")
        self.set({key: _state_of(dict(values)) for key, values in states.items()}, function)

    def get(self) -> dict[str, SolverState]:
        """Return the states, sharing memory with the solver's."""
        return {
            key: SolverState({n: _as_variable(a) for n, a in self._arrays(slot)}, slot.t) for key, slot in self._slots.items()
        }

    def set(self, states: Mapping[str, SolverState], function: str = "set_states") -> None:
        """Copy the values of `states`, all of them or nothing."""
        for key, state in states.items():
            self._require_fitting(function, key, {name: v.shape for name, v in state.pstate.items()})
            if not 0 <= state.t < _MAX_T:
                raise ArgumentError(f"{function}: {key} must have a number of updates t from 0 to {_MAX_T - 1}, got {state.t}")
        for key, state in states.items():
            slot = self._slots[key]
            for name, array in self._arrays(slot):
                array.copy_from(state.pstate[name].data)
            slot.t = int(state.t)

    def save(self, path: str | os.PathLike[str], numbers: Mapping[str, float], groups: str | None = None) -> None:
        """Write the states to a file: <parameter>/<state>, and <parameter>/t with the numbers as its attributes.

        The attributes of the first t have the groups of the parameters, too, if there are any.
        """
        extension = written_extension("save_states", path, None)
        entries: dict[str, Entry] = {}
        further = {} if groups is None else {GROUPS: groups}
        for position, (key, slot) in enumerate(self._slots.items()):
            group = {"index": position}
            for index, (name, array) in enumerate(self._arrays(slot)):
                entries[f"{key}/{name}"] = Entry(array.get_data("r"), {"index": index}, group)
            entries[f"{key}/t"] = Entry(np.asarray(slot.t, np.int64), {**numbers, **further}, group)
            further = {}
        write_entries(path, entries, extension)

    def read(self, path: str | os.PathLike[str], known: Collection[str]) -> StatesOfFile:
        """Return the states in a file, its numbers that are among `known`, and its groups.

        Files of other programs have no numbers, and None stands for groups that were never set.
        """
        extension = extension_of("load_states", path, None)
        arrays: dict[str, dict[str, Array]] = {}
        numbers: dict[str, float] = {}
        groups: Any = None
        for name, entry in read_entries(path, extension).items():
            key, _, state_name = name.rpartition("/")
            arrays.setdefault(key, {})[state_name] = entry.values
            if state_name == "t":
                numbers = {key: _number(path, key, found) for key, found in entry.attributes.items() if key in known}
                groups = entry.attributes.get(GROUPS, groups)
        states: dict[str, SolverState] = {}
        for key, values in arrays.items():
            t = values.pop("t", None)
            if t is None or t.size != 1 or t.dtype.kind not in "iuf" or not t >= 0 or t % 1:  # messages hold floats only
                raise FileFormatError(f"{os.fspath(path)}: {key!r} must have a number of updates t, got {t}")
            pstate = {name: Variable.from_numpy_array(array) for name, array in values.items()}
            states[key] = SolverState(pstate, int(t.reshape(())))
        return StatesOfFile(states, numbers, groups)

    def _arrays(self, slot: Slot) -> list[tuple[str, NdArray]]:
        return list(zip(self._names, slot.member.states, strict=True))

    def _require_fitting(self, function: str, key: str, shapes: Mapping[str, Shape]) -> None:
        slot = self._slots.get(key)
        if slot is None:
            known = ", ".join(self._slots) or "none"
            raise ArgumentError(f"{function}: a parameter must be set before its states, got {key} (set: {known})")
        if set(shapes) != set(self._names):
            expected, given = (", ".join(sorted(names)) or "none" for names in (self._names, shapes))
            raise ArgumentError(f"{function}: the states of {self._solver} must be {expected}, got {given} for {key}")
        for name, array in self._arrays(slot):
            if tuple(shapes[name]) != array.shape:
                raise ShapeError(
                    f"{function}: state {name} of {key} must have the shape {array.shape}, got {tuple(shapes[name])}"
                )


def _state_of(values: dict[str, Any]) -> SolverState:
    t = int(values.pop("t"))
    return SolverState({name: Variable.from_numpy_array(np.asarray(array)) for name, array in values.items()}, t)


def _as_variable(array: NdArray) -> Variable:
    variable = Variable(array.shape, need_grad=False)
    variable.data = array
    return variable


def _number(path: str | os.PathLike[str], key: str, found: Any) -> float:
    """Return an attribute of a file that must be a number."""
    try:
        if isinstance(found, (int, float, np.number)):
            return float(found)
    except OverflowError:
        pass
    raise FileFormatError(f"{os.fspath(path)}: attribute {key} must be a number, got {quoted(found)}")
