"""Run the update of a solver over its parameters, in groups that have taken the same number of updates.

A parameter whose gradient is known to be zero, because ``zero_grad()`` was called and nothing has been written since,
is passed over. So parameters may come to differ in their number of updates t, which is one of the numbers of an update.
"""

from collections.abc import Collection, Sequence

import numpy as np

from nn_core.solvers.hooks import Hook
from nn_core.solvers.states import Slot
from nn_core.solvers.update import BoundUpdate, Place, Rule
from nn_core.typing import Array


class _Group:
    """Parameters that are updated together; `hyper` holds the numbers of the solver, and t at the end."""

    __slots__ = ("hyper", "slots", "update")

    def __init__(self, slots: list[Slot], hyper: Array, update: BoundUpdate) -> None:
        self.slots = slots
        self.hyper = hyper
        self.update = update


class Groups:
    """The parameters of a solver, bound to the kernel that updates them.

    Args:
        rule: The update.
        places: Where to compute.
        numbers: The numbers of the update without t; a list that the solver changes.
    """

    def __init__(self, rule: Rule, places: Sequence[Place], numbers: list[float]) -> None:
        self._rule = rule
        self._places = places
        self._numbers = numbers
        self._groups: list[_Group] = []
        self._skipped: list[Slot] = []

    def run(self, slots: Collection[Slot]) -> None:
        """Update the parameters."""
        if not self._is_bound():
            by_t: dict[int, list[Slot]] = {}
            chosen, self._skipped = divided(slots)
            for slot in chosen:
                by_t.setdefault(slot.t, []).append(slot)
            self._groups = [self._bound(group) for group in by_t.values()]
        for group in self._groups:
            _run(group)

    def run_observed(self, slots: Collection[Slot], before: Sequence[Hook], after: Sequence[Hook]) -> None:
        """Update the parameters one by one, with calls in between."""
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
        for group in self._groups:
            group.hyper[index] = value

    def unbind(self) -> None:
        """Bind anew at the next run: parameters or their t have changed."""
        self._groups = []
        self._skipped = []

    def _is_bound(self) -> bool:
        if not self._groups and not self._skipped:
            return False
        for group in self._groups:
            if not group.update.is_current():
                return False
        return all_zero(self._skipped)

    def _bound(self, slots: list[Slot]) -> _Group:
        hyper = np.array([*self._numbers, 0.0], np.float64)
        return _Group(slots, hyper, BoundUpdate(self._rule, [slot.member for slot in slots], hyper, self._places))


def active(slots: Collection[Slot]) -> list[Slot]:
    """The parameters whose gradient may differ from zero."""
    return divided(slots)[0]


def divided(slots: Collection[Slot]) -> tuple[list[Slot], list[Slot]]:
    """The parameters whose gradient may differ from zero, and those whose gradient is known to be zero."""
    chosen: list[Slot] = []
    skipped: list[Slot] = []
    for slot in slots:
        (skipped if slot.member.grad.zeroing else chosen).append(slot)
    return chosen, skipped


def all_zero(slots: Collection[Slot]) -> bool:
    """Whether all gradients are known to be zero still."""
    return all(slot.member.grad.zeroing for slot in slots)


def _run(group: _Group) -> None:
    t = group.slots[0].t + 1
    group.hyper[-1] = t
    group.update.run()
    for slot in group.slots:
        slot.t = t
