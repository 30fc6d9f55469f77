"""The parameters of a solver: which they are, and the groups among them that have settings of their own."""

from collections.abc import Iterable

from nn_core.engine.error_messages.refusal import checked_flag, described, door, fitted_methods
from nn_core.engine.graph.parameter_sources import ParameterSource, parameters_of, require_some
from nn_core.errors import ArgumentError, ShapeError
from nn_core.solvers.choices import CHOOSERS, CHOSEN, Latecomers
from nn_core.solvers.parameter_groups import ParameterGroups, checked_groups, require_matches
from nn_core.solvers.saving import SavedStates
from nn_core.solvers.states import Slot, new_slot
from nn_core.variable import Variable


@fitted_methods()
class ChosenParameters(SavedStates):
    """The part of a solver that knows its parameters; see `nn_core.solver.Solver`."""

    #: None once the solver has updated.
    _latecomers: Latecomers | None = None

    @door
    def set_parameters(
        self,
        param_dict: ParameterSource,
        reset: bool = True,
        retain_state: bool = False,
        *,
        groups: ParameterGroups | None = None,
    ) -> None:
        """Choose the parameters to change.

        Args:
            param_dict: Variables by name, as ``nn_core.get_parameters()`` gives them; or a module that was called, or the name
                of a scope, for those of its parameters that need a gradient.
            reset: Forget all parameters that were set before. If False, those under other names stay.
            retain_state: Without `reset`, a name that is known keeps its states and its number of updates.
            groups: Settings of some of the parameters by pattern of their names, see `set_groups`. None: those set before.

        Raises:
            ArgumentError: when a value is not a Variable, or a module has no parameters; for wrong groups.
            UnknownNameError: when there is no scope of the name.
            ShapeError: when states are to be kept for a parameter of another shape.
        """
        reset = checked_flag("set_parameters: reset", reset)
        retain_state = checked_flag("set_parameters: retain_state", retain_state)
        rule = self._rule_numbers()
        settings = (self._parameter_groups or {}) if groups is None else checked_groups("set_parameters", groups, rule)
        slots = {} if reset else dict(self._slots)
        changed = reset
        chosen = parameters_of("set_parameters", param_dict, grad_only=True, argument="param_dict")
        require_some("set_parameters", param_dict, chosen)
        for key, variable in chosen.items():
            slot = self._slot_of(key, variable, slots.get(key) if retain_state else None)
            changed = changed or slot is not slots.get(key)
            slots[key] = slot
        require_matches("set_parameters", settings, slots)
        self._slots = slots
        # a program may choose the same ones in each step
        self._note_choice(chosen.values() if changed else (), is_first=reset)
        self._was_given_parameters = True
        if settings or self._parameter_groups:
            self._group(settings)
        elif changed:
            self._unbind()

    def _slot_of(self, key: str, variable: Variable, old: Slot | None) -> Slot:
        """Return the states of a parameter: new ones, or those that it has, where they fit."""
        if old is None:
            return new_slot(variable, self)
        if old.variable.storage is variable.storage:
            return old
        if old.variable.shape != variable.shape:
            shapes = f"{variable.shape} for {old.variable.shape}"
            raise ShapeError(f"set_parameters: {key} must keep its shape to keep its states, got {shapes}")
        return Slot(variable, old.member.states, old.t)

    def _note_choice(self, chosen: Iterable[Variable], *, is_first: bool) -> None:
        """Note what the first update looks for."""
        CHOSEN.update(chosen)
        CHOOSERS.add(self)
        if is_first:
            self._latecomers = Latecomers()

    @property
    def was_given_parameters(self) -> bool:
        """Whether `set_parameters` was called."""
        return self._was_given_parameters

    def get_parameters(self) -> dict[str, Variable]:
        """Return the parameters by name."""
        return {key: slot.variable for key, slot in self._slots.items()}

    @door
    def remove_parameters(self, keys: Iterable[str]) -> None:
        """Forget the parameters called `keys`; names that are not known are passed over.

        Raises:
            ArgumentError: when `keys` is one text, or no list.
        """
        if isinstance(keys, str) or not isinstance(keys, Iterable):
            raise ArgumentError(f"remove_parameters: keys must be a list of names, got {described(keys)}")
        for key in keys:
            self._slots.pop(key, None)
        self._unbind()

    def clear_parameters(self) -> None:
        """Forget all parameters."""
        self._slots = {}
        self._unbind()

    @door
    def set_groups(self, groups: ParameterGroups) -> None:
        """Give some of the parameters settings of their own; all others have those of the solver.

        A parameter follows all patterns that its name matches, and where they give the same setting, the last one.
        Schedules, ``set_learning_rate()`` and ``weight_decay()`` stay in force, times the multipliers. The groups are among
        what ``get_state()`` and ``save_states()`` keep.

        Args:
            groups: Settings by pattern (``*`` stands for any text, "/" included, ``?`` for one character, ``[ab]`` for one
                of some), which replace all groups that were set before. Settings by name: "learning_rate_multiplier";
                "weight_decay_multiplier", for ``weight_decay()`` and the number `decay_name`; "frozen", to leave the
                parameters and their states alone; and other numbers of the rule, such as "beta1", instead of those of the
                solver.

        Raises:
            ArgumentError: when a setting is unknown or out of range, or a pattern matches none of the parameters. Nothing is
                changed then.

        Example:
            >>> w, b = (nn.Variable.from_numpy_array([1.0], need_grad=True) for _ in range(2))
            >>> solver = S.Sgd(0.5)
            >>> solver.set_parameters({"w": w, "b": b})
            >>> solver.set_groups({"b": {"learning_rate_multiplier": 0.1}})
            >>> loss = solver.minimize(F.sum(w + b))
            >>> w.d.tolist(), b.d.round(2).tolist()
            ([0.5], [0.949999988079071])
        """
        checked = checked_groups("set_groups", groups, self._rule_numbers())
        require_matches("set_groups", checked, self._slots)
        self._group(checked)

    def get_groups(self) -> dict[str, dict[str, float]]:
        """Return the settings of groups of parameters by pattern, as `set_groups` takes them."""
        return {pattern: dict(settings) for pattern, settings in (self._parameter_groups or {}).items()}
