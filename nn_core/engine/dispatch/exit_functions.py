"""Functions to call at exit, and who has registered them while a plugin was imported."""

import atexit
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, ClassVar


class AtExit:
    """Functions that a plugin registers while it is imported, in place of `atexit.register`, which cannot list them.

    A library that it imports may register some of its own when it is loaded, by whomever. They are not told of the plugin.
    """

    _register: ClassVar[Callable[..., Any]] = atexit.register
    _package: ClassVar[str] = ""
    _added: ClassVar[list[Callable[[], Any]]] = []
    _of_others: ClassVar[int] = 0
    _n_empty: ClassVar[int] = 0

    @classmethod
    def listen(cls, package: str) -> None:
        """Note from now on what is registered by a plugin, whose top-level module is `package`."""
        cls._added.clear()
        cls._package = package
        setattr(atexit, "register", cls._note)  # noqa: B010  # an assignment has another type

    @classmethod
    def leave(cls) -> None:
        """Stop noting; what was registered stays registered."""
        setattr(atexit, "register", cls._register)  # noqa: B010

    @classmethod
    def count(cls) -> int:
        """Return the number of functions that are registered, but for those that are not told of a plugin."""
        return int(getattr(atexit, "_ncallbacks", int)()) - cls._n_empty - cls._of_others

    @classmethod
    def forget(cls) -> None:
        """Unregister what was noted."""
        left = cls.count() - len(cls._added)
        for function in cls._added:
            atexit.unregister(function)
        cls._added.clear()
        cls._n_empty += cls.count() - left  # the interpreter may count places that unregistered functions leave

    @classmethod
    def _note(cls, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
        if who_acts(sys._getframe(1)) == cls._package:
            # an object of its own: the program may have registered the same function
            cls._added.append(partial(function, *args, **kwargs))
            cls._register(cls._added[-1])
        else:
            cls._of_others += 1
            cls._register(function, *args, **kwargs)
        return function


def who_acts(frame: FrameType | None) -> str:
    """Return the top-level module that acts in a frame: that of the nearest function outside of Python's library.

    Below the import of a module it is that module, which may have no frames, as those that are compiled.
    """
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        spec = frame.f_locals.get("spec") if package == "importlib" else None
        if spec is not None:
            return str(getattr(spec, "name", "")).partition(".")[0]
        if package not in sys.stdlib_module_names:
            return package
        frame = frame.f_back
    return ""
