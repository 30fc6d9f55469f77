"""Steps of a backward pass that run as soon as gradients are complete: how communicators work beside the computation."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import Space, SyncedArray
from nn_core.engine.graph.plan import Entry
from nn_core.typing import Array, Runner


class Completed(NamedTuple):
    """A step of a backward pass.

    Attributes:
        runner: What runs.
        arrays: The arrays that it is called with in each pass.
        space: The device on which it launches, as kernels do, whose backend may merge it with its neighbours; None: the host.
    """

    runner: Runner
    arrays: Sequence[Array] = ()
    space: Space | None = None


class Completions(Protocol):
    """Groups of gradients, and what is to run when a group is complete.

    Attributes:
        groups: Gradients of leaves; no gradient is in two groups. Groups are dealt with in this order, whichever is complete
            first, so that all ranks send them in one order.
    """

    groups: Sequence[Sequence[NdArray]]

    def step(self, number: int) -> Completed:
        """Return the step that runs after the last write to group `number`."""
        ...


def with_completions(
    entries: Sequence[Entry], leaf_grads: Mapping[SyncedArray, object], completions: Completions
) -> list[Entry]:
    """Return the entries of a backward plan, and those of `completions` between them.

    Args:
        entries: The entries.
        leaf_grads: The arrays of the gradients of leaves that the plan writes. A group without any of them is complete from
            the start.
        completions: What is to run, and after which gradients.
    """
    last = _last_uses(entries, leaf_grads)
    due: dict[int, list[int]] = {}
    place = 0
    for number, group in enumerate(completions.groups):
        place = max([place, *[last.get(grad.synced, 0) for grad in group]])
        due.setdefault(place, []).append(number)
    result: list[Entry] = []
    for place in range(len(entries) + 1):
        result += entries[place - 1 : place] if place else ()
        result += [_entry(completions.step(number)) for number in due.get(place, ())]
    return result


def _last_uses(entries: Sequence[Entry], leaf_grads: Mapping[SyncedArray, object]) -> dict[SyncedArray, int]:
    """Return the number of entries after which each gradient is complete."""
    last: dict[SyncedArray, int] = {}
    for number, entry in enumerate(_owned(entries), 1):
        for value in entry.node.inputs if entry.node is not None else ():
            grad = None if value is None else value.storage.made_grad
            if grad is not None and grad.synced in leaf_grads:
                last[grad.synced] = number
    return last


def _owned(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries, each with a function: those without one add up gradients of the function before them."""
    owned: list[Entry] = []
    for entry in entries:
        owned.append(entry if entry.node is not None or not owned else entry._replace(node=owned[-1].node))
    return owned


def _entry(step: Completed) -> Entry:
    backend = None if step.space is None else step.space.backend
    return Entry(None, step.runner, tuple(step.arrays), backend, step.space, (None,) * len(step.arrays))
