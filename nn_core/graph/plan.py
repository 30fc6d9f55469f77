"""A plan: the work of one forward or backward pass, resolved once and run many times.

Compiling a graph gives a list of entries, each a prepared kernel with the raw arrays it works on. The first run calls
them directly, so that a graph that is used once pays nothing more. The second run binds every entry to its arrays and
merges neighbours where a backend can: from then on running a plan is ``for step in steps: step()``.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from nn_core.graph.hooks import Hook
from nn_core.graph.memory import Arena
from nn_core.graph.node import Node, Vertex
from nn_core.graph.order import forward_order
from nn_core.settings import disabled_optimizations, is_enabled
from nn_core.synced import EPOCH, HOST, Key, Space, SyncedArray, Tenure, ready
from nn_core.typing import Array, Backend, Runner, Step


class Entry(NamedTuple):
    """One piece of work: `runner` on `arrays`, done for `node` (None for a copy) by `backend` in `space` (None: host)."""

    node: Node | None
    runner: Runner
    arrays: tuple[Array | None, ...]
    backend: Backend | None = None
    space: Space | None = None


class Attachment(NamedTuple):
    """After the run, `array` holds the values of `synced`, or nothing does (array None: the memory was reused)."""

    synced: SyncedArray
    key: Key
    array: Array | None
    keep: bool


class Plan:
    """Entries to run, the arrays of variables they touch, and what the arrays hold afterwards."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.arena = Arena()
        self.attachments: list[Attachment] = []
        #: arrays of variables that are read, and the key under which the plan reads them
        self.leaves: list[tuple[SyncedArray, Key]] = []
        #: copies of leaves: brought from elsewhere before each run; converted by an entry; as an earlier pass left them
        self.refreshes: list[Callable[[], object]] = []
        self.casts: list[tuple[SyncedArray, Key]] = []
        self.found: list[tuple[SyncedArray, Key]] = []
        #: arrays of leaves that the plan writes to, such as running statistics
        self.rewritten: list[SyncedArray] = []
        self.seeded: list[Node] = []
        self.displaced = True
        self.kept = Tenure(self, True)
        self.held = Tenure(self, True)
        self.gone = Tenure(self, False)
        self.signature: tuple[Any, ...] = ()
        self.leaf_heads: tuple[Any, ...] = ()
        self.epoch = -1
        self._steps: list[Step] | None = None
        self._weights: Weights | None = None
        self._runs = 0

    def run(
        self, hooks: tuple[list[Hook], list[Hook]] | None = None, finish: Callable[[Node], object] | None = None
    ) -> None:
        """Compute. The caller has made sure that the plan is up to date."""
        if self.displaced:
            self.held.alive = True  # arrays do not take what has ended; the values are there when the pass is over
            self.adopt()
        self.read_leaves()
        if hooks is not None or finish is not None:
            self._run_observed(hooks or ([], []), finish)
        elif self._runs == 0:
            for _, runner, arrays, _, space in self.entries:
                if space is not None:
                    ready(space)
                runner(*arrays)
        else:
            if self._steps is None:
                self._steps = self._bound_steps()
                self._weights = watched_weights(self._steps, self.leaves)
            unchanged = self._weights is not None and self._weights.are_unchanged()
            for step in self._weights.steps if unchanged and self._weights is not None else self._steps:
                step()
        for synced in self.rewritten:
            synced.modifications += 1
        self._runs += 1
        self.held.alive = True

    def read_leaves(self) -> None:
        """See to it that the arrays that the plan reads hold the values of their variables."""
        for synced, key in self.leaves:
            if synced.lazy is not None:
                synced.read(key)
        for synced, key in self.found:
            if key not in synced.valid:
                synced.read(key)
        for refresh in self.refreshes:
            refresh()
        for synced, key in self.casts:
            synced.valid.add(key)

    def adopt(self) -> None:
        """Make the variables' arrays refer to this plan's memory again, after another plan or the user had them."""
        for synced, key, array, keep in self.attachments:
            if array is None:
                synced.attach(key, None, self.gone)
            else:
                synced.attach(key, array, self.kept if keep else self.held)
        self.displaced = False

    def release(self) -> None:
        """End the right of the variables to values that another plan is about to overwrite."""
        self.held.alive = False

    def _run_observed(self, hooks: tuple[list[Hook], list[Hook]], finish: Callable[[Node], object] | None) -> None:
        before, after = hooks
        last: dict[Node, int] = {entry.node: i for i, entry in enumerate(self.entries) if entry.node is not None}
        seen: set[Node] = set()
        for i, (node, runner, arrays, _, space) in enumerate(self.entries):
            if space is not None:
                ready(space)
            if node is not None and node not in seen:
                seen.add(node)
                for hook in before:
                    hook(node)
            runner(*arrays)
            if node is not None and last[node] == i:
                for hook in after:
                    hook(node)
                if finish is not None:
                    finish(node)

    def _bound_steps(self) -> list[Step]:
        spaces = dict.fromkeys(entry.space for entry in self.entries if entry.space is not None)
        steps: list[Step] = [space.use for space in spaces] if len(spaces) == 1 else []
        for (fuse, space), entries in itertools.groupby(self.entries, _neighbourhood):
            if space is not None and len(spaces) > 1:
                steps.append(space.use)
            members = list(entries)
            group = [_bound(entry) for entry in members]
            if fuse is None:
                steps += [own.settle for own in spaces]
                steps += group
            else:
                steps += fuse(members[0].backend, group)
        return steps


class Weights:
    """The leaves of which steps keep copies in a layout of their own; see `Step` of `nn_core.typing`."""

    def __init__(self, leaves: Sequence[tuple[SyncedArray, Key]], steps: list[Step]) -> None:
        #: the steps to run while the leaves are unchanged
        self.steps = steps
        self._leaves = leaves
        self._seen: list[int | None] = []

    def are_unchanged(self) -> bool:
        """Whether nobody can have written to the leaves since the last call."""
        seen = [None if _is_lent(synced, key) else synced.modifications for synced, key in self._leaves]
        unchanged = None not in seen and seen == self._seen
        self._seen = seen
        return unchanged


def _is_lent(synced: SyncedArray, key: Key) -> bool:
    return synced.is_lent(key) or (synced.head is not None and synced.head != key and synced.is_lent(synced.head))


def watched_weights(steps: Sequence[Step], leaves: Iterable[tuple[SyncedArray, Key]]) -> Weights | None:
    """The weights of `steps`, if they have some and all are leaves."""
    addresses = {address for step in steps for address in getattr(step, "weights", ())}
    if not addresses:
        return None
    found = {
        address: (synced, key)
        for synced, key in leaves
        if key[0] is HOST and (address := synced.copies[key].__array_interface__["data"][0]) in addresses
    }
    if len(found) < len(addresses):
        return None
    return Weights(list(found.values()), [_trusting(step) for step in steps])


def _trusting(step: Any) -> Step:
    return functools.partial(step, True) if getattr(step, "weights", ()) else step


def _neighbourhood(entry: Entry) -> tuple[Any, Space | None]:
    """What neighbours must have in common to be merged: how their backends merge, and where they work."""
    return getattr(type(entry.backend), "fuse", None) if is_enabled("fuse") else None, entry.space


def _bound(entry: Entry) -> Step:
    step: Any = bind(entry.runner, entry.arrays)
    if isinstance(step, functools.partial):
        step.name = "copy" if entry.node is None else entry.node.spec.api  # type: ignore[attr-defined]  # for reports
    return step


def bind(runner: Runner, arrays: Sequence[Array | None]) -> Step:
    """A function without arguments that runs `runner` on `arrays`."""
    binder = getattr(runner, "bind", None)
    if binder is None:
        return functools.partial(runner, *arrays)
    step: Step = binder(*arrays)
    return step


def signature_of(order: Iterable[Node], roots: Sequence[Vertex]) -> tuple[Any, ...]:
    """Everything about a graph that a plan was compiled for; equal signatures mean that the plan still fits."""
    parts: list[Any] = [tuple((root.cell, root.cell.data._synced, root._persistent) for root in roots)]
    parts.append(disabled_optimizations())
    for node in order:
        parts.append((node, node.need_grad, *[cell.data._synced for cell in node.cells]))
        parts += [
            vertex
            and (
                vertex.cell,
                vertex.cell.data._synced,
                vertex.cell.data._shape,
                vertex.producer,
                vertex.need_grad,
                vertex._persistent,
                vertex._recompute,
            )
            for vertex in node.inputs
        ]
    return tuple(parts)


def is_current(plan: Plan, roots: Sequence[Vertex]) -> bool:
    """Whether `plan` still fits the graph of `roots`; cheap when nothing has happened anywhere."""
    if plan.epoch == EPOCH.value:
        return True
    if plan.signature != signature_of(forward_order(roots), roots) or plan.leaf_heads != heads_of(plan.leaves):
        return False
    plan.epoch = EPOCH.value
    return True


def heads_of(leaves: Iterable[tuple[SyncedArray, Key]]) -> tuple[Any, ...]:
    """What a plan assumes of the arrays it does not own: which copy is the head, and where it lies."""
    return tuple(
        (synced.head, id(synced.copies.get(key)), synced.head and id(synced.copies.get(synced.head)))
        for synced, key in leaves
    )
