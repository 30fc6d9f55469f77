"""How users name axes: one number, several, or None for all."""

from collections.abc import Sequence
from typing import SupportsIndex, TypeAlias

Axes: TypeAlias = SupportsIndex | Sequence[int] | None


def listed(axes: Axes) -> Sequence[int] | None:
    """The axes as a sequence; None stays None."""
    return (axes.__index__(),) if isinstance(axes, SupportsIndex) else axes
