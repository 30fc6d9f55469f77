"""Backward passes of dynamic graphs: a graph that is built anew each step, with the structure of an earlier one.

Compiling the backward pass costs more than running it for small functions. So the first graph of a structure is
compiled, and what its entries refer to is written down relative to the graph: "output 0 of the third function", "the
second input". A later graph of the same structure only looks up its own arrays and runs the same kernels.

A template serves passes with ``clear_buffer=True``, in which no gradient of an intermediate variable can be seen.
"""

import itertools
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from nn_core.engine.arrays.leases import RELEASED, STRIDED
from nn_core.engine.arrays.synced import GRAPH_VERSION, Key, Space, SyncedArray, ready
from nn_core.engine.graph.backward_data import BackwardPlan
from nn_core.engine.graph.call import PreparedKernel
from nn_core.engine.graph.compile import NarrowedRead, Refresh, is_view
from nn_core.engine.graph.node import FLAGS_VERSION, Node, Storage, Value
from nn_core.engine.graph.plan import Entry
from nn_core.engine.graph.trace_node import ANYWHERE
from nn_core.engine.runtime.caches import Cache, register_cache
from nn_core.engine.runtime.locks import fork_safe
from nn_core.settings import disabled_optimizations, is_enabled
from nn_core.typing import Array, Backend, Shape, extra

#: More structures than this, or more memory for their gradients, and the oldest are dropped; a few are always kept.
MAX_TEMPLATES, MAX_BYTES, MIN_TEMPLATES = 64, 2**29, 4

_TEMPLATES: dict[Any, "Template"] = {}
_CHANGING = fork_safe(threading.Lock())

#: A function of a graph: its node, or what it has left while nobody has asked for that.
GraphCall: TypeAlias = Node | Value


class _Origin(NamedTuple):
    """The origin of an array that an entry works on: output `number` of a part, or input `number` of the graph (part -1).

    `shape` is the shape in which it is wanted; None: that of the part.
    """

    part: int
    number: int
    key: Key
    shape: tuple[int, ...] | None


class _Piece(NamedTuple):
    """A part of the pass: to be called with the arrays that `origins` name."""

    call: Callable[..., object]
    origins: Sequence[_Origin]


class Structure:
    """The properties in which two graphs must agree to share a template, and the arrays in which they may differ.

    Attributes:
        key: Equal for graphs of one structure. It has the addresses of the parameters' storages, so that it does not keep
            them alive; a template does, whose key is in use.
        order: The functions, each after those that give its inputs: nodes, and lazy values where nobody has asked for
            the node.
        inputs: The arrays of the leaves that need no gradient.
        all_lazy: Whether `order` had lazy values only when it was made; compiling a pass makes their nodes.
    """

    __slots__ = ("all_lazy", "inputs", "key", "order")

    def __init__(
        self, order: Sequence[GraphCall], inputs: list[SyncedArray], key: tuple[Any, ...], all_lazy: bool = False
    ) -> None:
        self.order = order
        self.inputs = inputs
        self.key = key
        self.all_lazy = all_lazy

    @staticmethod
    def described(root: Value, order: Sequence[GraphCall]) -> "Structure | None":  # noqa: C901  # each input of each new graph
        """Return the structure of the graph of `root`, whose functions are `order`.

        None when nodes of lazy values have been made meanwhile, which other threads may cause.
        """
        inputs: list[SyncedArray] = []
        positions: dict[int, int] = {}  # by identity: the hash of a variable is that of its storage
        numbers: dict[SyncedArray, int] = {}
        key: list[Any] = [root.output_index, disabled_optimizations()]
        for part in order:
            positions[id(part)] = len(positions)
            inputs_of_part = _inputs_of(part)
            if isinstance(part, Node):
                key.append(part.kernel)
                key += [storage.data.synced.lease for storage in part.storages if storage.data.synced.lease is not None]
            else:
                trace_node = part.trace_node
                if trace_node is None:
                    return None
                key.append(trace_node.kernel)
            for value in inputs_of_part:
                if value is None:
                    key.append(None)
                    continue
                need_grad = value.need_grad
                below = part_of(value)
                if below is not None:
                    if id(below) not in positions:
                        return None
                    key += (need_grad, positions[id(below)], value.output_index)
                elif need_grad:
                    key.append(id(value.storage))
                else:
                    synced = value.storage.data.synced
                    number = numbers.get(synced)
                    if number is None:
                        number = numbers[synced] = len(inputs)
                        inputs.append(synced)
                    key += (number, synced.lease)
        return Structure(order, inputs, tuple(key))

    def array(self, part: int, number: int, key: Key) -> Array:
        """Return the values under `key` of output `number` of a part, or of input `number` of the graph (part -1)."""
        if part < 0:
            return self.inputs[number].read(key)
        producer = self.order[part]
        if isinstance(producer, Value) and producer.trace_node is not None and producer.trace_node.output_key == key:
            return producer.lazy_array
        return _storages_of(producer)[number].data.synced.read(key)


class Template:
    """A compiled backward pass, free of the graph that it was compiled for."""

    def __init__(self, plan: BackwardPlan, pieces: list[_Piece], spaces: Sequence[Space], structure: Structure) -> None:
        self.plan = plan
        self._parameters = [leaf.storage for leaf in _parameters_of(structure)]  # alive, because the key has their addresses
        self._spaces = spaces
        kernels = [_node_of(part).kernel for part in structure.order]
        own = [origin for piece in pieces for origin in piece.origins if origin.part >= 0]
        #: whether functions have given all arrays as they are wanted
        self._direct = all(origin.key == kernels[origin.part].output_keys[origin.number] for origin in own)
        self._pieces = [(call, [_as_given(origin, kernels) for origin in origins]) for call, origins in pieces]

    def fits(self) -> bool:
        """Return whether the parameters are still in the same memory."""
        plan = self.plan
        if plan.version != GRAPH_VERSION.value:
            if not plan.is_bound():
                return False
            plan.version = GRAPH_VERSION.value
        return plan.may_read()

    def run(self, structure: Structure, root: Value) -> None:
        """Compute the gradients of a graph of the same structure, and give up its intermediate values."""
        self.plan.read_leaves()
        for space in self._spaces:
            ready(space)
        values = _lazy_arrays(structure) if self._direct and root.trace_node is not None else None
        for call, origins in self._pieces:
            arrays = []
            for part, number, key, shape in origins:
                raw = structure.array(part, number, key) if values is None or part < 0 else values[part]
                arrays.append(raw if shape is None or raw.shape == shape else raw.reshape(shape))
            call(*arrays)
        release(structure.order, root, structure.all_lazy)


def _lazy_arrays(structure: Structure) -> list[Array] | None:
    """Return the results of the functions if no program has asked for the node or the storage of one of them."""
    if not structure.all_lazy:
        return None
    return [part.lazy_array for part in structure.order if isinstance(part, Value)]


def release(order: Sequence[GraphCall], root: Value, all_lazy: bool) -> None:
    """Give up the data of all functions of a graph but its result; `all_lazy`: of a `Structure`."""
    trace = root._trace
    if trace is not None:
        trace.broken = True  # a later backward pass has to look at each function: some have no values any more
    # after a change of flags, nodes may have been made of lazy values
    if all_lazy and trace is not None and trace.version == FLAGS_VERSION.value:
        kept = root.lazy_array
        for part in order:
            part.lazy_array = RELEASED  # type: ignore[union-attr]  # they are values
        root.lazy_array = kept
        return
    result = None if root.trace_node is not None else root.storage.data.synced
    for part in order:
        if isinstance(part, Value) and part.trace_node is not None:
            _release_lazy(part, keep=part is root, elsewhere=not all_lazy)
            continue
        for storage in _owned_by(part):
            if storage.data.synced is not result:
                _release(storage.data.synced)


def _owned_by(part: GraphCall) -> tuple[Storage, ...]:
    """Return the storages whose memory is a function's own: a view has that of another function, or of a leaf, which
    keeps it.
    """
    return () if isinstance(part, Node) and is_view(part) else _storages_of(part)


def _release_lazy(value: Value, *, keep: bool, elsewhere: bool) -> None:
    if not keep:
        value.lazy_array = RELEASED
    if elsewhere:  # it may be part of a walk that continues
        value._trace.broken = True
        value._trace.end()


def _release(synced: SyncedArray) -> None:
    # not `clear`: whoever reads a released value is refused, where a cleared array would give zeros
    synced.copies.clear()
    synced.valid = set()
    synced.latest = None
    synced.lease = RELEASED


class _TracePositions:
    """The positions of the functions and the inputs of a structure on every trace that ends at one node."""

    __slots__ = ("_inputs", "_key", "_positions")

    def __init__(self, structure: Structure, trace: Any) -> None:
        self._positions = [part.trace_node.position for part in structure.order if isinstance(part, Value)]  # all are
        self._inputs = [trace.number_of(synced) for synced in structure.inputs]
        self._key = structure.key

    def recalled(self, trace: Any) -> Structure:
        """Return the structure of the graph that ends where `trace` is now."""
        order = [trace.results[position]() for position in self._positions]
        return Structure(order, [trace.array(number) for number in self._inputs], self._key, all_lazy=True)


def is_followed(root: Value) -> bool:
    """Return whether a trace has followed all calls that `root` depends on, and nobody has asked for a node or a flag
    since.
    """
    trace_node, trace = root.trace_node, root._trace
    if trace_node is None or not trace_node.whole or trace.broken or trace.version != FLAGS_VERSION.value:
        return False
    return trace.position_of(root) >= 0


def structure_of(root: Value, followed: bool) -> Structure | None:
    """Return the structure of a graph whose functions were computed as they were called; None if it cannot be shared.

    Args:
        root: The result of the graph.
        followed: Whether it `is_followed`.
    """
    trace_node, trace = root.trace_node, root._trace
    if not followed or trace_node.position == ANYWHERE:
        return _walked(root)
    if trace_node.structure is not None:
        return trace_node.structure.recalled(trace)
    structure = _walked(root)
    if structure is not None and all(isinstance(part, Value) for part in structure.order):  # no thread changed a flag
        trace_node.structure = _TracePositions(structure, trace)
    return structure


def _walked(root: Value) -> Structure | None:
    order: list[GraphCall] = []
    start = part_of(root)
    assert start is not None
    done = {id(start)}
    stack = [(start, iter(_inputs_of(start)))]
    while stack:
        part, inputs = stack[-1]
        for value in inputs:
            below = None if value is None else part_of(value)
            if below is not None and id(below) not in done:
                done.add(id(below))
                stack.append((below, iter(_inputs_of(below))))
                break
        else:
            if not (_is_kept_node(part) if isinstance(part, Node) else is_kept(part)):
                return None
            order.append(part)
            stack.pop()
    return Structure.described(root, order)


def _parameters_of(structure: Structure) -> list[Value]:
    parts = [_node_of(part) for part in structure.order]
    return [v for part in parts for v in part.inputs if v is not None and v.is_leaf and v.need_grad]


def _node_of(part: GraphCall) -> Node:
    node = part if isinstance(part, Node) else part.producer
    assert node is not None
    return node


def _storages_of(part: GraphCall) -> tuple[Storage, ...]:
    return part.storages if isinstance(part, Node) else (part.storage,)


def _as_given(origin: _Origin, kernels: Sequence[PreparedKernel]) -> tuple[int, int, Key, Shape | None]:
    """`origin` without its shape where that is the shape in which the part gives the array."""
    part, number, key, shape = origin
    return part, number, key, None if part >= 0 and kernels[part].output_shapes[number] == shape else shape


def _inputs_of(part: GraphCall) -> tuple[Value | None, ...]:
    return part.inputs if isinstance(part, Node) else part.lazy_inputs


def part_of(value: Value) -> GraphCall | None:
    """Return the function that gives `value`: its node, or itself while it is lazy; None for a leaf."""
    trace, trace_node = value._trace, value.trace_node
    if trace_node is not None and trace.version != FLAGS_VERSION.value:
        value._materialize()  # whether it needs a gradient has to be found out anew, and that takes nodes
        trace_node = None
    return value._producer if trace_node is None else value


def is_kept(value: Value) -> bool:
    """Return whether a lazy value holds an array, and may lose it."""
    array = value.lazy_array
    return array is not None and array is not RELEASED and not value.persistent and not value.recompute


def _is_plain(node: Node) -> bool:
    """Return whether a node has a kernel, and its gradient does nothing but compute gradients."""
    return node.python is None and node.kernel is not None and not node.spec.has("keeps_gradient")


def _is_kept_node(node: Node) -> bool:
    """Return whether all results of a node hold values, and may lose them or have the memory of another value.

    False as well for a node whose gradient does more than compute gradients.
    """
    if not _is_plain(node):
        return False
    owns = not is_view(node)
    for index, storage in enumerate(node.storages):
        synced = storage.data.synced
        value = node.output(index)
        # the memory of a plan, or one that a plan relies on, is not the graph's to give up
        if owns and (synced.lease not in (None, STRIDED) or synced.latest is None or synced.bound):
            return False
        if value is not None and (value.persistent or value.recompute):
            return False
        # somebody may look at this gradient afterwards; a template leaves none
        if storage.made_grad is not None:
            return False
    return True


def find(structure: Structure, kind: Hashable) -> Template | None:
    """Return the template of a kind for graphs of this structure, if there is one that fits."""
    template = _TEMPLATES.get((kind, structure.key))
    # the memory of a parameter has moved; a pass that is compiled now finds the new place
    if template is not None and not template.fits():
        with _CHANGING:
            _TEMPLATES.pop((kind, structure.key), None)
        return None
    return template


def remember(structure: Structure, kind: Hashable, plan: BackwardPlan) -> Template | None:
    """Make a template of a freshly compiled plan of a kind; None when it reads what is not told by the structure alone."""
    if any(leaf.storage.data.synced in structure.inputs for leaf in _parameters_of(structure)):
        return None  # one address has two roles, which the arrays of a later graph may not share
    origins = _origins(structure)
    spaces = dict.fromkeys(entry.space for entry in plan.entries if entry.space is not None)
    found = [(entry, _places(entry, origins)) for entry in plan.entries]
    # pieces are run one after another without a change of devices
    if len(spaces) > 1 or any(_is_bound_to_its_graph(entry, places) for entry, places in found):
        return None
    pieces = [
        piece
        for backend, group in itertools.groupby(found, lambda pair: pair[0].backend)
        for piece in _pieces(backend, list(group))
    ]
    _free_of_graph(plan, structure)
    template = Template(plan, pieces, list(spaces), structure)
    with _CHANGING:
        _TEMPLATES[kind, structure.key] = template
        _drop_oldest()
    return template


def _is_bound_to_its_graph(entry: Entry, places: Sequence[object]) -> bool:
    if isinstance(entry.runner, NarrowedRead):  # a structure tells neither where a narrowed array begins nor where it ends
        return bool(places)
    return isinstance(entry.runner, Refresh)


def _free_of_graph(plan: BackwardPlan, structure: Structure) -> None:
    """Leave to `plan` what belongs to the parameters, and nothing of the graph that it was compiled for."""
    own = {id(synced) for synced in structure.inputs}
    plan.leaves = [(synced, key) for synced, key in plan.leaves if id(synced) not in own]
    plan.refreshes = [refresh for refresh in plan.refreshes if id(refresh.synced) not in own]
    kept = {synced for synced, _ in plan.leaves} | plan.leaf_grads.keys()
    plan.bind((), [binding for binding in plan.bindings if binding.synced in kept])
    plan.storages = [entry for entry in plan.storages if entry[2] is not None and entry[2].synced in kept]
    # else the template would keep the graph of its first step alive
    plan.entries, plan.attachments, plan.freed = [], [], []


def _drop_oldest() -> None:
    """Keep the number of templates and the memory that they hold within bounds."""
    n_bytes = sum([template.plan.arena.n_bytes for template in _TEMPLATES.values()])
    for key, template in list(_TEMPLATES.items())[:-MIN_TEMPLATES]:
        if len(_TEMPLATES) <= MAX_TEMPLATES and n_bytes <= MAX_BYTES:
            break
        n_bytes -= template.plan.arena.n_bytes
        del _TEMPLATES[key]


def _template_bytes() -> int:
    return sum([template.plan.arena.n_bytes for template in list(_TEMPLATES.values())])


def _trim(n_bytes: int) -> None:
    with _CHANGING:
        while _TEMPLATES and _template_bytes() > n_bytes:
            del _TEMPLATES[next(iter(_TEMPLATES))]


def _clear() -> None:
    with _CHANGING:
        _TEMPLATES.clear()


register_cache(Cache("memory of backward passes", _TEMPLATES.__len__, _template_bytes, _clear, trim=_trim))


def _pieces(backend: Backend | None, group: Sequence[tuple[Entry, list[tuple[int, _Origin]]]]) -> list[_Piece]:
    """Neighbouring entries of one backend: one call where it can join them, else one each."""
    make_program = extra(backend, "program") if is_enabled("fuse") else None
    if make_program is not None:
        numbers: dict[_Origin, int] = {}
        parts = []
        for entry, places in group:
            given = {position: numbers.setdefault(origin, len(numbers)) for position, origin in places}
            parts.append((entry.runner, entry.arrays, given))
        program = make_program(parts)
        if program is not None:
            return [_Piece(program, list(numbers))]
    return [_alone(entry, places) for entry, places in group]


def _alone(entry: Entry, places: Sequence[tuple[int, _Origin]]) -> _Piece:
    positions = [position for position, _ in places]
    fixed = [None if i in positions else array for i, array in enumerate(entry.arrays)]
    runner = entry.runner  # not the entry, which has the graph and its arrays

    def call(*given: Array) -> None:
        arrays = fixed.copy()
        for position, array in zip(positions, given, strict=True):
            arrays[position] = array
        runner(*arrays)

    return _Piece(call, [origin for _, origin in places])


def _places(entry: Entry, origins: Mapping[SyncedArray, tuple[int, int]]) -> list[tuple[int, _Origin]]:
    """Return the positions of an entry's arrays that belong to the graph, each with its origin in a graph of the structure."""
    return [
        (position, _Origin(*origins[slot[0]], slot[1], array.shape))
        for position, (array, slot) in enumerate(zip(entry.arrays, entry.slots, strict=True))
        if array is not None and slot is not None and slot[0] in origins
    ]


def _origins(structure: Structure) -> dict[SyncedArray, tuple[int, int]]:
    """Return the part of the graph that gives each array, and the number of its output; part -1: the inputs."""
    origins = {synced: (-1, number) for number, synced in enumerate(structure.inputs)}
    for position, part in enumerate(structure.order):
        for index, storage in enumerate(_storages_of(part)):
            origins.setdefault(storage.data.synced, (position, index))  # a view has the array of its input
    for leaf in _parameters_of(structure):  # the same in all graphs of the structure, through views as well
        origins.pop(leaf.storage.data.synced, None)
    return origins
