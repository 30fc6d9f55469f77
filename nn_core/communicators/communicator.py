"""The communicator: NNabla's methods on top of an engine."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import numpy as np

from nn_core.communicators.callback import AllReduceCallback, idle_callback
from nn_core.communicators.engine import AloneEngine, Engine
from nn_core.communicators.engine_choice import choose_engine
from nn_core.communicators.fixed_order_sum import added_in_place, total_of
from nn_core.communicators.group import Circle
from nn_core.communicators.launchers import joined
from nn_core.communicators.leaving import leave_all, leave_at_exit
from nn_core.communicators.packing import (
    CODES,
    NAMES,
    SUMS,
    code_of,
    copy_array,
    flat_of,
    listed,
    memory_of,
    one_for_each,
    shapes_of,
    subject_of,
    write_flat,
)  # fmt: skip
from nn_core.communicators.reduced_arrays import Live, live_arrays, packs, single_array, sum_dtype
from nn_core.communicators.reduction_tree import tree_all_reduce
from nn_core.context import Context, checked_context
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import fitted
from nn_core.errors import ArgumentError, CommunicationError, DTypeError, LostRankError
from nn_core.logger import logger
from nn_core.settings import settings
from nn_core.typing import Array

WORLD = "world"
#: Different callbacks that are kept for the next step.
_MAX_CALLBACKS: Final = 8
T = TypeVar("T")


class Communicator:
    """Sums and exchanges of arrays between processes that run the same program.

    Args:
        ctx: Context of the program; arrays of devices go through the memory of the host.
        engine: An engine, or the name of one; None: the one that the process was started with.
        deterministic: Add up in a fixed order, whatever the engine does; the default, unless `wire_dtype` is given.
        wire_dtype: dtype in which float32 sums are sent, "bfloat16" or "float16"; additions are done in float32.
        timeout_s: Seconds that a collective may take; 0: any time; None: NN_CORE_COMM_TIMEOUT, 300 by default.

    Every rank makes the same calls in the same order; where they differ, all of them get an error that says how. In a
    world of one process every call returns at once.

    Example:
        >>> import nn_core as nn
        >>> comm = Communicator(nn.Context())
        >>> comm.init()
        >>> comm.rank, comm.size
        (0, 1)
    """

    @fitted
    def __init__(
        self,
        ctx: Context | None = None,
        *,
        engine: Engine | str | None = None,
        deterministic: bool | None = None,
        wire_dtype: str | None = None,
        timeout_s: float | None = None,
    ) -> None:
        if wire_dtype not in (None, "bfloat16", "float16"):
            raise ArgumentError(f"Communicator: wire_dtype must be 'bfloat16', 'float16' or None, got {wire_dtype!r}")
        if wire_dtype is not None and deterministic:
            raise ArgumentError(f"Communicator: wire_dtype must be None when deterministic, got {wire_dtype!r}")
        self.ctx = None if ctx is None else checked_context("Communicator", ctx)
        self.deterministic = wire_dtype is None if deterministic is None else deterministic
        self.wire_dtype = wire_dtype
        self.timeout_s = settings().comm_timeout if timeout_s is None else timeout_s
        self.is_syncing = True
        self.joins_late = False
        self._wanted = engine
        self._engine: Engine | None = None
        self._groups: dict[str, Circle | None] = {}
        self._ranks: dict[str, list[int]] = {}
        self._parameters: dict[str, Any] = {}
        self._callbacks: dict[Any, AllReduceCallback] = {}

    # -- the world -------------------------------------------------------------------------------------------------

    def init(self) -> None:
        """Join the other processes; calls after the first have no effect.

        Raises:
            BackendNotFoundError: when the process is one of several, and no engine is installed.
            BackendUnavailableError: when the engine cannot work.
            CommunicationError: when the engine sees fewer processes than were started.
        """
        if self._engine is not None:
            return
        wanted = self._wanted
        engine = choose_engine(self.ctx, wanted) if wanted is None or isinstance(wanted, str) else wanted
        self.start_world(engine, joins_late=bool(getattr(engine, "joins_late", False)))
        if engine is not wanted and engine.size > 1:  # that of a process
            leave_at_exit(self._groups)

    def start_world(self, engine: Engine, *, joins_late: bool = False) -> None:
        """Go on with the ranks of `engine`, and forget all groups.

        Args:
            engine: The ranks.
            joins_late: Call none of them before `nn_core.communicators.elastic.join`: the others are elsewhere.
        """
        self._engine = engine
        self.joins_late = joins_late
        joined(engine.size)
        self._groups.clear()
        self._ranks.clear()
        self._ranks[WORLD] = list(range(engine.size))
        ranks = [engine.rank] if joins_late else self._ranks[WORLD]
        self._groups[WORLD] = Circle(WORLD, ranks, AloneEngine() if joins_late else engine, self.timeout_s)

    def leave(self) -> None:
        """Tell the other ranks that this one makes no further calls: what waits for it there fails at once.

        The end of the program calls this.
        """
        leave_all(self._groups)

    @property
    def engine(self) -> Engine:
        """The engine.

        Raises:
            CommunicationError: before `init`.
        """
        if self._engine is None:
            raise CommunicationError("Communicator: init() must be called first, got a communicator without a world")
        return self._engine

    @property
    def name(self) -> str:
        """Name of the class, as NNabla has it."""
        return type(self).__name__

    @property
    def rank(self) -> int:
        """Number of this process."""
        return self.engine.rank

    @property
    def size(self) -> int:
        """Number of processes."""
        return self.engine.size

    @property
    def local_rank(self) -> int:
        """Number of lower ranks on the same machine."""
        return self.engine.local_rank

    def abort(self) -> None:
        """End all processes."""
        abort = getattr(self.engine, "abort", None)
        if abort is not None:
            abort(255)
        raise SystemExit(255)

    def repeated(self, action: Callable[[], T]) -> T:
        """Call `action`, which communicates, again and again until no rank is lost meanwhile.

        With an engine that outlives its ranks, those that are left have new numbers when `action` is called again; the
        result is the one that all of them have got. Groups other than the world are forgotten then. Other engines
        call `action` once.

        Args:
            action: Gives the same when it is repeated, and changes nothing that it reads.

        Raises:
            CommunicationError: when ranks are missing or disagree.
        """
        while getattr(self.engine, "is_tolerant", False):
            found: list[T] = []
            try:
                found.append(action())
            except LostRankError:
                logger.debug("repeated: lost a rank", exc_info=True)
            if self.engine.agree(bool(found)):  # type: ignore[attr-defined]  # of tolerant engines
                return found[0]
            self.start_world(self.engine.shrink())  # type: ignore[attr-defined]  # of tolerant engines
            logger.warning("a rank was lost; this one continues as rank %d of %d", self.rank, self.size)
        return action()

    def barrier(self, group: str = WORLD) -> None:
        """Wait until every rank of a group has called this."""
        circle = self.circle("barrier", group)
        if circle.size > 1:
            circle.agree("barrier")
            circle.run("barrier")

    # -- groups ----------------------------------------------------------------------------------------------------

    def new_group(self, name_ranks: tuple[str, Iterable[int]]) -> str:
        """Make a group of some ranks; every rank calls this, also those outside of the group.

        Args:
            name_ranks: Name of the group and its ranks in the world, which are renumbered in this order.

        Returns:
            The name.

        Raises:
            ArgumentError: when the name is taken, or the ranks are not different ranks of the world.
        """
        name, ranks = name_ranks[0], [int(rank) for rank in name_ranks[1]]
        world = self.circle("new_group", WORLD)
        if name in self._groups:
            raise ArgumentError(f"new_group: the name must be new, got {name!r}")
        if not ranks or len(set(ranks)) != len(ranks) or not set(ranks) <= set(range(world.size)):
            raise ArgumentError(f"new_group: ranks must be different and from 0 to {world.size - 1}, got {ranks}")
        world.agree("new_group", f"{name} {ranks}")
        engine = world.engine.split(ranks)
        self._groups[name] = None if engine is None else Circle(name, ranks, engine, self.timeout_s)
        self._ranks[name] = ranks
        return name

    def list_groups(self) -> dict[str, list[int]]:
        """Return the ranks of each group by name."""
        return {name: list(ranks) for name, ranks in self._ranks.items()}

    def find_group(self, group: str) -> list[int]:
        """Return the ranks of a group; [] when there is none of that name."""
        return list(self._ranks.get(group, []))

    def circle(self, call: str, group: str) -> Circle:
        """Return the group called `group`, of which this rank is a member.

        Raises:
            ArgumentError: when there is none, or this rank is outside.
        """
        engine = self.engine
        circle = self._groups.get(group)
        if circle is None:
            if group in self._groups:
                ranks = self._ranks[group]
                raise ArgumentError(f"{call}: the calling rank must be in group {group!r} ({ranks}), got rank {engine.rank}")
            raise ArgumentError(f"{call}: group must be one of {', '.join(self._groups)}, got {group!r}")
        return circle

    # -- collectives -----------------------------------------------------------------------------------------------

    def all_reduce(
        self, data: NdArray | Sequence[NdArray], division: bool = False, inplace: bool = False, group: str = WORLD
    ) -> None:
        """Replace arrays by their sums over all ranks of a group.

        Args:
            data: One array or several. Those that are zero on all ranks, and known to be, are left as they are.
            division: Give the mean in place of the sum.
            inplace: Send each array by itself; else all arrays of one dtype are sent together.
            group: Name of the group.

        Raises:
            CommunicationError: when the ranks do not agree, or one is missing.
            DTypeError: for a dtype that cannot be added up.
        """
        circle = self.circle("all_reduce", group)
        if circle.size == 1 or not self.is_syncing:
            return
        if type(data) is NdArray:
            live = single_array("all_reduce", circle, data, subject_of((data.size,), division, inplace, None))
            if live is not None:
                if division or not added_in_place(circle, live, self.deterministic, self.wire_dtype):
                    self._add_up("all_reduce", circle, live, division, inplace, None)
                return
        self._reduce("all_reduce", circle, listed("all_reduce", data), division, inplace, None)

    def reduce(
        self,
        data: NdArray | Sequence[NdArray],
        dst: int,
        division: bool = False,
        inplace: bool = False,
        group: str = WORLD,
    ) -> None:
        """Like `all_reduce`, for rank `dst` of the group only; the arrays of the others are left as they are."""
        circle = self.circle("reduce", group)
        circle.require_rank("reduce", "dst", dst)
        if circle.size > 1:
            self._reduce("reduce", circle, listed("reduce", data), division, inplace, dst)

    def bcast(self, data: NdArray | Sequence[NdArray], src: int, inplace: bool = False, group: str = WORLD) -> None:
        """Give the arrays of one rank to all of its group, in their dtypes.

        Args:
            data: One array or several.
            src: The rank within the group.
            inplace: Has no effect.
            group: Name of the group.
        """
        circle = self.circle("bcast", group)
        circle.require_rank("bcast", "src", src)
        arrays = listed("bcast", data)
        if circle.size == 1:
            return
        circle.agree("bcast", f"{shapes_of(arrays)} from rank {src}")
        codes = np.array([code_of("bcast", array) for array in arrays], np.int8)
        circle.run("broadcast", codes, src)
        for code in sorted(set(codes.tolist())):
            chosen = [array for array, own in zip(arrays, codes, strict=True) if own == code]
            if not code:
                for array in chosen if circle.rank != src else ():
                    array.zero()
                continue
            dtype = NAMES[code]
            flat = flat_of(chosen, dtype)
            circle.run("broadcast", flat.view(np.uint8), src)
            if circle.rank != src:
                write_flat(chosen, flat, [dtype] * len(chosen))

    def reduce_scatter(
        self, ndarray_list: Sequence[NdArray], ndarray: NdArray, division: bool = False, group: str = WORLD
    ) -> None:
        """Add up over all ranks; rank i of the group gets the sum of element i of the lists.

        Args:
            ndarray_list: One array for each rank of the group, all of one size and dtype.
            ndarray: Takes the result; of the same size.
            division: Give the mean in place of the sum.
            group: Name of the group.
        """
        circle = self.circle("reduce_scatter", group)
        arrays = one_for_each("reduce_scatter", ndarray_list, ndarray, circle)
        if circle.size == 1:
            copy_array(arrays[0], ndarray)
            return
        name = arrays[0].dtype.name
        dtype = sum_dtype("reduce_scatter", name, division)
        circle.agree("reduce_scatter", f"{shapes_of(arrays)} {name}")
        send = flat_of(arrays, dtype)
        if self.deterministic and circle.size > 2 and send.dtype.kind == "f":
            total = total_of(circle, send, True, self.wire_dtype)[circle.rank * ndarray.size :][: ndarray.size]
        else:
            total = np.empty(ndarray.size, send.dtype)
            circle.run("reduce_scatter", send, total, "sum")
        write_flat([ndarray], _mean(total, circle.size) if division else total, [name])

    def all_gather(self, ndarray: NdArray, ndarray_list: Sequence[NdArray], group: str = WORLD) -> None:
        """Give the array of each rank to all ranks of a group.

        Args:
            ndarray: Contribution of this rank.
            ndarray_list: Element i takes the array of rank i of the group; all of one size.
            group: Name of the group.
        """
        circle = self.circle("all_gather", group)
        arrays = one_for_each("all_gather", ndarray_list, ndarray, circle)
        if circle.size == 1:
            copy_array(ndarray, arrays[0])
            return
        name = ndarray.dtype.name
        if name not in CODES:
            raise DTypeError(f"all_gather: arrays must be of {', '.join(CODES)}, got {name}")
        circle.agree("all_gather", f"{ndarray.size} {name}")
        send = flat_of([ndarray], name).view(np.uint8)
        receive = np.empty(send.size * circle.size, np.uint8)
        circle.run("all_gather", send, receive)
        write_flat(arrays, receive.view(flat_of([], name).dtype), [name] * len(arrays))

    # -- gradients -------------------------------------------------------------------------------------------------

    def all_reduce_callback(
        self,
        data: NdArray | Sequence[NdArray],
        pack_size: int,
        division: bool = False,
        group: str = WORLD,
        scale_grad: float = 1.0,
        keep_dtype: bool = False,
    ) -> AllReduceCallback:
        """Return the callback for ``backward(communicator_callbacks=...)``: gradients are added up when they are complete.

        An engine that works beside the computation (``overlaps``) gets them during the backward pass, others at its end.

        Args:
            data: The gradients, arrays of parameters; one that several functions add to is sent after the last of them.
                The last ones are sent first.
            pack_size: Number of values that are sent together at least.
            division: Give the mean in place of the sum.
            group: Name of the group.
            scale_grad: Gradients are multiplied by it before they are added up.
            keep_dtype: Has no effect: arrays keep their dtypes, and halves are added up in float32.
        """
        grads = listed("all_reduce_callback", data)
        circle = self.circle("all_reduce_callback", group)
        if circle.size == 1 and scale_grad == 1:
            return idle_callback(pack_size)
        # the same one for the same gradients: plans have its steps
        key = tuple(map(id, grads)), pack_size, division, group, scale_grad
        if key not in self._callbacks:
            if len(self._callbacks) >= _MAX_CALLBACKS:
                self._callbacks.clear()
            self._callbacks[key] = AllReduceCallback(self, grads, pack_size, division, group, scale_grad)
        return self._callbacks[key]

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside the ``with`` block, leave gradients as they are: for all but the last of several backward passes."""
        before, self.is_syncing = self.is_syncing, False
        try:
            yield
        finally:
            self.is_syncing = before

    def add_context_and_parameters(self, ctx_param_dict: tuple[Context, dict[str, Any]]) -> None:
        """Register the parameters whose gradients `allreduce` adds up."""
        self._parameters.update(ctx_param_dict[1])

    def clear_context_parameters(self) -> None:
        """Forget what `add_context_and_parameters` has registered."""
        self._parameters.clear()

    def allreduce(self, division: bool = False, inplace: bool = False) -> None:
        """Add up the gradients of the registered parameters; `all_reduce` takes them as an argument."""
        self.all_reduce([parameter.grad for parameter in self._parameters.values()], division, inplace)

    # -- sums ------------------------------------------------------------------------------------------------------

    def _reduce(
        self, call: str, circle: Circle, arrays: list[NdArray], division: bool, inplace: bool, dst: int | None
    ) -> None:
        live = live_arrays(call, circle, arrays, subject_of(tuple([array.size for array in arrays]), division, inplace, dst))
        self._add_up(call, circle, live, division, inplace, dst)

    def _add_up(self, call: str, circle: Circle, live: Live, division: bool, inplace: bool, dst: int | None) -> None:
        for name in live.dtypes:
            sum_dtype(call, name, division)
        for pack in packs(live, inplace):
            own = memory_of(pack.arrays, pack.dtypes[0]) if dst is None else None
            flat = flat_of(pack.arrays, SUMS[pack.dtypes[0]]) if own is None else own
            total = total_of(circle, flat, self.deterministic, self.wire_dtype)
            if division:
                total = _mean(total, circle.size)
            if (dst is None and total is not own) or circle.rank == dst:
                write_flat(pack.arrays, total, pack.dtypes)

    def any_rank(self, call: str, flags: Sequence[bool], group: str = WORLD) -> list[bool]:
        """Return whether each flag is set on any rank of a group."""
        circle = self.circle(call, group)
        if circle.size == 1:
            return list(flags)
        circle.agree(call, f"{len(flags)} flags")
        found = np.array(flags, np.uint8)
        circle.run("all_reduce", found, "max")
        return [bool(flag) for flag in found]

    def gather_rows(self, call: str, rows: Array, subject: str = "", group: str = WORLD) -> Array:
        """Return the rows of all ranks of a group below each other, in the order of the ranks and to the bit.

        Args:
            call: Name for messages.
            rows: The rows of this rank; all ranks have as many, of one length and dtype.
            subject: Another value that must be the same on all ranks.
            group: Name of the group.

        Raises:
            CommunicationError: when the ranks bring rows of other shapes or dtypes, or another `subject`.
        """
        circle = self.circle(call, group)
        if circle.size == 1:
            return rows
        circle.agree(call, f"{subject} {rows.shape} {rows.dtype}".lstrip())
        receive = np.empty((circle.size * len(rows), *rows.shape[1:]), rows.dtype)
        circle.run("all_gather", np.ascontiguousarray(rows).reshape(-1).view(np.uint8), receive.reshape(-1).view(np.uint8))
        return receive

    def sum_flat(self, call: str, parts: Sequence[Array], n_terms: int, group: str = WORLD) -> Array:
        """Return the sum of terms that are spread over ranks, in an order that does not depend on how; see `tree`.

        Args:
            call: Name for messages.
            parts: Partial sums of this rank, flat arrays of one size; they are used up.
            n_terms: Number of terms on all ranks together, at least one a rank; see `tree.terms_of_rank`.
            group: Name of the group.
        """
        circle = self.circle(call, group)
        if circle.size > 1:
            circle.agree(call, f"{parts[0].size} {parts[0].dtype} {n_terms}")
            if n_terms == circle.size:
                return total_of(circle, parts[0], self.deterministic, self.wire_dtype)
        return tree_all_reduce(circle.engine, parts, n_terms, circle.wait, self.wire_dtype, circle.scratch)


def _mean(total: Array, size: int) -> Array:
    return np.divide(total, size, out=total, dtype=total.dtype)


__all__ = ["WORLD", "Communicator"]
