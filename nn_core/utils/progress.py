"""The state of a program in a file, for monitoring from outside."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from nn_core.files import atomic_writer

#: Called with the state, None at the end, and the share that is done.
Callback: TypeAlias = Callable[[str | None, float], object]

#: Seconds between two writes of the file.
_INTERVAL_S: Final = 1.0


@dataclass
class _Settings:
    path: Path | None = None
    callback: Callback | None = None
    written_s: float = float("-inf")


_SETTINGS: Final = _Settings()


def configure_progress(file_name: str | os.PathLike[str] | None, cb: Callback | None = None) -> None:
    """Choose where `progress` writes.

    Args:
        file_name: Path of the file; None: no file.
        cb: Called with each state and share as well.
    """
    _SETTINGS.path = None if file_name is None else Path(file_name)
    _SETTINGS.callback = cb
    _SETTINGS.written_s = float("-inf")


def progress(state: str | None, progress: float = 0.0) -> None:
    """Say what the program does and how far it is; written to the file once a second at most.

    Args:
        state: Its activity; None: it is done, and the file becomes empty.
        progress: The share that is done, from 0 to 1.
    """
    if _SETTINGS.callback is not None:
        _SETTINGS.callback(state, progress)
    now = time.monotonic()
    if _SETTINGS.path is None or (state is not None and now - _SETTINGS.written_s < _INTERVAL_S):
        return
    _SETTINGS.written_s = now
    text = "" if state is None else f"{state} ({progress * 100:.2f}%)"
    with atomic_writer(_SETTINGS.path) as file:  # a watcher never sees half of it
        file.write(text.encode())
