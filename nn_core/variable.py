"""Variable: a value in a computation graph, with its gradient."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from nn_core.array import NdArray, checked_shape
from nn_core.errors import ArgumentError, GraphError, ShapeError
from nn_core.graph.backward import run_backward
from nn_core.graph.forward import run_forward
from nn_core.graph.hooks import Hook
from nn_core.graph.node import Cell, Node, Vertex, complete_readers, mutated
from nn_core.graph.order import forward_order
from nn_core.synced import HOST
from nn_core.typing import Shape


class Variable(Vertex):
    """A value in a computation graph: data, gradient, and the function that computes it.

    Args:
        shape: lengths of the axes.
        need_grad: whether backward() propagates to this variable; None: as the function that computes it says, False
            for a variable without one.

    ``==`` and ``hash`` compare identity of the data: a variable equals the variables that were unlinked from it.

    Example:
        >>> x = Variable((2, 3), need_grad=True)
        >>> x.d = 1.0
        >>> x
        <Variable((2, 3), need_grad=True) at ...>
    """

    __slots__ = ("_info",)
    __array_priority__ = 1001

    def __init__(self, shape: Iterable[int] | int = (), need_grad: bool | None = None, name: str = "") -> None:
        super().__init__(Cell(NdArray(checked_shape(shape))), need_grad)
        self.name = name

    @classmethod
    def of_cell(cls, cell: Cell, need_grad: bool | None = None) -> "Variable":
        """A variable over arrays that exist already."""
        variable = cls.__new__(cls)
        Vertex.__init__(variable, cell, need_grad)
        return variable

    @staticmethod
    def from_numpy_array(data: Any, grad: Any = None, need_grad: bool | None = None) -> "Variable":
        """A new variable with a copy of `data`, and of `grad` if it is given."""
        values = np.asarray(data)
        variable = Variable(values.shape, need_grad)
        variable.cell.data.data = values
        if grad is not None:
            variable.cell.grad.data = grad
        return variable

    # -- values ----------------------------------------------------------------------------------------------------

    @property
    def data(self) -> NdArray:
        """The values, as an NdArray. Assigning an NdArray shares it."""
        return self.cell.data

    @data.setter
    def data(self, array: NdArray) -> None:
        self._require_same_shape("data", array)
        self.cell.data = array
        mutated()

    @property
    def grad(self) -> NdArray:
        """The gradient, as an NdArray. Assigning an NdArray shares it."""
        return self.cell.grad

    @grad.setter
    def grad(self, array: NdArray) -> None:
        self._require_same_shape("grad", array)
        self.cell.grad = array
        mutated()

    @property
    def d(self) -> np.ndarray[Any, Any]:
        """The values as a NumPy array that shares memory; assigning copies values or fills with a number."""
        return self.cell.data.data

    @d.setter
    def d(self, value: Any) -> None:
        self.cell.data.data = value

    @property
    def g(self) -> np.ndarray[Any, Any]:
        """The gradient as a NumPy array that shares memory; assigning copies values or fills with a number."""
        return self.cell.grad.data

    @g.setter
    def g(self, value: Any) -> None:
        self.cell.grad.data = value

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.cell.data.size

    @property
    def parent(self) -> Node | None:
        """The function that computes this variable; None for a leaf. Assigning None makes it one."""
        return self.producer

    @parent.setter
    def parent(self, func: Node | None) -> None:
        if func is None:
            self.producer = None
        else:
            candidates = [i for i, cell in enumerate(func.cells) if cell.data.shape == self.shape]
            if not candidates:
                raise ShapeError(f"parent: the function must have an output of shape {self.shape}, got {func!r}")
            func.connect(candidates[0], self)
            self.cell = func.cells[candidates[0]]
        mutated()

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
    def function_references(self) -> list[Node]:
        """The functions that take this variable as an input and are still in use."""
        complete_readers(self)
        return [] if self.consumers is None else self.consumers.living()

    @property
    def get_number_of_references(self) -> int:
        """How many functions take this variable as an input."""
        return len(self.function_references)

    def size_from_axis(self, axis: int = -1) -> int:
        """Number of elements of the axes from `axis` on; all elements for a negative axis."""
        return self.cell.data.size_from_axis(axis)

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

    def forward(
        self,
        clear_buffer: bool = False,
        clear_no_need_grad: bool = False,
        function_pre_hook: Hook | None = None,
        function_post_hook: Hook | None = None,
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
        run_forward((self,), clear_buffer, clear_no_need_grad, function_pre_hook, function_post_hook)

    def backward(
        self,
        grad: Any = 1,
        clear_buffer: bool = False,
        communicator_callbacks: Any = None,
        function_pre_hook: Hook | None = None,
        function_post_hook: Hook | None = None,
    ) -> None:
        """Propagate the gradient of this variable to everything it depends on and that needs one.

        The gradients of leaves are added to what they hold; those of intermediate variables are overwritten.

        Args:
            grad: gradient of this variable: a number, an array, an NdArray, or None for what ``self.grad`` holds.
                It does not change ``self.grad``.
            clear_buffer: free values and gradients of intermediate variables as soon as they are not needed.
            communicator_callbacks: one or more objects with ``on_finish_function_backward(function)`` and
                ``on_finish_backward()``.
            function_pre_hook: called with each function before its gradient is computed.
            function_post_hook: called with each function after its gradient was computed.

        Raises:
            GraphError: when data that a gradient needs was cleared by the forward pass.
        """
        callbacks = _as_list(communicator_callbacks)

        def finish(node: Node) -> None:
            for callback in callbacks:
                callback.on_finish_function_backward(node)

        run_backward(self, grad, clear_buffer, function_pre_hook, function_post_hook, finish if callbacks else None)
        for callback in callbacks:
            callback.on_finish_backward()

    def visit(self, f: Callable[[Node], object]) -> None:
        """Call `f` with every function that this variable depends on, in the order in which they run."""
        for node in forward_order((self,)):
            f(node)

    def visit_check(self, f: Callable[[Node], object]) -> bool:
        """Like ``visit``, but stop and return True as soon as `f` returns something true."""
        return any(f(node) for node in forward_order((self,)))

    # -- links -----------------------------------------------------------------------------------------------------

    def get_unlinked_variable(self, need_grad: bool | None = None) -> "Variable":
        """A variable with the same data and gradient, and without the function that computes it.

        Args:
            need_grad: flag of the new variable; None: the flag of this one.
        """
        variable = Variable.__new__(Variable)
        Vertex.__init__(variable, self._cell or self.cell, self.need_grad if need_grad is None else need_grad)
        variable.name = self.name
        variable._persistent = self._persistent
        return variable

    def unlinked(self, need_grad: bool | None = None) -> "Variable":
        """Another name of ``get_unlinked_variable``."""
        return self.get_unlinked_variable(need_grad)

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
        if any(self.cell is v.cell for node in forward_order((var,)) for v in node.inputs if v is not None):
            raise GraphError("rewire_on: var must not depend on the variable, got a graph that would be a circle")
        producer, index = var.producer, var.index
        self.cell = var.cell
        self._need_grad = None if producer is not None else var._need_grad
        self.producer = None
        if producer is not None:
            producer.connect(index, self)
            var.producer = None
        mutated()

    def clear_all_graph_links(self) -> None:
        """Forget all functions before this variable: for truncated backpropagation in dynamic graphs."""
        for node in forward_order((self,)):
            for vertex in node.inputs:
                if vertex is not None:
                    vertex.producer = None
        self.producer = None
        mutated()

    def no_grad(self) -> "Variable":
        """Turn off the gradients of every variable that this one depends on, and return it."""
        for node in forward_order((self,)):
            for vertex in node.inputs:
                if vertex is not None:
                    vertex._need_grad = False
        self._need_grad = False
        mutated()
        return self

    def reset_shape(self, shape: Iterable[int], force: bool = False) -> None:
        """Change the shape in place.

        Args:
            shape: the new shape.
            force: allow another number of elements; the values are then lost.

        Raises:
            ShapeError: when the number of elements differs and `force` is false.
        """
        target = checked_shape(shape)
        if target == self.shape:
            return
        size = int(np.prod(target, dtype=np.int64))
        if size != self.size and not force:
            raise ShapeError(
                f"reset_shape: the new shape must have {self.size} elements, got {target}\n"
                "  hint: force=True drops the values"
            )
        cell = self.cell
        for array in (cell.data, cell._grad):
            if array is not None:
                _reset_shape(array, target, size)
        mutated()

    def _require_same_shape(self, what: str, array: NdArray) -> None:
        if not isinstance(array, NdArray):
            raise ArgumentError(f"Variable.{what}: must be an NdArray, got {type(array).__name__}")
        if array.shape != self.shape:
            raise ShapeError(f"Variable.{what}: must have the shape {self.shape}, got {array.shape}")

    # -- Python ----------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variable) and self.cell is other.cell

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.cell)

    def __len__(self) -> int:
        return len(self.cell.data)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<Variable({self.shape}, need_grad={self.need_grad}) at {id(self):#x}>"


Node.vertex_class = Variable


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
    """
    run_forward(tuple(variables), clear_buffer, clear_no_need_grad, function_pre_hook, function_post_hook)


def _reset_shape(array: NdArray, shape: Shape, size: int) -> None:
    if size == array.size:
        key = (HOST, array._synced.dtype)
        values = array._synced.settle(key) if array._synced.head is not None else None
        fresh = NdArray(shape)
        fresh._synced.lazy = array._synced.lazy
        if values is not None and fresh._synced.lazy is None:
            fresh._synced.copies[key] = values.reshape(shape)
            fresh._synced._move_head(key)
    else:
        fresh = NdArray(shape)
    array._shape, array._synced, array._window, array._base = fresh._shape, fresh._synced, None, fresh._shape


def _as_list(callbacks: Any) -> list[Any]:
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
