"""The gradients of a backward pass while it is compiled: where each is written, and how contributions add up."""

from collections.abc import Sequence
from typing import Any, Final

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import Key, Space, SyncedArray
from nn_core.engine.dispatch.registry import spec_of_api
from nn_core.engine.graph.backward_data import BackwardPlan
from nn_core.engine.graph.call import resolved_call
from nn_core.engine.graph.compile import Builder, alias
from nn_core.engine.graph.memory import Buffer
from nn_core.engine.graph.node import Node, Storage, Value
from nn_core.engine.graph.plan import Binding
from nn_core.errors import ShapeError
from nn_core.typing import Array, Backend, Runner, extra

#: The dtypes in which gradients of leaves are accumulated.
_SUM_DTYPES: Final = {"float16": "float32", "bfloat16": "float32"}


class GradientTarget:
    """The gradient of one storage while the backward pass is compiled."""

    __slots__ = ("buffer", "expected", "grad", "is_leaf", "is_shared", "received", "storage", "value", "written")

    def __init__(self, value: Value) -> None:
        self.storage: Storage = value.storage
        self.value = value
        self.is_leaf = value.producer is None
        #: the array of a leaf's gradient, once something was added to it
        self.grad: SyncedArray | None = None
        self.expected = 0
        self.received = 0
        self.buffer: Buffer | None = None
        #: whether the buffer holds a number to add to; else the first contribution overwrites it
        self.written = False
        #: whether the buffer is the gradient of other values too, so that sums are written elsewhere
        self.is_shared = False

    def share(self, buffer: Buffer) -> None:
        """Take a gradient of another value, which nobody changes, as the first contribution."""
        self.received += 1
        self.buffer, self.written, self.is_shared = buffer, True, True


class GradientSums:
    """The buffers that gradients of one pass are written to and accumulated in: arrays of leaves, or memory of the pass.

    Args:
        plan: The plan of the pass.
        builder: Collects its operations.
        overwrite: Whether the gradients of all leaves are zero when the pass begins.
    """

    def __init__(self, plan: BackwardPlan, builder: Builder, overwrite: bool) -> None:
        self._plan = plan
        self._builder = builder
        self._overwrite = overwrite
        #: the arrays of leaf gradients, which leaves may share, and those that hold a number to add to
        self.leaf_grads: dict[SyncedArray, Buffer] = {}
        self._written: set[SyncedArray] = set()

    def contribution(self, target: GradientTarget, dtype: str, space: Space, channels_last: bool) -> tuple[Buffer, bool]:
        """Return the buffer to write a gradient in `dtype` to, and whether to add it to the values there.

        Gradients of leaves are accumulated in float32 at least, in which solvers read and change them.
        """
        target.received += 1
        shape = target.storage.data.shape
        buffer = Buffer(shape, dtype, space)
        if target.is_leaf:
            if target.buffer is None:
                target.buffer = self._leaf_grad(target, _SUM_DTYPES.get(dtype, dtype), space)
            # to be added afterwards, or converted
            if self._has_values(target) or (target.buffer.dtype, target.buffer.space) != (dtype, space):
                return buffer, True
            self._note_values(target)
            return target.buffer, False
        # gradients of intermediate values are never zeroed: the first contribution is the value
        buffer.channels_last = channels_last
        if target.buffer is None:
            target.buffer, target.written = buffer, True
            return buffer, False
        return buffer, True

    def _leaf_grad(self, target: GradientTarget, dtype: str, space: Space) -> Buffer:
        grad = target.storage.grad
        if grad.shape != target.storage.data.shape:
            raise ShapeError(f"backward: grad must have the shape of data, got {grad.shape} for {target.storage.data.shape}")
        synced = target.grad = grad.synced
        self._plan.storages.append((target.storage, target.storage.data, grad))
        buffer = self.leaf_grads.get(synced)
        if buffer is None:
            buffer = self.leaf_grads[synced] = self._grad_memory(synced, (space, dtype))
        if grad.is_narrowed:
            return _narrowed(buffer, grad)
        return buffer if synced.shape == grad.shape else alias(buffer, grad.shape)

    def _grad_memory(self, synced: SyncedArray, key: Key) -> Buffer:
        """Return the memory in which the gradient of leaves adds up."""
        if synced.cleared:
            synced.fill(0.0)  # the gradient of what was an intermediate value, and is a leaf now
        if not self._overwrite:
            self._plan.add_to(synced)
            synced.make_contiguous(key)
        array = synced.buffer(key) if self._overwrite else synced.readwrite(key)
        synced.bound = True
        self._plan.leaf_grads[synced] = key
        # no word of the latest copy: solvers may write another one, and `take_zeros` brings this one up to date
        self._plan.bindings.append(Binding(synced, key, array, None, False))
        return Buffer(synced.shape, key[1], key[0], array)

    def _has_values(self, target: GradientTarget) -> bool:
        """Return whether the gradient of a target holds a number to add to; else the first contribution overwrites it."""
        if not target.is_leaf or target.grad is None:
            return target.written
        return not self._overwrite or target.grad in self._written

    def _note_values(self, target: GradientTarget) -> None:
        target.written = True
        if target.grad is not None:
            self._written.add(target.grad)

    def accumulating(
        self, runner: Runner, gradients: list[Buffer | None], additions: list[tuple[GradientTarget, Buffer]], first: int
    ) -> tuple[Runner, list[tuple[GradientTarget, Buffer]]]:
        """Let the kernel itself add to what is there, if it can; `first` is the place of the first gradient.

        `gradients` then holds the totals, and these additions are done.
        """
        accumulating = extra(runner, "accumulating")
        if accumulating is None:
            return runner, additions
        totals = self._totals(gradients, additions)
        adder = accumulating([first + place for place in totals]) if totals else None
        if adder is None:
            return runner, additions
        parts = [gradients[place] for place in totals]
        for place, total in totals.items():
            gradients[place] = total
        return adder, [(target, part) for target, part in additions if part not in parts]

    def _totals(
        self, gradients: Sequence[Buffer | None], additions: Sequence[tuple[GradientTarget, Buffer]]
    ) -> dict[int, Buffer]:
        """Return the totals to which a kernel may add instead of writing gradients, by the places of these."""
        totals: dict[int, Buffer] = {}
        for target, part in additions:
            total = target.buffer
            if total is None or target.is_shared or not self._has_values(target) or not _lie_alike(total, part):
                continue
            # two gradients of one call must not add to the same memory: one of them would be lost
            others = {buffer.root() for buffer in (*gradients, *totals.values()) if buffer is not None}
            if total.root() not in others:
                totals[gradients.index(part)] = total
        return totals

    def accumulate(
        self, node: Node | None, additions: Sequence[tuple[GradientTarget, Buffer]], backend: Backend | None = None
    ) -> None:
        for target, buffer in additions:
            total = target.buffer
            assert total is not None
            if not self._has_values(target):
                self._note_values(target)
                self._builder.copy(buffer, total, backend)
                continue
            part = self._builder.converted(buffer, total.space, total.dtype, backend)
            runner, adder = _adder(node, total, part)
            if target.is_shared:
                target.buffer, target.is_shared = Buffer(total.shape, total.dtype, total.space), False
                target.buffer.channels_last = total.channels_last
            self._builder.add(None, runner, (total, part, target.buffer), adder)


def _narrowed(whole: Buffer, array: NdArray) -> Buffer:
    """Return the part of a leaf's gradient buffer that a narrowed array shows."""
    part = Buffer(array.shape, whole.dtype, whole.space, array.present(whole.array))
    part.narrow = True
    return part


def _add(total: Array, part: Array, result: Array) -> None:
    result[...] = total + part


def _adder(node: Node | None, total: Buffer, part: Buffer) -> tuple[Runner, Any]:
    """Return a runner for total + part: the backend's kernel if both have the same layout, else plain array code."""
    if (
        node is None
        or (total.dtype, total.space) != (part.dtype, part.space)
        or total.channels_last != part.channels_last
        or total.narrow
    ):
        return _add, None
    spec = spec_of_api("add2")
    # by the cache of calls, as any function: a graph adds arrays of few shapes
    kernel = resolved_call(spec, {}, (total.shape, total.shape)).kernel(node.context.in_dtype(total.dtype))
    if kernel.space is not total.space or kernel.output_dtypes[0] != total.dtype:
        return _add, None
    if total.channels_last and kernel.layout != "any":
        return _add, None
    return kernel.forward_for((total.channels_last,) * 3), kernel.backend


def _lie_alike(a: Buffer, b: Buffer) -> bool:
    # a kernel that adds does so to arrays of the kind that it would write
    alike = (a.space, a.dtype, a.shape, a.channels_last) == (b.space, b.dtype, b.shape, b.channels_last)
    return alike and not (a.narrow or b.narrow)
