"""Values of environment variables, each by a reader that refuses what it cannot be.

An empty value counts as not set. `nn_core.settings` has the table of the variables; it alone reads them.

Raises:
    ArgumentError: when a variable has a value that it cannot have.
"""

import re
import signal
from collections.abc import Mapping
from typing import Final

from nn_core.engine.runtime.limits import checked_limit
from nn_core.errors import ArgumentError, quoted

#: Digits of a count; Python refuses to read thousands.
_MOST_DIGITS: Final = 18
#: Addresses that files can be fetched from.
_ADDRESS: Final = re.compile(r"(https?|ftp|file)://[\x21-\x7e]{1,2000}")
#: A longer time is no time for the functions of the system.
_MOST_SECONDS: Final = 1e9
_LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_BOOLS: Final = {"0": False, "false": False, "off": False, "1": True, "true": True, "on": True}


def read_bool(environment: Mapping[str, str], name: str, default: bool) -> bool:
    """Return whether a variable is on: 0, 1, off, on, false or true."""
    text = environment.get(name, "")
    if not text:
        return default
    if text.lower() not in _BOOLS:
        raise ArgumentError(f"{name}: must be 0 or 1, got {quoted(text)}")
    return _BOOLS[text.lower()]


def read_log_level(environment: Mapping[str, str], name: str) -> str | None:
    """Return the name of a level of messages, in capitals; None where there is none."""
    text = environment.get(name, "")
    if not text:
        return None
    if text.upper() not in _LOG_LEVELS:
        raise ArgumentError(f"{name}: must be one of {', '.join(_LOG_LEVELS)}, got {quoted(text)}")
    return text.upper()


def read_count(environment: Mapping[str, str], name: str) -> int | None:
    """Return an integer of at least 1; None where there is none."""
    text = environment.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > _MOST_DIGITS or int(text) < 1:
        raise ArgumentError(f"{name}: must be an integer of at least 1, got {quoted(text)}")
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
            raise ArgumentError(f"{name}: must be names with + or - in front, such as +acme,-other, got {quoted(part)}")
    return parts


def read_signals(environment: Mapping[str, str], name: str, default: frozenset[str]) -> frozenset[str]:
    """Return names of signals that can be handled, with commas between them."""
    names = frozenset(part.strip() for part in environment.get(name, "").split(",") if part.strip())
    for part in sorted(names):
        if part not in signal.Signals.__members__ or part in ("SIGKILL", "SIGSTOP"):
            raise ArgumentError(
                f"{name}: must be names of signals that can be handled, such as SIGHUP,SIGUSR1, got {quoted(part)}"
            )
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
    if not 0 < seconds <= _MOST_SECONDS:
        raise ArgumentError(f"{name}: must be a positive number of seconds, got {quoted(text)}")
    return seconds


def read_address(environment: Mapping[str, str], name: str) -> str | None:
    """Return an address of a folder of files; None where there is none."""
    text = environment.get(name, "")
    if text and not _ADDRESS.fullmatch(text):
        raise ArgumentError(f"{name}: must be an address such as https://host/folder or file:///folder, got {quoted(text)}")
    return text or None


def read_limit(environment: Mapping[str, str], name: str) -> str | None:
    """Return a limit of time; None where there is none."""
    text = environment.get(name, "")
    if text:
        checked_limit(name, text)
    return text or None
