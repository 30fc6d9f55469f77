"""Gradients of which each rank keeps the sums of its part, and gives up the rest as soon as it is sent."""

import mmap
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nn_core.communicators.buckets import sum_dtype_of
from nn_core.communicators.communicator import WORLD, Communicator
from nn_core.communicators.pieces import Bucket
from nn_core.communicators.reduction_tree import PartialSums, finished
from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import HOST
from nn_core.engine.graph.completion import Completed
from nn_core.errors import ArgumentError
from nn_core.solvers.gradients import CLIP_GRAD_BY_NORM, Check, Gradients, non_finite_gradients, norm_of, not_finite
from nn_core.solvers.hooks import Hook, active_hooks
from nn_core.solvers.states import Slot
from nn_core.solvers.update import Rule
from nn_core.typing import Array, Step

if TYPE_CHECKING:
    from nn_core.communicators.sharded_states import ShardedGroups, StateShards
    from nn_core.function import Function

_CALL: Final = "backward"
#: Methods of solvers that change gradients, by their rules.
_FUNCTIONS: Final = {"WeightDecay": "weight_decay", "ScaleGrad": "scale_grad", "ClipGradByNorm": "clip_grad_by_norm"}


class Pages:
    """Zeros whose memory can be given back to the system, while its address stays; plans are bound to addresses.

    Args:
        n_elements: How many.
        dtype: Their dtype.
    """

    def __init__(self, n_elements: int, dtype: str) -> None:
        own = dtype_of(dtype)
        self._map: mmap.mmap | None = None
        if sys.platform == "linux" and n_elements:
            self._map = mmap.mmap(-1, n_elements * own.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            with suppress(OSError):  # large pages come four times as fast, where the system has some
                self._map.madvise(mmap.MADV_HUGEPAGE)
            self.array: Array = np.frombuffer(self._map, own)
        else:
            self.array = np.zeros(n_elements, own)

    def release(self) -> None:
        """Give the memory back: the elements are zero, where the system can do that, and as they were elsewhere."""
        if self._map is not None and sys.platform == "linux":
            self._map.madvise(mmap.MADV_DONTNEED)


class GradientBucket:
    """The gradients of a bucket in one flat array, in the order in which it is sent: the part of each rank after the other.

    Each parameter gets a new gradient with the values of the present one.

    Args:
        bucket: The parameters.
        n_ranks: Number of ranks.
    """

    def __init__(self, bucket: Bucket, n_ranks: int) -> None:
        starts = bucket.starts()
        self.bucket = bucket
        self.slots = list(starts)
        self.dtype = sum_dtype_of(self.slots[0].variable) if self.slots else "float32"
        self._pages = Pages(n_ranks * bucket.length, self.dtype)
        self.parts: list[Array] = []
        self.grads: list[NdArray] = []
        #: the parameters whose gradient this rank has written since the sums were zero
        self.written: set[Slot] = set()
        self._sums = PartialSums()
        #: the sums of this rank, of which the gradients of its pieces are parts
        self._own = np.zeros(bucket.length, dtype_of(self.dtype))
        self._pieces = [(piece, piece.gradient) for piece in bucket.pieces if piece.gradient is not None]
        for piece, gradient in self._pieces:
            part = self._own[piece.place : piece.place + piece.size].reshape(gradient.shape)
            gradient.synced.hold((HOST, self.dtype), part)
            gradient.zero()
        for slot, start in starts.items():
            variable = slot.variable
            given, grad = variable.grad, NdArray(variable.shape)
            part = self._pages.array[start : start + variable.size].reshape(variable.shape)
            if not given.is_unwritten:
                part[...] = given.read(HOST, self.dtype)
            grad.synced.hold((HOST, self.dtype), part)
            if given.is_unwritten:
                grad.zero()
            variable.grad = grad
            self.parts.append(part)
            self.grads.append(grad)

    def gather(self) -> Array:
        """Return the flat array with the present values, those that are elsewhere copied."""
        for slot, grad, part in zip(self.slots, self.grads, self.parts, strict=True):
            if not grad.is_unwritten:
                self.written.add(slot)
            values = grad.read(HOST, self.dtype)
            if values is not part:
                part[...] = values
        return self._pages.array

    def release(self) -> None:
        """Give up the gradients, which are zero then."""
        self._pages.release()
        for grad in self.grads:
            grad.zero()

    def forget(self) -> None:
        """Let the sums be zero."""
        self.written.clear()
        self._sums = PartialSums()
        for _, gradient in self._pieces:
            gradient.zero()

    def add(self, index: int, term: Array) -> None:
        """Add a term to the sums of this rank; `term` may be used up."""
        if not index:
            np.copyto(self._own, term)
        is_kept = index and not index % 2  # one of odd number is added to the one before at once
        self._sums.add(index, term.copy() if is_kept else term if index else self._own)

    def finish(self, n_terms: int, divisor: int, written: Mapping[Slot, bool]) -> None:
        """Let the gradients of the pieces of this rank be the sums, which have `n_terms` terms, over `divisor`."""
        total = finished(self._sums.parts, n_terms)  # in the memory of the first term
        np.divide(total, divisor, out=total)
        for piece, gradient in self._pieces:
            if written[piece.whole]:
                values = gradient.write(HOST, self.dtype)
                part = total[piece.place : piece.place + piece.size].reshape(gradient.shape)
                if not np.may_share_memory(values, part):
                    values[...] = part
        self._sums = PartialSums()


class _Pass:
    """Groups of gradients for the plan of a backward pass, in the order in which they are sent: the last parameters first.

    Args:
        send: Sends one of the buckets.
        buckets: The buckets.
    """

    def __init__(self, send: Callable[[int], None], buckets: Sequence[GradientBucket]) -> None:
        self.buckets = buckets
        self.groups = [bucket.grads for bucket in buckets]
        self._send = send

    def step(self, number: int) -> Completed:
        """Return the step of a plan that sends a bucket."""
        return Completed(_Send(self._send, number))


class _Send:
    """A step that sends a bucket; plans bind it as it is."""

    name = "reduce_scatter"

    def __init__(self, send: Callable[[int], None], number: int) -> None:
        self._send = send
        self._number = number

    def __call__(self, *arrays: Array) -> None:
        self._send(self._number)

    def bind(self, *arrays: Array) -> Step:
        """Return this step."""
        return self


class GradientSums:
    """A callback of `backward` that adds gradients up over the ranks, of which each keeps its part.

    A pass sends each bucket as soon as its gradients are complete, and gives up their memory; with hooks, and in passes for
    which nothing is compiled, all are sent at the end. Terms are added along a tree (nn_core/communicators/reduction_tree.py)
    in which those of one pass are neighbours, so that a rank keeps few partial sums of its part, however many passes.

    Args:
        comm: The communicator, initialized.
        shards: The states, whose gradients are divided.
        division: Give the mean in place of the sum.
    """

    #: ``on_finish_function_backward`` need not be called, so a pass keeps its fused steps.
    observes_functions = False

    def __init__(self, comm: Communicator, shards: "Sequence[StateShards]", *, division: bool) -> None:
        self._comm = comm
        self._shards = shards
        self._division = division
        self._pass = _Pass(self.send, [])
        self._owners: list[ShardedGroups] = []
        self._n_sent = 0
        self._number = 0
        self._is_step = False

    def begin_step(self) -> None:
        """Begin a step of passes each of which has terms of its own; `finish` ends it."""
        self._is_step, self._number = True, 0
        self._prepare()

    def _prepare(self) -> None:
        self._owners = [shards.divided() for shards in self._shards]
        buckets = [bucket for owner in self._owners[::-1] for bucket in owner.gradients[::-1]]
        for bucket in buckets:
            bucket.forget()
        if buckets != self._pass.buckets:
            self._pass = _Pass(self.send, buckets)
        self._n_sent = 0

    # -- what `backward` calls -------------------------------------------------------------------------------------

    def begin_backward(self) -> _Pass | None:
        """Begin a pass; returns the steps that are to be parts of it.

        Raises:
            ArgumentError: when the gradients of this pass were sent already.
        """
        if not self._comm.is_syncing:
            return None
        if not self._is_step:
            self._number = 0
            self._prepare()
        elif self._n_sent:
            raise ArgumentError(
                "backward: each shard of a step must have one backward pass with the callback, got another one"
            )
        return self._pass

    def on_finish_function_backward(self, function: "Function") -> None:
        """Do nothing."""

    def on_finish_backward(self) -> None:
        """Send what was not sent by the pass; after the only one of a step, finish the sums."""
        if not self._comm.is_syncing:
            return
        while self._n_sent < len(self._pass.buckets):
            self.send(self._n_sent)
        if not self._is_step:
            self._number = 1
            self.finish()

    # -- how -------------------------------------------------------------------------------------------------------

    def end_pass(self) -> None:
        """Send what a pass of a step has not sent, and go on to the next one."""
        self.on_finish_backward()
        self._number += 1
        self._n_sent = 0

    def send(self, number: int) -> None:
        """Exchange the parts of a bucket, on all ranks at the same place, and add up those of this rank."""
        bucket = self._pass.buckets[number]
        circle = self._comm.circle(_CALL, WORLD)
        flat = bucket.gather()
        circle.agree(_CALL, f"{flat.size} of {flat.dtype} in bucket {number} of pass {self._number}")
        memory = circle.scratch.get("received")
        if memory is None or memory.size < flat.nbytes:
            memory = circle.scratch["received"] = np.empty(flat.nbytes, np.uint8)
        received = memory[: flat.nbytes]
        circle.run("all_to_all", flat.view(np.uint8), received)
        for place, row in enumerate(received.view(flat.dtype).reshape(circle.size, -1)):
            bucket.add(self._number * circle.size + place, row)
        bucket.release()
        self._n_sent = number + 1

    def finish(self) -> None:
        """Give each rank the sums, or means, of its part."""
        n_terms = self._number * self._comm.size
        slots = [slot for bucket in self._pass.buckets for slot in bucket.slots]
        own = [slot in bucket.written for bucket in self._pass.buckets for slot in bucket.slots]
        flags = dict(zip(slots, self._comm.any_rank(_CALL, own), strict=True))
        for bucket in self._pass.buckets:
            bucket.finish(n_terms, n_terms if self._division else 1, flags)
        for owner in self._owners:
            owner.written = {slot for bucket in owner.gradients for slot in bucket.slots if flags[slot]}
        self._is_step = False


class DividedGradients:
    """Changes and checks of gradients that are divided, in place of `nn_core.solvers.gradients.Gradients`.

    All ranks make the same calls.

    Args:
        comm: The communicator.
        groups: The update, which has the parts of this rank.
        inner: Changes and checks the parts of this rank.
    """

    def __init__(self, comm: Communicator, groups: "ShardedGroups", inner: Gradients) -> None:
        self.targets = inner.targets
        self._comm = comm
        self._groups = groups
        self._inner = inner

    def zero(self, slots: Collection[Slot]) -> None:
        """Set all gradients to zero, lazily."""
        self._inner.zero(slots)
        for part in self._groups.own_parts(slots):
            part.member.grad.zero()
        self._groups.written = set()

    def change(
        self, rule: Rule, number: float, slots: Collection[Slot], pre: Hook | None = None, post: Hook | None = None
    ) -> None:
        """Apply `rule` to the parts of this rank.

        Raises:
            ArgumentError: for hooks between parameters, and for norms of single parameters of which ranks have parts.
        """
        _refuse_hooks(_FUNCTIONS[rule.name], pre, post)
        if rule is CLIP_GRAD_BY_NORM and any(bucket.is_split for bucket in self._groups.buckets):
            raise ArgumentError(
                "clip_grad_by_norm: gradients must be divided by whole parameters, got parts of them\n"
                "  hint: shard_states(by_parameter=True), or clip_grad_by_global_norm()"
            )
        self._inner.change(rule, number, self._own(slots))

    def verdict(self, slots: Collection[Slot]) -> None:
        """Return nothing: the host decides."""

    def any(self, check: Check, slots: Collection[Slot], pre: Hook | None = None, post: Hook | None = None) -> bool:
        """Return whether `check` is true of any gradient, on any rank."""
        _refuse_hooks("check_inf_or_nan_grad", pre, post)
        return self._comm.any_rank("check", [self._inner.any(check, self._own(slots))])[0]

    def require_finite(self, function: str, slots: Mapping[str, Slot]) -> None:
        """Raise a GraphError that names the parameters whose gradients have NaN or infinity, if there are any."""
        own = [self._inner.any(not_finite, self._own([slot])) for slot in slots.values()]
        found = self._comm.any_rank("check", own)
        if any(found):
            raise non_finite_gradients(function, [name for name, flag in zip(slots, found, strict=True) if flag])

    def norm(self, slots: Collection[Slot]) -> float:
        """Return the Euclidean norm of all gradients together, in the order in which a solver that is not divided adds up."""
        return norm_of(self, slots)

    def squared_norms(self, slots: Collection[Slot]) -> list[Any]:
        """Return the sum of squares of each gradient, computed over the whole of it."""
        self._groups.prepare(slots)
        chosen = self._groups.chosen(slots)
        squares = dict.fromkeys(chosen, 0.0)
        for bucket in self._groups.gradients:
            own = [piece for piece in bucket.bucket.pieces if piece.own is not None and piece.whole in squares]
            for piece in own:
                if piece.is_whole and piece.own is not None:
                    squares[piece.whole] = float(self._inner.squared_norms([piece.own])[0])
        rows = self._comm.gather_rows("grad_norm", np.array([list(squares.values())], np.float64))
        squares = dict(zip(chosen, rows.sum(axis=0).tolist(), strict=True))  # one rank has each, others have 0
        for bucket in self._groups.gradients:
            squares.update(self._split_squares(bucket, set(chosen)))
        return [squares[slot] for slot in chosen]

    def _split_squares(self, bucket: GradientBucket, chosen: set[Slot]) -> dict[Slot, float]:
        """Bring together each gradient of which ranks have parts, one bucket at a time."""
        split = {piece.whole for piece in bucket.bucket.pieces if not piece.is_whole} & chosen
        if not split:
            return {}
        send = np.zeros(bucket.bucket.length, dtype_of(bucket.dtype))
        for piece in bucket.bucket.pieces:
            if piece.gradient is not None and piece.whole in split:
                send[piece.place : piece.place + piece.size] = piece.gradient.read(HOST, bucket.dtype)
        flat = self._groups.gathered("grad_norm", send).reshape(-1)
        found = {}
        for slot, start in bucket.bucket.starts().items():
            if slot in split:
                whole = NdArray.from_numpy_array(flat[start : start + slot.variable.size].reshape(slot.variable.shape))
                found[slot] = float(self._inner.squares([whole])[0])
        return found

    def largest(self, slots: Collection[Slot]) -> float:
        """Return the largest magnitude of an element of any gradient, on any rank."""
        rows = self._comm.gather_rows("grad_norm", np.array([[self._inner.largest(self._own(slots))]]))
        return float(np.max(rows))

    def forget(self) -> None:
        """Bind anew: the parameters have changed."""
        self._inner.forget()

    def _own(self, slots: Collection[Slot]) -> list[Slot]:
        self._groups.follow()
        return self._groups.own_parts(slots)


def _refuse_hooks(function: str, pre: Hook | None, post: Hook | None) -> None:
    if active_hooks(pre, post) is not None:
        raise ArgumentError(f"{function}: there must be no hooks where gradients are divided among ranks, got some")
