"""The states and the numbers of solvers, in files and as plain values."""

import math
import os
from collections.abc import Mapping
from typing import Any

from nn_core.engine.error_messages.refusal import door, fitted_methods
from nn_core.engine.runtime.schemas import checked_state
from nn_core.errors import ArgumentError
from nn_core.files import naming_file
from nn_core.solvers.groups import Groups
from nn_core.solvers.numbers import checked_number, first_rate, shown
from nn_core.solvers.parameter_groups import RuleNumbers, as_text, from_text, settings_of
from nn_core.solvers.states import GROUPS, Slot, SolverState, States


@fitted_methods()
class SavedStates:
    """The part of a solver that gives away what updates depend on, and takes it over; see `nn_core.solver.Solver`."""

    hyper_names: tuple[str, ...]
    state_names: tuple[str, ...]
    state_kinds: tuple[str, ...]
    decay_name: str | None
    keeps_initial_rate: bool
    fixed_names: tuple[str, ...]
    _types: list[type]
    _numbers: list[float]
    _decay_index: int | None
    _usual_decay: float | None
    _slots: dict[str, Slot]
    _parameter_groups: dict[str, dict[str, float]] | None = None
    _groups: Groups
    _was_given_parameters: bool = False

    @shown
    def name(self) -> str:
        """Name of the method."""
        return type(self).__name__

    def get_states(self) -> dict[str, SolverState]:
        """Return the states by name of the parameter; the arrays share memory with the solver's.

        Raises:
            ArgumentError: when they are divided among ranks and were not gathered; so do the other methods that read them.
        """
        self._groups.require_states()
        return self._states().get()

    @door
    def set_states(self, states: Mapping[str, SolverState]) -> None:
        """Take over the values of `states`; parameters that it does not name keep theirs.

        Raises:
            ArgumentError: when a parameter is not known, or the names of its states are not this solver's.
            ShapeError: when a state has not the shape of its parameter. Nothing is changed in either case.
        """
        self._states().set(states)
        self._unbind()

    @door
    def save_states(self, path: str | os.PathLike[str]) -> None:
        """Write the states, the numbers and the groups to a file, which replaces an older one only when it is complete.

        Args:
            path: Path that ends in .h5, .npz or .safetensors.

        Raises:
            ArgumentError: when the extension is another one.
        """
        self._groups.require_states()
        self._states().save(path, self._saved_numbers(), self._saved_groups())

    @door
    def load_states(self, path: str | os.PathLike[str]) -> None:
        """Read states that ``save_states()`` wrote, and the numbers, such as a changed learning rate, and groups.

        Set the parameters first. A file that another program wrote has no numbers and no groups; those of the solver stay
        then.

        Raises:
            FileFormatError: when the file is damaged, or is not one of states.
            ArgumentError: when it has states of a parameter that is not known, or of another method.
            ShapeError: when a state has not the shape of its parameter. Nothing is changed in any of these cases.
        """
        function = f"load_states: {os.fspath(path)}"
        with naming_file(path):
            states, numbers, saved = self._states().read(path, self._number_names())
        self._require_same_kind(function, numbers)
        groups = self._groups_of(function, saved)
        self._states().set(states, function)
        self._restore_numbers(numbers)
        self._group(groups)

    def get_state(self) -> dict[str, Any]:
        """Return all that an update depends on, as plain values: the numbers, and the states by name of the parameter.

        The arrays share memory with the solver's, where that is possible; copy them to keep them.
        """
        self._groups.require_states()
        states = self._states().as_arrays(with_arrays=not self._groups.leaves_out_states)
        state = {"name": self.name, "numbers": self._saved_numbers(), "states": states}
        groups = self._saved_groups()
        return state if groups is None else {**state, GROUPS: groups}

    @door
    @checked_state
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take over what `get_state` returned, for a solver with parameters of the same names.

        Raises:
            ArgumentError: when it is the state of another method or of other parameters.
            ShapeError: when a state has not the shape of its parameter. Nothing is changed in either case.
        """
        if state["name"] != self.name or set(state["numbers"]) != set(self._number_names()):
            raise ArgumentError(f"{self.name}.set_state: the state must be that of {self.name}, got {state['name']}")
        self._require_same_kind(f"{self.name}.set_state", state["numbers"])
        groups = self._groups_of(f"{self.name}.set_state", state.get(GROUPS))
        self._states().set_arrays(state["states"], f"{self.name}.set_state")
        self._restore_numbers(state["numbers"])
        self._group(groups)

    def _number_names(self) -> list[str]:
        names = list(self.hyper_names)
        if self.decay_name is not None and self.decay_name not in names:
            names.append(self.decay_name)
        return [*names, f"initial_{names[0]}"] if self.keeps_initial_rate else names

    def _saved_numbers(self) -> dict[str, float]:
        numbers = list(self._numbers)
        if self._usual_decay is not None and self._decay_index is not None:
            numbers[self._decay_index] = self._usual_decay
        if self.keeps_initial_rate and math.isinf(numbers[-1]):
            numbers[-1] = 0.0
        return dict(zip(self._number_names(), numbers, strict=True))

    def _require_same_kind(self, function: str, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            checked_number(function, name.removeprefix("initial_"), value)
        for index, name in enumerate(self.hyper_names):
            if name in self.fixed_names and numbers.get(name, self._numbers[index]) != self._numbers[index]:
                kind = self._types[index]
                raise ArgumentError(
                    f"{function}: {name} must be that of this solver, {kind(self._numbers[index])}, got {kind(numbers[name])}"
                )

    def _restore_numbers(self, numbers: Mapping[str, float]) -> None:
        for index, name in enumerate(self._number_names()):
            if name in numbers:
                self._numbers[index] = float(numbers[name])
        if self.keeps_initial_rate and not self._numbers[-1]:
            self._numbers[-1] = first_rate(self._numbers[0])
        self._usual_decay = None

    def _rule_numbers(self) -> RuleNumbers:
        return RuleNumbers(self.name, self.hyper_names, self.decay_name, self.fixed_names)

    def _saved_groups(self) -> str | None:
        return None if self._parameter_groups is None else as_text(self._parameter_groups)

    def _groups_of(self, function: str, saved: Any) -> dict[str, dict[str, float]] | None:
        """Return the groups in a state; without some, those that the solver has."""
        return self._parameter_groups if saved is None else from_text(function, saved, self._rule_numbers())

    def _group(self, groups: dict[str, dict[str, float]] | None) -> None:
        """Give the parameters the settings of groups, None where none were ever set."""
        self._parameter_groups = groups
        for name, slot in self._slots.items():
            slot.settings = settings_of(name, groups or {}, self._rule_numbers())
        self._unbind()

    def _states(self) -> States:
        return States(self.name, self.state_names, self._slots)

    def _unbind(self) -> None:
        raise NotImplementedError
