"""The trainer of a Ray cluster: it starts a program on several workers, and again when one of them dies."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from nn_core.errors import ArgumentError, CommunicationError
from nn_core.logger import logger

#: Seconds before the first new start, twice as many before each later one: Ray needs some 15 s to miss a lost machine.
PAUSE_S: Final = 2.0


def train(
    program: Callable[..., Any],
    arguments: Sequence[Any] = (),
    *,
    workers: int | tuple[int, int] = 1,
    shards: int | None = None,
    max_failures: int = 3,
    resources: Mapping[str, float] | None = None,
    strategy: str = "PACK",
    wait_s: float = 60,
    grow_wait_s: float = 5,
    variables: Mapping[str, str] | None = None,
) -> list[Any]:
    """Call ``program(*arguments)`` on several workers of a Ray cluster, which are ranks of one communicator.

    In the program, ``comm = nn_core.communicators.MultiProcessCommunicator(ctx)`` and ``comm.init()`` connect the workers, as
    under ``nn-core launch``. When a worker dies, all start again, as many as the cluster has room for; a program that calls
    ``trainer.run(resume=True)`` then continues from its newest checkpoint, and with ``shards=`` of the `Updater` it ends
    with the bits of an undisturbed run. The checkpoints need a folder that all machines share.

    Args:
        program: The function; it is pickled, modules that it imports must be installed on all machines.
        arguments: Its arguments.
        workers: The number of workers, or the smallest and the largest one.
        shards: The number of shards of the program: only numbers of workers that divide it are used. None: any.
        max_failures: How often the workers are started again. An exception of the program ends the job at once.
        resources: What each worker needs: one CPU by default; {"CPU": 2, "GPU": 1}.
        strategy: How Ray spreads workers over machines: "PACK", "SPREAD", "STRICT_PACK" or "STRICT_SPREAD".
        wait_s: Seconds to wait until the smallest number of workers has room.
        grow_wait_s: Seconds to wait for each larger number; a cluster that adds machines by itself needs more.
        variables: Further environment variables of the workers.

    Returns:
        What the program has returned, by rank.

    Raises:
        ArgumentError: when the arguments do not fit together.
        CommunicationError: when workers have died too often, or the cluster has no room for them.
        Exception: that of the program.

    Example:
        >>> from nn_ext_ray import train
        >>> def program(value):
        ...     import numpy as np, nn_core as nn, nn_core.communicators as C
        ...     comm = C.MultiProcessCommunicator(nn.Context())
        ...     comm.init()
        ...     x = nn.NdArray.from_numpy_array(np.array([value * (comm.rank + 1.0)]))
        ...     comm.all_reduce(x)
        ...     return x.data.item()
        >>> train(program, (5,), workers=2)  # doctest: +SKIP
        [15.0, 15.0]
    """
    if max_failures < 0:
        raise ArgumentError(f"train: max_failures must be at least 0, got {max_failures}")
    counts = worker_counts(workers, shards)
    needs = {"CPU": 1.0, **(resources or {})}
    if any(amount <= 0 for amount in needs.values()):
        raise ArgumentError(f"train: resources must be positive, got {needs}")
    if strategy not in ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"):
        raise ArgumentError(f"train: strategy must be PACK, SPREAD, STRICT_PACK or STRICT_SPREAD, got {strategy!r}")
    from nn_ext_ray.cluster import Cluster, WorkerFailure  # imports Ray, which takes half a second

    with Cluster(needs, strategy, wait_s, grow_wait_s, variables or {}) as cluster:
        for number in itertools.count():
            try:
                return cluster.run(program, arguments, counts)
            except WorkerFailure as failure:
                if number == max_failures:
                    raise CommunicationError(
                        f"train: {max_failures} failures are answered by another start, got one more: {failure}"
                    ) from failure
                logger.warning("train: after %s the workers start again (%d of %d)", failure, number + 1, max_failures)
                time.sleep(PAUSE_S * 2**number)
    raise AssertionError("the loop ends by a result or an error")


def worker_counts(workers: int | tuple[int, int], shards: int | None) -> list[int]:
    """Return the numbers of workers that may be started, the largest first.

    Raises:
        ArgumentError: when there is none.
    """
    least, most = (workers, workers) if isinstance(workers, int) else workers
    if not 1 <= least <= most:
        raise ArgumentError(f"train: workers must be at least 1, the smallest number first, got {workers}")
    counts = [count for count in range(most, least - 1, -1) if shards is None or shards % count == 0]
    if not counts:
        raise ArgumentError(f"train: shards must be a multiple of a number of workers, got {shards} and {workers} workers")
    return counts
