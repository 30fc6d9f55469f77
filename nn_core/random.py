"""The two sources of random numbers: one draws the initial values of parameters, the other serves random functions.

``pseed`` is the seed from which ``prng`` was last restarted.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.engine.error_messages.refusal import checked_flag, fitted
from nn_core.engine.graph import seeds
from nn_core.engine.graph.node import Value
from nn_core.engine.runtime.locks import fork_safe
from nn_core.engine.runtime.schemas import require_like, wrong_state
from nn_core.errors import ArgumentError, NNCoreError

#: Generators of NumPy, of both kinds.
Rng: TypeAlias = np.random.RandomState | np.random.Generator

#: The seed of initial values until ``seed()`` is called; random functions start from the system's randomness.
DEFAULT_SEED: Final = 313

#: Numbers that a Mersenne Twister has in store.
_LENGTH: Final = 624
_BITS: Final = np.random.MT19937()
fork_safe(_BITS.lock)  # another thread may draw while this one forks
#: Draws the initial values of parameters wherever no ``rng`` is given. Seeding changes its state in place, so
#: ``from nn_core.random import prng`` stays the generator in use.
prng: Final = np.random.RandomState(_BITS)
prng.seed(DEFAULT_SEED)

_latest_seed: Final = [DEFAULT_SEED]


@fitted
def seed(seed_value: int, set_function_seed: bool = True, set_parameter_seed: bool = True) -> None:
    """Make everything random that follows repeatable.

    Args:
        seed_value: From 0 to 2**32 - 1.
        set_function_seed: Also restart the numbers of random functions (dropout, rand, random_crop, ...).
        set_parameter_seed: Also restart the numbers from which initial values of parameters are drawn.

    Raises:
        ArgumentError: when `seed_value` is not an integer in this range, or a flag is none.

    Example:
        >>> nn.seed(1)
        >>> first = F.rand(shape=(3,))
        >>> first.forward()
        >>> nn.seed(1)
        >>> second = F.rand(shape=(3,))
        >>> second.forward()
        >>> np.array_equal(first.d, second.d)
        True
    """
    checked_seed(seed_value)
    of_functions = checked_flag("seed: set_function_seed", set_function_seed)
    of_parameters = checked_flag("seed: set_parameter_seed", set_parameter_seed)
    if of_functions:
        seeds.set_function_seed(int(seed_value))
    if of_parameters:
        _restart(int(seed_value))


def set_parameter_seed(seed_value: int) -> None:
    """Restart the numbers from which initial values of parameters are drawn."""
    _restart(checked_seed(seed_value))


def set_function_seed(seed_value: int) -> None:
    """Restart the numbers of the random functions that have no seed of their own."""
    seeds.set_function_seed(checked_seed(seed_value))


def get_state(*variables: Value) -> dict[str, Any]:
    """Everything that random numbers depend on, as plain values: both sources, and the random functions of graphs.

    Args:
        variables: Results of static graphs. The counters of the random functions that they depend on are included, which
            matters for functions with a seed of their own: ``F.dropout(x, seed=3)`` counts its runs.

    Returns:
        A dictionary for `set_state`, of integers, strings, arrays and further containers of these.

    Example:
        >>> state = get_state()
        >>> first = prng.rand()
        >>> set_state(state)
        >>> first == prng.rand()
        True
    """
    function_seed, counter = seeds.FUNCTION_SEED.get()
    return {
        "function_seed": function_seed,
        "function_counter": counter,
        "parameter_seed": _latest_seed[0],
        "prng": get_generator_state(prng),
        "functions": [list(key) for key in seeds.keys_of(variables)],
    }


def set_state(state: Mapping[str, Any], *variables: Value) -> None:
    """Continue where `get_state` was called.

    Args:
        state: The result of `get_state`, from this process or another.
        variables: Results of the same graphs, in the same order.

    Raises:
        ArgumentError: when `state` is not one of `get_state`, or the graphs have another number of random functions.
            Nothing is changed then.
    """
    before = get_state(*variables)
    try:
        _set_state(state, variables, before)
    except BaseException as error:
        _set_state(before, variables, before)
        if isinstance(error, NNCoreError) or not isinstance(error, Exception):
            raise
        raise wrong_state("set_state", error) from error


def _set_state(state: Mapping[str, Any], variables: Sequence[Value], own: Mapping[str, Any]) -> None:
    require_like("set_state", state, own)
    wanted = {"function_seed", "function_counter", "parameter_seed", "prng", "functions"}
    if set(state) != wanted:
        raise ArgumentError(f"set_state: state must have {', '.join(sorted(wanted))}, got {', '.join(sorted(state))}")
    seeds.require_keys(variables, state["functions"])
    set_generator_state(prng, state["prng"])
    seeds.FUNCTION_SEED.restore(state["function_seed"], state["function_counter"])
    _latest_seed[0] = int(state["parameter_seed"])
    seeds.set_keys(variables, state["functions"])


def get_generator_state(rng: Rng) -> dict[str, Any]:
    """Return the state of a generator of NumPy, as a dictionary of numbers, strings and arrays."""
    if isinstance(rng, np.random.Generator):
        return dict(rng.bit_generator.state)
    return dict(rng.get_state(legacy=False))


def set_generator_state(rng: Rng, state: Mapping[str, Any]) -> None:
    """Continue a generator of NumPy from a state that `get_generator_state` returned.

    Raises:
        ArgumentError: when the state is that of another kind of generator, or none.
    """
    kind = get_generator_state(rng)["bit_generator"]
    given = state.get("bit_generator")
    if given != kind:
        raise ArgumentError(f"set_generator_state: state must be that of a {kind} generator, got {given}")
    require_like("set_generator_state", state, get_generator_state(rng))
    inner = state.get("state")
    position = inner.get("pos", 0) if isinstance(inner, Mapping) else 0
    if not 0 <= position <= _LENGTH:  # NumPy would read beyond the numbers
        raise ArgumentError(f"set_generator_state: pos must be from 0 to {_LENGTH}, got {position}")
    try:
        if isinstance(rng, np.random.Generator):
            # A state of another kind's Generator has no cached normal number, and NumPy ignores one here.
            rng.bit_generator.state = dict(state)
        else:
            rng.set_state({"has_gauss": 0, "gauss": 0.0, **state})
    except (TypeError, ValueError, LookupError, OverflowError) as error:
        raise wrong_state("set_generator_state", error) from error


def require_generator_state(rng: Rng, state: Mapping[str, Any]) -> None:
    """Refuse a state that `set_generator_state` would refuse; the generator stays as it is."""
    set_generator_state(copy.deepcopy(rng), state)


def _restart(seed_value: int) -> None:
    prng.seed(seed_value)
    _latest_seed[0] = seed_value


def __getattr__(name: str) -> int:
    if name == "pseed":
        return _latest_seed[0]
    raise AttributeError(f"module 'nn_core.random' has no attribute {name!r}")


def checked_seed(seed_value: int) -> int:
    """`seed_value` as an int, if it is one that can be a seed."""
    if isinstance(seed_value, bool) or not isinstance(seed_value, (int, np.integer)) or not 0 <= seed_value < 2**32:
        raise ArgumentError(f"seed: the seed must be an integer from 0 to 2**32 - 1, got {seed_value!r}")
    return int(seed_value)
