"""The two sources of random numbers: one draws the initial values of parameters, the other serves random functions."""

from typing import Final

import numpy as np

from nn_core.errors import ArgumentError
from nn_core.graph import seeds

#: The seed of initial values until ``seed()`` is called; random functions start from the system's randomness.
DEFAULT_SEED: Final = 313

#: Draws the initial values of parameters wherever no ``rng`` is given. Seeding changes its state in place, so
#: ``from nn_core.random import prng`` stays the generator in use.
prng: Final = np.random.RandomState(DEFAULT_SEED)


def seed(seed_value: int, set_function_seed: bool = True, set_parameter_seed: bool = True) -> None:
    """Make everything random that follows repeatable.

    Args:
        seed_value: From 0 to 2**32 - 1.
        set_function_seed: Also restart the numbers of random functions (dropout, rand, random_crop, ...).
        set_parameter_seed: Also restart the numbers from which initial values of parameters are drawn.

    Raises:
        ArgumentError: when `seed_value` is not an integer in this range.

    Example:
        >>> seed(1)
        >>> first = prng.rand()
        >>> seed(1)
        >>> first == prng.rand()
        True
    """
    checked_seed(seed_value)
    if set_function_seed:
        seeds.set_function_seed(int(seed_value))
    if set_parameter_seed:
        prng.seed(seed_value)


def set_parameter_seed(seed_value: int) -> None:
    """Restart the numbers from which initial values of parameters are drawn."""
    prng.seed(checked_seed(seed_value))


def set_function_seed(seed_value: int) -> None:
    """Restart the numbers of the random functions that have no seed of their own."""
    seeds.set_function_seed(checked_seed(seed_value))


def checked_seed(seed_value: int) -> int:
    """`seed_value` as an int, if it is one that can be a seed."""
    if isinstance(seed_value, bool) or not isinstance(seed_value, (int, np.integer)) or not 0 <= seed_value < 2**32:
        raise ArgumentError(f"seed: the seed must be an integer from 0 to 2**32 - 1, got {seed_value!r}")
    return int(seed_value)
