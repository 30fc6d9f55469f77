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
from typing import Any, Final, TypeAlias
from weakref import ref

from nn_core.arrays.synced import HOST, SyncedArray, dtype_of, ready
from nn_core.context import Context, get_current_context
from nn_core.dispatch.report import is_strict
from nn_core.graph.call import WHEN_FORGOTTEN, PreparedKernel, ResolvedCall, SameDtypes
from nn_core.graph.hooks import POST_HOOKS, PRE_HOOKS
from nn_core.graph.infer import input_entries
from nn_core.graph.modes import AUTO_FORWARD, NO_GRAD, RECOMPUTE
from nn_core.graph.node import FLAGS_VERSION, TRACES, Value
from nn_core.graph.run import fetch
from nn_core.runtime.ambient import MEMO, WHEN_DEFAULT_CHANGES
from nn_core.runtime.caches import Cache, register_cache
from nn_core.settings import is_enabled
from nn_core.spec.model import FunctionSpec
from nn_core.typing import Array, Shape
from nn_core.variable import Variable

#: A walk of so many calls ends; with so many nodes a tree is dropped.
MAX_LENGTH: Final = 2048
MAX_NODES: Final = 2**15
#: From so many nodes on, a walk leaves few in the tree: a program that still makes new calls by then is irregular, hardly
#: takes them again, and objects that stay cost time in each full collection of garbage.
MANY_NODES: Final = 2**13
MAX_LEFT: Final = 16


#: An input that no function of the walk has given: a mark, whether a gradient goes there, its shape. The mark of a parameter
#: is the address of its storage, that of the n-th array of the walk without a gradient -1 - n, and that of what a function
#: outside the walk has given 0. The address of a storage that is gone may come back for another storage: so a node knows only
#: what holds for both, and who needs more compares the storages.
_Leaf: TypeAlias = tuple[int, bool, Shape]
#: The source of an input: a node of the trace, a leaf, or None because it was not given.
_Source: TypeAlias = "TraceNode | tuple[int, bool, Shape] | None"


class TraceNode:
    """One call at one place of the tree.

    Attributes:
        position: Number of calls before it.
        spec, given, sources: The function, its arguments as they were given, and the sources of its inputs.
        call, kernel: The function with everything about it, and its kernel.
        input_keys, output_key, space, make, forward: The parts of `kernel` that running it takes.
        need_grad: The flag of the result's variable: False, or None where it follows from `through`.
        needs, through: Which inputs need a gradient, and whether one does.
        whole: Whether all inputs come from this walk or are leaves, here and in every node before.
        following: The next nodes, by function, settings and inputs; None while there is none.
        latest: The one of them that was taken last.
        digest: Equal for calls whose results depend in the same way on the same parameters, wherever they are in the tree.
        structure: The structure of the graph that ends here, with its places on the trace; see `nn_core.graph.replay`.
    """

    __slots__ = (
        "call",
        "digest",
        "following",
        "forward",
        "given",
        "input_keys",
        "kernel",
        "latest",
        "make",
        "n_inputs",
        "need_grad",
        "needs",
        "output_key",
        "position",
        "sources",
        "space",
        "spec",
        "structure",
        "through",
        "whole",
    )

    def __init__(
        self,
        position: int,
        spec: FunctionSpec,
        given: Mapping[str, Any],
        sources: Sequence[_Source],
        call: ResolvedCall,
        kernel: PreparedKernel,
    ) -> None:
        self.position = position
        self.spec = spec
        self.given = given
        self.sources = sources
        self.n_inputs = len(sources)
        self.call = call
        self.kernel = kernel
        self.input_keys: Sequence[Any] = kernel.input_keys
        self.output_key = kernel.output_keys[0]
        self.space = kernel.space
        self.make = kernel.makers[0]
        self.forward = kernel.forward
        self.need_grad: bool | None = None
        self.needs = tuple([source is not None and _needs_grad(source) for source in sources])
        self.through = any(self.needs)
        self.digest = hash((kernel, *map(_digest_of, sources)))
        self.whole = True
        self.following: dict[Any, TraceNode] | None = None
        self.latest: TraceNode | None = None
        self.structure: Any = None


def _needs_grad(source: "TraceNode | _Leaf") -> bool:
    if not isinstance(source, TraceNode):
        return source[1]
    return source.through if source.need_grad is None else source.need_grad


def _digest_of(source: _Source) -> Any:
    if source is None or isinstance(source, TraceNode):
        return source and source.digest
    return source if source[1] else source[2]  # the numbers of arrays without a gradient depend on the calls before


class Root:
    """The start of all walks of a tree."""

    __slots__ = ("following", "latest", "whole")

    def __init__(self) -> None:
        self.following: dict[Any, TraceNode] | None = None
        self.latest: TraceNode | None = None
        self.whole = True


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
        self.node: TraceNode | Root = tree.root(context, no_grad)
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
        # a program mostly does what it did last time; the other branches of the tree are searched if not
        node = self.node.latest
        if node is None or node.spec is not spec or len(inputs) != node.n_inputs:
            return self._search(spec, inputs, args, node)
        try:
            if node.given != args:
                return self._search(spec, inputs, args, node)
        except ValueError:  # a setting that is an array
            return None
        arrays: list[Array | None] = []
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
                # the trace node is still there, so nobody has asked for the storage, and nobody else can have written to it
                if source.output_key == key:
                    arrays.append(raw)
                    continue
                array = value.storage.data
            else:
                storage = value._storage
                if storage is None or value._producer is not None or not value._need_grad:
                    leaf = self._leaf(value)
                    storage = value.storage
                else:  # a parameter: its storage says which, as long as the node relies on nothing in which two could differ
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
                arrays.append(fetch(array, key, True))
        raw = node.make()
        arrays.append(raw)
        if node.space is not HOST:
            ready(node.space)
        try:
            node.forward(*arrays)
        except Exception as error:
            node.kernel.note(error)
            raise
        variable = _new(Variable)  # past the constructor, which makes a storage
        Value.__init__(variable, None, node.need_grad, node, self, inputs, raw)
        reference = ref(variable)
        if not node.position:
            self.first = reference
        self.node = node  # only now: a call that was interrupted or has failed was not made
        self.results.append(reference)
        return variable

    def _search(
        self, spec: FunctionSpec, inputs: tuple[Any, ...], args: Mapping[str, Any], wrong: TraceNode | None
    ) -> Variable | None:
        """`follow`, by another node than the one that was taken last."""
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

    def _leaf(self, value: Variable) -> _Leaf:
        storage = value._storage
        if storage is None or value._producer is not None:
            return 0, value.need_grad, value.shape
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
        return -1 - number

    def _sources_of(self, inputs: tuple[Any, ...]) -> tuple[_Source, ...] | None:
        sources: list[_Source] = []
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
        if len(self.results) >= MAX_LENGTH:  # a loop that never ends, as inference without a backward pass
            self.end()
            return None
        node = self._made_node(spec, inputs, args, call)
        if node is None:
            return None
        parent, latest = self.node, self.node.latest
        stays = self._tree.n_nodes < MANY_NODES or self._n_left < MAX_LEFT
        if stays and not self._entered(node):
            return None
        parent.latest = node
        variable = self.follow(spec, inputs, args)
        if not stays:
            parent.latest = latest
        return variable

    def _made_node(
        self, spec: FunctionSpec, inputs: tuple[Any, ...], args: Mapping[str, Any], call: ResolvedCall
    ) -> TraceNode | None:
        """The node of a call at this place; None if it is not one to be followed."""
        sources = self._sources_of(inputs)
        same = () if sources is None or not call.takes_same else _same_dtypes(spec, sources)
        if sources is None or same is None:
            return None
        kernel = call.kernel(self.context, same)
        if not kernel.simple:
            return None
        node = TraceNode(len(self.results), spec, args, sources, call, kernel)
        if self._no_grad or not spec.differentiable:
            node.need_grad = node.through = False
        node.whole = self.node.whole and not any(type(source) is tuple and source[0] == 0 for source in sources)
        return node

    def _entered(self, node: TraceNode) -> bool:
        """Enter a node into the tree, unless a setting has no hash."""
        if self.node.following is None:
            self.node.following = {}
        try:
            self.node.following[node.spec, tuple(node.given.items()), node.sources] = node
        except TypeError:
            return False
        self._n_left += 1
        self._tree.n_nodes += 1
        return True

    def end(self) -> None:
        """Let the next call of the thread start at the root."""
        self.thread = 0

    def number_of(self, synced: SyncedArray) -> int:
        """The number of an array that a call of this walk has read; see `array`."""
        return self._numbers[id(synced)]

    def array(self, number: int) -> SyncedArray | None:
        """The array of a number, if it is still there."""
        return self._arrays[number]()


_new = object.__new__


def _same_dtypes(spec: FunctionSpec, sources: Sequence[_Source]) -> SameDtypes | None:
    """The dtype of each input that is taken as it is; None where the place in the tree does not imply it.

    A leaf may hold another dtype in the next walk, and whole numbers are read as floating-point ones if they need a gradient.
    """
    entries = input_entries(spec, len(sources))
    dtypes: list[str | None] = []
    for entry, source in zip(entries, sources, strict=True):
        if entry.dtype != "same" or source is None:
            dtypes.append(None)
            continue
        if not isinstance(source, TraceNode) or dtype_of(source.output_key[1]).kind in "iub":
            return None
        dtypes.append(source.output_key[1])
    return tuple(dtypes)


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
    """The walk that this thread is on; None where functions are not computed when they are called, or not followed."""
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
