"""Parameters with their usual initial values."""

from collections.abc import Callable, Sequence
from typing import Any

from nn_core.ext import Variable, get_parameter_or_create, initializer

#: Makes initial values from a shape, or holds them.
Initializer = Callable[[tuple[int, ...]], Any] | Any

ZEROS = initializer.ConstantInitializer(0)
ONES = initializer.ConstantInitializer(1)


def trained(name: str, shape: Sequence[int], given: Initializer | None, usual: Initializer, fix_parameters: bool) -> Variable:
    """Return a parameter to train unless it is fixed, from the initial values given, else the usual ones."""
    return get_parameter_or_create(name, tuple(shape), usual if given is None else given, True, not fix_parameters)


def weight(
    name: str,
    shape: Sequence[int],
    sizes: tuple[int, int],
    w_init: Initializer | None,
    rng: initializer.Rng | None,
    fix_parameters: bool,
) -> Variable:
    """Return a weight to train; without `w_init` it is uniform within Glorot's limits for `sizes` inputs and outputs."""
    limits = initializer.calc_uniform_lim_glorot(*sizes)
    return trained(name, shape, w_init, initializer.UniformInitializer(limits, rng), fix_parameters)
