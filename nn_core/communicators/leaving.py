"""The end of a program tells the ranks that are left, which would wait for it in their next collective."""

import atexit
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from nn_core.communicators.group import Circle

#: The groups of each communicator of this process. A program may lose its names before the interpreter ends.
_JOINED: Final = list[Mapping[str, Circle | None]]()


def leave_at_exit(groups: Mapping[str, Circle | None]) -> None:
    """Let the end of the program call `leave_all` for the groups of a communicator."""
    if not _JOINED:
        atexit.register(_leave_at_exit)
    _JOINED.append(groups)


def leave_all(groups: Mapping[str, Circle | None]) -> None:
    """Tell the other ranks of groups that this one makes no further calls."""
    for circle in groups.values():
        if circle is not None:
            circle.leave()


def _leave_at_exit() -> None:
    for groups in _JOINED:
        with suppress(Exception):  # the others may be gone, or the library closed
            leave_all(groups)
