"""The choice among the variants of a network."""

from collections.abc import Collection
from typing import TypeVar

from nn_core.engine.error_messages.refusal import described
from nn_core.errors import ArgumentError

T = TypeVar("T")


def chosen_depth(model: str, given: T, variants: Collection[T], argument: str = "num_layers") -> T:
    """`given`, which must be one of `variants`.

    Raises:
        ArgumentError: when it is not.
    """
    if isinstance(given, bool) or given not in variants:
        raise ArgumentError(f"{model}: {argument} must be one of {', '.join(map(str, variants))}, got {described(given)}")
    return given
