"""Every environment variable of nn_core, typed, in one table; no other module reads the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from nn_core.errors import ArgumentError

_BOOLS: Final = {"0": False, "false": False, "off": False, "1": True, "true": True, "on": True}
_LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says; the defaults are what holds when it says nothing.

    Attributes:
        plugin_autoload: NN_CORE_PLUGIN_AUTOLOAD. False: a plugin is used only when a program names it.
        strict: NN_CORE_STRICT. True: leaving the device family of the first backend is an error.
        log_level: NN_CORE_LOG_LEVEL. From which level on messages are printed; None leaves it to the program.
        num_threads: NN_CORE_NUM_THREADS. Threads of native kernels; None leaves it to the backend.
        skip_plugin_check: NN_CORE_SKIP_PLUGIN_CHECK. True: plugins are loaded whatever versions they ask for.
    """

    plugin_autoload: bool = True
    strict: bool = False
    log_level: str | None = None
    num_threads: int | None = None
    skip_plugin_check: bool = False

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
        )


@cache
def settings() -> Settings:
    """The settings of this process, read from the environment at the first call."""
    return Settings.read(os.environ)


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
