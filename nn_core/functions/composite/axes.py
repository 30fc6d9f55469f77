"""Axes as users name them: one number or several; None stands for all where it is allowed."""

from collections.abc import Sequence
from typing import SupportsIndex, TypeAlias, overload

from nn_core.messages.whole import is_number

Axes: TypeAlias = SupportsIndex | Sequence[int]


@overload
def listed(axes: Axes) -> Sequence[int]: ...
@overload
def listed(axes: Axes | None) -> Sequence[int] | None: ...
def listed(axes: Axes | None) -> Sequence[int] | None:
    """The axes as a sequence; None stays None."""
    if axes is None or type(axes) is tuple:  # asking for a protocol takes microseconds
        return axes
    if isinstance(axes, SupportsIndex):
        return (axes.__index__(),)
    return (axes,) if is_number(axes) else axes  # type: ignore[return-value]  # a whole number, which the function checks
