"""Axes as users name them: one number or several; None stands for all where it is allowed."""

from collections.abc import Sequence
from typing import SupportsIndex, TypeAlias, overload

from nn_core.engine.error_messages.whole import is_number, not_whole, whole

Axes: TypeAlias = SupportsIndex | Sequence[int]


@overload
def listed(axes: Axes, name: str = ...) -> Sequence[int]: ...
@overload
def listed(axes: Axes | None, name: str = ...) -> Sequence[int] | None: ...
def listed(axes: Axes | None, name: str = "axis") -> Sequence[int] | None:
    """Return the axes as a sequence; None stays None."""
    if axes is None or type(axes) is tuple:  # asking for a protocol takes microseconds
        return axes
    if not is_number(axes) and not isinstance(axes, SupportsIndex):
        return axes
    try:
        return (whole(axes),)
    except TypeError as error:
        # the function that is called puts its own name in the place of the first word
        raise not_whole(f"sum: {name} must be an integer", axes) from error
