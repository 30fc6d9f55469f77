"""The time that this process may take, as a scheduler of jobs sees it: resumed runs start to count anew."""

import math
import os
import re
import time
from typing import Final, TypeAlias

from nn_core.engine.error_messages.refusal import described
from nn_core.errors import ArgumentError, quoted

#: Seconds, a text such as "3h50m", "slurm", "slurm-5m" for five minutes before the end of the job, or "@" and a Unix time.
TimeLimit: TypeAlias = float | str

#: Set by Slurm: the time at which it ends the job.
_SLURM_END: Final = "SLURM_JOB_END_TIME"
#: Seconds before the end of a job of Slurm at which training ends, unless they are given: for the step and the checkpoint.
_MARGIN_S: Final = 120.0
_SECONDS: Final = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?[dhms])+")
#: A Unix time, of few enough digits that it is finite.
_TIME: Final = re.compile(r"@([0-9]{1,18}(\.[0-9]*)?|\.[0-9]+)")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)([dhms])")


def deadline_of(function: str, limit: TimeLimit) -> float:
    """Return the time of ``time.monotonic()`` at which a limit that begins now is reached.

    Args:
        function: Start of messages.
        limit: The limit.

    Raises:
        ArgumentError: when it is none, or one of Slurm's outside of its jobs.
    """
    return time.monotonic() + _seconds_left(function, limit)


def end_time(function: str, limit: TimeLimit) -> float:
    """Return the Unix time at which a limit that begins now is reached.

    Args:
        function: Start of messages.
        limit: The limit, as `nn_core.training.StopSignals` takes it.

    Raises:
        ArgumentError: when it is none, or one of Slurm's outside of its jobs.

    Example:
        >>> import time
        >>> from nn_core.ext import end_time
        >>> round(end_time("launch: --time-limit", "1h30m") - time.time())
        5400
    """
    return time.time() + _seconds_left(function, limit)


def seconds_of(function: str, duration: float | str) -> float:
    """Return a duration, a number of seconds or a text such as "3h50m", in seconds.

    Args:
        function: Start of messages, with the name of the argument.
        duration: The duration; days, hours, minutes and seconds are d, h, m and s.

    Raises:
        ArgumentError: when it is another one, or not greater than 0.

    Example:
        >>> from nn_core.engine.runtime.limits import seconds_of
        >>> seconds_of("fit: time_limit", "3h50m")
        13800.0
    """
    if isinstance(duration, str):
        text = duration.strip().lower()
        found = (
            sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text)) if _DURATION.fullmatch(text) else 0.0
        )
    else:
        is_number = isinstance(duration, (int, float)) and not isinstance(duration, bool)
        found = float(duration) if is_number else 0.0
    if not 0.0 < found < math.inf:
        shown = quoted(duration) if isinstance(duration, str) else described(duration)
        if isinstance(duration, (int, float)):
            shown = repr(duration)
        raise ArgumentError(f"{function}: must be positive seconds or a text such as '3h50m', got {shown}")
    return found


def checked_limit(function: str, limit: TimeLimit) -> tuple[str, float]:
    """Return what a limit is counted from ("slurm", "@" or "" for now), and how many seconds.

    Raises:
        ArgumentError: when it is no limit.
    """
    if isinstance(limit, str):
        text = limit.strip().lower()
        if text == "slurm" or text.startswith("slurm-"):
            return "slurm", seconds_of(function, text[6:]) if text[6:] else _MARGIN_S
        if _TIME.fullmatch(text):
            return "@", float(text[1:])
    return "", seconds_of(function, limit)


def _seconds_left(function: str, limit: TimeLimit) -> float:
    start, seconds = checked_limit(function, limit)
    if start == "slurm":
        return _slurm_end(function) - seconds - time.time()
    return seconds - time.time() if start else seconds


def _slurm_end(function: str) -> float:
    text = os.environ.get(_SLURM_END, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise ArgumentError(
            f"{function}: slurm needs {_SLURM_END}, which jobs of Slurm 22.05 and later have, "
            f"got {quoted(text) if text else 'none'}\n"
            "  hint: give the limit itself, such as '3h50m'"
        )
    return float(text)
