"""Run the update of a solver over its parameters, in groups that have the same numbers.

Parameters are passed over that are frozen, by their settings or their ``need_grad``, and those whose gradient holds
nothing: ``zero_grad()`` was called and nothing has been written since, or nothing was ever written. So parameters may come
to differ in their number of updates t, which is one of the numbers of an update if its rule reads it.
"""

from collections.abc import Collection, Sequence
from itertools import repeat
from typing import Final

import numpy as np

from nn_core.engine.graph.node import FLAGS_VERSION
from nn_core.engine.runtime.holders import where_parameters_are
from nn_core.solvers.hooks import Hook
from nn_core.solvers.parameter_groups import Settings
from nn_core.solvers.states import Slot
from nn_core.solvers.update import BoundUpdate, ComputeTarget, Rule
from nn_core.typing import Array

#: When so many runs in a row have found gradients in other parameters than the one before, each parameter is bound alone:
#: programs that skip layers at random choose others in each step, and binding them together costs more than an update.
MANY_CHANGES: Final = 4


class _Group:
    """Parameters that are updated together; `hyper` holds the numbers of the solver for them, and t at the end."""

    __slots__ = ("hyper", "is_mixed", "settings", "slots", "update")

    def __init__(self, slots: list[Slot], hyper: Array, update: BoundUpdate) -> None:
        self.slots = slots
        self.settings = slots[0].settings
        self.is_mixed = any(slot.t != slots[0].t for slot in slots)
        self.hyper = hyper
        self.update = update


class Frozen:
    """The frozen ones among some parameters."""

    __slots__ = ("_flags", "_slots", "_version")

    def __init__(self, slots: Collection[Slot]) -> None:
        self._version = FLAGS_VERSION.value
        self._slots = list(slots)
        self._flags = [slot.is_frozen for slot in self._slots]

    def is_current(self) -> bool:
        """Return whether the same parameters as before are frozen."""
        # Setting the need_grad of any variable counts the version up, so most calls compare two numbers.
        if self._version != FLAGS_VERSION.value:
            if self._flags != [slot.is_frozen for slot in self._slots]:
                return False
            self._version = FLAGS_VERSION.value
        return True


class Groups:
    """The parameters of a solver, bound to the kernel that updates them.

    Args:
        rule: The update.
        targets: Where to compute.
        numbers: The numbers of the update without t; a list that the solver changes.
        decay_index: The index of the rate of weight decay among them, if the rule has one.
    """

    #: whether the state of the solver is read without its arrays, since ranks save them in parts
    leaves_out_states: bool = False

    def __init__(
        self, rule: Rule, targets: Sequence[ComputeTarget], numbers: list[float], decay_index: int | None = None
    ) -> None:
        self._rule = rule
        self._targets = targets
        self._numbers = numbers
        self._decay_index = decay_index
        self._groups: list[_Group] = []
        self._alone: dict[Slot, _Group] = {}
        self._chosen: list[Slot] = []
        self._skipped: list[Slot] = []
        self._n_changes = 0
        self._frozen: Frozen | None = None
        self._guard: Array | None = None
        self._refused: Array | None = None

    @property
    def dtype(self) -> str:
        """The dtype in which updates are computed."""
        return self._targets[0].dtype

    def require_states(self) -> None:
        """Refuse where the states of the parameters are elsewhere, which they are not."""

    def guard(self, slots: Collection[Slot], guard: Array) -> bool:
        """Bind the parameters so that `run_guarded` changes nothing while the number in `guard` is not finite.

        Args:
            slots: The parameters.
            guard: The array of a `Verdict`.

        Returns:
            Whether the kernels of all parameters can do that.
        """
        if guard is self._refused:
            return False
        if guard is not self._guard:
            self._set_guard(guard)
        if not self._is_bound():
            self._bind(slots)
        if all(group.update.is_guarded for group in self._groups):
            return True
        self._refused = guard
        return False

    def run_guarded(self) -> None:
        """Update the parameters that `guard` has bound, if the guard allows it."""
        for group in self._groups:
            _run(group)

    def take_back(self) -> None:
        """Do not count the last update."""
        for group in self._groups:
            for slot in group.slots:
                slot.t -= 1

    def run(self, slots: Collection[Slot]) -> bool:
        """Update the parameters.

        Returns:
            False when there was nothing to update; the caller need not ask for each parameter why.
        """
        if self._guard is not None:
            self._set_guard(None)
        if not self._is_bound():
            self._bind(slots)
        for group in self._groups:
            _run(group)
        return bool(self._groups)

    def run_observed(self, slots: Collection[Slot], before: Sequence[Hook], after: Sequence[Hook]) -> None:
        """Update the parameters one by one, with calls in between."""
        self._set_guard(None)
        for slot in active(slots):
            for hook in before:
                hook()
            _run(self._bound([slot]))
            for hook in after:
                hook()
        self.unbind()

    def set_number(self, index: int, value: float) -> None:
        """Change one of the numbers."""
        self._numbers[index] = value
        for group in (*self._groups, *self._alone.values()):
            group.hyper[index] = group.settings.number(index, value, self._decay_index)

    def unbind(self) -> None:
        """Bind anew at the next run: parameters or their t have changed."""
        self._groups = []
        self._alone = {}
        self._skipped = []
        self._frozen = None

    def _set_guard(self, guard: Array | None) -> None:
        self.unbind()
        self._guard = guard

    def _bind(self, slots: Collection[Slot]) -> None:
        chosen, self._skipped = divided(slots)
        self._n_changes = 0 if chosen == self._chosen else self._n_changes + 1
        self._chosen = chosen
        if self._n_changes < MANY_CHANGES:
            alike: dict[tuple[int, Settings], list[Slot]] = {}
            for slot in chosen:
                alike.setdefault((slot.t if self._rule.reads_t else 0, slot.settings), []).append(slot)
            self._groups = [self._bound(group) for group in alike.values()]
        else:
            self._groups = [self._bound_alone(slot) for slot in chosen]
        if self._frozen is None or not self._frozen.is_current():
            self._frozen = Frozen(slots)

    def _is_bound(self) -> bool:
        if self._frozen is None or not self._frozen.is_current():
            return False
        if self._n_changes >= MANY_CHANGES:  # bound alone: together again as soon as nothing changes
            return False
        for group in self._groups:
            if not group.update.is_current():
                return False
        return all_unwritten(self._skipped)

    def _bound_alone(self, slot: Slot) -> _Group:
        group = self._alone.get(slot)
        if group is None or not group.update.is_current():
            group = self._alone[slot] = self._bound([slot])
        return group

    def _bound(self, slots: list[Slot]) -> _Group:
        own = slots[0].settings.number
        hyper = np.array([*(own(i, value, self._decay_index) for i, value in enumerate(self._numbers)), 0.0], np.float64)
        members = [slot.member for slot in slots]
        return _Group(slots, hyper, BoundUpdate(self._rule, members, hyper, self._targets, self._guard))


def active(slots: Collection[Slot]) -> list[Slot]:
    """Return the parameters to change."""
    return divided(slots)[0]


def divided(slots: Collection[Slot]) -> tuple[list[Slot], list[Slot]]:
    """Return the parameters to change, and those whose gradient holds nothing yet; frozen ones are in neither list."""
    chosen: list[Slot] = []
    skipped: list[Slot] = []
    for slot in slots:
        if not slot.is_frozen:
            (skipped if slot.member.grad.is_unwritten else chosen).append(slot)
    return chosen, skipped


def why_nothing(slots: Collection[Slot]) -> str | None:
    """Why an update finds nothing to change; None where all parameters are frozen, which can be meant."""
    if not slots:
        return (
            "there must be parameters to change, got none (hint: call set_parameters() with nn_core.get_parameters() after "
            f"the network was built){where_parameters_are()}"
        )
    if all(slot.is_frozen for slot in slots):
        return None
    return (
        "a gradient of the parameters must have been computed, got none (hint: call backward() on a loss that depends on "
        "them before update())"
    )


def all_unwritten(slots: Collection[Slot]) -> bool:
    """Return whether all gradients hold nothing still."""
    return all(slot.member.grad.is_unwritten for slot in slots)


def _run(group: _Group) -> None:
    t = group.slots[0].t + 1
    group.hyper[-1] = t
    counts = [slot.t + 1 for slot in group.slots] if group.is_mixed else repeat(t)
    group.update.run(map(setattr, group.slots, repeat("t"), counts))
