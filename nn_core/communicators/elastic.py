"""Processes that take the places of lost ones while the others go on."""

from collections.abc import Callable
from typing import Final

import numpy as np

from nn_core.communicators.communicator import WORLD, Communicator
from nn_core.logger import logger

#: Bytes of a state that are sent at a time.
_PIECE: Final = 1 << 28


def fill_up(comm: Communicator, state: Callable[[], bytes]) -> None:
    """Start a process in the place of each lost one, and give it the state of rank 0; the lowest ranks are those that live.

    All ranks that live call this at the same place of the program. Nothing happens where none is lost, or the engine starts no
    processes.

    Args:
        comm: The communicator.
        state: Gives what the new processes need to go on from here; it is called by rank 0.
    """
    missing: int = getattr(comm.engine, "n_missing", 0)
    if not missing:
        return
    logger.warning("%d processes start in place of lost ones", missing)
    comm.start_world(comm.engine.grow(missing))  # type: ignore[attr-defined]  # of engines with n_missing
    _shared(comm, state() if comm.rank == 0 else b"")


def join(comm: Communicator) -> bytes:
    """Go where the others are, in a process that has taken the place of a lost one (`joins_late`); the state of rank 0."""
    comm.start_world(comm.engine)
    return _shared(comm, b"")


def _shared(comm: Communicator, state: bytes) -> bytes:
    circle = comm.circle("join", WORLD)
    circle.agree("join")
    length = np.array([len(state)])
    circle.run("broadcast", length, 0)
    content = np.frombuffer(state, np.uint8).copy() if comm.rank == 0 else np.empty(int(length[0]), np.uint8)
    for start in range(0, content.size, _PIECE):
        circle.run("broadcast", content[start : start + _PIECE], 0)
    return content.tobytes()
