"""Gradients that are parts of a few flat arrays, which are sent without being packed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nn_core.communicators.callback import PassSums, Ready
from nn_core.communicators.communicator import WORLD, Communicator
from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.spaces import space_of
from nn_core.engine.arrays.synced import ALIGNMENT_BYTES, HOST, Space, ready
from nn_core.engine.dispatch.plugin_manager import get_backend
from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.graph.completion import Completed
from nn_core.engine.graph.parameter_sources import HasParameters, ParameterSource, parameters_of
from nn_core.errors import ArgumentError, CommunicationError
from nn_core.typing import Array, Runner
from nn_core.variable import Variable

if TYPE_CHECKING:
    from nn_core.function import Function

_MB: Final = 1 << 20


class _Bucket:
    """One flat array and the gradients that are parts of it; each starts at a multiple of 64 bytes."""

    def __init__(self, grads: Sequence[NdArray], dtype: str, space: Space) -> None:
        self.grads = list(grads)
        self.space = space
        self.dtype = dtype
        step = ALIGNMENT_BYTES // dtype_of(dtype).itemsize
        starts, end = [], 0
        for grad in self.grads:
            starts.append(end)
            end += -(-grad.size // step) * step
        ready(space)
        self.flat = space.empty((end,), dtype)
        self.flat[...] = 0  # the gaps are sent too
        self.parts = [
            self.flat[start : start + grad.size].reshape(grad.shape) for start, grad in zip(starts, self.grads, strict=True)
        ]
        for grad, part in zip(self.grads, self.parts, strict=True):
            grad.synced.hold((space, dtype), part)
            grad.zero()

    def gather(self) -> Array:
        """Return the flat array with the present values: those that are elsewhere, on a device, say, are copied."""
        for grad, part in zip(self.grads, self.parts, strict=True):
            values = grad.read(self.space, self.dtype)
            if values is not part:
                part[...] = values
        return self.flat

    def spread(self, total: Array, written: Iterable[bool]) -> None:
        """Let the gradients have the values of `total`; those that nobody has written stay zero."""
        if total is not self.flat:
            self.flat[...] = total
        for grad, part, is_written in zip(self.grads, self.parts, written, strict=True):
            if not is_written:
                grad.zero()
                continue
            values = grad.write(self.space, self.dtype)
            if values is not part:
                values[...] = part

    def is_whole(self) -> bool:
        """Return whether the gradients that were written have their values in the flat array."""
        key = self.space, self.dtype
        return all(
            grad.is_unwritten or (grad.synced.latest == key and grad.synced.copies[key] is part)
            for grad, part in zip(self.grads, self.parts, strict=True)
        )


class Buckets:
    """The gradients of parameters in flat arrays, one `all_reduce` for all of them.

    Each parameter gets a new gradient, which is zero. Gradients that the backward pass finishes first come first.

    Args:
        comm: The communicator, initialized.
        parameters: Parameters to train, by name or not; those that need no gradient are skipped.
        loss: The variable that `backward` starts from; it tells the order in which gradients are finished. None: the
            reverse order of the parameters.
        bucket_mb: Largest size of a flat array, unless one gradient is larger.
        first_mb: The same for the first one, which is complete soonest.
        on_device: Keep the flat arrays on the device of the communicator's context, where the engine adds them up, in its own
            order; with NCCL, `callback` makes this a part of the recorded pass.

    Raises:
        ArgumentError: when the engine does not add up arrays of that device.

    Example:
        >>> import nn_core as nn
        >>> from nn_core.communicators import LocalCommunicator
        >>> def program(comm):
        ...     w = nn.Variable((2,), need_grad=True)
        ...     buckets = Buckets(comm, [w])
        ...     w.g = comm.rank
        ...     buckets.all_reduce(division=True)
        ...     return w.g.tolist()
        >>> LocalCommunicator.run(2, program)
        [[0.5, 0.5], [0.5, 0.5]]
    """

    @fitted
    def __init__(
        self,
        comm: Communicator,
        parameters: ParameterSource | Iterable[Variable],
        *,
        loss: Variable | None = None,
        bucket_mb: float = 25,
        first_mb: float = 1,
        on_device: bool = False,
    ) -> None:
        if bucket_mb <= 0 or first_mb <= 0:
            raise ArgumentError(f"Buckets: bucket_mb and first_mb must be positive, got {bucket_mb} and {first_mb}")
        self._comm = comm
        self.on_device = on_device
        space = _device_of(comm) if on_device else HOST
        self.buckets: list[_Bucket] = []
        self._callbacks: dict[tuple[bool, str], BucketSums] = {}
        trained = [variable for variable in listed_parameters(parameters) if variable.need_grad]
        for dtype in ("float32", "float64"):
            chosen = [variable for variable in trained if sum_dtype_of(variable) == dtype]
            for group in _groups(in_order_of_completion(chosen, loss), dtype_of(dtype).itemsize, first_mb, bucket_mb):
                for variable in group:
                    variable.grad = NdArray(variable.shape)
                self.buckets.append(_Bucket([variable.grad for variable in group], dtype, space))

    def all_reduce(self, division: bool = False, group: str = WORLD) -> None:
        """Replace the gradients by their sums, or means, over all ranks of a group.

        Gradients that no rank has written stay as they are. Inside ``comm.no_sync()`` nothing happens.
        """
        circle = self._comm.circle("all_reduce", group)
        if circle.size == 1 or not self._comm.is_syncing:
            return
        if self.on_device:
            self.callback(division, group).on_finish_backward()
            return
        written = iter(self._comm.any_rank("all_reduce", self.written(), group))
        for bucket in self.buckets:
            total = self._comm.sum_flat("all_reduce", [bucket.gather()], circle.size, group)
            bucket.spread(np.divide(total, circle.size, out=total) if division else total, _next(written, bucket))

    def callback(self, division: bool = False, group: str = WORLD) -> "BucketSums":
        """`all_reduce` as a callback: ``loss.backward(communicator_callbacks=buckets.callback(division=True))``.

        An engine that works beside the computation (``overlaps``) gets each flat array as soon as it is complete.
        """
        kind = DeviceBucketSums if self.on_device else BucketSums
        return self._callbacks.setdefault((division, group), kind(self._comm, self, division, group))

    def written(self) -> list[bool]:
        """Return whether each gradient was written since it was set to zero."""
        return [not grad.is_unwritten for bucket in self.buckets for grad in bucket.grads]

    def zero(self) -> None:
        """Set all gradients to zero, lazily."""
        for bucket in self.buckets:
            for grad in bucket.grads:
                grad.zero()

    def spread(self, totals: Sequence[Array], written: Iterable[bool]) -> None:
        """Let the gradients have the values of flat arrays, one a bucket."""
        flags = iter(written)
        for bucket, total in zip(self.buckets, totals, strict=True):
            bucket.spread(total, _next(flags, bucket))


class BucketSums(PassSums):
    """Sends the flat arrays of `Buckets` during the backward pass; see `Buckets.callback`."""

    def __init__(self, comm: Communicator, buckets: Buckets, division: bool, group: str) -> None:
        super().__init__(comm, [bucket.grads for bucket in buckets.buckets], group, division)
        self._buckets = buckets
        self._written: list[list[bool]] = []

    def open(self) -> None:
        """Agree on which gradients some rank has written."""
        flags = iter(self._comm.any_rank("backward", self._buckets.written(), self._group))
        self._written = [_next(flags, bucket) for bucket in self._buckets.buckets]

    def ready(self, number: int) -> Iterator[Ready]:
        """Yield the flat array of a bucket."""
        bucket = self._buckets.buckets[number]
        yield Ready(bucket.gather(), partial(bucket.spread, written=self._written[number]))


class DeviceBucketSums(BucketSums):
    """The same for flat arrays of a device: each is added up where it is, by a step that the pass can record."""

    def begin_backward(self) -> "DeviceBucketSums | None":
        """Begin a pass; its steps belong to it whether or not the engine works beside the host."""
        super().begin_backward()
        return self if self._is_shared() else None

    def _is_shared(self) -> bool:
        return bool(self.groups) and self._comm.is_syncing and self._comm.circle("backward", self._group).size > 1

    def step(self, number: int) -> Completed:
        """Return the sum of a bucket on the device; through the host where gradients are elsewhere."""
        bucket = self._buckets.buckets[number]
        if not bucket.is_whole():
            return Completed(partial(self.send, number))
        return Completed(self._sum_of(number), (bucket.flat,), bucket.space)

    def _sum_of(self, number: int) -> Runner:
        circle, bucket = self._comm.circle("backward", self._group), self._buckets.buckets[number]
        make: Any = circle.engine.device_step  # type: ignore[attr-defined]  # was asked for when the buckets were made
        runner: Runner = make(bucket.flat, circle.size if self._division else 1, partial(self._prepare, number))
        return runner

    def _prepare(self, number: int) -> None:
        """Prepare a bucket on the host: gradients that no pass writes are sent as well, so they must be zero."""
        if number == 0:
            self.open()
        self._buckets.buckets[number].gather()
        self._n_sent = number + 1

    def send(self, number: int) -> None:
        """Add a bucket up now."""
        self._sum_of(number)(self._buckets.buckets[number].flat)

    def on_finish_backward(self) -> None:
        """Send what was not sent by the pass; what follows on the device comes after it."""
        if not self._is_shared():
            return
        while self._n_sent < len(self.groups):
            self.send(self._n_sent)
        self._n_sent = 0
        for bucket, written in zip(self._buckets.buckets, self._written, strict=True):
            bucket.spread(bucket.flat, written)


def _device_of(comm: Communicator) -> Space:
    """Return the memory of the device of a communicator's context.

    Raises:
        ArgumentError: when the engine does not add up arrays there.
    """
    context = comm.ctx
    name = context.entries[0][0] if context is not None and context.entries else ""
    space = space_of(get_backend(name), context.device_id) if name and context is not None else HOST
    if space is HOST or not hasattr(comm.engine, "device_step"):
        raise ArgumentError(
            "Buckets: on_device needs a context of a device and an engine between devices, got "
            f"{space.name} and {type(comm.engine).__name__}\n"
            '  hint: Communicator(get_extension_context("cuda"), engine="nccl")'
        )
    return space


def sum_dtype_of(variable: Variable) -> str:
    """Return the dtype in which the gradients of a parameter are added up."""
    return "float64" if variable.data.dtype == np.float64 else "float32"


def _next(flags: Iterator[bool], bucket: _Bucket) -> list[bool]:
    return [next(flags) for _ in bucket.grads]


def _groups(variables: Sequence[Variable], itemsize: int, first_mb: float, bucket_mb: float) -> Iterator[list[Variable]]:
    """Yield the variables in groups of a limited size; the first one is small."""
    group: list[Variable] = []
    n_bytes, limit = 0, first_mb * _MB
    for variable in variables:
        own = variable.size * itemsize
        if group and n_bytes + own > limit:
            yield group
            group, n_bytes, limit = [], 0, bucket_mb * _MB
        group.append(variable)
        n_bytes += own
    if group:
        yield group


def in_order_of_completion(variables: Sequence[Variable], loss: Variable | None) -> list[Variable]:
    """Return the variables whose gradients the backward pass finishes first come first."""
    newest_first = list(variables)[::-1]
    if loss is None:
        return newest_first
    first_use: dict[int, int] = {}

    def see(function: "Function") -> None:
        for variable in function.inputs:
            first_use.setdefault(id(variable.data), len(first_use))

    loss.visit(see)
    return sorted(newest_first, key=lambda variable: -first_use.get(id(variable.data), -1))


def listed_parameters(parameters: ParameterSource | Iterable[Variable]) -> list[Variable]:
    """Return the variables, in order."""
    if isinstance(parameters, (Mapping, HasParameters, str)):
        return list(parameters_of("Buckets", parameters, argument="parameters").values())
    return list(parameters)


@fitted
def share_parameters(comm: Communicator, parameters: ParameterSource, group: str = WORLD) -> None:
    """Give the values of rank 0 to all ranks, so that all of them start alike.

    Args:
        comm: The communicator, initialized.
        parameters: The parameters by name, a module, or the name of a scope; the same on all ranks.
        group: Name of the group.

    Raises:
        CommunicationError: when names, shapes or the order of the parameters differ between ranks.
    """
    shared = parameters_of("share_parameters", parameters, argument="parameters")
    circle = comm.circle("share_parameters", group)
    if circle.size == 1:
        return
    own = [f"{name} {variable.shape} {variable.data.dtype.name}" for name, variable in shared.items()]
    text = np.frombuffer("\n".join(own).encode(), np.uint8)
    length = np.array([text.size])
    circle.agree("share_parameters")
    circle.run("broadcast", length, 0)
    first = np.zeros(int(length[0]), np.uint8)
    first[: text.size] = text[: first.size]
    circle.run("broadcast", first, 0)
    theirs = first.tobytes().decode().split("\n")
    if comm.any_rank("share_parameters", [theirs != (own or [""])], group) == [True]:
        raise CommunicationError(_first_difference(own, theirs))
    comm.bcast([variable.data for variable in shared.values()], src=0, group=group)


def _first_difference(own: Sequence[str], theirs: Sequence[str]) -> str:
    text = "share_parameters: all ranks must have the same parameters in the same order, got"
    for number in range(max(len(own), len(theirs))):
        mine, other = _item(own, number), _item(theirs, number)
        if mine != other:
            return f"{text} {mine} here, and {other} on rank 0"
    return f"{text} a difference on another rank"


def _item(rows: Sequence[str], number: int) -> Any:
    return rows[number] if number < len(rows) else "nothing"
