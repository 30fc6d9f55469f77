"""Interpreters without a global interpreter lock are refused: graphs, caches and parameters rely on it."""

import sys


def require_gil() -> None:
    """Refuse to be used where Python runs threads without the lock.

    Raises:
        ImportError: in a free-threaded interpreter whose lock is off.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise ImportError(
            "nn_core: Python must run with its global interpreter lock, got a free-threaded interpreter without it\n"
            "  hint: set PYTHON_GIL=1, or use a regular build of Python"
        )
