"""Profile Python functions as they are called."""

import atexit
import cProfile
import functools
import pstats
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from nn_core.errors import ArgumentError, GraphError

Function = TypeVar("Function", bound=Callable[..., Any])

#: Whether a function that is profiled runs: the interpreter has one profiler at a time.
_RUNNING: list["FunctionProfile"] = []


class FunctionProfile:
    """The profile of all calls of a function.

    Args:
        fn: The function.
        condition: Says before a call, from the arguments of that call, whether it is profiled; None: each is.
        profile_class: Class of the profiler, as `cProfile.Profile`.
        print_freq: Print and reset after so many calls; 0: print at the end of the program.
        sort_keys: How the rows are sorted, as ``pstats.Stats.sort_stats`` takes them.
        print_restrictions: Selection of rows to print, as ``pstats.Stats.print_stats`` takes them.

    Attributes:
        fn: The function.
        ncalls: Number of profiled calls since the last `reset_stats`.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        condition: Callable[..., bool] | None = None,
        profile_class: Callable[[], Any] = cProfile.Profile,
        print_freq: int = 0,
        sort_keys: Sequence[str] | None = None,
        print_restrictions: Sequence[Any] | None = None,
    ) -> None:
        if print_freq < 0:
            raise ArgumentError(f"profile: print_freq must be at least 0, got {print_freq}")
        self.fn = fn
        self.ncalls = 0
        self._condition = condition
        self._make = profile_class
        self._print_freq = print_freq
        self._sort_keys = tuple(sort_keys or ("cumulative", "time", "calls"))
        self._restrictions = tuple(print_restrictions or (40,))
        self._profiler = profile_class()
        if not print_freq:
            atexit.register(self._print_at_exit)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the function.

        Raises:
            GraphError: when another profiled function is running.
        """
        if self._condition is not None and not self._condition(*args, **keywords):
            return self.fn(*args, **keywords)
        if _RUNNING:
            raise GraphError(
                f"profile: one function can be profiled at a time, got {self._name} called by {_RUNNING[0]._name}"
            )
        _RUNNING.append(self)
        try:
            self.ncalls += 1
            result = self._profiler.runcall(self.fn, *args, **keywords)
        finally:
            _RUNNING.clear()
        if self._print_freq and self.ncalls >= self._print_freq:
            self.print_stats()
        return result

    def print_stats(self, reset: bool = True) -> None:
        """Print the profile.

        Args:
            reset: Reset the counts.
        """
        if self.ncalls:
            sys.stdout.write(f"--- profile of {self._name}, {self.ncalls} calls ---\n")
            pstats.Stats(self._profiler, stream=sys.stdout).sort_stats(*self._sort_keys).print_stats(*self._restrictions)
        if reset:
            self.reset_stats()

    def reset_stats(self) -> None:
        """Forget all calls."""
        self._profiler = self._make()
        self.ncalls = 0

    @property
    def _name(self) -> str:
        code = getattr(self.fn, "__code__", None)
        place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
        return f"{getattr(self.fn, '__qualname__', repr(self.fn))}{place}"

    def _print_at_exit(self) -> None:
        self.print_stats()


@overload
def profile(fn: Function) -> Function: ...


@overload
def profile(fn: None = None, **settings: Any) -> Callable[[Function], Function]: ...


def profile(fn: Callable[..., Any] | None = None, **settings: Any) -> Any:
    """Decorate a function to be profiled; ``function.profiler`` is its `FunctionProfile`.

    Args:
        fn: The function.
        **settings: Arguments of `FunctionProfile`.

    Example:
        >>> @profile(print_freq=100)
        ... def add(a, b):
        ...     return a + b
        >>> add(1, 2), add.profiler.ncalls
        (3, 1)
    """
    if fn is None:
        return functools.partial(profile, **settings)
    profiler = FunctionProfile(fn, **settings)

    @functools.wraps(fn)
    def profiled(*args: Any, **keywords: Any) -> Any:
        return profiler(*args, **keywords)

    profiled.profiler = profiler  # type: ignore[attr-defined]  # functions have attributes
    return profiled
