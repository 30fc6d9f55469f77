"""Specifications of inputs and outputs, and the conversion of given arrays to exactly those."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nn_core.ext import ArgumentError, DTypeError, ShapeError

Array = np.ndarray[Any, np.dtype[Any]]
#: Kinds of numbers that are accepted for each kind of input: no conversion that would lose what was meant.
_ACCEPTED: Final = {"f": "fiu", "i": "iu", "u": "iu", "b": "b"}


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, shape without the axis of samples, and dtype of an input or an output.

    Attributes:
        name: Its name in the network.
        shape: Lengths of all axes after the first one, which counts the samples.
        dtype: The dtype in which it is computed.

    Example:
        >>> TensorSpec("image", (3, 32, 32), np.dtype("float32")).checked("predict", np.zeros((2, 3, 32, 32))).dtype
        dtype('float32')
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def checked(self, function: str, values: Array) -> Array:
        """Return `values`, samples along axis 0, in this dtype.

        Args:
            function: The name that errors begin with.
            values: An array (n, *shape).

        Raises:
            ShapeError: when there are no samples, or they have another shape. Nothing is broadcast.
            DTypeError: when the kind of number is another one.
            ArgumentError: when a number is too large for the dtype, or an integer is not represented exactly.
        """
        if values.shape[1:] != self.shape or values.ndim == 0 or not len(values):
            wanted = ", ".join(("n", *map(str, self.shape)))
            raise ShapeError(
                f"{function}: {self.name!r} must have shape ({wanted}{',' if not self.shape else ''}) with n >= 1 samples, "
                f"got {values.shape}"
            )
        if values.dtype.kind not in _ACCEPTED.get(self.dtype.kind, ""):
            raise DTypeError(f"{function}: {self.name!r} must hold numbers that fit {self.dtype}, got {values.dtype}")
        if values.dtype == self.dtype:
            return values
        with np.errstate(over="ignore", invalid="ignore"):
            converted = values.astype(self.dtype)
        if not _is_kept(values, converted):
            raise ArgumentError(
                f"{function}: {self.name!r} must hold numbers that {self.dtype} represents, got {values.dtype}"
            )
        return converted


def _is_kept(values: Array, converted: Array) -> bool:
    """Return whether integers are equal, and finite numbers are finite."""
    if values.dtype.kind == "f":
        return bool((np.isfinite(converted) == np.isfinite(values)).all())
    with np.errstate(invalid="ignore"):
        return bool((converted.astype(values.dtype) == values).all())


def checked_inputs(function: str, specs: Mapping[str, TensorSpec], given: Mapping[str, Any]) -> tuple[dict[str, Array], int]:
    """Return arrays for all inputs, and how many samples they have.

    Raises:
        ArgumentError: when names are missing or unknown.
        ShapeError, DTypeError: as `TensorSpec.checked`, or when inputs have different numbers of samples.
    """
    if given.keys() != specs.keys():
        raise ArgumentError(f"{function}: inputs must be {sorted(specs)}, got {sorted(map(str, given))}")
    found = {name: spec.checked(function, as_array(function, name, given[name])) for name, spec in specs.items()}
    counts = {name: len(values) for name, values in found.items()}
    if len(set(counts.values())) > 1:
        raise ShapeError(f"{function}: all inputs must have the same number of samples, got {counts}")
    return found, next(iter(counts.values()))


def as_array(function: str, name: str, values: Any) -> Array:
    """Return an array of what was given, such as nested lists.

    Raises:
        ShapeError: when lists are ragged.
    """
    try:
        return np.asarray(values)
    except (ValueError, OverflowError) as error:
        raise ShapeError(f"{function}: {name!r} must be nested lists of equal lengths, got {error}") from error
