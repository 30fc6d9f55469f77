"""A plan: the work of one forward or backward pass, resolved once and run many times.

Compiling a graph gives a list of entries, each a prepared kernel with the raw arrays it works on. The first run calls
them directly, so that a graph that is used once pays nothing more. The second run binds every entry to its arrays and
merges neighbours where a backend can: from then on running a plan is ``for step in steps: step()``.
"""

import functools
import itertools
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from nn_core.engine.arrays.leases import BufferLease
from nn_core.engine.arrays.synced import GRAPH_VERSION, OBSERVED, Key, Space, SyncedArray, ready
from nn_core.engine.dispatch.blame import note_by_frames
from nn_core.engine.graph.call import KERNELS_VERSION
from nn_core.engine.graph.conversion import Conversion
from nn_core.engine.graph.failure import name_pass, note_node, raise_lack_in
from nn_core.engine.graph.hooks import NodeHook
from nn_core.engine.graph.kept_weights import Weights, held_by
from nn_core.engine.graph.memory import Arena, Slot
from nn_core.engine.graph.node import Node, Value, forward_order
from nn_core.engine.graph.plan_cache import Plans
from nn_core.engine.graph.sandboxed_kernel import runner_of
from nn_core.engine.graph.sources import followed_shapes
from nn_core.engine.graph.tracing import LISTENERS, run_entry
from nn_core.settings import disabled_optimizations, is_deterministic, is_enabled
from nn_core.typing import Array, Backend, Runner, Step, extra

#: Plans kept for a variable, and of these for passes of one kind; who alternates between more compiles anew.
MAX_PLANS, MAX_ALIKE = 12, 4


class Entry(NamedTuple):
    """One piece of work: `runner` on `arrays`, done for `node` (None for a copy) by `backend` in `space` (None: host).

    `slots` says for each of the arrays whose values it holds when the pass begins; None where the pass makes them. `ends`
    has the positions of arrays of the pass whose values nobody reads after this.
    """

    node: Node | None
    runner: Runner
    arrays: tuple[Array | None, ...]
    backend: Backend | None = None
    space: Space | None = None
    slots: tuple[Slot | None, ...] = ()
    ends: tuple[int, ...] = ()


class Binding(NamedTuple):
    """An assumption of a plan about an array that it does not own: the memory that holds its values.

    Attributes:
        key: Key of the copy that the plan reads or writes.
        array: The memory of that copy.
        latest: Key and memory of the copy that was written last; None if the plan itself writes another copy.
        computed: Whether another plan computes the values, so that they must not have been replaced by a number.
    """

    synced: SyncedArray
    key: Key
    array: Array | None
    latest: tuple[Key | None, Array | None] | None
    computed: bool

    @staticmethod
    def of(synced: SyncedArray, key: Key, *, computed: bool = False) -> "Binding":
        """Return a binding to the present memory of the values."""
        copies, latest = synced.copies, synced.latest
        return Binding(synced, key, copies.get(key), (latest, copies.get(latest) if latest else None), computed)

    def holds(self) -> bool:
        """Return whether the values are still in the same memory."""
        synced, key, array, latest, computed = self
        copies = synced.copies
        if copies.get(key) is not array or (computed and synced.pending_fill is not None):
            return False
        if latest is None:
            return True
        return synced.latest == latest[0] and (synced.latest is None or copies.get(synced.latest) is latest[1])


class Attachment(NamedTuple):
    """After the run, `array` holds the values of `synced`, or nothing does (array None: the memory was reused).

    `shared`: other arrays have the same memory, in another order or as a part of theirs.
    """

    synced: SyncedArray
    key: Key
    array: Array | None
    keep: bool
    shared: bool = False


class Watch:
    """A profiler's view of the plans that run.

    Attributes:
        steps_of: Called with a plan before it runs, from its second run on; gives the steps to run in place of its own.
    """

    def __init__(self) -> None:
        self.steps_of: Callable[[Plan], Sequence[Step]] | None = None


WATCH = Watch()

#: How often functions have failed in a plan while kernels were to be chosen anew.
_RETRIED: Final["weakref.WeakKeyDictionary[Node, int]"] = weakref.WeakKeyDictionary()


class Plan:
    """Entries to run, the arrays of variables they touch, and what the arrays hold afterwards."""

    #: Whether fractions are refused where integers are read; gradients of indices are read as integers, too.
    is_exact: ClassVar[bool] = True
    #: The part of its functions that it computes, for those who trace calls.
    part: ClassVar[str] = "forward"

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.arena = Arena()
        self.attachments: list[Attachment] = []
        #: arrays of variables that are read, and the key under which the plan reads them
        self.leaves: list[tuple[SyncedArray, Key]] = []
        self.leaf_arrays: dict[tuple[SyncedArray, Key], Array | None] = {}
        #: arrays that are read before they are computed anew: of leaves that share the data of a function's output. Their
        #: values are carried into the plan's memory when it takes over
        self.carried: frozenset[SyncedArray] = frozenset()
        #: copies of leaves: brought from elsewhere before each run; converted by an entry
        self.refreshes: list[Any] = []
        self.casts: list[tuple[SyncedArray, Key]] = []
        #: the memory of arrays that the plan does not own, and the rights to those that other plans own
        self.bindings: list[Binding] = []
        self.leases: tuple[BufferLease, ...] = ()
        #: arrays of leaves that the plan writes to, such as running statistics
        self.rewritten: list[SyncedArray] = []
        self.seeded: list[Node] = []
        #: the gradients of leaves that the plan writes to or adds to, and the keys under which it does
        self.leaf_grads: dict[SyncedArray, Key] = {}
        self.is_dynamic = False  # whether shapes follow from values, so that a run may find another one
        self.displaced = True
        owner = weakref.ref(self)
        self.kept = BufferLease(owner, True)
        self.held = BufferLease(owner, True)
        self.lent = BufferLease(owner, True, shared=True)
        self.gone = BufferLease(owner, False)
        self.signature: tuple[Any, ...] = ()
        self.version = -1
        #: the version for which the plan, and the others of its kind, did not fit
        self.missed = -1
        self._steps: list[Step] | None = None
        self._weights: Weights | None = None
        self._runs = 0
        self._kernels_version = KERNELS_VERSION.value

    def run(  # noqa: C901  # every pass; what it does once a pass is written out
        self, hooks: tuple[list[NodeHook], list[NodeHook]] | None = None, finish: Callable[[Node], object] | None = None
    ) -> None:
        """Compute. The caller has made sure that the plan is up to date."""
        if self.displaced:
            self.held.alive = self.lent.alive = True  # arrays do not take what has ended; values are there after the pass
            self.adopt()
        self.read_leaves()
        runner = step = None
        try:
            if hooks is not None or finish is not None or LISTENERS:
                self._run_observed(hooks or ([], []), finish)
            elif self._runs == 0:  # binding steps costs more than it saves in a graph that is used once
                for _, runner, arrays, _, space, *_ in self.entries:  # the last one is told apart below
                    if space is not None:
                        ready(space)
                    runner(*arrays)
            else:
                for step in self._steps_now():
                    step()
        except BaseException as error:
            self._retry()
            self._note(error, runner or getattr(step, "func", None))
            raise
        finally:  # of a pass that failed, too: some of it may have run
            for synced in self.rewritten:  # running statistics: other copies of them are old now
                synced.rewritten()
        self._runs += 1
        self.held.alive = self.lent.alive = True

    def _steps_now(self) -> Sequence[Step]:
        """Return the steps of a run: those that rely on packed copies of weights, where the weights cannot have changed."""
        if WATCH.steps_of is not None:
            return WATCH.steps_of(self)
        if self._steps is None:
            self._steps = self.bound_steps(self.entries)
            self._weights = self.watched_weights(self._steps)
        weights = self._weights
        return self._steps if weights is None or not weights.are_unchanged() else weights.steps

    def _retry(self) -> None:
        """Let the next pass compile plans of these functions again, if kernels were forgotten: one may refuse them by now."""
        if self._kernels_version == KERNELS_VERSION.value:
            return
        for entry in self.entries:
            if entry.node is not None:
                _RETRIED[entry.node] = _RETRIED.get(entry.node, 0) + 1
        GRAPH_VERSION.advance()

    def _note(self, error: BaseException, runner: Runner | None) -> None:
        """Note in `error` which function of the plan it comes from, where that can be told."""
        for entry in self.entries:
            if runner_of(entry.runner) is runner_of(runner) and entry.node is not None:
                backend = "" if entry.backend is None else entry.backend.name
                note_node(error, entry.node, backend, getattr(entry.runner, "owner", ""), self.part)
        note_by_frames(error, "a step of a plan")  # one of several that were merged
        name_pass(error, self.part, [entry.node.spec.api for entry in self.entries if entry.node is not None])

    def read_leaves(self) -> None:
        """See to it that the arrays that the plan reads hold the values of their variables."""
        refresh = None
        try:
            for synced, key in self.leaves:
                if synced.pending_fill is not None:
                    # into the copy from which the plan takes all others: filled in elsewhere, the number would miss them
                    synced.read(synced.latest or key, self.is_exact)
            for refresh in self.refreshes:
                refresh()
        except MemoryError as error:
            self._raise_lack(error, synced if refresh is None else refresh.synced)
            raise
        for synced, key in self.casts:
            synced.valid.add(key)

    def _raise_lack(self, error: MemoryError, leaf: SyncedArray) -> None:
        """Raise the error of the function that is the first to read a leaf, for a copy of which there is no memory."""
        for entry in self.entries:
            if entry.node is not None and any(slot is not None and slot[0] is leaf for slot in entry.slots):
                raise_lack_in(entry.node, error, "inputs")

    def bind(self, signature: tuple[Any, ...], bindings: Iterable[Binding]) -> None:
        """Note for which graph, and for which memory of others, the plan was compiled."""
        # together these are all that the plan takes for granted; who can change something of it counts GRAPH_VERSION up
        self.signature = signature
        self.bindings = list(bindings)
        leases = [binding.synced.lease for binding in self.bindings]
        self.leases = tuple(dict.fromkeys([lease for lease in leases if lease is not None]))
        self.version = GRAPH_VERSION.value

    def bound_leaves(self) -> list[Binding]:
        """Return the memory in which the plan reads the leaves."""
        arrays = self.leaf_arrays
        return [Binding.of(leaf[0], leaf[1])._replace(array=arrays[leaf]) for leaf in self.leaves]

    def is_bound(self) -> bool:
        """Return whether everything that the plan reads and does not own is still where the plan reads it."""
        return all(binding.holds() for binding in self.bindings)

    def may_read(self) -> bool:
        """Return whether the values of other plans that this one reads are still there."""
        for lease in self.leases:  # noqa: SIM110  # called in each pass, for one or two of them
            if not lease.alive:
                return False
        return True

    def adopt(self) -> None:
        """Make the variables' arrays refer to this plan's memory again, after another plan or the user had them."""
        for synced, key, array, keep, shared in self.attachments:
            if array is None:
                synced.attach(key, None, self.gone)
                continue
            values = synced.read(key) if synced in self.carried else array
            synced.attach(key, array, self.lent if shared else self.kept if keep else self.held)
            if values is not array:
                ready(key[0])
                array[...] = values
        self.displaced = False

    def release(self) -> None:
        """End the right of the variables to values that another plan is about to overwrite."""
        self.held.alive = self.lent.alive = False

    def _run_observed(self, hooks: tuple[list[NodeHook], list[NodeHook]], finish: Callable[[Node], object] | None) -> None:
        before, after = hooks
        seen: set[Node] = set()
        finished = self._finished()
        for i, entry in enumerate(self.entries):
            node = entry.node
            if node is not None and node not in seen:
                seen.add(node)
                self._observe(before, node)
            self._run_entry(entry)
            if i not in finished:
                continue
            self._observe(after, finished[i])  # not before the gradients of inputs are added up
            if finish is not None:
                finish(finished[i])

    def _observe(self, hooks: Sequence[NodeHook], node: Node) -> None:
        """Call `hooks`, and bring what they write to values or gradients into the memory in which the plan reads it."""
        if not hooks:
            return
        modified = sum([synced.modifications for synced, _ in self.leaves])
        with OBSERVED.during():
            for hook in hooks:
                hook(node)
        if self.displaced:
            self._adopt_written()
        if modified != sum([synced.modifications for synced, _ in self.leaves]):
            self.read_leaves()
        for synced, key in self.leaf_grads.items():
            if synced.pending_fill is not None:
                synced.readwrite(key)

    def _adopt_written(self) -> None:
        """Let arrays that somebody has written to while the plan runs have its memory again, with what was written."""
        for synced, key, array, keep, shared in self.attachments:
            owner = None if synced.lease is None else synced.lease.owner()
            if array is None or (owner is self and synced.pending_fill is None):
                continue
            values = synced.read(key)
            synced.attach(key, array, self.lent if shared else self.kept if keep else self.held)
            if values is not array:
                ready(key[0])
                array[...] = values
        self.displaced = False

    def _run_entry(self, entry: Entry) -> None:
        if entry.space is not None:
            ready(entry.space)
        try:
            run_entry(entry.runner, entry.arrays, entry.node, entry.backend, self.part)
        except BaseException as error:
            self._note(error, entry.runner)
            raise

    def _finished(self) -> dict[int, Node]:
        """Return each function by the index of its last entry; entries of no function add up gradients of the one before."""
        last: dict[Node, int] = {}
        owner: Node | None = None
        for i, entry in enumerate(self.entries):
            # entries without a node add up what the node before them has contributed
            owner = entry.node or owner
            if owner is not None:
                last[owner] = i
        return {i: node for node, i in last.items()}

    def bound_steps(self, entries: Sequence[Entry]) -> list[Step]:
        """Return some of the entries bound to their arrays, neighbours merged where their backend can."""
        spaces = dict.fromkeys(entry.space for entry in self.entries if entry.space is not None)
        steps: list[Step] = [space.use for space in spaces] if len(spaces) == 1 else []
        for (fuse, space), alike in itertools.groupby(entries, _neighbourhood):
            if space is not None and len(spaces) > 1:
                steps.append(space.use)
            members = list(alike)
            # bound one by one first: what cannot be merged is a step as it is
            group = [self._bound(entry) for entry in members]
            if fuse is None:
                steps += [own.flush for own in spaces]
                steps += group
            else:
                steps += fuse(members[0].backend, group)
        return steps

    def watched_weights(self, steps: Sequence[Step]) -> "Weights | None":
        """Return the weights of which `steps`, all that there are, keep copies; None unless all of them are leaves."""
        if not any(extra(step, "keeps_weights") for step in steps):
            return None
        places = [(entry, position) for entry in self.entries for position in extra(entry.runner, "weights")]
        weights = {entry.slots[position]: None for entry, position in places}
        leaves = [leaf for leaf in self.leaves if leaf in weights]
        if not weights or len(leaves) < len(weights):
            return None
        return Weights(leaves, [_trusting(step) for step in steps])

    def _bound(self, entry: Entry) -> Step:
        step: Any = bind(entry.runner, entry.arrays)
        if isinstance(step, functools.partial):
            step.name = "copy" if entry.node is None else entry.node.spec.api  # type: ignore[attr-defined]  # for reports
        if entry.ends and extra(step, "ends") is not None:
            step.ends = entry.ends
        if is_enabled("pack"):
            follow = extra(step, "follow_weights")
            if follow is not None:
                follow([self._version_of(entry.slots[position]) for position in extra(entry.runner, "weights")])
            elif isinstance(entry.runner, Conversion) and entry.slots[1] is not None:  # for all who read a leaf in this dtype
                step.version = self._version_of(entry.slots[1])
        return step

    def _version_of(self, slot: Slot | None) -> Callable[[], object] | None:
        """Return a function that tells what an array holds, see `KernelExtras`; None where the pass itself writes to it."""
        return None if slot is None or slot[0] in self.rewritten else functools.partial(held_by, *slot)


def _trusting(step: Any) -> Step:
    return functools.partial(step, True) if extra(step, "keeps_weights") else step


def _neighbourhood(entry: Entry) -> tuple[Any, Space | None]:
    """Return what neighbours must have in common to be merged: the `fuse` of their backend, and the memory space."""
    return extra(type(entry.backend), "fuse") if is_enabled("fuse") else None, entry.space


def bind(runner: Runner, arrays: Sequence[Array | None]) -> Step:
    """Return a function without arguments that runs `runner` on `arrays`."""
    binder = extra(runner, "bind")
    if binder is None:
        return functools.partial(runner, *arrays)
    step: Step = binder(*arrays)
    return step


def signature_of(order: Sequence[Node], roots: Sequence[Value]) -> tuple[Any, ...]:
    """Everything about a graph that a plan was compiled for; equal signatures mean that the plan still fits."""
    parts: list[Any] = [tuple((root.storage, root.storage.data.synced, root.persistent) for root in roots)]
    parts.append((disabled_optimizations(), is_deterministic(), followed_shapes(order)))
    for node in order:
        retried = _RETRIED.get(node, 0) if _RETRIED else 0
        parts.append((node, node.need_grad, retried, *[storage.data.synced for storage in node.storages]))
        parts += [
            # not the truth of the value: the result of a comparison refuses to have one
            None
            if value is None
            else (
                value.storage,
                value.storage.data.synced,
                value.storage.data.shape,
                value.storage.data._window,
                value.producer,
                value.need_grad,
                value.persistent,
                value.recompute,
            )
            for value in node.inputs
        ]
    return tuple(parts)


def plans_of(root: Value) -> Plans:
    """Return the plans that were compiled for `root` and the present shapes, by kind; they live as long as it."""
    if root.plans is None:
        root.plans = Plans()
    plans: Plans = root.plans
    return plans


def current_plan(plans: Mapping[Any, list[Any]], kind: Any, roots: Sequence[Value]) -> Any:
    """Return the plan of a kind that fits the graph of `roots` as it is now, and the memory that holds its values; or None.

    Cheap when nothing has happened anywhere. Several plans of one kind differ in the memory that they read: a backward
    pass has one for each forward pass that it follows.
    """
    known = plans.get(kind)
    if not known:  # an empty list is left where Ctrl-C came while plans were dropped
        return None
    plan = known[0]
    if plan.version != GRAPH_VERSION.value:
        # a kind that does not fit is asked for in each pass: that which overwrites gradients, where they are added up
        if plan.missed == GRAPH_VERSION.value:
            return None
        plan = _searched(known, roots)
        if plan is None:
            known[0].missed = GRAPH_VERSION.value
            return None
    for lease in plan.leases:  # as `may_read`, which would be one more call in each pass
        if not lease.alive:
            return None
    return plan


def _searched(known: list[Any], roots: Sequence[Value]) -> Any:
    signature = signature_of(forward_order(roots), roots)
    for position, plan in enumerate(known):
        if plan.signature == signature and plan.is_bound():
            plan.version = GRAPH_VERSION.value
            known[:] = [plan, *known[:position], *known[position + 1 :]]  # in one step, which Ctrl-C cannot divide
            return plan
    return None


def remember(plans: dict[Any, list[Any]], kind: Any, plan: Plan) -> None:
    """Keep `plan`, dropping those of its kind for another graph, and the oldest when there are too many."""
    # another signature is another graph, which will not come back
    alike = [other for other in plans.pop(kind, ()) if other.signature == plan.signature]
    plans[kind] = [plan, *alike[: MAX_ALIKE - 1]]
    while sum([len(some) for some in plans.values()]) > MAX_PLANS:
        some = next(iter(plans.values()))
        some.pop()
        if not some:
            plans.pop(next(iter(plans)))
