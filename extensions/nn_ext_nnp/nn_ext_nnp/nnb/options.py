"""How to write NNB files: version, API level, types of numbers, implementations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from nn_core.ext import ArgumentError, FileFormatError, one_line
from nn_ext_nnp.nnb.binary import VERSIONS
from nn_ext_nnp.nnb.numbers import PLAIN, NumberType, type_named

#: The last API level of NNabla 1.39.
LAST_LEVEL: Final = 45
_KEYS: Final = {"functions", "variables"}


@dataclass(frozen=True, slots=True)
class NnbOptions:
    """The choices of who writes a file.

    Attributes:
        batch_size: number of samples; below 1: that of the network.
        version: 2 or 3.
        level: the highest API level that functions may need.
        default: type of parameters, and of other variables when it says how many digits are after the point.
        types: types of variables by name.
        implementations: numbers of implementations by the name of the function.
        executor: which executor, from 0.
    """

    batch_size: int = 1
    version: int = 2
    level: int = LAST_LEVEL
    default: NumberType = PLAIN
    types: Mapping[str, NumberType] = field(default_factory=dict)
    implementations: Mapping[str, int] = field(default_factory=dict)
    executor: int = 0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ArgumentError: when the version or the level is another one than there is.
        """
        if self.version not in VERSIONS:
            raise ArgumentError(f"NNB: the version must be 2 or 3, got {self.version}")
        if not 1 <= self.level <= LAST_LEVEL:
            raise ArgumentError(f"NNB: the API level must be from 1 to {LAST_LEVEL}, got {self.level}")

    def type_of(self, name: str, is_parameter: bool) -> NumberType:
        """Return the type of a variable."""
        if name in self.types:
            return self.types[name]
        return self.default if is_parameter or self.default.fraction is not None else PLAIN


def read_settings_file(path: Path) -> tuple[dict[str, NumberType], dict[str, int]]:
    """Return the types of variables, and the implementations of functions, that a file in YAML lists.

    Raises:
        FileFormatError: when it is no YAML, or says something else.
        ArgumentError: when a type is none.
    """
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: must be YAML, got: {one_line(error)}") from error
    if not isinstance(found, dict) or not set(found) <= _KEYS:
        given = sorted(map(str, found)) if isinstance(found, dict) else type(found).__name__
        raise FileFormatError(f"{path}: must have the keys functions and variables, got {given}")
    variables, functions = (_mapping(found, key, path) for key in ("variables", "functions"))
    types = {str(name): type_named(str(text), f"{path}: {name}") for name, text in variables.items()}
    return types, {str(name): _implementation(entry, path, name) for name, entry in functions.items()}


def _mapping(found: dict[str, Any], key: str, path: Path) -> dict[str, Any]:
    part = found.get(key) or {}
    if not isinstance(part, dict):
        raise FileFormatError(f"{path}: {key} must be a mapping, got {type(part).__name__}")
    return part


def _implementation(entry: Any, path: Path, name: str) -> int:
    number = entry.get("implement", 0) if isinstance(entry, dict) else None
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= 65535:
        raise FileFormatError(f"{path}: functions: {name} must have `implement`, a number from 0 to 65535, got {entry!r}")
    return number
