"""Calls that are atomic with respect to KeyboardInterrupt.

A signal handler runs between two bytecode instructions. Between ``turn.acquire()`` and the ``try`` that follows are several,
and an exception of Ctrl-C there leaves the lock taken for ever. `atomically` makes its calls inside one instruction, the one
that unpacks its results, so that either nothing has happened or the names are bound:

    (is_mine,) = atomically(turn.acquire, (False,))
    try:
        ...

A function of Python would bring its own instructions; `map` has none. What it calls must not run Python code either.
"""

from typing import Final

#: ``(a, b) = atomically(function, (argument of a, argument of b))``.
atomically: Final = map
