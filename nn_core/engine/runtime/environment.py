"""Values of environment variables, each by a reader that refuses what it cannot be.

An empty value counts as not set. `nn_core.settings` has the table of the variables; it alone reads them.

Raises:
    ArgumentError: when a variable has a value that it cannot have.
"""

import signal
from collections.abc import Mapping
from typing import Final

from nn_core.errors import ArgumentError

#: Digits of a count; Python refuses to read thousands.
_MOST_DIGITS: Final = 18
_LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_BOOLS: Final = {"0": False, "false": False, "off": False, "1": True, "true": True, "on": True}


def read_bool(environment: Mapping[str, str], name: str, default: bool) -> bool:
    """Return whether a variable is on: 0, 1, off, on, false or true."""
    text = environment.get(name, "")
    if not text:
        return default
    if text.lower() not in _BOOLS:
        raise ArgumentError(f"{name}: must be 0 or 1, got {text!r}")
    return _BOOLS[text.lower()]


def read_log_level(environment: Mapping[str, str], name: str) -> str | None:
    """Return the name of a level of messages, in capitals; None where there is none."""
    text = environment.get(name, "")
    if not text:
        return None
    if text.upper() not in _LOG_LEVELS:
        raise ArgumentError(f"{name}: must be one of {', '.join(_LOG_LEVELS)}, got {text!r}")
    return text.upper()


def read_count(environment: Mapping[str, str], name: str) -> int | None:
    """Return an integer of at least 1; None where there is none."""
    text = environment.get(name, "")
    if not text:
        return None
    if not text.isdecimal() or len(text) > _MOST_DIGITS or int(text) < 1:
        raise ArgumentError(f"{name}: must be an integer of at least 1, got {text!r}")
    return int(text)


def read_status(environment: Mapping[str, str], name: str, default: int) -> int:
    """Return an exit status from 1 to 255."""
    number = read_count(environment, name)
    if number is not None and number > 255:
        raise ArgumentError(f"{name}: must be an exit status from 1 to 255, got {number}")
    return default if number is None else number


def read_choices(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return names, with commas between them and + or - in front of each."""
    parts = tuple(part.strip() for part in environment.get(name, "").split(",") if part.strip())
    for part in parts:
        if part[0] not in "+-" or not part[1:]:
            raise ArgumentError(f"{name}: must be names with + or - in front, such as +acme,-other, got {part!r}")
    return parts


def read_signals(environment: Mapping[str, str], name: str, default: frozenset[str]) -> frozenset[str]:
    """Return names of signals that can be handled, with commas between them."""
    names = frozenset(part.strip() for part in environment.get(name, "").split(",") if part.strip())
    for part in sorted(names):
        if part not in signal.Signals.__members__ or part in ("SIGKILL", "SIGSTOP"):
            raise ArgumentError(f"{name}: must be names of signals that can be handled, such as SIGHUP,SIGUSR1, got {part!r}")
    return names or default


def read_seconds(environment: Mapping[str, str], name: str, default: float, *, or_none: bool = False) -> float:
    """Return a positive number of seconds; with `or_none` also 0."""
    text = environment.get(name, "")
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if or_none and seconds == 0:
        return seconds
    if not 0 < seconds < float("inf"):
        raise ArgumentError(f"{name}: must be a positive number of seconds, got {text!r}")
    return seconds
