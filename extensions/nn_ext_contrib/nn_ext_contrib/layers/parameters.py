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


def trained(
    name: str, shape: Sequence[int], given: Initializer | None, usual: Initializer, fix_parameters: bool
) -> Variable:
    """Return a parameter to train unless it is fixed, from the initial values given, else the usual ones."""
    return get_parameter_or_create(name, tuple(shape), usual if given is None else given, True, not fix_parameters)


def weight(
    name: str, shape: Sequence[int], sizes: tuple[int, int], w_init: Initializer | None, rng: Rng | None, fix_parameters: bool
) -> Variable:
    """Return a weight to train; without `w_init` it is uniform within Glorot's limits for `sizes` inputs and outputs."""
    return trained(name, shape, w_init, UniformInitializer(calc_uniform_lim_glorot(*sizes), rng), fix_parameters)
