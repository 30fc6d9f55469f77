"""Locks that a forked child finds open.

A child of ``fork()`` has the calling thread alone. A lock that another thread held at that moment would stay closed in the
child for ever, so these locks are taken before each fork and released on both sides after it.
"""

import os
from typing import Protocol, TypeVar


class _Lock(Protocol):
    def acquire(self) -> bool: ...

    def release(self) -> None: ...


_AnyLock = TypeVar("_AnyLock", bound=_Lock)


def fork_safe(lock: _AnyLock) -> _AnyLock:
    """Let `lock`, which lives as long as the process and is held for short times only, be open in forked children."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock
