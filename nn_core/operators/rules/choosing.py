"""Gradients of functions that choose: what was chosen gets the gradient, and nothing reaches the rest."""

from typing import Any


def chosen(F: Any, mask: Any, value: Any) -> Any:
    """`value` where the mask is not 0, else 0: also where `value` is NaN or infinite, of which a product would make NaN.

    The mask has the shape of `value`, or of its first axes.
    """
    return F.where(mask, value, F.constant(val=0, shape=tuple(value.shape)))
