"""The calls of a thread in a dynamic graph so far, and those that followed the same calls before.

A program calls the same functions on the same parameters in each step. The calls are a walk through a tree: its nodes
are `TraceNode`, and the key of a call (the function, its arguments, where each input comes from) says which branch is
taken. A repeated call reuses the work of the first one at its place in the tree, such as shapes and kernels; and since
the place implies all calls before it, it also knows the structure of the graph.

A `Trace` is one walk. It ends with a backward pass, with the block that has switched auto_forward on, when nobody holds
its first result any more, or when it has become long; the next one starts at the root again.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from threading import get_ident
from typing import Any, Final
from weakref import ref

from nn_core.context import Context, get_current_context
from nn_core.engine.arrays.synced import HOST, SyncedArray, ready
from nn_core.engine.dispatch.given_dtypes import GIVEN_KINDS, GivenDtypes
from nn_core.engine.dispatch.report import is_strict
from nn_core.engine.graph.call import WHEN_FORGOTTEN, ResolvedCall
from nn_core.engine.graph.failure import named_reading
from nn_core.engine.graph.hooks import POST_HOOKS, PRE_HOOKS
from nn_core.engine.graph.infer import input_entries
from nn_core.engine.graph.modes import AUTO_FORWARD, NO_GRAD, RECOMPUTE
from nn_core.engine.graph.node import FLAGS_VERSION, TRACES, Value
from nn_core.engine.graph.run import fetch, value_of
from nn_core.engine.graph.trace_node import ANYWHERE, Leaf, Root, Source, TraceNode, needs_grad
from nn_core.engine.runtime.caches import Cache, register_cache
from nn_core.engine.runtime.context_values import MEMO, WHEN_DEFAULT_CHANGES
from nn_core.errors import ArgumentError
from nn_core.operators.spec.model import INTEGERS, FunctionSpec
from nn_core.settings import is_enabled
from nn_core.typing import Array
from nn_core.variable import Variable

#: A walk of so many calls ends; with so many nodes a tree is dropped.
MAX_LENGTH: Final = 2048
MAX_NODES: Final = 2**15
#: From so many nodes on, a walk leaves the tree after few new ones: a program that still makes new calls by then is
#: irregular, and hardly takes them again.
MANY_NODES: Final = 2**13
MAX_LEFT: Final = 4
#: The place of a walk that has left the tree.
_OFF_THE_TREE: Final = Root()
#: The marks of arrays that hold integers begin here; see `nn_core.engine.graph.trace_node.Leaf`.
_OF_INTEGERS: Final = -(2**32)


def _nothing_yet() -> object:
    return True


class Trace:
    """One walk, of one thread in one context.

    Attributes:
        version: The walk is over when this is not the present one: a flag or a link of some graph was changed, or kernels.
        thread: The thread that walks; 0 when the walk has ended.
        results: Results of each node, held weakly.
        first: The first of them. The walk is over when that is gone: then probably all of the graph is.
        broken: Whether somebody has asked for a node or a storage of the walk, and may have changed what it holds.
    """

    __slots__ = (
        "__weakref__",
        "_arrays",
        "_n_left",
        "_no_grad",
        "_numbers",
        "_root",
        "_tree",
        "broken",
        "context",
        "first",
        "node",
        "results",
        "thread",
        "version",
    )

    def __init__(self, tree: "_Tree", context: Context, no_grad: bool) -> None:
        self.context = context
        self.version = FLAGS_VERSION.value
        self.thread = get_ident()
        self._root = tree.root(context, no_grad)
        self.node: TraceNode | Root = self._root
        self.results: list[ref[Variable]] = []
        self.first: Callable[[], object] = _nothing_yet
        self.broken = False
        self._n_left = 0
        self._no_grad = no_grad
        self._tree = tree
        self._arrays: list[ref[SyncedArray]] = []
        self._numbers: dict[int, int] = {}
        TRACES[id(self)] = self

    def follow(  # noqa: C901  # every call of a dynamic graph
        self, spec: FunctionSpec, inputs: tuple[Any, ...], args: Mapping[str, Any]
    ) -> Variable | None:
        """Compute a call that was made at this place before; None when it was not, or when the walk is over."""
        # Hot: every call of a dynamic graph passes here, so nothing is looked up and nothing is split off. The trace is over
        # when a flag or kernels have changed, in another thread, and when its first result (then probably all) is gone.
        if self.version != FLAGS_VERSION.value or self.thread != get_ident() or self.first() is None:
            return None
        place: TraceNode | Root = self.node
        node: TraceNode | None
        if place is _OFF_THE_TREE:
            known = self._known(spec, inputs, args)
            if known is None:
                return None
            node, arrays = known
        else:
            # a program mostly does what it did last time; the other branches of the tree are searched if not
            node = place.latest
            if node is None or node.spec is not spec or len(inputs) != node.n_inputs:
                return self._search(spec, inputs, args, node)
            try:
                if node.given != args:
                    return self._search(spec, inputs, args, node)
            except ValueError:  # a setting that is an array
                return None
            arrays = []
            for value, source, key in zip(inputs, node.sources, node.input_keys):  # noqa: B905  # `strict` takes its time
                if type(value) is not Variable:
                    if value is not None or source is not None:
                        return self._search(spec, inputs, args, node)
                    arrays.append(None)
                    continue
                if value._trace is self:
                    raw = value.lazy_array  # before the node, which says whether that is still its array
                    if value.trace_node is not source:
                        return self._search(spec, inputs, args, node)
                    # the trace node is still there, so nobody has asked for the storage, and nobody can have written to it
                    if source.output_key == key:
                        arrays.append(raw)
                        continue
                    array = value.storage.data
                else:
                    storage = value._storage
                    if storage is None or value._producer is not None or not value._need_grad:
                        leaf = self._leaf(value)
                        storage = value.storage
                    else:  # a parameter: its storage says which, as the node relies on nothing in which two could differ
                        leaf = (id(storage), True, storage.data._shape)
                    if leaf != source:
                        return self._search(spec, inputs, args, node)
                    array = storage.data
                synced = array.synced
                # without a lease the memory is the array's own, and that is always in C order
                if (
                    array._shape is synced.shape
                    and synced.lease is None
                    and synced.pending_fill is None
                    and key in synced.valid
                    and (synced.exported is None or synced.latest == key)
                ):
                    arrays.append(synced.copies[key])
                else:
                    try:
                        arrays.append(fetch(array, key, True))
                    except ArgumentError as error:
                        raise named_reading(spec, len(arrays), error) from None
            place = node
        raw = node.make()
        arrays.append(raw)
        if node.space is not HOST:
            ready(node.space)
        try:
            node.forward(*arrays)
        except BaseException as error:
            node.kernel.note(error)
            raise
        variable = _new(Variable)  # past the constructor, which makes a storage
        Value.__init__(variable, None, node.need_grad, node, self, inputs, raw)
        reference = ref(variable)
        if not self.results:
            self.first = reference
        self.node = place  # only now: a call that was interrupted or has failed was not made
        self.results.append(reference)
        return variable

    def _known(
        self, spec: FunctionSpec, inputs: tuple[Any, ...], args: Mapping[str, Any]
    ) -> tuple[TraceNode, list[Array | None]] | None:
        """Return the node of a call off the tree, where only the kinds of inputs tell calls apart, and the values of its
        inputs.
        """
        if self._has_become_long():
            return None
        kinds: list[object] = []
        for value in inputs:
            if value is None:
                kinds.append(None)
            elif type(value) is not Variable:
                return None
            else:
                node = value.trace_node if value._trace is self else None
                kinds.append((value.need_grad, value.plain_shape) if node is None else node.kind or self._kind(node))
        try:
            node = self._root.known.get((spec, tuple(args.items()), tuple(kinds)))
        except TypeError:  # a setting that is a list or an array
            return None
        if node is None:
            return None
        arrays: list[Array | None] = [
            None if value is None else value_of(value, key)
            for value, key in zip(inputs, node.input_keys)  # noqa: B905  # of one length, or the call would not be known
        ]
        return node, arrays

    def _kind(self, source: Source) -> object:
        """All there is to know about an input off the tree."""
        if not isinstance(source, TraceNode):
            return source and source[1:]
        if source.kind is None:
            key = source.call.output_shapes[0], source.output_key, needs_grad(source)
            source.kind = self._root.kinds.setdefault(key, object())
        return source.kind

    def _search(
        self, spec: FunctionSpec, inputs: tuple[Any, ...], args: Mapping[str, Any], wrong: TraceNode | None
    ) -> Variable | None:
        """`follow`, by another node than the one that was taken last."""
        if wrong is not None and args is wrong.given:  # a layer that is called again: where the call is another one, it
            return None  # has to work out the settings and check the shapes anew
        following = self.node.following
        sources = None if following is None else self._sources_of(inputs)
        if following is None or sources is None:
            return None
        try:
            node = following.get((spec, tuple(args.items()), sources))
        except TypeError:  # a setting that is a list or an array
            return None
        if node is None or node is wrong:
            return None
        self.node.latest = node
        return self.follow(spec, inputs, args)

    def _leaf(self, value: Variable) -> Leaf:
        storage = value._storage
        if storage is None or value._producer is not None:
            return 0, value.need_grad, value.plain_shape
        if value._need_grad:
            return id(storage), True, storage.data._shape
        synced = storage.data.synced
        return self._mark_of(synced) if synced.lease is None else 0, False, storage.data._shape

    def _mark_of(self, synced: SyncedArray) -> int:
        number = self._numbers.get(id(synced))
        # the address may have come back for another array
        if number is None or self._arrays[number]() is not synced:
            number = self._numbers[id(synced)] = len(self._arrays)
            self._arrays.append(ref(synced))
        return (_OF_INTEGERS if synced.dtype in INTEGERS else -1) - number

    def _sources_of(self, inputs: tuple[Any, ...]) -> tuple[Source, ...] | None:
        sources: list[Source] = []
        for value in inputs:
            if value is None:
                sources.append(None)
            elif type(value) is not Variable:
                return None
            else:
                node = value.trace_node if value._trace is self else None
                sources.append(self._leaf(value) if node is None else node)
        return tuple(sources)

    def branch(
        self, spec: FunctionSpec, inputs: tuple[Any, ...], args: Mapping[str, Any], call: ResolvedCall
    ) -> Variable | None:
        """Compute a call that is made at this place for the first time; None if it is not one to be followed."""
        if self._has_become_long():
            return None
        if self._tree.n_nodes >= MANY_NODES and self._n_left >= MAX_LEFT and self.node is not _OFF_THE_TREE:
            self.node = _OFF_THE_TREE
            variable = self.follow(spec, inputs, args)
            if variable is not None:
                return variable
        node = self._made_node(spec, inputs, args, call)
        if node is None or not self._entered(node):
            return None
        return self.follow(spec, inputs, args)

    def _has_become_long(self) -> bool:
        """End the walk if it is that of a loop that never ends, as inference without a backward pass."""
        if len(self.results) < MAX_LENGTH:
            return False
        self.end()
        return True

    def _made_node(
        self, spec: FunctionSpec, inputs: tuple[Any, ...], args: Mapping[str, Any], call: ResolvedCall
    ) -> TraceNode | None:
        """Return the node of a call at this place; None if it is not one to be followed."""
        sources = self._sources_of(inputs)
        given = () if sources is None or not call.takes_given else self._given_dtypes(spec, sources)
        if sources is None or given is None:
            return None
        kernel = call.kernel(self.context, given)
        if not kernel.simple:
            return None
        node = TraceNode(len(self.results), spec, args, sources, call, kernel)
        if self._no_grad or not spec.differentiable:
            node.need_grad = node.through = False
        node.whole = self.node.whole and not any(type(source) is tuple and source[0] == 0 for source in sources)
        return node

    def _given_dtypes(self, spec: FunctionSpec, sources: Sequence[Source]) -> GivenDtypes | None:
        """Return the dtype of each input that is taken as it is; None where the place in the tree does not imply it.

        A leaf may hold another dtype in the next walk, and integers are read as floating-point ones if they need a gradient.
        """
        entries = input_entries(spec, len(sources))
        exact = [source for entry, source in zip(entries, sources, strict=True) if entry.dtype == "exact"]
        kinds = {"same"} if any(map(self._is_floating, exact)) else GIVEN_KINDS  # one floating-point input decides for all
        dtypes: list[str | None] = []
        for entry, source in zip(entries, sources, strict=True):
            if entry.dtype not in kinds or source is None:
                dtypes.append(None)
                continue
            if not isinstance(source, TraceNode) or source.output_key[1] in INTEGERS:
                return None
            dtypes.append(source.output_key[1])
        return tuple(dtypes) if any(dtypes) else ()

    def _is_floating(self, source: Source) -> bool:
        """Return whether the place in the tree implies that an input holds floating-point numbers."""
        if isinstance(source, TraceNode):
            return source.output_key[1] not in INTEGERS
        return source is not None and _OF_INTEGERS < source[0] < 0 and self.node is not _OFF_THE_TREE

    def _entered(self, node: TraceNode) -> bool:
        """Enter a node into the tree, or among those off the tree, unless a setting has no hash."""
        settings = tuple(node.given.items())
        try:
            if self.node is _OFF_THE_TREE:
                self._root.known[node.spec, settings, tuple(map(self._kind, node.sources))] = node
                node.position, node.sources, node.whole = ANYWHERE, (), True
            else:
                if self.node.following is None:
                    self.node.following = {}
                self.node.following[node.spec, settings, node.sources] = node
                self.node.latest = node
                self._n_left += 1
        except TypeError:
            return False
        self._tree.n_nodes += 1
        return True

    def end(self) -> None:
        """Let the next call of the thread start at the root."""
        self.thread = 0

    def position_of(self, value: Value) -> int:
        """Return number of calls before that of a result; -1 for one that the walk does not know: its call was interrupted."""
        position = value.trace_node.position
        if position == ANYWHERE:
            position = len(self.results) - 1  # a loss comes last, mostly
            while position >= 0 and self.results[position]() is not value:
                position -= 1
            return position
        return position if position < len(self.results) and self.results[position]() is value else -1

    def number_of(self, synced: SyncedArray) -> int:
        """Return the number of an array that a call of this walk has read; see `array`."""
        return self._numbers[id(synced)]

    def array(self, number: int) -> SyncedArray | None:
        """Return the array of a number, if it is still there."""
        return self._arrays[number]()


_new = object.__new__


class _Tree(threading.local):
    """The nodes of one thread, by the modes in which its walks begin."""

    def __init__(self) -> None:
        self.n_nodes = 0
        self._roots: dict[Any, Root] = {}

    def root(self, context: Context, no_grad: bool) -> Root:
        if self.n_nodes > MAX_NODES:
            self._roots.clear()
            self.n_nodes = 0
        key = (context, no_grad, is_strict())
        root = self._roots.get(key)
        if root is None:
            root = self._roots[key] = Root()
        return root


_TREES = [_Tree()]


def current_trace() -> Trace | None:
    """Return the walk that this thread is on; None where functions are not computed when they are called, or not followed."""
    trace: Trace | None = MEMO.get()
    if (
        trace is not None
        and trace.version == FLAGS_VERSION.value
        and trace.thread == get_ident()
        and trace.first() is not None
    ):
        return trace
    if not AUTO_FORWARD.get() or RECOMPUTE.get() or PRE_HOOKS or POST_HOOKS or not is_enabled("replay"):
        return None
    context = get_current_context()  # the first time, it sets the default context, which drops the trees
    trace = Trace(_TREES[0], context, NO_GRAD.get())
    MEMO.set(trace)
    return trace


def _forget() -> None:
    """Drop the nodes of all threads, and end all walks: kernels or defaults may have changed."""
    _TREES[0] = _Tree()
    FLAGS_VERSION.advance()


register_cache(Cache("followed calls", lambda: None, lambda: 0, _forget))
WHEN_FORGOTTEN.append(_forget)
WHEN_DEFAULT_CHANGES.append(_forget)
