"""Settings of functions as NNB files hold them."""

from collections.abc import Mapping
from typing import Any, Final

from nn_core.ext import ArgumentError, FileFormatError
from nn_ext_nnp.schema import functions
from nn_ext_nnp.settings import read_settings, spec_of

_CODES: Final = {"b": "B", "i": "i", "s": "i", "f": "f", "d": "f", "Shape": "iI", "i*": "iI"}
#: Settings that NNB files have and NNP files have not, after all others.
_MORE: Final = {"Dropout": ("B",)}
_INT32: Final = range(-(2**31), 2**31)


def codes_of(kind: str) -> tuple[str, ...]:
    """Return the codes of the settings of a function: B, i, f, or iI for a list."""
    return (*stated_codes(kind), *_MORE.get(kind, ()))


def stated_codes(kind: str) -> tuple[str, ...]:
    """Those of the settings that NNP files have as well; NNabla writes no others."""
    return tuple(_CODES[code] for code in functions()[kind].settings.values())


def settings_of(function: Any, batch_size: int, inferred: Mapping[str, Any]) -> list[bool | int | float | list[int]]:
    """Return the values for the codes of a function.

    Args:
        function: its message.
        batch_size: number of samples.
        inferred: settings that follow from the inputs when the file does not have them, such as the stride of a pooling.

    Raises:
        ArgumentError: when a value is not in the file, or does not fit.
    """
    kind = functions()[function.type]
    # NNabla leaves -1 for the number of samples in the shapes of Reshape.
    given = read_settings(function, -1 if function.type == "Reshape" else batch_size)
    defaults = {arg.name: arg.default for arg in spec_of(function.type).args if not arg.default_rule} | dict(inferred)
    found: list[bool | int | float | list[int]] = []
    for name, code in kind.settings.items():
        value = given.get(name, defaults.get(name))
        where = f"C runtime: function {function.name!r} ({function.type}): {name}"
        if value is None:
            raise ArgumentError(f"{where} must be in the file, got nothing")
        found.append(_value(value, code, choices_of(function.type, name), where))
    return found + [False] * len(_MORE.get(function.type, ()))


def choices_of(kind: str, setting: str) -> tuple[str, ...]:
    """Return the values of a setting that is a text, in the order that numbers them."""
    return next((tuple(arg.choices or ()) for arg in spec_of(kind).args if arg.name == setting), ())


def _value(value: Any, code: str, choices: tuple[str, ...], where: str) -> bool | int | float | list[int]:
    if code == "s":
        if value not in choices:
            raise ArgumentError(f"{where} must be one of {choices}, got {value!r}")
        return choices.index(value)
    if code == "b":
        return bool(value)
    if code in ("f", "d"):
        return float(value)
    numbers = [int(number) for number in (value if isinstance(value, (list, tuple)) else [value])]
    if any(number not in _INT32 for number in numbers):
        raise ArgumentError(f"{where} must have numbers of 32 bits, got {value}")
    return numbers if _CODES[code] == "iI" else numbers[0]


def message_values(kind: str, values: list[bool | int | float | list[int]], where: str) -> dict[str, Any]:
    """Return the settings of a message from the values of a file.

    Raises:
        FileFormatError: when a text has a number that there is not.
    """
    found: dict[str, Any] = {}
    for (name, code), value in zip(functions()[kind].settings.items(), values, strict=False):
        if code == "s":
            choices = choices_of(kind, name)
            if not isinstance(value, int) or not 0 <= value < len(choices):
                raise FileFormatError(f"{where}: {name} of {kind} must be a number below {len(choices)}, got {value}")
            found[name] = choices[value]
        else:
            found[name] = value
    return found
