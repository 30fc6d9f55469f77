"""The parts of a graph: values with their gradients, and nodes, the functions between them.

A value knows the node that computes it; a node knows its inputs. A node refers to its outputs weakly, so that a graph
that nobody holds any more is freed at once, without the garbage collector; the arrays of the outputs are held in storages,
which have no reference back.

Most results of a dynamic graph are read by the next function and by nobody else. So most functions leave a *lazy* value
there: it holds what the call was, and the raw array that it gave. Its node and its storage are made when somebody asks for
them; until then a function costs one object.
"""

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from nn_core.context import Context
from nn_core.engine.arrays.leases import RELEASED
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import GRAPH_VERSION, Version
from nn_core.engine.error_messages.refusal import checked_flag
from nn_core.engine.graph.consumers import Consumers
from nn_core.engine.graph.lengths import PLAIN_SHAPES, lengths_of
from nn_core.engine.graph.modes import AUTO_FORWARD
from nn_core.engine.runtime.locks import fork_safe
from nn_core.errors import GraphError
from nn_core.operators.spec.model import ArgValue, FunctionSpec
from nn_core.typing import Shape

if TYPE_CHECKING:
    from nn_core.function import Function


class Storage:
    """The data and the gradient of a value; variables that are unlinked from each other share one."""

    __slots__ = ("data", "made_grad")

    def __init__(self, data: NdArray, grad: NdArray | None = None) -> None:
        self.data = data
        self.made_grad = grad

    @property
    def grad(self) -> NdArray:
        """The gradient, made when it is first asked for."""
        if self.made_grad is None:
            self.made_grad = NdArray.of_shape(self.data.shape)
            if self.data.synced.lease is RELEASED:  # a backward pass gave both up
                self.made_grad.synced.lease = RELEASED
        return self.made_grad

    @grad.setter
    def grad(self, grad: NdArray) -> None:
        self.made_grad = grad


#: How often an array of some graph has got another shape.
RESHAPED: Final = Version()
#: `Node.fitted` of a function that was computed as it was called: readers get the shapes for which it was.
COMPUTED_AT_ONCE: Final = -1

#: The walks through dynamic graphs (`nn_core.engine.graph.trace.Trace`) that are still of use, by identity.
TRACES: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()
#: Threads may share a graph; each node of it is made once. A signal handler or a finalizer may ask for one meanwhile.
_MATERIALIZING: Final = fork_safe(threading.RLock())


class Value:
    """A value in a graph: a storage, the node that computes it (None for a leaf), and flags for the engine.

    A lazy value has neither a storage nor a node, but these:

    Attributes:
        trace_node: The call, a `nn_core.engine.graph.trace.TraceNode`; None for a value that is not lazy.
        _trace: The calls that it belongs to.
        lazy_inputs: Inputs of the function.
        lazy_array: The raw array that it gave; RELEASED when that was given up.
    """

    __slots__ = (
        "__weakref__",
        "_need_grad",
        "_persistent",
        "_producer",
        "_recompute",
        "_storage",
        "_trace",
        "consumers",
        "lazy_array",
        "lazy_inputs",
        "name",
        "output_index",
        "plans",
        "trace_node",
    )

    def __init__(
        self,
        storage: Storage | None,
        need_grad: bool | None = None,
        trace_node: Any = None,
        trace: Any = None,
        inputs: "tuple[Value | None, ...]" = (),
        array: Any = None,
    ) -> None:
        self._storage = storage
        self._producer: Node | None = None
        self.trace_node = trace_node
        self._trace = trace
        self.lazy_inputs = inputs
        self.lazy_array = array
        self.output_index = 0
        self.name = ""
        #: the nodes that read it; None when none ever did
        self.consumers: Consumers | None = None
        self.plans: Any = None  # a `nn_core.engine.graph.reshape.Plans`
        self._need_grad = need_grad
        self._persistent = False
        self._recompute = False

    @classmethod
    def of_storage(cls, storage: Storage, need_grad: bool | None = None) -> "Value":
        """Return a value over arrays that exist already."""
        return cls(storage, need_grad)

    def _materialize(self) -> None:
        """Make the node and the storage of a lazy value."""
        with _MATERIALIZING:
            trace_node, trace, inputs, array = self.trace_node, self._trace, self.lazy_inputs, self.lazy_array
            if trace_node is None:
                return
            trace.broken = True  # from now on somebody may change links and values without the trace
            call, kernel = trace_node.call, trace_node.kernel
            data = NdArray.of_shape(call.output_shapes[0])
            if array is RELEASED:
                data.synced.lease = RELEASED
            else:
                data.synced.hold(kernel.output_keys[0], array)
            node = Node(call.spec, call.args, inputs, (Storage(data),), trace.context, trace_node.through)
            node.kernel = kernel
            node.scope = trace_node.scope
            node.setup = call
            node.fitted = COMPUTED_AT_ONCE
            node.flags_version = trace.version
            node._outputs[0] = weakref.ref(self)
            self._producer = node
            self._storage = node.storages[0]
            self.trace_node = self._trace = self.lazy_array = None  # in this order: who sees a trace node first finds the rest
            self.lazy_inputs = ()

    @property
    def storage(self) -> Storage:
        """Data and gradient."""
        if self._storage is None:
            self._materialize()
        assert self._storage is not None
        return self._storage

    @storage.setter
    def storage(self, storage: Storage) -> None:
        self._storage = storage

    @property
    def producer(self) -> "Node | None":
        """The function that computes it; None for a leaf."""
        if self.trace_node is not None:
            self._materialize()
        return self._producer

    @producer.setter
    def producer(self, producer: "Node | None") -> None:
        if self.trace_node is not None:
            self._materialize()
        self._producer = producer

    @property
    def is_leaf(self) -> bool:
        """Whether no function computes it."""
        return self.trace_node is None and self._producer is None  # in this order: another thread may make the node

    @property
    def plain_shape(self) -> Shape:
        """Lengths of the axes of the data as plain numbers: what the engine reads."""
        trace_node = self.trace_node
        if trace_node is None:
            node = self._producer
            if node is not None and 0 <= node.fitted != RESHAPED.value:
                Node.infer_shapes(self)
            return (self._storage or self.storage).data._shape
        shape: Shape = trace_node.call.output_shapes[0]
        return shape

    @property
    def shape(self) -> Shape:
        """Lengths of the axes of the data.

        In a static graph each is an int that remembers where it was read: see `nn_core.engine.graph.lengths`.
        """
        storage = self._storage
        if storage is None:  # a lazy value, of a dynamic graph
            trace_node = self.trace_node
            return self.plain_shape if trace_node is None else trace_node.call.output_shapes[0]
        node = self._producer
        if node is not None and 0 <= node.fitted != RESHAPED.value:
            Node.infer_shapes(self)
        shape = storage.data._shape
        return shape if AUTO_FORWARD.get() or PLAIN_SHAPES.get() else lengths_of(self, shape)

    @property
    def need_grad(self) -> bool:
        """Whether backward() propagates through this variable.

        For the output of a function the answer follows from its inputs, unless it was set.
        """
        if self._need_grad is not None:
            return self._need_grad
        trace, trace_node = self._trace, self.trace_node
        # a trace node serves many graphs; once a flag has changed somewhere, only nodes can tell
        if trace_node is not None and trace.version == FLAGS_VERSION.value:
            return bool(trace_node.through)
        return self.producer is not None and self.producer.need_grad

    @need_grad.setter
    def need_grad(self, need_grad: bool | None) -> None:
        self._need_grad = None if need_grad is None else checked_flag("need_grad", need_grad)
        invalidate()

    @property
    def persistent(self) -> bool:
        """Whether the data and the gradient are kept although a clear flag would free them."""
        return self._persistent

    @persistent.setter
    def persistent(self, persistent: bool) -> None:
        wanted = checked_flag("persistent", persistent)
        if self._persistent != wanted:
            self._persistent = wanted
            invalidate()

    @property
    def recompute(self) -> bool:
        """Whether the data is freed after the forward pass and computed again in the backward pass."""
        return self._recompute

    @recompute.setter
    def recompute(self, recompute: bool) -> None:
        wanted = checked_flag("recompute", recompute)
        if self._recompute != wanted:
            self._recompute = wanted
            invalidate()


class Setup(NamedTuple):
    """The shapes for which a function in Python was set up."""

    shapes: tuple[Shape | None, ...]
    output_shapes: tuple[Shape, ...]

    @property
    def sources(self) -> "tuple[Value, ...]":
        """Its settings are its own: none is a length that it would follow."""
        return ()


class Node:
    """One function applied to its inputs.

    `setup` has the shapes for which the outputs were made; `nn_core.engine.graph.reshape` brings it up to date. `key` holds
    the two numbers (seed, counter) of a seeded function, and is renewed before each forward pass.
    Programs see a `nn_core.function.Function` in its place.
    """

    #: what an output is made of; the class Variable puts itself here
    value_class: ClassVar[type[Value]] = Value
    #: what programs get for a node; the class Function puts itself here
    function_class: "ClassVar[type[Function]]"
    #: infers the shapes of everything that a value depends on, for a reader; `nn_core.engine.graph.reshape` puts itself here
    infer_shapes: "ClassVar[Callable[[Value], object]]"

    __slots__ = (
        "__weakref__",
        "_need_grad",
        "_outputs",
        "args",
        "computed_from",
        "context",
        "derivation",
        "fitted",
        "flags_version",
        "inputs",
        "kernel",
        "key",
        "python",
        "scope",
        "setup",
        "spec",
        "storages",
    )

    def __init__(
        self,
        spec: FunctionSpec,
        args: Mapping[str, ArgValue],
        inputs: Sequence[Value | None],
        storages: Sequence[Storage],
        context: Context,
        need_grad: bool,
    ) -> None:
        self.spec = spec
        self.args = args
        self.inputs = tuple(inputs)
        self.storages = tuple(storages)
        #: weakly, so that a graph goes with the last variable that somebody holds, without the garbage collector
        self._outputs: list[weakref.ref[Value] | None] = [None] * len(self.storages)
        self.context = context
        self.key: Any = None
        self.kernel: Any = None
        self.python: Any = None
        #: the parameter scope in which it was called, or the address of that; None where nobody noted it
        self.scope: Any = None
        #: a `ResolvedCall` or a `Setup`; None for a function that only a plan knows
        self.setup: Any = None
        #: a `nn_core.engine.graph.lazy_subgraph.Derivation` whose result this function gives
        self.derivation: Any = None
        #: the value of RESHAPED for which the shapes of the outputs are right, or COMPUTED_AT_ONCE
        self.fitted = RESHAPED.value
        #: with private outputs: the `InputVersion` that the last forward pass has read
        self.computed_from: Any = None
        self._need_grad = need_grad
        self.flags_version = FLAGS_VERSION.value
        reference = weakref.ref(self)
        for value in self.inputs:
            if value is not None:
                if value.consumers is None:
                    value.consumers = Consumers()
                value.consumers.add(reference)

    @classmethod
    def standing_for(
        cls, node: "Node", spec: FunctionSpec, args: Mapping[str, ArgValue], inputs: Sequence[Value | None]
    ) -> "Node":
        """Another function that gives the first output of `node`; only a plan knows it, the graph stays as it is."""
        other = cls(spec, args, (), node.storages[:1], node.context, False)
        # past the constructor, which would make the function a reader of its inputs
        other.inputs = tuple(inputs)
        other._outputs = node._outputs[:1]
        other.scope = node.scope
        return other

    def add_outputs(self, storages: Sequence[Storage]) -> None:
        """Give a function that only a plan knows its further outputs."""
        self.storages = (*self.storages, *storages)
        self._outputs += [None] * len(storages)

    @property
    def need_grad(self) -> bool:
        """Whether any input needs a gradient."""
        if self.flags_version != FLAGS_VERSION.value:
            refresh_need_grad(self)
        return self._need_grad

    @property
    def name(self) -> str:
        """Name of the function as files have it, such as "Affine"."""
        return self.spec.name

    @property
    def n_visible(self) -> int:
        """Number of results that the function gives to its caller; the aux outputs follow them."""
        return len(self.storages) - sum(entry.aux for entry in self.spec.outputs) if self.storages else 0

    def as_function(self) -> "Function":
        """Return the function that programs see."""
        return self.function_class(self)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.args.items())
        return f"<{self.spec.name}({settings})>"

    def rewritten(self) -> "list[Value]":
        """Return the inputs that the function rewrites when it runs, such as running statistics."""
        if self.python is not None or not self.spec.updates or not self.args.get("batch_stat", True):
            return []
        entries = zip(self.spec.inputs, self.inputs, strict=False)
        return [value for entry, value in entries if value is not None and entry.name in self.spec.updates]

    def output(self, index: int) -> Value | None:
        """Return the value of output `index`, or None when nobody holds it."""
        reference = self._outputs[index]
        return None if reference is None else reference()

    def value(self, index: int) -> Value:
        """Return the value of output `index`, made again if nobody holds one."""
        value = self.output(index)
        if value is None:
            value = self.value_class.of_storage(self.storages[index])
            self.connect(index, value)
        return value

    def connect(self, index: int, value: Value) -> None:
        """Make `value` the holder of output `index`."""
        value.producer = self
        value.output_index = index
        self._outputs[index] = weakref.ref(value)


def materialize_readers(value: Value) -> None:
    """Make the nodes of the lazy values that `value` is an input of, so that its consumers are all there are."""
    # inputs do not know their lazy readers; the traces list them all
    for trace in TRACES.valuerefs():
        walk = trace()
        for reference in () if walk is None else walk.results:
            reader = reference()
            if reader is not None and any(read is value for read in reader.lazy_inputs):
                reader._materialize()


#: How often a flag or a link of a graph was changed.
FLAGS_VERSION: Final = Version()


def invalidate() -> None:
    """Note that a flag or a link of an existing graph was changed: plans look at their graph again."""
    GRAPH_VERSION.advance()
    FLAGS_VERSION.advance()


def refresh_need_grad(node: Node) -> None:
    """Bring the gradient flags of `node` and everything before it up to date, without recursion."""
    version = FLAGS_VERSION.value
    stack = [node]
    while stack:
        current = stack[-1]
        stale = [
            value.producer
            for value in current.inputs
            if value is not None
            and value._need_grad is None
            and value.producer is not None
            and value.producer.flags_version != version
        ]
        if stale:
            stack.extend(stale)
            continue
        stack.pop()
        # all before it are up to date by now
        current._need_grad = any(value is not None and _flag(value) for value in current.inputs)
        current.flags_version = version


def _flag(value: Value) -> bool:
    if value._need_grad is not None:
        return value._need_grad
    return value.producer is not None and value.producer._need_grad


def require_no_circle(function: str, inputs: Iterable[Value | None], storages: Iterable[Storage]) -> None:
    """Refuse outputs that a function reads, or that its inputs depend on.

    Raises:
        GraphError: when the graph would be a circle.
    """
    written = {id(storage.data.synced) for storage in storages}
    given = [value for value in inputs if value is not None]
    for value in [*given, *[v for node in forward_order(given) for v in node.inputs if v is not None]]:
        if id(value.storage.data.synced) in written:
            raise GraphError(
                f"{function}: an output must not be what the function or its inputs are computed from, got a variable of "
                f"shape {value.plain_shape}: the graph would be a circle"
            )


def forward_order(roots: Iterable[Value], done: set[Node] | None = None, fitted: int | None = None) -> list[Node]:
    """All nodes that `roots` depend on, each after the nodes that compute its inputs.

    Those in `done` are left out, and those whose shapes are right for the version `fitted`, each with all before it.

    Depth first, inputs in their order, which keeps few values alive at a time. Iterative: depth costs no stack.
    """
    order: list[Node] = []
    done = set() if done is None else done
    for root in roots:
        if root.producer is None or root.producer in done:
            continue
        done.add(root.producer)
        stack = [(root.producer, iter(root.producer.inputs))]
        while stack:
            node, inputs = stack[-1]
            for value in inputs:
                producer = None if value is None else value.producer
                if producer is not None and producer not in done and producer.fitted != fitted:
                    done.add(producer)
                    stack.append((producer, iter(producer.inputs)))
                    break
            else:
                order.append(node)
                stack.pop()
    return order
