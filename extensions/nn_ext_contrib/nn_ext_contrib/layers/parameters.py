"""Parameters with their usual initial values."""

from collections.abc import Callable, Sequence
from typing import Any

from nn_core import Variable
from nn_core.initializer import ConstantInitializer, Rng, UniformInitializer, calc_uniform_lim_glorot
from nn_core.parameter import get_parameter_or_create

#: Makes initial values from a shape, or holds them.
Initializer = Callable[[tuple[int, ...]], Any] | Any

ZEROS = ConstantInitializer(0)
ONES = ConstantInitializer(1)


def trained(name: str, shape: Sequence[int], initializer: Initializer, fix_parameters: bool) -> Variable:
    """A parameter to train, unless it is fixed."""
    return get_parameter_or_create(name, tuple(shape), initializer, True, not fix_parameters)


def weight(
    name: str, shape: Sequence[int], sizes: tuple[int, int], w_init: Initializer | None, rng: Rng | None, fix_parameters: bool
) -> Variable:
    """A weight, uniform within Glorot's limits for so many inputs and outputs if nothing else is said."""
    initial = UniformInitializer(calc_uniform_lim_glorot(*sizes), rng) if w_init is None else w_init
    return trained(name, shape, initial, fix_parameters)
