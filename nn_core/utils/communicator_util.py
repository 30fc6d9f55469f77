"""One communicator for a program that may run as one process or as several."""

from nn_core.communicators import MultiProcessDataParallelCommunicator, find_launch
from nn_core.errors import NNCoreError
from nn_core.ext_utils import get_extension_context
from nn_core.logger import logger

_current: list[MultiProcessDataParallelCommunicator] = []


def create_communicator(
    ignore_error: bool = False, extension_module: str = "cudnn", type_config: str = "float"
) -> MultiProcessDataParallelCommunicator | None:
    """Make the communicator of this process, if a launcher has started several.

    Args:
        ignore_error: Log an error and continue alone.
        extension_module: The backend; the device is the one with the number of the local rank.
        type_config: The type of numbers.

    Returns:
        The communicator, or None for a process that was started alone.

    Raises:
        NNCoreError: when the processes cannot be connected.
    """
    launch = find_launch()
    _current.clear()
    if launch is None or launch.size == 1:
        return None
    try:
        comm = MultiProcessDataParallelCommunicator(get_extension_context(extension_module, type_config=type_config))
        comm.init()
        if comm.ctx is not None and comm.local_rank:
            comm.ctx = comm.ctx.replace(device_id=str(comm.local_rank))
    except NNCoreError as error:
        if not ignore_error:
            raise
        logger.warning("create_communicator: the program continues alone: %s", error)
        return None
    _current.append(comm)
    return comm


def current_communicator() -> MultiProcessDataParallelCommunicator | None:
    """Return the communicator that `create_communicator` made last."""
    return _current[0] if _current else None


def single_or_rankzero() -> bool:
    """Return whether this process writes logs and files: it is alone, or has rank 0."""
    return not _current or _current[0].rank == 0
