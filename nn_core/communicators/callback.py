"""Gradients that are added up over the ranks during the backward pass, each group as soon as it is complete."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from nn_core.communicators.engine import Handle
from nn_core.communicators.fixed_order_sum import total_in_steps
from nn_core.communicators.packing import SUMS, flat_of, write_flat
from nn_core.communicators.reduced_arrays import Live, live_arrays, packs, sum_dtype
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.graph.completion import Completed
from nn_core.errors import ArgumentError
from nn_core.typing import Array, Step

if TYPE_CHECKING:
    from nn_core.communicators.communicator import Communicator
    from nn_core.function import Function

_CALL: Final = "backward"


class Ready(NamedTuple):
    """Numbers that are ready to be added up: a flat array, and what takes the total."""

    flat: Array
    take: Callable[[Array], None]


class PassSums(ABC):
    """A callback of `backward` that sends groups of gradients one after the other, always in the same order.

    With an engine that works beside the computation (``overlaps``) each group is sent by a step of the plan, as soon as it
    is complete, and arrives while the pass goes on. In other passes all groups are sent at the end: the calls of the engine
    are the same, and so are the bits.

    Args:
        comm: The communicator, initialized.
        groups: The gradients, each in one group.
        group: Name of the group of ranks.
        division: Give the mean in place of the sum.
    """

    #: ``on_finish_function_backward`` need not be called, so a pass keeps its fused steps.
    observes_functions = False

    def __init__(self, comm: "Communicator", groups: Sequence[Sequence[NdArray]], group: str, division: bool) -> None:
        self.groups = groups
        self._comm = comm
        self._group = group
        self._division = division
        self._n_sent = 0
        self._on_way: list[_OnWay] = []
        self._scratch: list[dict[str, Array]] = []

    # -- what `backward` calls -------------------------------------------------------------------------------------

    def begin_backward(self) -> "PassSums | None":
        """Begin a pass; returns the steps that are to be parts of it, if any."""
        self._n_sent, self._on_way = 0, []  # what a pass that has failed had sent is given up
        if not self.groups or not self._comm.is_syncing:
            return None
        engine = self._comm.circle(_CALL, self._group).engine
        return self if engine.size > 1 and getattr(engine, "overlaps", False) else None

    def step(self, number: int) -> Completed:
        """Return the step of a plan that sends a group."""
        return Completed(_Send(self, number))

    def on_finish_function_backward(self, function: "Function") -> None:  # noqa: B027  # nothing to do, for any of them
        """Do nothing."""

    def on_finish_backward(self) -> None:
        """Send what was not sent by the pass, and wait until all of it has arrived."""
        if not self.groups or not self._comm.is_syncing:
            return
        while self._n_sent < len(self.groups):
            self.send(self._n_sent)
        while self._on_way:
            self._advance()
        self._n_sent = 0

    # -- how -------------------------------------------------------------------------------------------------------

    def send(self, number: int) -> None:
        """Start the sum of a group, and let those on their way take one step: on all ranks at the same place."""
        if number == 0:
            self.open()
        self._advance()
        self._n_sent = number + 1
        circle = self._comm.circle(_CALL, self._group)
        for flat, take in self.ready(number):
            if circle.size == 1:
                take(flat)
                continue
            scratch = self._scratch.pop() if self._scratch else {}
            work = total_in_steps(circle, flat, self._comm.deterministic, self._comm.wire_dtype, scratch)
            self._on_way.append(_OnWay(work, next(work), take, scratch))

    def _advance(self) -> None:
        circle = self._comm.circle(_CALL, self._group)
        going = []
        for each in self._on_way:
            circle.wait(each.handle)
            try:
                going.append(each._replace(handle=next(each.work)))
            except StopIteration as end:
                total = end.value
                each.take(np.divide(total, circle.size, out=total, dtype=total.dtype) if self._division else total)
                self._scratch.append(each.scratch)
        self._on_way = going

    @abstractmethod
    def open(self) -> None:
        """Agree with the other ranks on what is to be sent."""

    @abstractmethod
    def ready(self, number: int) -> Iterator[Ready]:
        """Return the numbers of a group."""


class _OnWay(NamedTuple):
    """A sum that was started."""

    work: Generator[Handle | None, None, Array]
    handle: Handle | None
    take: Callable[[Array], None]
    scratch: dict[str, Array]


class _Send:
    """A step that sends a group; plans bind it as it is."""

    name = "all_reduce"

    def __init__(self, sums: PassSums, number: int) -> None:
        self._sums = sums
        self._number = number

    def __call__(self, *arrays: Array) -> None:
        self._sums.send(self._number)

    def bind(self, *arrays: Array) -> Step:
        """Return this step."""
        return self


class AllReduceCallback(PassSums):
    """Sends any gradients, copied into packs.

    Args:
        comm: The communicator, initialized.
        grads: The gradients, in the order in which the forward pass uses the parameters: packs begin with the last.
        pack_size: Number of values that are sent together at least.
        division: Give the mean in place of the sum.
        group: Name of the group of ranks.
        scale_grad: Gradients are multiplied by it before they are added up.
    """

    def __init__(
        self, comm: Any, grads: Sequence[NdArray], pack_size: int, division: bool, group: str, scale_grad: float
    ) -> None:
        if pack_size < 1:
            raise ArgumentError(f"all_reduce_callback: pack_size must be at least 1, got {pack_size}")
        self._grads = list({id(grad): grad for grad in reversed(grads)}.values())
        super().__init__(comm, list(_packed(self._grads, pack_size)), group, division)
        self._scale = scale_grad
        self._subject = f"{[grad.size for grad in self._grads]} in packs of {pack_size}, {division}"
        self._dtypes: dict[int, str] = {}

    def open(self) -> None:
        """Agree on the dtypes; gradients that no rank has written are left out."""
        circle = self._comm.circle(_CALL, self._group)
        if circle.size == 1:
            written = [grad for grad in self._grads if not grad.is_unwritten]
            live = Live(written, [grad.synced.dtype for grad in written])
        else:
            live = live_arrays(_CALL, circle, self._grads, self._subject)
        for name in live.dtypes:
            sum_dtype(_CALL, name, self._division)
        self._dtypes = {id(grad): dtype for grad, dtype in zip(*live, strict=True)}

    def ready(self, number: int) -> Iterator[Ready]:
        """Yield the gradients of a group one after the other, in memory of their own."""
        grads = [grad for grad in self.groups[number] if id(grad) in self._dtypes]
        for grad in grads if self._scale != 1 else ():
            if not grad.is_unwritten:
                grad.data[...] *= self._scale
        if not grads:
            return
        for pack in packs(Live(grads, [self._dtypes[id(grad)] for grad in grads]), inplace=False):
            yield Ready(flat_of(pack.arrays, SUMS[pack.dtypes[0]]), _writer(pack))


def _writer(pack: Live) -> Callable[[Array], None]:
    return lambda total: write_flat(pack.arrays, total, pack.dtypes)


def _packed(grads: Sequence[NdArray], pack_size: int) -> Iterator[list[NdArray]]:
    pack: list[NdArray] = []
    for grad in grads:
        pack.append(grad)
        if sum([each.size for each in pack]) >= pack_size:
            yield pack
            pack = []
    if pack:
        yield pack


@cache
def idle_callback(pack_size: int) -> AllReduceCallback:
    """Return the callback of a world of one process, which leaves gradients as they are."""
    return AllReduceCallback(None, (), pack_size, division=False, group="world", scale_grad=1)
