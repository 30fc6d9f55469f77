"""Fallbacks: functions that ran below the first choice of their context; logged once, counted, refused in strict mode."""

import logging
import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass

from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.runtime.context_values import Mode
from nn_core.engine.runtime.locks import fork_safe
from nn_core.errors import FallbackError
from nn_core.logger import logger
from nn_core.settings import settings


@dataclass(frozen=True, slots=True)
class Fallback:
    """A function that was set up below the first choice of its context.

    `left_family` says whether it left the device family of the first choice; that is what strict mode refuses.
    """

    function: str
    wanted: str
    ran_on: str
    reason: str
    left_family: bool
    count: int

    def __str__(self) -> str:
        where = "another device family" if self.left_family else "the same device family"
        return f"{self.function}: {self.wanted} -> {self.ran_on} ({where}), {self.count} x: {self.reason}"


class FallbackReport(tuple[Fallback, ...]):
    """The result of `fallback_report`; prints one line per function."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "every function ran on the first choice of its context"


@fitted
def fallback_report() -> FallbackReport:
    """Return the functions that were set up below the first choice of their context, how often, and why.

    Example:
        >>> report = nn.fallback_report()
        >>> isinstance(str(report), str)
        True
    """
    with _lock:
        return FallbackReport(sorted(_fallbacks.values(), key=lambda fallback: (fallback.function, fallback.wanted)))


def forget_fallbacks() -> None:
    """Clear `fallback_report`; later fallbacks are logged again."""
    with _lock:
        _fallbacks.clear()


@fitted
def strict_dispatch(strict: bool = True) -> AbstractContextManager[bool | None]:
    """Inside the ``with`` block, refuse to run a function outside the device family of the first choice.

    Outside of every block NN_CORE_STRICT decides.

    Example:
        >>> with nn.strict_dispatch():
        ...     y = F.tanh(nn.NdArray((2, 3)))  # a FallbackError if it had to leave the device
    """
    return _strict.scope(strict)


def is_strict() -> bool:
    """Return whether leaving the device family of the first choice is an error here."""
    # a block of the program says more than the environment
    strict = _strict.get()
    return settings().strict if strict is None else strict


def record(function: str, wanted: str, ran_on: str, reason: str, *, left_family: bool) -> None:
    """Note that `function` runs on `ran_on`, although the context has `wanted` first.

    Raises:
        FallbackError: in strict mode, when the device family was left.
    """
    # before it is counted: the function does not run
    if left_family and is_strict():
        raise FallbackError(
            f"{function}: strict mode requires the device family of the first choice {wanted}, got {ran_on}\n"
            f"  {wanted}: {reason}"
        )
    key = (function, wanted, ran_on)
    with _lock:
        known = _fallbacks.get(key)
        count = known.count + 1 if known else 1
        _fallbacks[key] = Fallback(function, wanted, ran_on, reason, left_family, count)
    if known is None:  # once a function and pair of backends, or a training would log in each step
        level = logging.WARNING if left_family else logging.DEBUG
        logger.log(level, "%s runs on %s instead of %s: %s", function, ran_on, wanted, reason)


_strict: Mode[bool | None] = Mode("strict_dispatch", None)
_fallbacks: dict[tuple[str, str, str], Fallback] = {}
_lock = fork_safe(threading.Lock())
