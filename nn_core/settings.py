"""Every environment variable of nn_core, typed, in one table; no other module reads the environment.

What makes programs faster and changes no result beyond rounding has a name in `OPTIMIZATIONS`, and can be switched off:
by NN_CORE_DISABLE for a process, by ``with without("fuse"):`` for a while.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from nn_core.errors import ArgumentError

_BOOLS: Final = {"0": False, "false": False, "off": False, "1": True, "true": True, "on": True}
_LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

#: What can be switched off, and what happens then.
OPTIMIZATIONS: Final[Mapping[str, str]] = {
    "channels_last": "images lie in C order between functions",
    "fuse": "every step of a plan is called by itself",
    "join": "inference runs convolution, normalization, addition and activation one after another",
    "multi_tensor": "solvers change one parameter after another",
    "pack": "weights are brought into the layout of a kernel in each run",
    "replay": "each call of a dynamic graph is worked out anew, and its backward pass is compiled in each step",
    "share_memory": "every intermediate array of a plan has memory of its own",
    "winograd": "3 x 3 convolutions use the direct method",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says; the defaults are what holds when it says nothing.

    Attributes:
        plugin_autoload: NN_CORE_PLUGIN_AUTOLOAD. False: a plugin is used only when a program names it.
        strict: NN_CORE_STRICT. True: leaving the device family of the first backend is an error.
        log_level: NN_CORE_LOG_LEVEL. From which level on messages are printed; None leaves it to the program.
        num_threads: NN_CORE_NUM_THREADS. Threads of native kernels; None leaves it to the backend.
        skip_plugin_check: NN_CORE_SKIP_PLUGIN_CHECK. True: plugins are loaded whatever versions they ask for.
        disable: NN_CORE_DISABLE. Names of `OPTIMIZATIONS` to do without, with commas between them.
    """

    plugin_autoload: bool = True
    strict: bool = False
    log_level: str | None = None
    num_threads: int | None = None
    skip_plugin_check: bool = False
    disable: frozenset[str] = field(default_factory=frozenset)

    @staticmethod
    def read(environment: Mapping[str, str]) -> "Settings":
        """The settings that `environment` holds; an empty value counts as not set.

        Raises:
            ArgumentError: when a variable has a value that it cannot have.
        """
        default = Settings()
        return Settings(
            plugin_autoload=_bool(environment, "NN_CORE_PLUGIN_AUTOLOAD", default.plugin_autoload),
            strict=_bool(environment, "NN_CORE_STRICT", default.strict),
            log_level=_log_level(environment, "NN_CORE_LOG_LEVEL"),
            num_threads=_count(environment, "NN_CORE_NUM_THREADS"),
            skip_plugin_check=_bool(environment, "NN_CORE_SKIP_PLUGIN_CHECK", default.skip_plugin_check),
            disable=_optimizations(environment, "NN_CORE_DISABLE"),
        )


@cache
def settings() -> Settings:
    """The settings of this process, read from the environment at the first call."""
    return Settings.read(os.environ)


#: What `without` has set; empty: what the environment says.
_DISABLED: Final[list[frozenset[str]]] = []
#: Called after an optimization was switched on or off; who prepares work by one forgets it.
WHEN_SWITCHED: Final[list[Callable[[], object]]] = []


def disabled_optimizations() -> frozenset[str]:
    """The names of the optimizations that are switched off now."""
    return _DISABLED[0] if _DISABLED else settings().disable


def is_enabled(optimization: str) -> bool:
    """Whether `optimization`, one of `OPTIMIZATIONS`, is in use."""
    return optimization not in disabled_optimizations()


@contextmanager
def without(*optimizations: str) -> Iterator[None]:
    """Do without some of `OPTIMIZATIONS` in a ``with`` block, in all threads of the process.

    Raises:
        ArgumentError: when one of them does not exist.
    """
    before = disabled_optimizations()
    _switch(before | _known(optimizations, "without"))
    try:
        yield
    finally:
        _switch(before)


def _switch(names: frozenset[str]) -> None:
    if names != disabled_optimizations():
        _DISABLED[:] = [names]
        for callback in WHEN_SWITCHED:
            callback()


def _known(names: Iterable[str], what: str) -> frozenset[str]:
    for name in names:
        if name not in OPTIMIZATIONS:
            raise ArgumentError(f"{what}: must be names of {', '.join(OPTIMIZATIONS)}, got {name!r}")
    return frozenset(names)


def _optimizations(environment: Mapping[str, str], name: str) -> frozenset[str]:
    return _known([part.strip() for part in environment.get(name, "").split(",") if part.strip()], name)


def _bool(environment: Mapping[str, str], name: str, default: bool) -> bool:
    text = environment.get(name, "")
    if not text:
        return default
    if text.lower() not in _BOOLS:
        raise ArgumentError(f"{name}: must be 0 or 1, got {text!r}")
    return _BOOLS[text.lower()]


def _log_level(environment: Mapping[str, str], name: str) -> str | None:
    text = environment.get(name, "")
    if not text:
        return None
    if text.upper() not in _LOG_LEVELS:
        raise ArgumentError(f"{name}: must be one of {', '.join(_LOG_LEVELS)}, got {text!r}")
    return text.upper()


def _count(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentError(f"{name}: must be an integer of at least 1, got {text!r}")
    return int(text)
