"""A report of the memory of a device by what holds it."""

from collections.abc import Iterator
from dataclasses import dataclass

from nn_core.ext import plan_memory
from nn_ext_cuda.device.runtime import cupy
from nn_ext_cuda.launch import graphs
from nn_ext_cuda.memory import derived_weights, workspace
from nn_ext_cuda.memory.arrays import UPLOADS
from nn_ext_cuda.memory.small_blocks import RECYCLED
from nn_ext_cuda.plugin import ARRAY_CLASSES


@dataclass(frozen=True, slots=True)
class Arena:
    """Memory that one owner holds.

    Attributes:
        name: The owner.
        count: Number of pools or blocks.
        used_bytes: Bytes in arrays.
        held_bytes: Bytes that were taken from the driver, the used ones among them.
    """

    name: str
    count: int
    used_bytes: int
    held_bytes: int

    def __str__(self) -> str:
        used, held = (f"{n / 2**20:10.1f} MiB" for n in (self.used_bytes, self.held_bytes))
        return f"{self.name:<36}{self.count:6d}{used}{held}"


class MemoryReport(tuple[Arena, ...]):
    """The result of `memory_report`; prints one line for each arena."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join([f"{'arena':<36}{'count':>6}{'used':>14}{'held':>14}", *map(str, self)])


def memory_report(device: str | int = 0) -> MemoryReport:
    """Return the memory of this process on a device by what holds it.

    Args:
        device: Number of the device.

    Returns:
        The pool of arrays; the values of plans, the workspaces of this thread and copies of weights in the layouts of kernels,
        which are arrays of that pool (or of the driver, see `prefer_cached_array`), as is free memory that small arrays will
        get; the pools of recorded graphs, which keep their memory as long as the plans exist; and the page-locked memory of
        inputs on their way from this thread.

    Example::

        >>> print(nn_ext_cuda.memory_report())
        arena                                count          used          held
        arrays                                   1     412.3 MiB     640.0 MiB
        plans, among the arrays                  2     301.7 MiB     301.7 MiB
        workspaces, among the arrays             2      64.0 MiB      64.0 MiB
        laid-out weights, among the arrays      20      44.6 MiB      44.6 MiB
        free small arrays, among the arrays    310       0.0 MiB       1.2 MiB
        graphs                                   2       8.0 MiB      16.0 MiB
        inputs on their way, on the host         1       0.6 MiB       0.6 MiB
    """
    number = int(device)
    with cupy.cuda.Device(number):
        return MemoryReport(_arenas(number))


def _arenas(device: int) -> Iterator[Arena]:
    pool = cupy.get_default_memory_pool()
    yield Arena("arrays", 1, pool.used_bytes(), pool.total_bytes())
    sizes = [n_bytes for kind in ARRAY_CLASSES for n_bytes in plan_memory(kind, str(device))]
    yield Arena("plans, among the arrays", len(sizes), sum(sizes), sum(sizes))
    sizes = workspace.sizes(device)
    yield Arena("workspaces, among the arrays", len(sizes), sum(sizes), sum(sizes))
    sizes = derived_weights.sizes(device)
    yield Arena("laid-out weights, among the arrays", len(sizes), sum(sizes), sum(sizes))
    sizes = RECYCLED.sizes(device)
    yield Arena("free small arrays, among the arrays", len(sizes), 0, sum(sizes))
    pools = graphs.pools(device)
    yield Arena("graphs", len(pools), sum(p.used_bytes() for p in pools), sum(p.total_bytes() for p in pools))
    n_copies, n_bytes = UPLOADS.on_the_way()
    yield Arena("inputs on their way, on the host", n_copies, n_bytes, n_bytes)
