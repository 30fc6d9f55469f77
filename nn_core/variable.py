"""Variable: a value in a computation graph, with its gradient."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from nn_core.engine.arrays.bound_operators import VariableOperators
from nn_core.engine.arrays.construction import Constructed
from nn_core.engine.arrays.display import display_line, html_table, values_on_host
from nn_core.engine.arrays.ndarray import NdArray, added_state
from nn_core.engine.arrays.shapes import checked_shape
from nn_core.engine.error_messages.attributes import Misnamed, SuggestsAttributes, offered
from nn_core.engine.error_messages.refusal import (
    FOREIGN,
    checked_flag,
    described,
    door,
    fitted,
    fitted_methods,
    name_lack,
    raise_refusal,
    real_numbers,
    refuses_rest,
    require_fit,
)
from nn_core.engine.graph.backward import run_backward
from nn_core.engine.graph.compile import holds_places
from nn_core.engine.graph.forward import run_forward
from nn_core.engine.graph.hooks import Hook
from nn_core.engine.graph.lengths import move_origin, size_of
from nn_core.engine.graph.modes import RECOMPUTE
from nn_core.engine.graph.node import (
    RESHAPED,
    Node,
    Storage,
    Value,
    forward_order,
    invalidate,
    materialize_readers,
    require_no_circle,
)
from nn_core.engine.graph.reshape import change_leaf_shape, order_for_reader
from nn_core.engine.graph.uncomputed import is_uncomputed, unwritten, warn_of_no_gradient
from nn_core.errors import ArgumentError, DTypeError, GraphError, ShapeError
from nn_core.operators.spec.model import FunctionSpec
from nn_core.typing import Shape

if TYPE_CHECKING:
    from nn_core.function import Function

_new: Final = object.__new__
#: Set by ``nn_core``: makes the result of ``Variable.no_grad`` from what is registered, which variables do not know.
COPIERS: Final[dict[str, Any]] = {}
#: Functions whose results look like a condition; ``if y:`` would be true whatever they hold.
COMPARISONS: Final = frozenset(
    f"{name}{suffix}"
    for name in ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual", "LogicalAnd", "LogicalOr", "LogicalXor")
    for suffix in ("", "Scalar")
) | {"LogicalNot", "IsInf", "IsNaN"}
#: Attributes of the engine, which completion does not offer.
_ENGINE: Final = frozenset(
    {
        "storage", "consumers", "lazy_inputs", "lazy_array", "of_storage", "output_index", "plain_shape", "plans", "producer",
        "trace_node",
    }
)  # fmt: skip


@fitted_methods("of_storage")
class Variable(Value, VariableOperators, SuggestsAttributes, Constructed):
    """A value in a computation graph: data, gradient, and the function that computes it.

    Args:
        shape: lengths of the axes.
        need_grad: whether backward() propagates to this variable; None: as the function that computes it says, False
            for a variable without one.

    ``==`` and ``hash`` compare identity of the data: a variable equals the variables that were unlinked from it.

    Operators (``+ - * / // % ** @ < <= > >=``) take numbers, Variables, NdArrays and NumPy arrays on either side. A NumPy
    array is a constant: its values are copied when the operator is called, so later changes of it have no effect on the
    graph, and it is converted to the number type of the context as every operand is.

    Example:
        >>> x = Variable((2, 3), need_grad=True)
        >>> x.d = 1.0
        >>> x
        <Variable((2, 3), float32, need_grad=True): 1 1 1 1 1 1>
        >>> y = np.eye(2) @ x
        >>> y.shape
        (2, 3)
    """

    __slots__ = ("_info",)
    __array_priority__ = 1001

    if not TYPE_CHECKING:  # a checker would take these as leave for any attribute
        requires_grad = Misnamed("need_grad says whether backward() propagates to the variable")
        gradient = Misnamed("grad is the gradient as an NdArray, g as a NumPy array")
        value = Misnamed("d is the data as a NumPy array, data as an NdArray")
        values = Misnamed("d is the data as a NumPy array, data as an NdArray")
        detach = Misnamed("x.get_unlinked_variable() shares the data and ends the graph")
        to = Misnamed("functions run where their context says: nn_core.context_scope(context)")
        cpu = Misnamed("x.d and x.numpy() are the values on the host; functions run where their context says")
        cuda = Misnamed("functions run where their context says: nn_core.context_scope(context)")
        device = Misnamed("functions run where their context says, nn_core.get_current_context()")
        inputs = Misnamed("the inputs are those of the function, x.parent.inputs")
        creator = Misnamed("parent is the function that computes the variable")
        grad_fn = Misnamed("parent is the function that computes the variable")
        zero_grad = Misnamed("x.grad.zero() zeroes one gradient, solver.zero_grad() those of all parameters")
        cleargrad = Misnamed("x.grad.zero() zeroes one gradient, solver.zero_grad() those of all parameters")
        permute = Misnamed("did you mean 'transpose'?")
        view = Misnamed("did you mean 'reshape'?")
        astype = Misnamed("x.data.cast(dtype) converts the values; the context says in which type functions compute")

    def __dir__(self) -> list[str]:
        return offered(self, _ENGINE)

    def _construct(self, shape: Iterable[int] | int = (), need_grad: bool | None = None, name: str = "") -> None:
        if need_grad is not None and type(need_grad) is not bool:
            need_grad = _checked_need_grad(shape, need_grad)
        if type(name) is not str and not isinstance(name, str):
            raise ArgumentError(f"Variable: name must be a string, got {described(name)}")
        try:
            lengths = checked_shape(shape)
        except ShapeError as error:
            raise ShapeError(f"Variable: {error}") from error.__cause__
        Value.__init__(self, Storage(NdArray.of_shape(lengths)), need_grad)
        self.name = name
        self._recompute = RECOMPUTE.get()

    if TYPE_CHECKING:

        def __init__(self, shape: Iterable[int] | int = (), need_grad: bool | None = None, name: str = "") -> None: ...

    @classmethod
    def of_storage(cls, storage: Storage, need_grad: bool | None = None) -> "Variable":
        """Return a variable over arrays that exist already."""
        variable = _new(cls)
        Value.__init__(variable, storage, need_grad)
        return variable

    @staticmethod
    @fitted
    def from_numpy_array(data: Any, grad: Any = None, need_grad: bool | None = None) -> "Variable":
        """Return a new variable with a copy of `data`, and of `grad` if it is given."""
        values = real_numbers("from_numpy_array", data)
        variable = Variable(values.shape, need_grad)
        variable.storage.data.data = values
        if grad is not None:
            variable.storage.grad.data = grad
        return variable

    @staticmethod
    def from_dlpack(source: Any, need_grad: bool | None = None) -> "Variable":
        """Return a new variable over the memory of `source`, any object with ``__dlpack__``; see `NdArray.from_dlpack`.

        Raises:
            ArgumentError: when it is a tensor that requires a gradient, or on a device of which no backend has arrays.
            DTypeError: when the numbers are complex.
        """
        array = NdArray.from_dlpack(source)
        variable = Variable(array.shape, need_grad)
        variable.storage.data = array
        return variable

    # -- values ----------------------------------------------------------------------------------------------------

    @property
    def data(self) -> NdArray:
        """The values, as an NdArray. Assigning an NdArray shares it."""
        return self._fitted().data

    @data.setter
    def data(self, array: NdArray) -> None:
        self._require_same_shape("data", array)
        self.storage.data = array
        invalidate()

    @property
    def grad(self) -> NdArray:
        """The gradient, as an NdArray. Assigning an NdArray shares it."""
        return self._fitted().grad

    @grad.setter
    def grad(self, array: NdArray) -> None:
        self._require_same_shape("grad", array)
        self.storage.grad = array
        invalidate()

    @property
    def d(self) -> np.ndarray[Any, Any]:
        """The values as a NumPy array that shares memory; assigning copies values or fills with a number.

        The next pass may write its values into that array. Of ``max(x, only_index=True)``, of ``min``, and of these in
        another shape it is a copy, as in NNabla: programs collect the choices that they have made.
        """
        storage = self._fitted()
        try:
            values = storage.data.data
            return values.copy() if values.dtype.kind == "i" and holds_places(self) else values
        except GraphError:
            if not is_uncomputed(storage.data.synced):
                raise
        hint = "call forward() first, or build the graph inside nn_core.auto_forward()"
        return unwritten(self, "Variable.d", hint)

    @d.setter
    def d(self, value: Any) -> None:
        try:
            self._fitted().data.data = value
        except (ShapeError, ArgumentError, DTypeError) as error:
            self._sign(error)
            raise

    @property
    def g(self) -> np.ndarray[Any, Any]:
        """The gradient as a NumPy array that shares memory; assigning copies values or fills with a number."""
        storage = self._fitted()
        grad = storage.grad
        if grad.synced.latest is None and grad.synced.pending_fill is None and is_uncomputed(storage.data.synced):
            return unwritten(self, "Variable.g", "call forward() and backward() first")
        if grad.synced.latest is None and grad.synced.pending_fill is None and self._producer is None and not self.need_grad:
            warn_of_no_gradient(self.name)
        return grad.data

    @g.setter
    def g(self, value: Any) -> None:
        try:
            self._fitted().grad.data = value
        except (ShapeError, ArgumentError, DTypeError) as error:
            self._sign(error)
            raise

    def _sign(self, error: Exception) -> None:
        """Put the name of this variable, if it has one, into an error."""
        if self.name:
            error.args = (f"variable {self.name!r}: {error}",)

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.plain_shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return size_of(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """dtype of the values that were written last; float32 before that."""
        return self.storage.data.dtype

    @property
    def parent(self) -> "Function | None":
        """The function that computes this variable; None for a leaf. Assigning None makes it one."""
        self._shape_shown()  # a derivation may have another function for the present shapes, and any one other settings
        node = self.producer
        return None if node is None else node.as_function()

    @parent.setter
    def parent(self, func: "Function | None") -> None:
        if func is None:
            self.producer = None
        else:
            if not isinstance(func, Node.function_class):
                raise ArgumentError(f"parent: must be a Function or None, got {type(func).__name__}")
            node = func.node
            candidates = [i for i, storage in enumerate(node.storages) if storage.data.shape == self.shape]
            if not candidates:
                raise ShapeError(f"parent: the function must have an output of shape {self.shape}, got {func!r}")
            require_no_circle("parent", node.inputs, [self.storage])
            node.connect(candidates[0], self)
            self.storage = node.storages[candidates[0]]
        invalidate()

    @property
    def rank(self) -> int:
        """Length of the longest path from a leaf to this variable."""
        ranks: dict[Node, int] = {}
        for node in forward_order((self,)):
            ranks[node] = 1 + max(
                (ranks[v.producer] for v in node.inputs if v is not None and v.producer is not None), default=0
            )
        return 0 if self.producer is None else ranks[self.producer]

    @property
    def info(self) -> Any:
        """Free for use by the program."""
        return getattr(self, "_info", None)

    @info.setter
    def info(self, info: Any) -> None:
        self._info = info

    @property
    def variable_instance(self) -> "Variable":
        """The variable itself: what NNabla loads from files of networks are descriptions that have it under this name."""
        return self

    @property
    def function_references(self) -> "list[Function]":
        """The functions that take this variable as an input and are still in use."""
        materialize_readers(self)
        return [] if self.consumers is None else [node.as_function() for node in self.consumers.living()]

    @property
    def get_number_of_references(self) -> int:
        """Return the number of functions that take this variable as an input."""
        return len(self.function_references)

    @door
    def size_from_axis(self, axis: int = -1) -> int:
        """Return number of elements of the axes from `axis` on; all elements for a negative axis."""
        return size_of(self.shape[max(axis, 0) :])

    def apply(self, **kwargs: Any) -> "Variable":
        """Set the given properties and return the variable itself.

        Example:
            >>> Variable((1,)).apply(need_grad=True, persistent=True).persistent
            True
        """
        for name, value in kwargs.items():
            if not hasattr(type(self), name):
                raise ArgumentError(f"apply: a property of Variable must be named, got {name!r}")
            setattr(self, name, value)
        return self

    # -- passes ----------------------------------------------------------------------------------------------------

    @refuses_rest
    def forward(
        self,
        clear_buffer: bool = False,
        clear_no_need_grad: bool = False,
        function_pre_hook: Hook | None = None,
        function_post_hook: Hook | None = None,
        *surplus: NoReturn,
        **unknown: NoReturn,
    ) -> None:
        """Compute this variable from the leaves of its graph.

        Args:
            clear_buffer: free every intermediate value as soon as nothing reads it any more: for inference.
            clear_no_need_grad: free the values that no gradient needs: for training.
            function_pre_hook: called with each function before it runs.
            function_post_hook: called with each function after it has run.

        Raises:
            GraphError: when a leaf was cleared, or a function changes the shape of its output.
        """
        if surplus or unknown:
            given = self, clear_buffer, clear_no_need_grad, function_pre_hook, function_post_hook, *surplus
            require_fit(Variable.forward, given, unknown)
        try:
            run_forward((self,), clear_buffer, clear_no_need_grad, function_pre_hook, function_post_hook)
        except FOREIGN as error:
            raise_refusal(Variable.forward, (self, clear_buffer, clear_no_need_grad), {}, error)
        except MemoryError as error:
            name_lack(Variable.forward, error)
            raise

    @refuses_rest
    def backward(
        self,
        grad: Any = 1,
        clear_buffer: bool = False,
        communicator_callbacks: Any = None,
        function_pre_hook: Hook | None = None,
        function_post_hook: Hook | None = None,
        *surplus: NoReturn,
        **unknown: NoReturn,
    ) -> None:
        """Propagate the gradient of this variable to everything it depends on and that needs one.

        The gradients of leaves are added to what they hold; those of intermediate variables are overwritten. If the pass
        ends in an exception, gradients of leaves that were zero are zero again; the others may hold a part of what was to
        be added, and a note of the exception says so.

        Args:
            grad: gradient of this variable: a number, an array, an NdArray, or None for what ``self.grad`` holds.
                It does not change ``self.grad``.
            clear_buffer: free values and gradients of intermediate variables as soon as they are not needed.
            communicator_callbacks: one or more objects with ``on_finish_function_backward(function)`` and
                ``on_finish_backward()``; the first is not called where ``observes_functions`` is False. One that
                has ``begin_backward()`` may return steps of the pass from it, which run when gradients are complete:
                see `nn_core.engine.graph.completion.Completions`. Those of the first that does so are used.
            function_pre_hook: called with each function before its gradient is computed.
            function_post_hook: called with each function after its gradient was computed.

        Raises:
            GraphError: when data that a gradient needs was cleared by the forward pass.
        """
        if surplus or unknown:
            given = self, grad, clear_buffer, communicator_callbacks, function_pre_hook, function_post_hook, *surplus
            require_fit(Variable.backward, given, unknown)
        callbacks = [] if communicator_callbacks is None else _as_list(communicator_callbacks)
        observers = [callback for callback in callbacks if getattr(callback, "observes_functions", True)]
        completions = _begun(callbacks) if callbacks else None

        def finish(node: Node) -> None:
            for callback in observers:
                callback.on_finish_function_backward(node.as_function())

        try:
            run_backward(
                self, grad, clear_buffer, function_pre_hook, function_post_hook, finish if observers else None, completions
            )
        except FOREIGN as error:
            raise_refusal(Variable.backward, (self, grad, clear_buffer), {}, error)
        except MemoryError as error:
            name_lack(Variable.backward, error)
            raise
        for callback in callbacks:
            callback.on_finish_backward()

    @door
    def visit(self, f: "Callable[[Function], object]") -> None:
        """Call `f` with every function that this variable depends on, in the order in which they run."""
        for node in order_for_reader((self,)):
            f(node.as_function())

    @door
    def visit_check(self, f: "Callable[[Function], object]") -> bool:
        """Like ``visit``, but stop and return True as soon as `f` returns something true."""
        return any(f(node.as_function()) for node in order_for_reader((self,)))

    # -- links -----------------------------------------------------------------------------------------------------

    @fitted
    def get_unlinked_variable(self, need_grad: bool | None = None) -> "Variable":
        """Return a variable with the same data and gradient, and without the function that computes it.

        Args:
            need_grad: flag of the new variable; None: the flag of this one.
        """
        return self._unlinked(self.need_grad if need_grad is None else checked_flag("need_grad", need_grad))

    def _unlinked(self, need_grad: bool) -> "Variable":
        variable = _new(Variable)
        Value.__init__(variable, self._fitted(), need_grad)
        variable.name = self.name
        variable._persistent = self._persistent
        return variable

    def unlinked(self, need_grad: bool | None = None) -> "Variable":
        """Another name of ``get_unlinked_variable``."""
        return self.get_unlinked_variable(need_grad)

    @door
    def rewire_on(self, var: "Variable") -> None:
        """Let this variable be computed as `var` is; the functions after this one then follow those before `var`.

        Args:
            var: a variable of the same shape; it loses its function.

        Raises:
            ShapeError: when the shapes differ.
            GraphError: when `var` depends on this variable: the graph would be a circle.
        """
        if var.shape != self.shape:
            raise ShapeError(f"rewire_on: var must have the shape {self.shape}, got {var.shape}")
        if any(self.storage is v.storage for node in forward_order((var,)) for v in node.inputs if v is not None):
            raise GraphError("rewire_on: var must not depend on the variable, got a graph that would be a circle")
        producer, index = var.producer, var.output_index
        self.storage = var.storage
        self._need_grad = None if producer is not None else var._need_grad
        self.producer = None
        if producer is not None:
            producer.connect(index, self)
            var.producer = None
        move_origin(var, self)
        invalidate()

    def clear_all_graph_links(self) -> None:
        """Forget all functions before this variable: for truncated backpropagation in dynamic graphs."""
        for node in forward_order((self,)):
            for value in node.inputs:
                if value is not None:
                    value.producer = None
        self.producer = None
        invalidate()

    def no_grad(self) -> "Variable":
        """Return the same computation with registered parameters as constants: a copy of the graph, which stays as it is."""
        copy: Variable = COPIERS["no_grad"](self)
        return copy

    @door
    def reset_shape(self, shape: Iterable[int], force: bool = False) -> None:
        """Change the shape in place, for example to another batch size.

        The shapes of the variables that depend on this one follow as soon as they are read; their values, and those of
        their gradients, are there after the next ``forward()``. What was given relative to a shape (-1, None, negative axes)
        is found again. Memory and compiled passes of the last few shapes are kept, so that a graph may alternate between
        batch sizes.

        Args:
            shape: the new shape.
            force: allow another number of elements; the values are then lost.

        Raises:
            ShapeError: when the number of elements differs and `force` is false.
        """
        target = checked_shape(shape)
        present = self._shape_shown()
        if target == present:
            return
        size, before = math.prod(target), math.prod(present)
        if size != before and not force:
            raise ShapeError(
                f"reset_shape: the new shape must have {before} elements, got {target}\n  hint: force=True drops the values"
            )
        storage = self.storage
        for array in (storage.data, storage.made_grad):
            if array is not None:
                change_leaf_shape(array, target, size)
        RESHAPED.advance()
        invalidate()

    def _require_same_shape(self, what: str, array: NdArray) -> None:
        if not isinstance(array, NdArray):
            raise ArgumentError(f"Variable.{what}: must be an NdArray, got {type(array).__name__}")
        if array.shape != self.shape:
            raise ShapeError(f"Variable.{what}: must have the shape {self.shape}, got {array.shape}")

    # -- Python ----------------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and deepcopy by value, data, gradient and flags; variables that share them do so in the copies too.

        Raises:
            GraphError: when a function computes the variable: a copy would lose it.
        """
        if not self.is_leaf:
            raise GraphError(
                f"pickle: a Variable must be a leaf to be pickled or copied, got the output of {self.parent!r}\n"
                "  hint: copy variable.get_unlinked_variable(), which holds its values, and build the graph again"
            )
        flags = (self._need_grad, self._persistent, self._recompute)
        return _restored, (type(self), self.storage, self.name, self.info, flags), self.__getstate__()

    def __getstate__(self) -> Any:
        """Attributes that a user's subclass adds to its instances."""
        return added_state(self, Variable)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variable) and self.storage is other.storage

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.storage)

    def __bool__(self) -> bool:
        spec = self._spec()
        if spec is None or spec.name not in COMPARISONS:
            return True
        if self.size != 1:
            raise ArgumentError(
                f"bool: a comparison of arrays must not be used as one truth value, got the result of {spec.api} of shape "
                f"{self.shape}\n  hint: use y.d.all() or y.d.any() of a computed y, or F.where to choose element by element"
            )
        return bool(self.item())

    def __repr__(self) -> str:
        return display_line(type(self).__name__, self._facts(), self._values_on_host())

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self._facts(), self._values_on_host())

    def _facts(self) -> list[str]:
        spec = self._spec()
        storage = self._storage
        dtype = str(getattr(self.lazy_array, "dtype", "float32")) if storage is None else storage.data.synced.dtype
        facts = [str(self._shape_shown()), dtype, f"need_grad={self.need_grad}"]
        if isinstance(self.name, str) and self.name:  # a program may have assigned anything
            facts.append(f"name={self.name!r}")
        return facts if spec is None else [*facts, f"from {spec.api}"]

    def _shape_shown(self) -> Shape:
        """Return the shape; where those of the leaves do not fit a function any more, the one before."""
        try:
            return self.plain_shape
        except Exception:  # functions in Python may raise anything, and what shows a variable must not
            return self.storage.data.shape

    def _values_on_host(self) -> np.ndarray[Any, Any] | None:
        if self._storage is not None:
            return values_on_host(self._storage.data)
        return self.lazy_array if isinstance(self.lazy_array, np.ndarray) else None

    def _spec(self) -> FunctionSpec | None:
        """Return the function that computes it; asking does not make the node of a lazy value."""
        known = self.trace_node or self._producer
        if known is None:
            return None
        spec: FunctionSpec = known.spec
        return spec

    def _values(self) -> NdArray:
        return self._fitted().data

    def __dlpack__(self, **options: Any) -> Any:
        return self._fitted().data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._fitted().data.__dlpack_device__()

    def _fitted(self) -> Storage:
        """Return data and gradient in the shape that follows from the leaves: where it is another one, there are no values
        yet.
        """
        node = self._producer
        if node is not None and 0 <= node.fitted != RESHAPED.value:
            Node.infer_shapes(self)
        return self._storage or self.storage


Node.value_class = Variable


@door
def forward_all(
    variables: Sequence[Variable],
    clear_buffer: bool = False,
    clear_no_need_grad: bool = False,
    function_pre_hook: Hook | None = None,
    function_post_hook: Hook | None = None,
) -> None:
    """Compute several variables in one pass, in which what they share is computed once.

    Args:
        variables: what to compute.
        clear_buffer: see ``Variable.forward``.
        clear_no_need_grad: see ``Variable.forward``.
        function_pre_hook: called with each function before it runs.
        function_post_hook: called with each function after it has run.

    Example:
        >>> x = nn.Variable.from_numpy_array([1.0, 2.0])
        >>> total, mean = F.sum(x), F.mean(x)
        >>> nn.forward_all([total, mean])  # common parts run once
        >>> total.item(), mean.item()
        (3.0, 1.5)
    """
    if not isinstance(variables, Iterable):
        raise ArgumentError(f"forward_all: variables must be a sequence of Variables, got {described(variables)}")
    roots = tuple(variables)
    wrong = [root for root in roots if not isinstance(root, Variable)]
    if wrong:
        raise ArgumentError(f"forward_all: variables must be a sequence of Variables, got one with {described(wrong[0])}")
    run_forward(roots, clear_buffer, clear_no_need_grad, function_pre_hook, function_post_hook)


def _restored(cls: type[Variable], storage: Storage, name: str, info: Any, flags: tuple[bool | None, bool, bool]) -> Variable:
    variable = cls.of_storage(storage, flags[0])
    variable.name = name
    variable._persistent, variable._recompute = flags[1], flags[2]
    if info is not None:
        variable.info = info
    return variable


def _checked_need_grad(shape: Any, need_grad: Any) -> bool:
    """`need_grad` as a bool; refuses what looks like the second length of a shape."""
    if isinstance(shape, (int, np.integer)) or not isinstance(need_grad, (int, np.bool_)) or need_grad not in (0, 1):
        raise ArgumentError(
            f"Variable: need_grad must be True, False or None, got {need_grad!r}\n"
            "  hint: the shape is one argument, as in Variable((2, 3))"
        )
    return bool(need_grad)


def _begun(callbacks: Sequence[Any]) -> Any:
    """Tell callbacks that a pass begins, and return the first steps for it."""
    steps = [callback.begin_backward() for callback in callbacks if hasattr(callback, "begin_backward")]
    return next((each for each in steps if each is not None), None)


def _as_list(callbacks: Any) -> list[Any]:
    listed = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    for callback in listed:
        if not hasattr(callback, "on_finish_function_backward") or not hasattr(callback, "on_finish_backward"):
            raise ArgumentError(
                "backward: communicator_callbacks must have on_finish_function_backward and on_finish_backward, "
                f"got {described(callback)}"
            )
    return listed
