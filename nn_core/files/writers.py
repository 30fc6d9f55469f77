"""Folders into which a process is writing: another one that would end it waits until it has finished."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from nn_core.files.atomic import has_unfinished, open_locked

#: Seconds in which a process that is about to write has begun, and between two looks.
_GRACE_S: Final = 0.5
_PAUSE_S: Final = 0.05


@contextmanager
def writing_into(folder: Path) -> Iterator[None]:
    """Let `wait_for_writers` of other processes wait until the block, or this process, has ended."""
    path = folder / f".writing.{secrets.token_hex(4)}.partial"
    with open_locked(path):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def wait_for_writers(folder: Path, timeout_s: float) -> bool:
    """Wait until nobody writes into a folder that all machines share.

    Args:
        folder: The folder.
        timeout_s: The longest time to wait; 0: any time.

    Returns:
        Whether nobody does.
    """
    start = time.monotonic()
    while has_unfinished(folder) or time.monotonic() - start < _GRACE_S:
        if timeout_s and time.monotonic() - start > timeout_s:
            return False
        time.sleep(_PAUSE_S)
    return True
