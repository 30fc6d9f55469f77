"""Gradients that are added up during the backward pass."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol

from nn_core.arrays.ndarray import NdArray
from nn_core.errors import ArgumentError

if TYPE_CHECKING:
    from nn_core.function import Function


class Reducer(Protocol):
    """The part of a communicator that is needed here."""

    is_syncing: bool

    def all_reduce(
        self, data: NdArray | Sequence[NdArray], division: bool = False, inplace: bool = False, group: str = "world"
    ) -> None:
        """Add up."""
        ...


class AllReduceCallback:
    """Sends gradients in packs, each when the last function that adds to its gradients is done.

    The order in which gradients are complete follows from the graph, so it is the same on all ranks.
    """

    def __init__(
        self,
        comm: Reducer,
        grads: Sequence[NdArray],
        pack_size: int,
        division: bool,
        group: str,
        scale_grad: float,
        *,
        overlaps: bool = False,
    ) -> None:
        if pack_size < 1:
            raise ArgumentError(f"all_reduce_callback: pack_size must be at least 1, got {pack_size}")
        #: False: ``on_finish_function_backward`` need not be called, and the pass keeps its fused steps
        self.observes_functions = overlaps
        self._comm = comm
        self._grads = list({id(grad): grad for grad in grads}.values())
        self._pack_size = pack_size
        self._division = division
        self._group = group
        self._scale = scale_grad
        self._uses: Counter[int] | None = None
        self._pack: list[NdArray] = []
        self._sent: set[int] = set()

    def on_finish_function_backward(self, function: "Function") -> None:
        """Note that the gradients of the inputs of `function` have one contribution more."""
        if not self._comm.is_syncing:
            return
        if self._uses is None:
            self._uses = self._count(function)
        for grad in _grads_of(function):
            if id(grad) in self._uses:
                self._uses[id(grad)] -= 1
                if self._uses[id(grad)] == 0:
                    self._add(grad)

    def on_finish_backward(self) -> None:
        """Send what is left."""
        if self._comm.is_syncing:
            for grad in self._grads:
                if id(grad) not in self._sent:
                    self._add(grad)
            self._send()
        self._uses = None
        self._sent.clear()

    def _count(self, last: "Function") -> "Counter[int]":
        """Count the functions that add to each gradient, among those that the last function of the graph depends on."""
        wanted = {id(grad) for grad in self._grads}
        uses: Counter[int] = Counter()

        def see(function: "Function") -> None:
            uses.update(id(grad) for grad in _grads_of(function) if id(grad) in wanted)

        last.outputs[0].visit(see)
        return uses

    def _add(self, grad: NdArray) -> None:
        self._sent.add(id(grad))
        self._pack.append(grad)
        if sum(each.size for each in self._pack) >= self._pack_size:
            self._send()

    def _send(self) -> None:
        pack, self._pack = self._pack, []
        if not pack:
            return
        for grad in pack if self._scale != 1 else ():
            if not grad.is_unwritten:
                grad.data[...] *= self._scale
        self._comm.all_reduce(pack, division=self._division, inplace=False, group=self._group)


class _Alone:
    """The reducer of a world of one process."""

    is_syncing = False

    def all_reduce(
        self, data: NdArray | Sequence[NdArray], division: bool = False, inplace: bool = False, group: str = "world"
    ) -> None:
        """Leave the arrays as they are."""


@cache
def idle_callback(pack_size: int) -> AllReduceCallback:
    """The callback of a world of one process, which leaves gradients as they are."""
    return AllReduceCallback(_Alone(), (), pack_size, division=False, group="world", scale_grad=1)


def _grads_of(function: "Function") -> list[NdArray]:
    """The gradients of the inputs, each once."""
    grads = [variable.grad for variable in function.inputs if variable.need_grad]
    return list({id(grad): grad for grad in grads}.values())
