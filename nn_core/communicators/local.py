"""A communicator of threads, for tests of programs that communicate."""

from collections.abc import Callable
from typing import Any

from nn_core.communicators.communicator import Communicator
from nn_core.communicators.threads import ThreadEngine, run_threads
from nn_core.engine.error_messages.refusal import checked_count


class LocalCommunicator(Communicator):
    """The communicator of one of several threads of a process; `run` starts them.

    Example:
        >>> import nn_core as nn
        >>> def program(comm):
        ...     x = nn.NdArray.from_numpy_array([comm.rank + 1.0])
        ...     comm.all_reduce(x)
        ...     return x.data.item()
        >>> LocalCommunicator.run(3, program)
        [6.0, 6.0, 6.0]
    """

    @classmethod
    def run(cls, size: int, program: Callable[["LocalCommunicator"], Any], **options: Any) -> list[Any]:
        """Call ``program(comm)`` in `size` threads, each with its communicator, which is initialized.

        Args:
            size: Number of threads.
            program: Called once for each rank.
            options: Arguments of `Communicator`.

        Returns:
            The results by rank.

        Raises:
            ArgumentError: when `size` is no whole number of at least 1.
            Exception: the first exception of a rank; the collectives of the others fail then.
        """
        size = checked_count("LocalCommunicator: size", size)

        def of_rank(engine: ThreadEngine) -> Any:
            comm = cls(engine=engine, **options)
            comm.init()
            result = program(comm)
            comm.leave()
            return result

        return run_threads(size, of_rank)
